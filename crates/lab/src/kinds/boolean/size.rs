//! Whether a network can fit in memory at all, asked before anything is allocated.

use pudica_boolean::memory::{available, human_bytes};

use super::{RunConfig, work};
use crate::error::{Error, Result};

/// Refuses `replicas` networks that do not fit in this machine's memory, naming the setting to change and the largest value of it that
/// might do.
pub fn check_fits(config: &RunConfig, dtype: &str, replicas: usize) -> Result<()> {
    match available() {
        Some(free) => check_fits_in(config, dtype, replicas, free),
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

fn check_fits_in(config: &RunConfig, dtype: &str, replicas: usize, free: u64) -> Result<()> {
    let bytes = |config: &RunConfig| (work::bytes(config, dtype) * replicas as f64) as u64; // at most u64::MAX
    let needed = bytes(config);
    if needed <= free {
        return Ok(());
    }
    let with = |(_, _, set): &Dimension, value: usize| {
        let mut changed = config.clone();
        set(&mut changed, value);
        bytes(&changed)
    };
    // The one that matters most: without it the least is needed.
    let Some(dimension) = DIMENSIONS.iter().min_by_key(|dimension| with(dimension, 1)) else { return Ok(()) };
    let (key, get, _) = dimension;
    let (mut fits, mut too_large) = (0, get(config));
    while too_large - fits > 1 {
        let middle = fits + (too_large - fits) / 2;
        if with(dimension, middle) <= free { fits = middle } else { too_large = middle }
    }
    let sizes = format!("needs about {} of memory, and {} is free", human_bytes(needed), human_bytes(free));
    let problem = match fits {
        0 => format!("{} {sizes}; make the network smaller", get(config)),
        fits => format!("{} {sizes}; less than {} could fit", get(config), fits + 1),
    };
    Err(Error::setting(key, problem))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(change: fn(&mut RunConfig), replicas: usize) -> Result<()> {
        let mut config = RunConfig { n: 4, ..RunConfig::default() };
        change(&mut config);
        check_fits_in(&config, "f32", replicas, 1 << 30)
    }

    #[test]
    fn the_setting_to_blame_and_what_fits_are_named() {
        let refusal = |change: fn(&mut RunConfig)| check(change, 1).unwrap_err().to_string();
        let batch = refusal(|config| config.train.batch = 1_000_000_000_000);
        assert!(
            batch.starts_with("train.batch: 1000000000000 needs about 7.3 TiB of memory, and 1 GiB is free; less than"),
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
            check_fits_in(&config, "f32", 1, 1 << 30).is_ok()
        };
        assert!(most > 1000 && fits(most - 1) && !fits(most), "{refusal}");
    }
}
