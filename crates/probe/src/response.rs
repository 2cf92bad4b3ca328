//! Responses: what is compared before and after a touch.

use serde::Serialize;

/// What is compared before and after.
pub trait Response<Out> {
    /// How strongly the output answered.
    fn compare(&self, before: &Out, after: &Out) -> f64;

    /// The most it can be: what has been seen of it so far then tells less. Infinite where there is no such number.
    fn most(&self) -> f64 {
        f64::INFINITY
    }
}

/// One response by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct ResponseEntry {
    /// Its name.
    pub name: &'static str,
    /// What it compares, in a sentence.
    pub meaning: &'static str,
}

/// All responses there are.
pub static RESPONSES: [ResponseEntry; 5] = [
    ResponseEntry {
        name: "label",
        meaning: "1 where the predicted class (or the output's side of 1/2) changes, else 0.",
    },
    ResponseEntry { name: "sign", meaning: "1 where the output's sign changes, else 0; a tie differs from both." },
    ResponseEntry { name: "square", meaning: "The squared shift of the output." },
    ResponseEntry {
        name: "shift",
        meaning: "The shift of the class scores: the sum of sizes (L1), or the length (L2).",
    },
    ResponseEntry { name: "loss", meaning: "How much the loss rises." },
];

/// 1 when the label differs, else 0. The label is the output's side of 1/2, or the class itself.
#[derive(Debug, Clone, Copy)]
pub struct LabelDiffers;

impl Response<usize> for LabelDiffers {
    fn compare(&self, before: &usize, after: &usize) -> f64 {
        f64::from(before != after)
    }

    fn most(&self) -> f64 {
        1.0
    }
}

impl Response<f32> for LabelDiffers {
    fn compare(&self, before: &f32, after: &f32) -> f64 {
        Crosses(0.5).compare(before, after)
    }

    fn most(&self) -> f64 {
        1.0
    }
}

/// 1 when the outputs are on different sides of a number, else 0; the number itself belongs to the lower side.
#[derive(Debug, Clone, Copy)]
pub struct Crosses(pub f32);

impl Response<f32> for Crosses {
    fn compare(&self, before: &f32, after: &f32) -> f64 {
        f64::from((*before > self.0) != (*after > self.0))
    }

    fn most(&self) -> f64 {
        1.0
    }
}

/// 1 where the outputs' signs differ, with sign(0) = 0: a tie differs from both labels.
#[derive(Debug, Clone, Copy)]
pub struct SignDiffers;

impl Response<f64> for SignDiffers {
    fn compare(&self, before: &f64, after: &f64) -> f64 {
        f64::from(u8::from(sign(*before) != sign(*after)))
    }

    fn most(&self) -> f64 {
        1.0
    }
}

/// -1, 0 or 1.
fn sign(value: f64) -> i8 {
    i8::from(value > 0.0) - i8::from(value < 0.0)
}

/// The squared shift of the output.
#[derive(Debug, Clone, Copy)]
pub struct SquaredShift;

impl Response<f32> for SquaredShift {
    fn compare(&self, before: &f32, after: &f32) -> f64 {
        f64::from(after - before).powi(2)
    }
}

impl Response<f64> for SquaredShift {
    fn compare(&self, before: &f64, after: &f64) -> f64 {
        (after - before).powi(2)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tie_is_a_change() {
        let differs = |before: f64, after: f64| SignDiffers.compare(&before, &after);
        assert_eq!(
            [differs(1.0, 0.0), differs(-1.0, 0.0), differs(2.0, 1.0), differs(1.0, -1.0)],
            [1.0, 1.0, 0.0, 1.0]
        );
    }
}
