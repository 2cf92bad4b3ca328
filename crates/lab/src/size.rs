//! Whether a network can fit in memory at all, asked before anything is allocated.

use pudica_boolean::memory::{available, human_bytes};

use crate::config::RunConfig;
use crate::error::{Error, Result};

/// Bytes that training `replicas` such networks needs at the very least: weights, their gradients and two moments of each, and one
/// batch of strings with its labels. What networks really take is several times more.
pub fn least_bytes(config: &RunConfig, replicas: usize) -> u64 {
    let [n, d, ff, layers, batch, replicas] =
        [config.n, config.model.d, config.ff(), config.model.layers, config.train.batch, replicas].map(|x| x as f64);
    let weights = layers * (4.0 * d * d + 2.0 * d * ff) + n * d;
    (replicas * (4.0 * 4.0 * weights + batch * (n + 4.0))) as u64 // what is beyond u64 is u64::MAX
}

/// Refuses what cannot fit, naming the setting to change and the largest value of it that might do.
pub fn check_fits(config: &RunConfig, replicas: usize) -> Result<()> {
    match available() {
        Some(free) => check_fits_in(config, replicas, free),
        None => Ok(()),
    }
}

/// A setting that makes networks large, and how it is changed.
type Dimension = (&'static str, fn(&RunConfig) -> usize, fn(&mut RunConfig, usize));

const DIMENSIONS: [Dimension; 5] = [
    ("train.batch", |config| config.train.batch, |config, value| config.train.batch = value),
    ("model.d", |config| config.model.d, |config, value| config.model.d = value),
    ("model.ff", |config| config.ff(), |config, value| config.model.ff = value),
    ("model.layers", |config| config.model.layers, |config, value| config.model.layers = value),
    ("n", |config| config.n, |config, value| config.n = value),
];

fn check_fits_in(config: &RunConfig, replicas: usize, free: u64) -> Result<()> {
    let needed = least_bytes(config, replicas);
    if needed <= free {
        return Ok(());
    }
    let with = |(_, _, set): &Dimension, value: usize| {
        let mut changed = config.clone();
        set(&mut changed, value);
        least_bytes(&changed, replicas)
    };
    // The one that matters most: without it the least is needed.
    let Some(dimension) = DIMENSIONS.iter().min_by_key(|dimension| with(dimension, 1)) else { return Ok(()) };
    let (key, get, _) = dimension;
    let (mut fits, mut too_large) = (0, get(config));
    while too_large - fits > 1 {
        let middle = fits + (too_large - fits) / 2;
        if with(dimension, middle) <= free { fits = middle } else { too_large = middle }
    }
    let sizes = format!("needs at least {} of memory, and {} is free", human_bytes(needed), human_bytes(free));
    let problem = match fits {
        0 => format!("{} {sizes}; make the network smaller", get(config)),
        fits => format!("{} {sizes}; less than {} could fit", get(config), fits + 1),
    };
    Err(Error::setting(key, problem))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_setting_to_blame_and_what_fits_are_named() {
        let refusal = |change: fn(&mut RunConfig)| {
            let mut config = RunConfig { n: 4, ..RunConfig::default() };
            change(&mut config);
            check_fits_in(&config, 1, 1 << 30).unwrap_err().to_string()
        };
        assert_eq!(
            refusal(|config| config.train.batch = 1_000_000_000_000),
            "train.batch: 1000000000000 needs at least 7.3 TiB of memory, and 1 GiB is free; less than 133823489 could fit"
        );
        let width = refusal(|config| (config.model.d, config.model.ff) = (1_000_000_000, 0));
        assert!(width.starts_with("model.d: 1000000000 needs at least"), "{width}");
        assert!(refusal(|config| config.model.ff = 10_000_000_000).starts_with("model.ff"));
        assert!(refusal(|config| config.model.layers = usize::MAX).starts_with("model.layers"));
        check_fits_in(&RunConfig::default(), 1, 1 << 30).unwrap();
        assert!(check_fits_in(&RunConfig::default(), 10_000, 1 << 30).is_err());
    }

    #[test]
    fn what_is_said_to_fit_does() {
        let mut config = RunConfig { n: 4, ..RunConfig::default() };
        config.train.batch = 133_823_488;
        assert!(least_bytes(&config, 1) <= 1 << 30);
        config.train.batch += 1;
        assert!(least_bytes(&config, 1) > 1 << 30);
    }
}
