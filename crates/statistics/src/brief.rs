//! Estimates in files that keep two numbers only, `{"mean": .., "std_error": ..}` (`null` where the error is not known):
//!
//! ```
//! use pudica_statistics::{Estimate, brief};
//!
//! #[derive(serde::Serialize)]
//! struct Found {
//!     #[serde(with = "brief")]
//!     by_degree: Vec<Estimate>,
//! }
//! let found = Found { by_degree: vec![Estimate::of_values(&[1.0, 3.0])] };
//! assert_eq!(serde_json::to_string(&found).unwrap(), r#"{"by_degree":[{"mean":2.0,"std_error":1.0}]}"#);
//! ```

use std::collections::BTreeMap;

use serde::de::{Deserialize, DeserializeOwned, Deserializer};
use serde::ser::{Serialize, Serializer};

use crate::Estimate;

/// The two numbers.
#[derive(serde::Serialize, serde::Deserialize)]
pub struct Pair {
    mean: f64,
    std_error: Option<f64>,
}

/// An estimate, or a collection of them.
pub trait Brief: Sized {
    /// What is written.
    type Stored: Serialize + DeserializeOwned;
    /// Leaves out what is not kept.
    fn store(&self) -> Self::Stored;
    /// What was written; how many units were averaged is then not known.
    fn restore(stored: Self::Stored) -> Self;
}

impl Brief for Estimate {
    type Stored = Pair;
    fn store(&self) -> Pair {
        Pair { mean: self.mean, std_error: self.std_error }
    }
    fn restore(Pair { mean, std_error }: Pair) -> Self {
        Self::stated(mean, std_error)
    }
}

impl<T: Brief> Brief for Vec<T> {
    type Stored = Vec<T::Stored>;
    fn store(&self) -> Self::Stored {
        self.iter().map(T::store).collect()
    }
    fn restore(stored: Self::Stored) -> Self {
        stored.into_iter().map(T::restore).collect()
    }
}

impl<T: Brief> Brief for Option<T> {
    type Stored = Option<T::Stored>;
    fn store(&self) -> Self::Stored {
        self.as_ref().map(T::store)
    }
    fn restore(stored: Self::Stored) -> Self {
        stored.map(T::restore)
    }
}

impl<T: Brief> Brief for [T; 3] {
    type Stored = [T::Stored; 3];
    fn store(&self) -> Self::Stored {
        self.each_ref().map(T::store)
    }
    fn restore(stored: Self::Stored) -> Self {
        stored.map(T::restore)
    }
}

impl<T: Brief> Brief for BTreeMap<String, T> {
    type Stored = BTreeMap<String, T::Stored>;
    fn store(&self) -> Self::Stored {
        self.iter().map(|(name, value)| (name.clone(), value.store())).collect()
    }
    fn restore(stored: Self::Stored) -> Self {
        stored.into_iter().map(|(name, value)| (name, T::restore(value))).collect()
    }
}

/// For `#[serde(with = "brief")]`.
pub fn serialize<T: Brief, S: Serializer>(value: &T, serializer: S) -> Result<S::Ok, S::Error> {
    value.store().serialize(serializer)
}

/// For `#[serde(with = "brief")]`.
pub fn deserialize<'de, T: Brief, D: Deserializer<'de>>(deserializer: D) -> Result<T, D::Error> {
    T::Stored::deserialize(deserializer).map(T::restore)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(serde::Serialize, serde::Deserialize)]
    struct Found {
        #[serde(with = "super")]
        by_name: BTreeMap<String, Estimate>,
        #[serde(with = "super")]
        all: Option<Vec<Estimate>>,
    }

    #[test]
    fn two_numbers_are_written_and_read() {
        let text = r#"{"by_name":{"fog":{"mean":0.5,"std_error":null}},"all":[{"mean":1.0,"std_error":0.25}]}"#;
        let read: Found = serde_json::from_str(text).unwrap();
        assert_eq!(read.by_name["fog"], Estimate::stated(0.5, None));
        assert_eq!(read.all.as_deref(), Some(&[Estimate::stated(1.0, Some(0.25))][..]));
        assert_eq!(serde_json::to_string(&read).unwrap(), text);
    }
}
