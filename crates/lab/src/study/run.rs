//! One run: trained from its beginning, or its checkpoint, to its summary.

use std::time::{Duration, Instant};

use pudica_data::{Split, Stream};
use pudica_nn::Device;
use pudica_nn::classifier::{Classifier, ConsistencyTerm, Learner};
use serde_json::{Map, Value};

use super::config::StudyConfig;
use super::curvature;
use super::evaluate::{evaluate, last_measures};
use super::material::{Material, Watch};
use super::point::Point;
use crate::config::Configuration;
use crate::error::{Error, Result};
use crate::store::{FORMAT, Outcome, RunFolder, RunSummary};

/// An interruption loses at most this much training.
const CHECKPOINT_EVERY: Duration = Duration::from_secs(30);

/// Steps between two looks at the loss, each of which waits for the device.
const LOSS_EVERY: u64 = 20;

/// A backward pass costs about two forward passes.
const STEP_IN_PASSES: f64 = 3.0;

/// A run about to be made.
pub(super) struct Assignment<'a, M> {
    pub config: &'a StudyConfig,
    pub material: &'a M,
    pub folder: RunFolder,
    pub device: &'a Device,
}

/// How long a run's training is.
#[derive(Clone, Copy)]
pub(super) struct Course {
    /// Rows of an epoch: training inputs, and copies of them.
    pub rows: usize,
    pub batch: usize,
    pub steps_per_epoch: u64,
    pub steps: u64,
}

impl Course {
    pub(super) fn of<M: Material>(config: &StudyConfig, material: &M) -> Course {
        let rows = material.count(Split::Train) * material.copies(config);
        let batch = config.train.batch;
        let steps_per_epoch = rows.div_ceil(batch) as u64;
        Course { rows, batch, steps_per_epoch, steps: steps_per_epoch * config.train.epochs }
    }

    /// The rows of every batch of an epoch, shuffled.
    fn order(&self, seed: u64, epoch: u64) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.rows).collect();
        Stream::new(seed, "epoch", epoch).shuffle(&mut order);
        order
    }

    /// Whether the network is evaluated after so many epochs.
    fn evaluates_after(&self, config: &StudyConfig, epoch: u64) -> bool {
        match epoch {
            0 => config.measure.start,
            epoch => epoch.is_multiple_of(config.measure.every) || epoch == config.train.epochs,
        }
    }

    /// Evaluations of a whole run.
    fn evaluations(&self, config: &StudyConfig) -> u64 {
        u64::from(config.measure.start) + config.train.epochs.div_ceil(config.measure.every)
    }
}

/// Passes of the parts of a run, as far as they can be told beforehand.
pub(super) struct Passes {
    /// Of one training step.
    pub step: f64,
    /// Of one evaluation.
    pub evaluation: f64,
    /// Of all of it.
    pub total: f64,
}

impl Passes {
    pub(super) fn of<M: Material>(config: &StudyConfig, material: &M) -> Passes {
        let (course, measure) = (Course::of(config, material), &config.measure);
        let sides = if config.intervene.regularise > 0.0 { 2.0 } else { 1.0 };
        let step = STEP_IN_PASSES * sides * course.rows as f64 / course.steps_per_epoch as f64;
        let some = |asked: usize, split: Split| {
            let all = material.count(split);
            if asked == 0 { all as f64 } else { asked.min(all) as f64 }
        };
        let set = if measure.set == "train" { Split::Train } else { Split::Test };
        let touches = match measure.nudge.as_str() {
            "none" => 0.0,
            _ => some(measure.inputs, set) * (1.0 + material.touches(config)),
        };
        let corruptions = measure.corruptions().map_or(0, |all| all.len()) as f64;
        let evaluation =
            some(0, Split::Train) + some(0, Split::Test) + touches + corruptions * some(measure.corrupted, Split::Test);
        let sharpness = match measure.sharpness > 0.0 {
            true => some(measure.sharpness_inputs, Split::Train) * (1 + measure.sharpness_draws) as f64,
            false => 0.0,
        };
        let attacks = some(measure.adversarial_images, Split::Test) * material.attack_passes(config);
        let hessian = match measure.hessian {
            true => curvature::passes(some(measure.hessian_inputs, Split::Train)),
            false => 0.0,
        };
        let end = sharpness + attacks + hessian;
        let total = step * course.steps as f64 + evaluation * course.evaluations(config) as f64 + end;
        Passes { step, evaluation, total }
    }

    /// Passes of a run that has come this far.
    fn until(&self, step: u64, course: &Course, config: &StudyConfig) -> f64 {
        let start = u64::from(config.measure.start && step > 0);
        let evaluations = start + step / course.steps_per_epoch / config.measure.every;
        self.step * step as f64 + self.evaluation * evaluations as f64
    }
}

/// Trains and measures a run, or what is left of it. `begun` hears the step it continues from, and the passes it has behind it. When
/// asked to stop, and before an error is returned, its state is saved.
pub(super) fn make_run<M: Material>(
    run: &Assignment<M>,
    watch: &Watch,
    begun: &dyn Fn(u64, f64),
) -> Result<RunSummary> {
    let config = run.config;
    run.folder.create(config)?;
    run.folder.check_data(&run.material.describe())?;
    let network = run.material.network(config)?;
    let optimiser = config.train.optimiser()?;
    let learner = match run.folder.checkpoint()? {
        Some(bytes) => Learner::resume(&network, &bytes, optimiser, config.seed, run.device)
            .map_err(|error| Error::damaged(&run.folder.checkpoint_path(), error))?,
        None => Learner::new(&network, &network.initial_weights(config.seed)?, optimiser, config.seed, run.device)?,
    };
    let logged = run.folder.rewind_metrics(learner.steps())?.map(Point::from_line).transpose()?;
    let course = Course::of(config, run.material);
    let passes = Passes::of(config, run.material);
    begun(learner.steps(), passes.until(learner.steps(), &course, config));
    let mut training = Training {
        run,
        watch,
        course,
        passes,
        learner,
        start: Instant::now(),
        seconds_before: logged.as_ref().map_or(0.0, |point| point.seconds),
        logged,
    };
    match training.train().and_then(|lost| training.finish(lost)) {
        Err(error) if !matches!(error, Error::Stopped) => {
            let _ = training.save(); // what can still be saved is; the error to tell is the first one
            Err(error)
        }
        ended => ended,
    }
}

/// A run in training.
struct Training<'a, M: Material> {
    run: &'a Assignment<'a, M>,
    watch: &'a Watch<'a>,
    course: Course,
    passes: Passes,
    learner: Learner<M::Network>,
    start: Instant,
    /// Seconds it took before an interruption.
    seconds_before: f64,
    /// Its latest evaluation.
    logged: Option<Point>,
}

/// Why a training was given up: its loss left the numbers.
struct Lost {
    loss: f64,
}

impl<M: Material> Training<'_, M> {
    /// Trains to the last step, evaluating on the way; `Some` if the loss did not stay a number.
    fn train(&mut self) -> Result<Option<Lost>> {
        let (config, course) = (self.run.config, self.course);
        let mut order: Option<(u64, Vec<usize>)> = None;
        let mut saved = Instant::now();
        loop {
            let step = self.learner.steps();
            let (epoch, place) = (step / course.steps_per_epoch, (step % course.steps_per_epoch) as usize);
            let evaluated = self.logged.as_ref().is_some_and(|point| point.step == step);
            if place == 0 && course.evaluates_after(config, epoch) && !evaluated {
                // An evaluation is not resumed part-way: its noise is named by the run, so doing it again gives the same numbers.
                self.save()?;
                if let Some(lost) = self.evaluate(epoch)? {
                    return Ok(Some(lost));
                }
                saved = Instant::now();
            }
            if step == course.steps {
                return Ok(None);
            }
            let rows = match &order {
                Some((of, rows)) if *of == epoch => rows,
                _ => &order.insert((epoch, course.order(config.seed, epoch))).1,
            };
            let end = ((place + 1) * course.batch).min(rows.len());
            let batch = self.run.material.training_batch(config, &rows[place * course.batch..end], epoch, step)?;
            let weight = config.intervene.regularise;
            let beside = batch.beside.as_ref().map(|input| ConsistencyTerm { input, weight });
            self.learner.step(&batch.input, &batch.labels, beside, config.train.lr_at(epoch))?;
            let step = step + 1;
            let mut loss = None;
            if step.is_multiple_of(LOSS_EVERY) || step.is_multiple_of(course.steps_per_epoch) {
                loss = self.learner.loss()?.map(f64::from);
                if let Some(loss) = loss.filter(|loss| !loss.is_finite()) {
                    return Ok(Some(Lost { loss }));
                }
            }
            self.watch.at(step, loss);
            let asked = self.watch.made(self.passes.step);
            if asked.is_err() || saved.elapsed() > CHECKPOINT_EVERY {
                self.save()?;
                asked?;
                saved = Instant::now();
            }
        }
    }

    /// Evaluates the network and logs what was found.
    fn evaluate(&mut self, epoch: u64) -> Result<Option<Lost>> {
        let model = self.learner.model();
        let mut point = evaluate(model, self.run.material, self.run.config, self.watch)?;
        if let Some(loss) = [point.train_loss, point.test_loss].into_iter().find(|loss| !loss.is_finite()) {
            return Ok(Some(Lost { loss }));
        }
        (point.step, point.epoch, point.seconds) = (self.learner.steps(), epoch, self.seconds());
        self.run.folder.log(&point.to_line()?)?;
        self.logged = Some(point);
        Ok(None)
    }

    /// Takes the last measures, and ends the run.
    fn finish(&mut self, lost: Option<Lost>) -> Result<RunSummary> {
        let (config, folder) = (self.run.config, &self.run.folder);
        let mut measures = self.logged.as_ref().map(Point::measures).transpose()?.unwrap_or_default();
        let mut detail = Map::from_iter([("data".to_string(), Value::Object(self.run.material.describe()))]);
        let (outcome, problem) = match lost {
            Some(Lost { loss }) => {
                let (step, lr) = (self.learner.steps(), config.train.lr);
                let problem =
                    format!("the loss was {loss} at step {step} (lr = {lr}); a smaller train.lr usually helps");
                (Outcome::Failed, Some(problem))
            }
            None => {
                self.save()?;
                let (last, larger) = last_measures(self.learner.model(), self.run.material, config, self.watch)?;
                measures.extend(last);
                detail.extend(larger);
                folder.save_weights(&self.learner.to_bytes()?)?;
                (Outcome::Finished, None)
            }
        };
        let summary = RunSummary {
            format: FORMAT,
            id: config.id(),
            outcome,
            problem,
            steps: self.learner.steps(),
            // A study compares networks at the end of their training, whatever their loss is then.
            converged: outcome == Outcome::Finished,
            seconds: self.seconds(),
            device: self.run.device.name().into(),
            measures,
            detail,
        };
        folder.finish(&summary)?;
        Ok(summary)
    }

    fn save(&self) -> Result<()> {
        self.run.folder.save_checkpoint(&self.learner.checkpoint()?)
    }

    fn seconds(&self) -> f64 {
        self.seconds_before + self.start.elapsed().as_secs_f64()
    }
}
