//! Makes the runs: seeds of the same settings at once, cohort after cohort.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use pudica_data::{Pairs, Stream};
use pudica_nn::Device;
use pudica_nn::grokking::{Measures, Replica, Replicas};
use serde_json::{Map, Value};

use super::{GrokkingConfig, GrokkingPlan, GrokkingPoint, Onsets};
use crate::config::Configuration;
use crate::error::{Error, Result};
use crate::events::{Event, Observer, Tally};
use crate::plan::PlannedRun;
use crate::store::{FORMAT, Outcome, RunFolder, RunSummary, SweepFolder};
use crate::trainer::Stop;

/// Epochs between two looks at what the device has measured, and at requests to stop.
const PIECE: u64 = 100;
/// Epochs that an estimate of the time is judged from.
const TRIAL: u32 = 3;
/// Time between checkpoints.
const CHECKPOINT_EVERY: Duration = Duration::from_secs(60);

/// Where runs train, and in what company.
#[derive(Clone, Copy, Debug)]
pub struct Company<'a> {
    /// `cpu`, `cuda` or `torch`.
    pub device: &'a str,
    /// Seeds trained at once, at most.
    pub together: usize,
}

impl Company<'_> {
    /// Seeds trained at once where nobody says otherwise; a network of the paper's size needs about 0.3 GB.
    pub const TOGETHER: usize = 8;
}

/// Seconds that the runs of a plan would take here, judged from a few epochs of each cohort.
pub fn estimate_grokking(plan: &GrokkingPlan, company: Company) -> Result<f64> {
    let device = Device::parse(company.device)?;
    let waiting: Vec<Waiting> = plan
        .runs
        .iter()
        .map(|run| Waiting { run, folder: RunFolder::new(PathBuf::new()), checkpoint: None, epoch: 0 })
        .collect();
    let mut seconds = 0.0;
    for cohort in cohorts(&waiting, company.together.max(1)) {
        let pairs = cohort.iter().map(|one| split(&one.run.config)).collect::<Result<Vec<_>>>()?;
        let mut networks = networks(&cohort, &pairs, &device)?;
        networks.advance(); // starts the device up
        networks.collect()?;
        let start = Instant::now();
        (0..TRIAL).for_each(|_| networks.advance());
        networks.collect()?;
        let epochs = cohort[0].run.config.train.epochs;
        seconds += start.elapsed().as_secs_f64() / f64::from(TRIAL) * epochs as f64;
    }
    Ok(seconds)
}

/// The networks of a cohort, at their beginning or where their checkpoints left them.
fn networks(cohort: &[&Waiting], pairs: &[(Pairs, Pairs)], device: &Device) -> Result<Replicas> {
    let members: Vec<Replica> = cohort
        .iter()
        .zip(pairs)
        .map(|(one, (train, test))| Replica {
            seed: one.run.config.seed,
            train,
            test,
            checkpoint: one.checkpoint.as_deref(),
        })
        .collect();
    let config = &cohort[0].run.config;
    Ok(Replicas::new(config.network(), config.training(), &members, device)?)
}

/// The pairs a run is trained on, and those it is tested on.
fn split(config: &GrokkingConfig) -> Result<(Pairs, Pairs)> {
    Ok(config.task()?.split(config.share, &mut Stream::new(config.seed, "modular-pairs", 0))?)
}

/// Makes all runs of `plan` in `folder`. Runs that have ended are not repeated, interrupted ones continue and end with the same numbers; a run
/// whose loss is lost is marked failed and the others go on.
pub fn execute_grokking(
    plan: &GrokkingPlan,
    folder: &Path,
    company: Company,
    observer: &dyn Observer,
    stop: &Stop,
) -> Result<Tally> {
    let device = Device::parse(company.device)?;
    let folder = SweepFolder::claim(folder, plan)?;
    let start = Instant::now();
    let mut tally = Tally { runs: plan.runs.len(), ..Tally::default() };
    let mut waiting = Vec::new();
    for run in &plan.runs {
        let run_folder = folder.run(&run.id);
        match run_folder.summary()? {
            Some(summary) => count(&mut tally, &summary),
            None => waiting.push(Waiting::find(run, run_folder)?),
        }
    }
    let total_steps = plan.runs.iter().map(|run| run.config.train.epochs).sum();
    let finished = plan.runs.len() - waiting.len();
    let (path, runs) = (folder.path().to_path_buf(), plan.runs.len());
    observer.notice(&Event::SweepStarted { folder: path, runs, finished, total_steps });

    let mut progress = Progress {
        observer,
        start,
        all: waiting.iter().map(Waiting::epochs_left).sum::<u64>().max(1),
        done: 0,
        ended: finished,
        runs,
    };
    for cohort in cohorts(&waiting, company.together.max(1)) {
        if stop.requested() {
            tally.remaining += cohort.len();
            continue;
        }
        let summaries = train(&cohort, &device, &mut progress, stop)?;
        tally.remaining += summaries.iter().filter(|summary| summary.is_none()).count();
        summaries.iter().flatten().for_each(|summary| count(&mut tally, summary));
    }
    (tally.stopped, tally.seconds) = (stop.requested(), start.elapsed().as_secs_f64());
    observer.notice(&Event::SweepEnded(tally.clone()));
    Ok(tally)
}

fn count(tally: &mut Tally, summary: &RunSummary) {
    *match summary.outcome {
        Outcome::Finished => &mut tally.converged,
        Outcome::Failed => &mut tally.failed,
        Outcome::Skipped => &mut tally.skipped,
    } += 1;
}

/// A run to be made, or continued.
struct Waiting<'a> {
    run: &'a PlannedRun<GrokkingConfig>,
    folder: RunFolder,
    checkpoint: Option<Vec<u8>>,
    /// The epoch it continues from.
    epoch: u64,
}

impl<'a> Waiting<'a> {
    fn find(run: &'a PlannedRun<GrokkingConfig>, folder: RunFolder) -> Result<Self> {
        let checkpoint = folder.checkpoint()?;
        let epoch = checkpoint.as_deref().map(Replicas::epoch_of).transpose();
        let epoch = epoch.map_err(|error| Error::damaged(&folder.checkpoint_path(), error))?.unwrap_or(0);
        Ok(Waiting { run, folder, checkpoint, epoch })
    }

    fn epochs_left(&self) -> u64 {
        self.run.config.train.epochs.saturating_sub(self.epoch)
    }
}

/// Runs that differ in their seed alone and are at the same epoch, at most so many in a cohort.
fn cohorts<'a, 'b>(waiting: &'b [Waiting<'a>], together: usize) -> Vec<Vec<&'b Waiting<'a>>> {
    let mut cohorts: Vec<Vec<&Waiting>> = Vec::new();
    for one in waiting {
        let alike = |other: &&Waiting| {
            other.epoch == one.epoch && other.run.config.without_seed() == one.run.config.without_seed()
        };
        match cohorts.iter_mut().find(|cohort| cohort.len() < together && cohort.first().is_some_and(alike)) {
            Some(cohort) => cohort.push(one),
            None => cohorts.push(vec![one]),
        }
    }
    cohorts
}

/// How far all is, for those who watch.
struct Progress<'a> {
    observer: &'a dyn Observer,
    start: Instant,
    /// Epochs to make in this call, of all runs.
    all: u64,
    done: u64,
    /// Runs that have ended.
    ended: usize,
    runs: usize,
}

impl Progress<'_> {
    fn how_far(&self) -> (f64, Option<f64>) {
        let done = (self.done as f64 / self.all as f64).min(1.0);
        let spent = self.start.elapsed().as_secs_f64();
        (done, (done > 0.0).then(|| spent * (1.0 - done) / done))
    }
}

/// Trains a cohort to its end, or until asked to stop. Returns the outcomes, `None` for runs that have not ended.
fn train(
    cohort: &[&Waiting],
    device: &Device,
    progress: &mut Progress,
    stop: &Stop,
) -> Result<Vec<Option<RunSummary>>> {
    let start = Instant::now();
    let mut pupils = cohort.iter().map(|one| Pupil::begin(one)).collect::<Result<Vec<_>>>()?;
    let pairs = cohort.iter().map(|one| split(&one.run.config)).collect::<Result<Vec<_>>>()?;
    let mut networks = networks(cohort, &pairs, device)?;
    for pupil in &pupils {
        let (id, label) = (pupil.of.run.id.clone(), pupil.of.run.config.label());
        progress.observer.notice(&Event::RunStarted { id, label, from_step: pupil.of.epoch });
    }
    let epochs = cohort[0].run.config.train.epochs;
    let mut saved = Instant::now();
    loop {
        let first = networks.epoch();
        let last = (first + PIECE).min(epochs);
        (first..last).for_each(|_| networks.advance());
        if last == epochs {
            networks.measure();
        }
        let measured = networks.collect()?;
        let seconds = start.elapsed().as_secs_f64() / cohort.len() as f64;
        for (place, pupil) in pupils.iter_mut().enumerate().filter(|(_, pupil)| pupil.outcome.is_none()) {
            let own: Vec<Measures> = measured.iter().map(|all| all[place]).collect();
            pupil.take_in(first, &own, seconds, device)?;
            let (id, label, loss) = (pupil.of.run.id.clone(), pupil.of.run.config.label(), pupil.loss);
            progress.done += last - first;
            let (done, seconds_left) = progress.how_far();
            let event = Event::Progress { id, label, step: last, steps: epochs, loss, done, seconds_left };
            progress.observer.notice(&event);
        }
        let ended = last == epochs || pupils.iter().all(|pupil| pupil.outcome.is_some());
        if ended || stop.requested() || saved.elapsed() > CHECKPOINT_EVERY {
            for (place, pupil) in pupils.iter().enumerate().filter(|(_, pupil)| pupil.outcome.is_none()) {
                pupil.of.folder.save_checkpoint(&networks.checkpoint(place)?)?;
            }
            saved = Instant::now();
        }
        if ended {
            break;
        }
        if stop.requested() {
            return Ok(pupils.into_iter().map(|pupil| pupil.outcome).collect());
        }
    }
    for (place, pupil) in pupils.iter_mut().enumerate() {
        if pupil.outcome.is_none() {
            pupil.of.folder.save_weights(&networks.weights(place)?.to_bytes()?)?;
            pupil.finish(start.elapsed().as_secs_f64() / cohort.len() as f64, device)?;
        }
        progress.ended += 1;
        let (done, seconds_left) = progress.how_far();
        let (run, Some(summary)) = (pupil.of.run, &pupil.outcome) else { continue };
        progress.observer.notice(&Event::RunEnded {
            id: run.id.clone(),
            label: run.config.label(),
            outcome: summary.outcome,
            converged: summary.converged,
            measures: summary.headline(&["test_accuracy", "sensitivity", "test_rise_half"]),
            problem: summary.problem.clone(),
            seconds: summary.seconds,
            ended: progress.ended,
            runs: progress.runs,
            done,
            seconds_left,
        });
    }
    Ok(pupils.into_iter().map(|pupil| pupil.outcome).collect())
}

/// A run in training: what its folder needs to know.
struct Pupil<'a> {
    of: &'a Waiting<'a>,
    /// The latest epoch its metrics hold.
    logged: Option<u64>,
    /// Its latest training loss.
    loss: f64,
    seconds_before: f64,
    outcome: Option<RunSummary>,
}

impl<'a> Pupil<'a> {
    fn begin(of: &'a Waiting<'a>) -> Result<Self> {
        let config = &of.run.config;
        of.folder.create(config)?;
        let logged = of.folder.rewind_metrics(of.epoch)?.map(GrokkingPoint::from_line).transpose()?;
        Ok(Pupil {
            of,
            logged: logged.map(|point| point.epoch),
            loss: f64::NAN,
            seconds_before: logged.and_then(|point| point.seconds).unwrap_or(0.0),
            outcome: None,
        })
    }

    /// Logs a piece of training that began at epoch `first`; a loss that is no longer a number ends the run.
    fn take_in(&mut self, first: u64, measured: &[Measures], seconds: f64, device: &Device) -> Result<()> {
        for (epoch, measures) in (first..).zip(measured) {
            self.loss = measures.train_loss;
            if [measures.train_loss, measures.test_loss, measures.weight_norm].iter().any(|value| !value.is_finite()) {
                return self.fail(epoch, seconds, device);
            }
            // An interrupted run may have logged an epoch beyond its checkpoint: the same numbers, once.
            if self.logged.is_none_or(|logged| epoch > logged) {
                let mut point = GrokkingPoint::new(epoch, measures);
                if epoch + 1 == first + measured.len() as u64 {
                    point.seconds = Some(self.seconds_before + seconds);
                }
                self.of.folder.log(&point.to_line()?)?;
                self.logged = Some(epoch);
            }
        }
        Ok(())
    }

    fn fail(&mut self, epoch: u64, seconds: f64, device: &Device) -> Result<()> {
        let lr = self.of.run.config.train.lr;
        let problem =
            format!("the loss was {} at epoch {epoch} (lr = {lr}); a smaller train.lr usually helps", self.loss);
        self.end(Outcome::Failed, Some(problem), epoch, seconds, Map::new(), device)
    }

    fn finish(&mut self, seconds: f64, device: &Device) -> Result<()> {
        let points: Vec<GrokkingPoint> =
            self.of.folder.metrics()?.into_iter().map(GrokkingPoint::from_line).collect::<Result<_>>()?;
        let onsets = Onsets::of(&points);
        let mut measures = Map::new();
        if let Some(last) = points.last() {
            measures = last.to_line()?;
            measures.retain(|name, _| !["step", "seconds"].contains(&name.as_str()));
            let error = last.sensitivity_std_error(self.of.run.config.train_pairs());
            measures.insert("sensitivity_std_error".into(), error.into());
        }
        let moments = [
            ("memorised", onsets.memorised),
            ("sensitivity_fall_start", onsets.fall.map(|fall| fall.start)),
            ("sensitivity_fall_half", onsets.fall.map(|fall| fall.half)),
            ("test_rise_start", onsets.rise.map(|rise| rise.start)),
            ("test_rise_half", onsets.rise.map(|rise| rise.half)),
        ];
        measures.extend(moments.map(|(name, epoch)| (name.to_string(), Value::from(epoch))));
        let epochs = self.of.run.config.train.epochs;
        self.end(Outcome::Finished, None, epochs, seconds, measures, device)
    }

    fn end(
        &mut self,
        outcome: Outcome,
        problem: Option<String>,
        steps: u64,
        seconds: f64,
        measures: Map<String, Value>,
        device: &Device,
    ) -> Result<()> {
        let summary = RunSummary {
            format: FORMAT,
            id: self.of.run.id.clone(),
            outcome,
            problem,
            steps,
            // Whether it generalises is what is asked, not a condition.
            converged: outcome == Outcome::Finished,
            seconds: self.seconds_before + seconds,
            device: device.name().into(),
            measures,
            detail: Map::new(),
        };
        self.of.folder.finish(&summary)?;
        self.outcome = Some(summary);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grokking::{GrokkingRun, read_grokking};
    use crate::recipe::Recipe;
    use std::sync::Mutex;

    const CPU: Company = Company { device: "cpu", together: 2 };

    fn plan(more: &[&str]) -> GrokkingPlan {
        let small =
            ["modulus=5", "model.d=8", "model.heads=2", "model.mlp=8", "train.epochs=230", "share=0.4", "seed=0..3"];
        let overrides: Vec<String> = small.iter().chain(more).map(|text| text.to_string()).collect();
        GrokkingPlan::new(&Recipe::find("vasudeva/grokking").unwrap(), None, &overrides).unwrap()
    }

    /// Every epoch of every run, without the time it took.
    fn curves(folder: &Path) -> Vec<Vec<GrokkingPoint>> {
        let plain =
            |run: GrokkingRun| run.points.into_iter().map(|point| GrokkingPoint { seconds: None, ..point }).collect();
        read_grokking(folder).unwrap().1.into_iter().map(plain).collect()
    }

    #[test]
    fn an_interrupted_experiment_continues_with_the_same_numbers() {
        let (whole, parts) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let tally = execute_grokking(&plan(&[]), whole.path(), CPU, &|_: &Event| {}, &Stop::new()).unwrap();
        assert_eq!((tally.runs, tally.converged, tally.remaining), (3, 3, 0));
        // Stopped after the first piece, then in the second cohort, then left alone.
        for (seed, remaining) in [(0, 3), (2, 1)] {
            let stop = Stop::new();
            let stop_early = |event: &Event| match event {
                Event::Progress { label, .. } if label.ends_with(&format!("seed={seed}")) => stop.request(),
                _ => {}
            };
            let tally = execute_grokking(&plan(&[]), parts.path(), CPU, &stop_early, &stop).unwrap();
            assert_eq!((tally.remaining, tally.stopped), (remaining, true));
        }
        let started = Mutex::new(Vec::new());
        let note = |event: &Event| {
            if let Event::RunStarted { from_step, .. } = event {
                started.lock().unwrap().push(*from_step);
            }
        };
        let tally = execute_grokking(&plan(&[]), parts.path(), CPU, &note, &Stop::new()).unwrap();
        assert_eq!((tally.converged, started.into_inner().unwrap()), (3, vec![100]));
        let (expected, found) = (curves(whole.path()), curves(parts.path()));
        assert!(found == expected);
        assert!(expected.iter().all(|run| run.iter().map(|point| point.epoch).eq(0..=230)));
        assert_ne!(expected[0], expected[1]);
        let weights =
            |folder: &Path, id: &str| std::fs::read(folder.join("runs").join(id).join("weights.safetensors")).unwrap();
        for run in &plan(&[]).runs {
            assert_eq!(weights(whole.path(), &run.id), weights(parts.path(), &run.id));
        }
    }

    #[test]
    fn what_was_measured_is_in_the_summary() {
        let folder = tempfile::tempdir().unwrap();
        let plan = plan(&["seed=0", "operation=a*b"]);
        execute_grokking(&plan, folder.path(), CPU, &|_: &Event| {}, &Stop::new()).unwrap();
        let (record, runs) = read_grokking(folder.path()).unwrap();
        assert_eq!((record.runs.len(), runs.len()), (1, 1));
        let (summary, last) = (runs[0].summary.as_ref().unwrap(), runs[0].points.last().unwrap());
        assert_eq!(summary.measure("test_accuracy"), Some(last.test_accuracy));
        assert_eq!(summary.measure("memorised"), Onsets::of(&runs[0].points).memorised.map(|epoch| epoch as f64));
        assert!(last.train_accuracy > 0.9 && last.train_loss < runs[0].points[0].train_loss);
        // Ten pairs: whole tenths.
        assert!(
            runs[0]
                .points
                .iter()
                .all(|point| (point.sensitivity * 10.0 - (point.sensitivity * 10.0).round()).abs() < 1e-5)
        );
    }

    #[test]
    fn a_lost_run_is_marked_and_told() {
        let folder = tempfile::tempdir().unwrap();
        let plan = plan(&["train.lr=1e30", "seed=0..2"]);
        let tally = execute_grokking(&plan, folder.path(), CPU, &|_: &Event| {}, &Stop::new()).unwrap();
        assert_eq!((tally.failed, tally.converged), (2, 0));
        let (_, runs) = read_grokking(folder.path()).unwrap();
        let problem = runs[0].summary.as_ref().unwrap().problem.clone().unwrap();
        assert!(problem.contains("smaller train.lr"), "{problem}");
    }

    #[test]
    fn settings_that_make_no_sense_are_sentences() {
        let refusal = |text: &str| {
            let recipe = Recipe::find("vasudeva/grokking").unwrap();
            GrokkingPlan::new(&recipe, None, &[text.to_string()]).unwrap_err().to_string()
        };
        assert!(refusal("modulus=1").contains("from 2 to 300"));
        assert!(refusal("operation=a/b").contains("such as a+b"));
        assert!(refusal("share=1").contains("to test on"));
        assert!(refusal("model.heads=3").contains("must divide the width"));
        assert!(refusal("train.lr=0").contains("positive"));
        assert!(refusal("noise=-1").contains("0 or more"));
        assert!(refusal("train.epochs=0").contains("from 1 to"));
        assert!(refusal("train.weight_decay=-1").contains("weight_decay"));
        assert!(refusal("modulos=7").contains("did you mean `modulus`"));
        let device = Company { device: "abacus", together: 1 };
        let folder = tempfile::tempdir().unwrap();
        let error = execute_grokking(&plan(&[]), folder.path(), device, &|_: &Event| {}, &Stop::new()).unwrap_err();
        assert!(error.to_string().contains("abacus"));
    }

    #[test]
    fn the_published_settings_are_the_published_ones() {
        let recipe = Recipe::find("vasudeva/grokking").unwrap();
        let paper = GrokkingPlan::new(&recipe, Some("paper"), &[]).unwrap();
        assert!(paper.runs.len() >= 3);
        assert!(paper.runs.iter().all(|run| run.config.without_seed() == GrokkingConfig::default()));
        assert_eq!(GrokkingConfig::default().train_pairs(), 3830);
    }
}
