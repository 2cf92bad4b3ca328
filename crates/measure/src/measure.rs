//! The way of a measurement: every model, every nudge, in a folder that can be continued.

use std::cell::{Cell, RefCell};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::Instant;

use pudica_lab::store::{lock, read_json, write_json};
use pudica_lab::{Error, Event, Observer, Outcome, Stop, Tally};
use pudica_model::{Model, ModelError, Takes};
use pudica_statistics::Estimate;
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use crate::asked::{Asked, clean};
use crate::found::{Found, Of, summarise};
use crate::inputs::refuse_unfit;
use crate::nudged::{Asking, Chunk, Enough};
use crate::nudges::{Material, Needs, Setting};
use crate::responses::{Answer, Compared};
use crate::results::{Details, Sites, Summary};
use crate::weights::Direction;
use crate::work::{WorkFile, digest, holds_work};
use crate::{InputSet, MeasureError, MeasureResult, attack, curvature, exact, nudged, weights};

/// Everything that is asked.
pub struct Question {
    /// The models, each with a name of its own.
    pub models: Vec<Box<dyn Model>>,
    /// The inputs.
    pub inputs: InputSet,
    /// The nudges.
    pub nudges: Vec<Setting>,
    /// What is compared; the first one decides which inputs are shown as examples.
    pub responses: Vec<Compared>,
    /// When to end before the inputs do.
    pub enough: Enough,
    /// Names all randomness.
    pub seed: u64,
    /// The deviation of each channel by which images are normalised: the unit of noise.
    pub channel_std: Vec<f32>,
    /// The folder of data sets, where the frost pictures lie.
    pub data: Option<PathBuf>,
    /// The command that repeats it.
    pub command: String,
    /// What makes it.
    pub program: String,
}

impl Question {
    /// What a class is called: by the inputs, else by the model, else by its number.
    pub(crate) fn class_name(&self, model: usize, class: usize) -> String {
        let of_model = self.models.get(model).and_then(|model| model.about().class_names.get(class));
        self.inputs.about().classes.get(class).or(of_model).cloned().unwrap_or_else(|| class.to_string())
    }

    fn material(&self, model: &dyn Model) -> Material<'_> {
        make_material(&self.inputs, model, &self.channel_std, self.data.as_deref())
    }

    /// The identity of all that decides the numbers, other than how many there are: a folder holds the answers to one question.
    pub fn identity(&self) -> String {
        let mut parts: Vec<String> = self.models.iter().map(|model| model.about().digest.clone()).collect();
        parts.extend(self.models.iter().map(|model| model.about().name.clone()));
        parts.extend([self.inputs.about().digest.clone(), self.seed.to_string()]);
        parts.extend(self.nudges.iter().map(Setting::identity));
        parts.extend(self.responses.iter().map(|response| response.name().to_string()));
        parts.extend(self.channel_std.iter().map(f32::to_string));
        digest(&parts.iter().map(String::as_str).collect::<Vec<_>>())
    }
}

/// The version of the folder layout.
pub const FORMAT: u32 = 1;

/// `measure.json`: what a folder holds.
#[derive(Debug, Serialize, Deserialize)]
struct Owner {
    format: u32,
    identity: String,
    command: String,
    /// Seconds of earlier sittings.
    seconds: f64,
}

/// What was found, and what of it goes into tables and pages.
pub struct Finding {
    /// Headline numbers.
    pub summary: Summary,
    /// By site, by class, examples.
    pub details: Details,
    /// Whether it was stopped on request.
    pub stopped: bool,
    /// The number of the input at which a model first broke off.
    pub failed_at: Option<usize>,
}

/// Measures everything, or what is left of it, into a folder.
pub fn measure(question: &mut Question, folder: &Path, observer: &dyn Observer, stop: &Stop) -> MeasureResult<Finding> {
    check(question)?;
    let began = Instant::now();
    let mut new = NewFolder::make(folder)?;
    let mut owner = claim(question, folder)?;
    new.lock = Some(lock(folder)?);
    write_json(&folder.join("measure.json"), &owner)?;
    let works = question.models.len() * question.nudges.len();
    observer.notice(&Event::SweepStarted { folder: folder.into(), runs: works, finished: 0, total_steps: 0 });
    let clock = Clock::new(evaluations(question)?, observer);
    let mut sitting = Sitting::default();
    for model in 0..question.models.len() {
        if !sitting.stopped {
            sitting.ask(question, model, folder, stop, &clock)?;
        }
    }
    observer.notice(&Event::SweepEnded(Tally::default()));
    let Sitting { found, cleans, mut problems, notes, failed_at, stopped } = sitting;
    if found.is_empty() && !stopped {
        let problem = [problems, notes].concat().join("; ");
        return Err(match failed_at {
            Some(index) => MeasureError::AtInput { index, problem },
            None => MeasureError::Other(problem),
        });
    }
    new.made.clear(); // it is kept
    if stopped {
        problems.push(Error::Stopped.to_string());
    }
    owner.seconds += began.elapsed().as_secs_f64();
    write_json(&folder.join("measure.json"), &owner)?;
    let (summary, details) = summarise(question, &cleans, &found, problems, notes, owner.seconds, folder)?;
    write_json(&folder.join("summary.json"), &summary)?;
    write_json(&folder.join("details.json"), &details)?;
    Ok(Finding { summary, details, stopped, failed_at })
}

/// What has been found so far.
#[derive(Default)]
struct Sitting {
    found: Vec<Found>,
    /// Each model's answers to inputs that nobody touched.
    cleans: Vec<Vec<Answer>>,
    /// What broke off.
    problems: Vec<String>,
    /// What a model has not, so that it could not be measured.
    notes: Vec<String>,
    failed_at: Option<usize>,
    stopped: bool,
}

impl Sitting {
    /// Asks one model about everything. One that breaks off is not asked again; what it answered counts.
    fn ask(
        &mut self,
        question: &mut Question,
        at: usize,
        folder: &Path,
        stop: &Stop,
        clock: &Clock,
    ) -> MeasureResult<()> {
        let Question { models, inputs, nudges, responses, enough, seed, channel_std, data, .. } = question;
        let works = models.len() * nudges.len();
        let model = models[at].as_mut();
        let name = model.about().name.clone();
        let tick = |evaluations: u64| clock.tick(evaluations);
        clock.begin(format!("{name}, untouched"));
        let answers = match clean(model, inputs, stop, &tick) {
            Ok(answers) => answers,
            Err(error) => {
                self.cleans.push(Vec::new());
                self.broke_off(&error, stop);
                return Ok(());
            }
        };
        for setting in nudges.iter() {
            clock.begin(format!("{name}, {}", setting.text()));
            let asking = Asking { inputs, setting, responses, seed: *seed, enough: *enough };
            let mut asked = Asked { model, clean: &answers, evaluations: 0, stop, tick: &tick };
            match (Work { folder, channel_std, data: data.as_deref() }).make(&mut asked, &asking) {
                Ok((of, problem)) => {
                    let found = Found { model: at, setting: setting.clone(), of };
                    clock.end(found.estimates(responses), works);
                    self.found.push(found);
                    if let Some(problem) = problem {
                        self.broke_off(&problem, stop);
                        break;
                    }
                }
                // Nothing can be saved any more.
                Err(error @ MeasureError::Lab(_)) => return Err(error),
                Err(refused @ (MeasureError::Other(_) | MeasureError::Model(ModelError::Lacks { .. }))) => {
                    self.notes.push(refused.to_string());
                }
                Err(error) => self.problems.push(error.to_string()),
            }
        }
        self.cleans.push(answers);
        Ok(())
    }

    /// Stopped on request, or by a problem.
    fn broke_off(&mut self, problem: &MeasureError, stop: &Stop) {
        self.failed_at = self.failed_at.or(problem.input());
        match stop.requested() {
            true => self.stopped = true,
            false => self.problems.push(problem.to_string()),
        }
    }
}

/// Refuses what cannot be measured before anything is computed or written.
fn check(question: &Question) -> MeasureResult<()> {
    let about = question.inputs.about();
    if about.classes.is_empty()
        && let Some(response) = question.responses.iter().find(|response| response.needs_labels())
    {
        let problem = format!("--response {}: needs labels, and {} has none", response.name(), about.source);
        return Err(MeasureError::Other(problem));
    }
    for (at, model) in question.models.iter().enumerate() {
        let name = &model.about().name;
        if question.models[..at].iter().any(|other| other.about().name == *name) {
            let problem = format!("two models are called {name}; tell them apart by PATH:name=NAME");
            return Err(MeasureError::Other(problem));
        }
        refuse_unfit(&about.source, about.kind, &model.about().takes, name)?;
    }
    let nudges: Vec<String> = question.nudges.iter().map(Setting::text).collect();
    let responses: Vec<String> = question.responses.iter().map(|response| response.name().to_string()).collect();
    for (option, asked) in [("nudge", nudges), ("response", responses)] {
        if let Some((_, twice)) = asked.iter().enumerate().find(|(at, text)| asked[..*at].contains(*text)) {
            return Err(MeasureError::Other(format!("--{option} {twice}: is asked for twice; once is enough")));
        }
    }
    // The same refusals as later, before the first evaluation.
    let Some(first) = question.models.first() else {
        return Err(MeasureError::Other("there is no model to measure".into()));
    };
    for setting in &question.nudges {
        setting.check(about)?;
        let material = question.material(first.as_ref());
        if setting.kind.needs == Needs::Answers {
            setting.touching(&material)?;
        }
    }
    Ok(())
}

fn make_material<'a>(
    inputs: &'a InputSet,
    model: &dyn Model,
    channel_std: &[f32],
    data: Option<&Path>,
) -> Material<'a> {
    let vocabulary = if let Takes::Tokens { vocabulary, .. } = model.about().takes { vocabulary } else { None };
    Material {
        inputs,
        channel_std: channel_std.to_vec(),
        vocabulary,
        embedding_width: model.embedding_width().ok(),
        data: data.map(Path::to_path_buf),
    }
}

/// A folder of which nothing is left if nothing comes of it: what was made here goes again unless work was saved in it.
struct NewFolder {
    folder: PathBuf,
    /// It and those above it that were not there before, the innermost first.
    made: Vec<PathBuf>,
    /// Held while it lives.
    lock: Option<File>,
}

impl NewFolder {
    fn make(folder: &Path) -> MeasureResult<Self> {
        let is_new = |path: &&Path| !path.as_os_str().is_empty() && !path.exists();
        let made = folder.ancestors().take_while(is_new).map(Path::to_path_buf).collect();
        std::fs::create_dir_all(folder).map_err(Error::io("create", folder))?;
        Ok(NewFolder { folder: folder.into(), made, lock: None })
    }
}

impl Drop for NewFolder {
    fn drop(&mut self) {
        let work = self.folder.join("work");
        if self.lock.is_none() || self.made.is_empty() || holds_work(&work) {
            return;
        }
        let _ = std::fs::remove_dir_all(work);
        for file in ["measure.json", ".lock"] {
            let _ = std::fs::remove_file(self.folder.join(file));
        }
        self.made.iter().all(|folder| std::fs::remove_dir(folder).is_ok()); // none that holds something else
    }
}

/// What the folder is to hold; refused if it holds something else.
fn claim(question: &Question, folder: &Path) -> MeasureResult<Owner> {
    let identity = question.identity();
    let refuse = |problem: String| Err(Error::Folder { path: folder.into(), problem }.into());
    let command = question.command.clone();
    match read_json::<Owner>(&folder.join("measure.json"))? {
        Some(old) if old.format != FORMAT => {
            refuse(format!("was written in format {}, this program reads {FORMAT}; choose another --out", old.format))
        }
        Some(old) if old.identity != identity => {
            refuse(format!("holds another measurement (made by `{}`); choose another --out", old.command))
        }
        Some(old) => Ok(Owner { command, ..old }),
        None if folder.join("sweep.json").exists() => {
            refuse("holds a sweep of `pudica run`; choose another --out".into())
        }
        None => Ok(Owner { format: FORMAT, identity, command, seconds: 0.0 }),
    }
}

/// Where one model's responses to one nudge are made.
struct Work<'a> {
    folder: &'a Path,
    channel_std: &'a [f32],
    data: Option<&'a Path>,
}

impl Work<'_> {
    /// Makes what is left of it. An error: the model or the inputs are not fit for this nudge. A problem beside what was found: it broke
    /// off, and what there is counts.
    fn make(&self, asked: &mut Asked, asking: &Asking) -> MeasureResult<(Of, Option<MeasureError>)> {
        let setting = asking.setting;
        let about = asked.model.about();
        let names: Vec<&str> = asking.responses.iter().map(|response| response.name()).collect();
        let seed = asking.seed.to_string();
        let std: Vec<String> = self.channel_std.iter().map(f32::to_string).collect();
        let identity = setting.identity();
        let digest = &asking.inputs.about().digest;
        let work = [about.digest.as_str(), digest, &identity, &names.join(","), &seed, &std.join(",")].join(" | ");
        let folder = self.folder.join("work");
        let (responses, inputs) = (asking.responses.len(), asking.inputs.about().count);
        let chunks = || {
            WorkFile::open(&folder, &work, |chunk: &Chunk, before: &[Chunk]| chunk.follows(before, responses, inputs))
        };
        match setting.kind.name {
            "weight-noise" => {
                asked.model.weights()?;
                let follows = |one: &Direction, before: &[Direction]| one.follows(before, responses, inputs);
                let mut file = WorkFile::open(&folder, &work, follows)?;
                let problem = weights::measure(asked, asking, &mut file).err();
                Ok((Of::Directions(file.parts), problem))
            }
            "hessian" => {
                let mut file = WorkFile::open(&folder, &work, |_, before| before.is_empty())?;
                match curvature::measure(asked, asking, &mut file) {
                    Ok(()) => Ok((Of::Curvature(file.parts.pop()), None)),
                    Err(stopped @ MeasureError::Lab(Error::Stopped)) => Ok((Of::Curvature(None), Some(stopped))),
                    Err(error) => Err(error),
                }
            }
            "fgsm" | "pgd" => {
                let mut file = chunks()?;
                match attack::measure(asked, asking, &mut file) {
                    Err(error @ MeasureError::Model(ModelError::Lacks { .. })) => {
                        Err(MeasureError::Other(format!("{}: {error}", setting.text())))
                    }
                    result => Ok((Of::Chunks(file.parts, Sites::Whole), result.err())),
                }
            }
            "bit-flip" if asking.inputs.about().is_every_string() => {
                let n = asking.inputs.about().shape.first().copied().unwrap_or(0);
                let chunk = exact::flips(asked.clean, n, asking.responses);
                let detail = exact::boolean(&asked.model.about().name, asked.clean, n)?;
                Ok((Of::EveryString(Box::new(chunk), detail), None))
            }
            _ => {
                if setting.kind.needs == Needs::Embeddings {
                    asked.model.embedding_width()?;
                }
                let material = make_material(asking.inputs, asked.model, self.channel_std, self.data);
                let Some(touching) = setting.touching(&material)? else {
                    return Err(setting.refuse("cannot be measured"));
                };
                let mut file = chunks()?;
                let result = nudged::measure(asked, asking, &touching, &mut file);
                Ok((Of::Chunks(file.parts, touching.sites), result.err()))
            }
        }
    }
}

/// How often models will be asked, about.
fn evaluations(question: &Question) -> MeasureResult<f64> {
    let inputs = question.inputs.about().count as f64;
    let mut of_model = inputs;
    if let Some(model) = question.models.first() {
        let material = question.material(model.as_ref());
        let case = crate::asked::cases(&question.inputs, 0..1)?;
        for setting in &question.nudges {
            let draws = setting.draws()? as f64;
            let sites = match setting.kind.name {
                "bit-flip" if question.inputs.about().is_every_string() => 0.0,
                "hessian" => 0.0,
                "pgd" => 1.0 + setting.whole("steps", 10_000)? as f64,
                "fgsm" => 2.0,
                _ => match (setting.kind.needs, case.first()) {
                    (Needs::Answers, Some(case)) => {
                        setting.touching(&material)?.map_or(1.0, |touching| touching.nudge.sites(case) as f64)
                    }
                    _ => 1.0,
                },
            };
            let all = inputs * sites * draws;
            of_model += question.enough.budget.map_or(all, |budget| all.min(budget as f64));
        }
    }
    Ok((of_model * question.models.len() as f64).max(1.0))
}

/// Tells how far the work is.
struct Clock<'a> {
    began: Instant,
    /// Evaluations in all, about.
    expected: f64,
    done: Cell<f64>,
    /// What is at work, and since when.
    at_work: RefCell<(String, Instant)>,
    ended: Cell<usize>,
    observer: &'a dyn Observer,
}

impl<'a> Clock<'a> {
    fn new(expected: f64, observer: &'a dyn Observer) -> Self {
        let (began, done, ended) = (Instant::now(), Cell::new(0.0), Cell::new(0));
        Self { began, expected, done, at_work: RefCell::new((String::new(), began)), ended, observer }
    }

    /// Something else is at work.
    fn begin(&self, label: String) {
        *self.at_work.borrow_mut() = (label, Instant::now());
    }

    /// So many evaluations more are done.
    fn tick(&self, evaluations: u64) {
        self.done.set(self.done.get() + evaluations as f64);
        let (part, so_far) = (self.part(), self.began.elapsed().as_secs_f64());
        self.observer.notice(&Event::Progress {
            id: String::new(),
            label: self.at_work.borrow().0.clone(),
            step: 0,
            steps: 0,
            loss: f64::NAN,
            done: part,
            seconds_left: (part > 0.01 || so_far > 5.0).then(|| so_far * (1.0 - part) / part.max(1e-9)),
        });
    }

    fn part(&self) -> f64 {
        (self.done.get() / self.expected).min(1.0)
    }

    /// One model's responses to one nudge are there.
    fn end(&self, found: Vec<(String, Estimate)>, works: usize) {
        self.ended.set(self.ended.get() + 1);
        let (label, since) = self.at_work.borrow().clone();
        self.observer.notice(&Event::RunEnded {
            id: String::new(),
            label,
            outcome: Outcome::Finished,
            converged: true,
            problem: None,
            measures: found.into_iter().map(|(name, estimate)| (name, Json::from(estimate.mean))).collect(),
            seconds: since.elapsed().as_secs_f64(),
            ended: self.ended.get(),
            runs: works,
            done: self.part(),
            seconds_left: None,
        });
    }
}
