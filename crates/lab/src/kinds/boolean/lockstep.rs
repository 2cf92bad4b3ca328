//! Which runs may train together.

use super::RunConfig;
use crate::error::Result;
use crate::kinds::Configuration;
use crate::settings::Settings;

/// What runs that train in lock-step have in common, as one comparable text: everything that decides how much is computed, on what and
/// when. They may differ in what they learn, where they start and how fast they go.
pub(super) fn key(settings: &Settings) -> Result<String> {
    Ok(format!("{} {:?}", common(&settings.read()?), settings.compute()))
}

fn common(config: &RunConfig) -> String {
    let mut common = config.clone();
    let any = RunConfig::default();
    common.target = any.target;
    common.seed = any.seed;
    common.model.same_init = any.model.same_init;
    common.model.start = any.model.start;
    common.model.init_scale = any.model.init_scale;
    common.model.ff = config.ff(); // 0 means d
    common.train.lr = any.train.lr;
    common.train.weight_decay = any.train.weight_decay;
    common.train.beta1 = any.train.beta1;
    common.train.beta2 = any.train.beta2;
    common.train.eps = any.train.eps;
    common.train.set_seed = any.train.set_seed;
    common.measure.set_seed = any.measure.set_seed;
    common.eval.converged_below = any.eval.converged_below;
    common.track.converged_below = any.track.converged_below;
    common.canonical_json()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::boolean::ModelKind;

    #[test]
    fn what_is_learnt_and_how_fast_may_differ_and_what_is_computed_may_not() {
        let one = RunConfig::default();
        let changed = |change: fn(&mut RunConfig)| {
            let mut other = one.clone();
            change(&mut other);
            common(&other) == common(&one)
        };
        assert!(changed(|run| run.target = "majority".into()));
        assert!(changed(|run| (run.seed, run.train.lr, run.train.weight_decay) = (7, 1.0, 0.0)));
        assert!(changed(|run| run.model.ff = 128));
        assert!(changed(|run| run.train.set_seed = 3));
        assert!(changed(|run| run.model.init_scale = 2.0));
        assert!(!changed(|run| run.model.kind = ModelKind::Lstm));
        assert!(!changed(|run| run.n = 11));
        assert!(!changed(|run| run.train.set_size = 64));
        assert!(!changed(|run| run.train.steps += 1));
        assert!(!changed(|run| run.measure.draws += 1));
        assert!(!changed(|run| run.track.every = 100));
    }
}
