//! A cheap stand-in for networks: a number that shrinks step by step, with noise named by the run and the step.
#![allow(dead_code)] // each test file uses its own part

use std::path::Path;
use std::time::Duration;

use pudica_data::Stream;
use pudica_lab::experiment::{Experiment, Line, Lockstep, Lost, Measured, RunStart, Teacher, Training, Work};
use pudica_lab::{Machine, Observer, Plan, Progress, Result, Settings, Stop, Tally, execute_with};
use serde_json::Map;

/// Trains fake networks, up to `together` of them in lock-step; each step takes `step_time`.
pub struct Fake {
    pub step_time: Duration,
    pub together: usize,
}

impl Default for Fake {
    fn default() -> Self {
        Fake { step_time: Duration::ZERO, together: 1 }
    }
}

/// A recipe of fake networks: a run for each value on the axes of `grid`, converged where the number ends below `below`.
pub fn recipe(steps: u64, below: f64, grid: &str) -> String {
    format!(
        "title = 'test'\n[quick.settings]\ntrain = {{ steps = {steps}, batch = 1 }}\n\
         eval.converged_below = {below:?}\n[[quick.sweep]]\nname = 'all'\n{grid}\n"
    )
}

/// A recipe of two stages: `teachers` says what is set and swept in the first, `students` in the second, whose runs learn from those of the first.
pub fn stages(teachers: &str, students: &str) -> String {
    format!(
        "title = 'stages'\n[quick.settings]\ntrain.steps = 20\nn = 4\n\
         [[quick.sweep]]\nname = 'learn'\nset.train.set_size = 4\n{teachers}\n\
         [[quick.sweep]]\nname = 'refit'\nfollows = 'learn'\nset.target = 'run:{{id}}'\n{students}\n"
    )
}

/// Makes the runs of a plan of fake networks, `jobs` groups at a time.
pub fn execute(
    plan: &Plan,
    folder: &Path,
    jobs: usize,
    fake: &Fake,
    observer: &dyn Observer,
    stop: &Stop,
) -> Result<Tally> {
    let machine = Machine { program: "test".into(), jobs: Some(jobs), ..Machine::default() };
    execute_with(fake, plan, folder, &machine, observer, stop)
}

struct FakeTraining {
    runs: Vec<FakeRun>,
    step: u64,
    step_time: Duration,
}

struct FakeRun {
    settings: Settings,
    state: f64,
    lost: Option<Lost>,
    lines: Vec<Line>,
}

fn parse(checkpoint: &[u8]) -> (u64, f64) {
    let text = std::str::from_utf8(checkpoint).unwrap();
    let (step, bits) = text.split_once(' ').unwrap();
    (step.parse().unwrap(), f64::from_bits(bits.parse().unwrap()))
}

impl Experiment for Fake {
    fn lockstep(&self, settings: &Settings) -> Result<Lockstep> {
        Ok(Lockstep { key: format!("{} {}", settings.text("n"), settings.text("train.steps")), most: self.together })
    }

    fn work(&self, settings: &Settings) -> Result<Work> {
        let line_every = settings.number("track.every") as u64;
        Ok(Work {
            steps: settings.number("train.steps") as u64,
            step: 3.0,
            line: 1.0,
            line_every,
            measure: 2.0,
            ..Work::default()
        })
    }

    fn step_of(&self, _: &Settings, checkpoint: &[u8]) -> Result<u64> {
        match checkpoint {
            b"no state" => Err(pudica_lab::Error::Other("it holds no state".into())),
            checkpoint => Ok(parse(checkpoint).0),
        }
    }

    fn refuse_teacher(&self, teacher: &Teacher) -> Option<String> {
        let fits = teacher.summary.measure("train_accuracy") == Some(1.0);
        (!fits).then(|| "does not fit its training set exactly".into())
    }

    fn begin(&self, runs: &[RunStart]) -> Result<Box<dyn Training + '_>> {
        let mut begun = Vec::new();
        let mut steps = Vec::new();
        for run in runs {
            if let Some(teacher) = run.teacher {
                assert!(teacher.weights.exists(), "a teacher's weights are stored before its student begins");
            }
            let (step, state) = run.checkpoint.as_deref().map_or((0, 1.0), parse);
            begun.push(FakeRun { settings: run.settings.clone(), state, lost: None, lines: Vec::new() });
            steps.push(step);
        }
        assert!(runs.len() <= self.together && steps.iter().all(|step| *step == steps[0]), "{steps:?}");
        Ok(Box::new(FakeTraining { runs: begun, step: steps[0], step_time: self.step_time }))
    }
}

impl Training for FakeTraining {
    fn step(&self) -> u64 {
        self.step
    }

    fn device(&self) -> String {
        "fake".into()
    }

    fn loss(&self, run: usize) -> f64 {
        self.runs[run].state
    }

    fn lost(&self, run: usize) -> Option<Lost> {
        self.runs[run].lost
    }

    fn advance(&mut self, at_most: u64) -> Result<()> {
        for _ in 0..at_most {
            std::thread::sleep(self.step_time);
            let step = self.step;
            self.step += 1;
            for run in &mut self.runs {
                run.step(step);
            }
        }
        Ok(())
    }

    fn lines(&mut self, _: &Progress) -> Result<Vec<Vec<Line>>> {
        Ok(self.runs.iter_mut().map(|run| std::mem::take(&mut run.lines)).collect())
    }

    fn measure(&mut self, progress: &Progress) -> Result<Vec<Option<Measured>>> {
        progress.tick(1.0)?;
        let measure = |run: &FakeRun| {
            let accuracy = if run.settings.text("target") == "random:1" { 0.5 } else { 1.0 };
            let measures = [("eval_loss", run.state), ("train_accuracy", accuracy)];
            run.state.is_finite().then(|| Measured {
                converged: run.state < run.settings.number("eval.converged_below"),
                measures: measures.map(|(name, value)| (name.to_string(), value.into())).into_iter().collect(),
                detail: Map::new(),
            })
        };
        Ok(self.runs.iter().map(measure).collect())
    }

    fn checkpoint(&self, run: usize) -> Result<Vec<u8>> {
        Ok(format!("{} {}", self.step, self.runs[run].state.to_bits()).into_bytes())
    }

    fn weights(&self, run: usize) -> Result<Option<Vec<u8>>> {
        self.checkpoint(run).map(Some)
    }

    fn pass(&mut self) -> Result<f64> {
        std::thread::sleep(self.step_time / 3);
        Ok(1.0)
    }
}

impl FakeRun {
    /// One step after `step` others.
    fn step(&mut self, step: u64) {
        let settings = &self.settings;
        // A learning rate of 77 is a bug; one of 100 diverges at step 7.
        assert!(settings.number("train.lr") != 77.0 || step < 5, "a bug of the fake");
        self.state *= 1.0 - 0.1 * Stream::new(settings.number("seed") as u64, "fake", step).uniform();
        if settings.number("train.lr") > 99.0 && step == 6 {
            self.state = f64::NAN;
            self.lost = Some(Lost { step: step + 1, loss: f64::NAN });
        }
        let every = (settings.number("track.every") as u64).max(2);
        if (step + 1).is_multiple_of(every) && self.lost.is_none() {
            let values = Map::from_iter([("loss".to_string(), self.state.into())]);
            self.lines.push(Line { step: step + 1, values });
        }
    }
}
