//! Noise on weights: the one place where it is drawn.

use pudica_data::Stream;

use crate::{Parameter, Weights, is_positional};

/// Add N(0, rho^2) to all weights but the positional embeddings, in the order of their layout.
pub fn add_noise(weights: &mut [f32], layout: &[Parameter], rho: f64, noise: &mut Stream) {
    add(weights, layout, || rho * noise.normal());
}

impl Weights {
    /// These weights with N(0, rho^2) added to all but the positional embeddings.
    pub fn perturbed(&self, rho: f64, noise: &mut Stream) -> Weights {
        let mut moved = self.clone();
        add_noise(moved.data_mut(), self.layout(), rho, noise);
        moved
    }

    /// These weights moved by a uniformly random vector of length [`Weights::noise_radius`], positional embeddings excepted.
    pub fn perturbed_on_sphere(&self, rho: f64, noise: &mut Stream) -> Weights {
        let normals: Vec<f64> = (0..self.noisy_count()).map(|_| noise.normal()).collect();
        let scale = self.noise_radius(rho) / length(&normals);
        let (mut moved, mut normals) = (self.clone(), normals.into_iter());
        add(moved.data_mut(), self.layout(), || scale * normals.next().unwrap_or(0.0));
        moved
    }

    /// The length of noise whose root mean square is `rho` on each weight that gets noise.
    pub fn noise_radius(&self, rho: f64) -> f64 {
        rho * (self.noisy_count() as f64).sqrt()
    }

    /// How many weights get noise.
    fn noisy_count(&self) -> usize {
        noisy(self.layout()).map(|parameter| parameter.range.len()).sum()
    }
}

/// The parameters that get noise.
fn noisy(layout: &[Parameter]) -> impl Iterator<Item = &Parameter> {
    layout.iter().filter(|parameter| !is_positional(&parameter.name))
}

fn add(weights: &mut [f32], layout: &[Parameter], mut shift: impl FnMut() -> f64) {
    for parameter in noisy(layout) {
        weights[parameter.range.clone()].iter_mut().for_each(|weight| *weight += shift() as f32);
    }
}

/// The Euclidean norm, in eight sums that are added up at the end: the bounds' numbers have always had that order of adding.
fn length(values: &[f64]) -> f64 {
    let (eights, rest) = values.as_chunks::<8>();
    let mut sums = [0.0; 8];
    for eight in eights {
        (0..8).for_each(|i| sums[i] += eight[i] * eight[i]);
    }
    (sums.iter().sum::<f64>() + rest.iter().map(|value| value * value).sum::<f64>()).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn weights() -> Weights {
        Weights::zeros([("head.weight", &[40usize, 50][..]), ("pos_embedding", &[3][..]), ("a.bias", &[1][..])])
    }

    #[test]
    fn positional_embeddings_get_no_noise() {
        let stream = || Stream::new(0, "noise", 0);
        for moved in [weights().perturbed(0.5, &mut stream()), weights().perturbed_on_sphere(0.5, &mut stream())] {
            let noise = moved.data();
            assert_eq!(noise[2000..2003], [0.0; 3]);
            assert!(noise[..2000].iter().chain(&noise[2003..]).all(|value| *value != 0.0));
        }
    }

    #[test]
    fn noise_has_its_size() {
        let length = |w: &Weights| length(&w.data().iter().copied().map(f64::from).collect::<Vec<_>>());
        let radius = weights().noise_radius(0.5);
        assert_eq!(radius, 0.5 * 2001f64.sqrt());
        let free = weights().perturbed(0.5, &mut Stream::new(0, "noise", 0));
        assert!((length(&free) / radius - 1.0).abs() < 0.1, "{}", length(&free));
        let on_sphere = weights().perturbed_on_sphere(0.5, &mut Stream::new(0, "noise", 0));
        assert!((length(&on_sphere) / radius - 1.0).abs() < 1e-6);
        // The same direction.
        let ratio = f64::from(on_sphere.data()[0]) / f64::from(free.data()[0]);
        assert!((ratio - radius / length(&free)).abs() < 1e-5, "{ratio}");
    }
}
