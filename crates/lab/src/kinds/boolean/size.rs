//! Whether a network can fit in memory at all, asked before anything is allocated.

use pudica_boolean::memory::available;

use super::{RunConfig, work};
use crate::error::Result;
use crate::size::{self, Dimension};

/// Refuses `replicas` networks that do not fit in the memory that this process may have, naming the setting to change and the largest
/// value of it that might do.
pub fn check_fits(config: &RunConfig, dtype: &str, replicas: usize) -> Result<()> {
    check_fits_in(config, dtype, replicas, available())
}

const DIMENSIONS: [Dimension<RunConfig>; 9] = [
    ("train.batch", |config| config.train.batch, |config, value| config.train.batch = value),
    ("model.d", |config| config.model.d, |config, value| config.model.d = value),
    ("model.ff", |config| config.ff(), |config, value| config.model.ff = value),
    ("model.layers", |config| config.model.layers, |config, value| config.model.layers = value),
    ("model.positions", |config| config.model.positions, |config, value| config.model.positions = value),
    ("train.set_size", |config| config.train.set_size, |config, value| config.train.set_size = value),
    ("measure.set_size", |config| config.measure.set_size, |config, value| config.measure.set_size = value),
    (
        "measure.sensitivity_samples",
        |config| config.measure.sensitivity_samples,
        |config, value| config.measure.sensitivity_samples = value,
    ),
    ("n", |config| config.n, |config, value| config.n = value),
];

pub(super) fn check_fits_in(config: &RunConfig, dtype: &str, replicas: usize, free: Option<u64>) -> Result<()> {
    size::check_fits(config, &DIMENSIONS, free, |config| work::bytes(config, dtype) * replicas as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(change: fn(&mut RunConfig), replicas: usize) -> Result<()> {
        let mut config = RunConfig { n: 4, ..RunConfig::default() };
        change(&mut config);
        check_fits_in(&config, "f32", replicas, Some(1 << 30))
    }

    #[test]
    fn the_setting_to_blame_and_what_fits_are_named() {
        let refusal = |change: fn(&mut RunConfig)| check(change, 1).unwrap_err().to_string();
        let batch = refusal(|config| config.train.batch = 1_000_000_000_000);
        assert!(
            batch.starts_with(
                "train.batch: 1000000000000 needs about 7.3 TiB of memory, and this process may have 1 GiB; less than"
            ),
            "{batch}"
        );
        let width = refusal(|config| (config.model.d, config.model.ff) = (1_000_000_000, 0));
        assert!(width.starts_with("model.d: 1000000000 needs about"), "{width}");
        assert!(refusal(|config| config.model.ff = 10_000_000_000).starts_with("model.ff"));
        assert!(refusal(|config| config.model.layers = usize::MAX).starts_with("model.layers"));
        check(|_| {}, 1).unwrap();
        assert!(check(|_| {}, 10_000).is_err());
    }

    #[test]
    fn what_is_said_to_fit_does() {
        let refusal = check(|config| config.model.d = 1_000_000, 1).unwrap_err().to_string();
        let most: usize = refusal.rsplit_once("less than ").unwrap().1.split(' ').next().unwrap().parse().unwrap();
        let fits = |d: usize| {
            let mut config = RunConfig { n: 4, ..RunConfig::default() };
            config.model.d = d;
            check_fits_in(&config, "f32", 1, Some(1 << 30)).is_ok()
        };
        assert!(most > 1000 && fits(most - 1) && !fits(most), "{refusal}");
    }
}
