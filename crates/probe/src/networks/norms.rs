//! The size of a network's weights.

use pudica_nn::{Weights, is_positional};

/// The L2 norm of all weights except the positional embeddings, so that networks for different lengths can be compared.
pub fn parameter_norm(weights: &Weights) -> f64 {
    let squares = weights
        .layout()
        .iter()
        .filter(|parameter| !is_positional(&parameter.name))
        .flat_map(|parameter| &weights.data()[parameter.range.clone()])
        .map(|weight| f64::from(*weight).powi(2));
    squares.sum::<f64>().sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positional_embeddings_do_not_count() {
        let mut weights = Weights::zeros([
            ("tok.weight", &[1usize, 2][..]),
            ("pos.weight", &[1, 2][..]),
            ("dec_pos.weight", &[1][..]),
            ("head.bias", &[1][..]),
        ]);
        weights.data_mut().copy_from_slice(&[3.0, 0.0, 100.0, 100.0, 100.0, 4.0]);
        assert_eq!(parameter_norm(&weights), 5.0);
    }
}
