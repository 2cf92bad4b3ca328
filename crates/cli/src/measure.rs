//! `pudica measure`: how sensitive, how sharp, how robust is a model that somebody brings?

use crate::data::data_folder;
use crate::progress::Progress;
use crate::signals::{if_it_takes_long, leave, stop_on_signals};
use crate::text::{counted, grouped, number, seconds};
use crate::{Ending, PROGRAM, tell_fast_build};
use clap::Args;
use pudica_lab::Stop;
use pudica_measure::nudges::{NUDGES, Needs, NudgeRequest, Setting, default_nudge, kind_name};
use pudica_measure::results::{BooleanDetail, Summary, Value};
use pudica_measure::{
    AboutInputs, Compared, Enough, InputKind, InputSet, InputsRequest, Question, RESPONSES, open_model,
};
use pudica_model::{Choices, Model, ModelRequest, Normalisation, Source, Takes};
use std::error::Error;
use std::path::{Path, PathBuf};

/// Measure how models respond when their inputs or their weights are nudged
///
/// A model is an ONNX file, a PyTorch checkpoint, a Hugging Face folder, a run of pudica's own, or a program that answers on its standard
/// output. Several models are compared on the same nudges of the same inputs. The results are a folder with a page to open; running the same
/// command again continues.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// Models: PATH, or PATH:key=value,... with name, architecture, normalise, mean, std, layout, input, output, outputs, runtime, bits, batch
    #[arg(value_name = "MODEL")]
    models: Vec<String>,
    /// A program that answers on its standard output (docs/measure.md has the protocol); may be given several times
    #[arg(long, value_name = "COMMAND")]
    program: Vec<String>,
    /// What is asked about: a folder of pictures, .npy, .npz, .tsv, .csv, cifar10:test, bits:16
    #[arg(long, value_name = "INPUTS")]
    inputs: Option<String>,
    /// What is done to them, as NAME:key=value,...; may be given several times (`--list` explains all)
    #[arg(long, value_name = "NUDGE")]
    nudge: Vec<String>,
    /// What is compared; may be given several times [default: label, total-variation; with labels also accuracy, loss]
    #[arg(long, value_name = "RESPONSE")]
    response: Vec<String>,
    /// Explain all nudges and responses
    #[arg(long)]
    list: bool,
    #[command(flatten)]
    reading: Reading,
    #[command(flatten)]
    model: OfModels,
    /// Stop once the 95 % interval of every fraction is this narrow (half-width)
    #[arg(long, value_name = "WIDTH")]
    precision: Option<f64>,
    /// Evaluations of each model for each nudge, at most
    #[arg(long, value_name = "N", value_parser = crate::arguments::whole::<u64>(1..=1_000_000_000_000))]
    budget: Option<u64>,
    /// Names all randomness
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Run an ONNX file in both engines and print the largest difference
    #[arg(long)]
    check: bool,
    /// Folder for the results; by default runs/measure/NAME
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Print summary.json
    #[arg(long)]
    json: bool,
}

/// How inputs are read.
#[derive(Args)]
struct Reading {
    /// Labels for an array of inputs
    #[arg(long, value_name = "FILE", help_heading = "Inputs")]
    labels: Option<PathBuf>,
    /// The column of the text, or two with + between them
    #[arg(long, value_name = "COLUMN", help_heading = "Inputs")]
    text: Option<String>,
    /// The column of the classes
    #[arg(long, value_name = "COLUMN", help_heading = "Inputs")]
    label: Option<String>,
    /// Side of images in pixels
    #[arg(long, value_name = "PIXELS", help_heading = "Inputs", value_parser = crate::arguments::whole::<usize>(1..=8192))]
    size: Option<usize>,
    /// So many inputs, drawn at random
    #[arg(long, value_name = "N", help_heading = "Inputs", value_parser = crate::arguments::whole::<usize>(1..=1_000_000_000))]
    sample: Option<usize>,
    /// The folder with the data sets; without it, the one PUDICA_DATA names
    #[arg(long, value_name = "DIR", help_heading = "Inputs")]
    data: Option<PathBuf>,
    /// none, imagenet, cifar10, mnist or bytes: what is done to pixels from 0 to 1; the unit of noise on images
    #[arg(long, value_name = "PRESET", help_heading = "Inputs")]
    normalise: Option<String>,
    /// Mean of each channel, with / between them
    #[arg(long, value_name = "A/B/C", help_heading = "Inputs", allow_hyphen_values = true)]
    mean: Option<String>,
    /// Standard deviation of each channel, with / between them
    #[arg(long, value_name = "A/B/C", help_heading = "Inputs")]
    std: Option<String>,
}

/// What holds for all models that do not say otherwise.
#[derive(Args)]
struct OfModels {
    /// The architecture of checkpoints: resnet20, resnet50, ...; found out where it can be
    #[arg(long, value_name = "NAME", help_heading = "Models")]
    architecture: Option<String>,
    /// What computes ONNX files: tract (inside this program) or ort (an installed ONNX Runtime)
    #[arg(long, value_name = "ENGINE", help_heading = "Models")]
    runtime: Option<String>,
    /// The input of an ONNX file that has several
    #[arg(long, value_name = "NAME", help_heading = "Models")]
    input: Option<String>,
    /// The output of an ONNX file that has several
    #[arg(long, value_name = "NAME", help_heading = "Models")]
    output: Option<String>,
    /// nchw or nhwc: where images have their channels
    #[arg(long, value_name = "ORDER", help_heading = "Models")]
    layout: Option<String>,
    /// logits or probabilities
    #[arg(long, value_name = "KIND", help_heading = "Models")]
    outputs: Option<String>,
    /// 01 or signs: how bits are given
    #[arg(long, value_name = "KIND", help_heading = "Models")]
    bits: Option<String>,
    /// Inputs at a time
    #[arg(long, value_name = "N", help_heading = "Models")]
    batch: Option<String>,
    /// cpu, or cuda with --runtime ort
    #[arg(long, value_name = "DEVICE", help_heading = "Models")]
    device: Option<String>,
    /// Seconds that a program may take for one batch
    #[arg(long, value_name = "SECONDS", help_heading = "Models")]
    timeout: Option<f64>,
}

const EXAMPLES: &str = "\
Examples:
  pudica measure net.onnx --inputs photos/                          patch sensitivity, a page to open
  pudica measure a.onnx b.onnx RUN --inputs cifar10:test --data DIR --nudge patch-noise:size=4,variance=1 --nudge corruption:fog:2
  pudica measure resnet20.th --inputs cifar10:test --data DIR --normalise imagenet --sample 500 --nudge weight-noise:rho=0.001,0.01
  pudica measure bert/ --inputs reviews.tsv --text sentence --label label --nudge word-replace --nudge typo
  pudica measure parity.onnx --inputs bits:16                       all 65,536 strings, exactly
  pudica measure --program \"python serve.py\" --inputs table.csv --nudge feature-noise:scale=0.1
  pudica measure --list                                             every nudge and response";

type Outcome<T = Ending> = Result<T, Box<dyn Error>>;

/// Runs the command.
pub fn run(arguments: &Arguments) -> Outcome {
    if arguments.list {
        list(arguments.json);
        return Ok(Ending::Done);
    }
    if arguments.inputs.is_none() && !arguments.check {
        return Err("say what is asked about: --inputs photos/, --inputs cifar10:test, --inputs bits:16 (`pudica measure --help`)".into());
    }
    if arguments.models.is_empty() && arguments.program.is_empty() {
        return Err(
            "name a model: an .onnx file, a checkpoint, a folder, or --program COMMAND (`pudica measure --help`)"
                .into(),
        );
    }
    let Some(source) = &arguments.inputs else { return check(&arguments.requests()?, None, arguments.json) };
    if let Some(width) = arguments.precision.filter(|width| !(width.is_finite() && *width > 0.0)) {
        return Err(format!("--precision {width}: give a number more than 0, as 0.005").into());
    }
    let nudges: Vec<NudgeRequest> =
        arguments.nudge.iter().map(|text| NudgeRequest::parse(text)).collect::<Result<_, _>>()?;
    let responses: Vec<Compared> =
        arguments.response.iter().map(|name| Compared::named(name)).collect::<Result<_, _>>()?;
    let data = data_folder(arguments.reading.data.as_deref())?;
    tell_fast_build();
    let requests = arguments.requests()?;
    let models: Vec<Box<dyn Model>> =
        requests.iter().map(|request| open_model(request, data.as_deref())).collect::<Result<_, _>>()?;
    let takes = models.first().map_or(Takes::Anything, |model| model.about().takes.clone());
    let request = InputsRequest {
        source: source.clone(),
        data: data.clone(),
        labels: arguments.reading.labels.clone(),
        text: arguments.reading.text.clone(),
        label: arguments.reading.label.clone(),
        size: arguments.reading.size,
        sample: arguments.reading.sample,
        seed: arguments.seed,
        class_names: models.first().map_or(Vec::new(), |model| model.about().class_names.clone()),
    };
    let inputs = InputSet::open(&request, &takes)?;
    if arguments.check {
        return check(&requests, Some(&inputs), arguments.json);
    }
    let about = inputs.about();
    arguments.refuse_kinds_of_inputs(about, &requests)?;
    let nudges: Vec<Setting> = match nudges.is_empty() {
        true => NudgeRequest::parse(default_nudge(about.kind))?.settings(),
        false => nudges.iter().flat_map(NudgeRequest::settings).collect(),
    };
    let responses = match responses.is_empty() {
        false => responses,
        true => Compared::usual(!about.classes.is_empty()),
    };
    let unit = arguments.normalisation()?.or_else(|| models.first().and_then(|model| model.normalisation()));
    let mut question = Question {
        channel_std: unit.map_or(vec![1.0], |unit| unit.std),
        models,
        inputs,
        nudges,
        responses,
        enough: Enough { precision: arguments.precision, budget: arguments.budget },
        seed: arguments.seed,
        data,
        command: command(),
        program: PROGRAM.into(),
    };
    let folder = arguments.out.clone().unwrap_or_else(|| default_folder(&question));
    let progress = Progress::new(false);
    // Until here nothing was written, and a signal ends it at once.
    let stop = Stop::new();
    stop_on_signals(stop.clone())?;
    if_it_takes_long(stop.clone(), || {
        eprintln!("stopped within a batch; what was done before it is saved, and the same command continues");
        leave();
    });
    let finding = pudica_measure::measure(&mut question, &folder, &progress, &stop)?;
    let report = pudica_report::write_measure(&folder)?;
    if arguments.json {
        println!("{}", serde_json::to_string_pretty(&finding.summary)?);
    } else {
        print(&finding.summary);
        finding.details.boolean.iter().for_each(print_boolean);
        println!("\n  {}  {}", report.page.display(), seconds(finding.summary.seconds));
    }
    match (&finding.summary.problem, finding.stopped) {
        (_, true) => {
            eprintln!("stopped, all saved; the same command continues");
            Ok(Ending::Interrupted)
        }
        (Some(problem), false) => Err(format!("not everything could be measured: {problem}").into()),
        (None, false) => Ok(Ending::Done),
    }
}

impl Arguments {
    /// What is done to images where a model does not say otherwise.
    fn normalisation(&self) -> Outcome<Option<Normalisation>> {
        let mut found = Choices::default();
        let given = [("normalise", &self.reading.normalise), ("mean", &self.reading.mean), ("std", &self.reading.std)];
        for (key, value) in given {
            if let Some(value) = value {
                found.set(key, value).map_err(|problem| format!("--{problem}"))?;
            }
        }
        Ok(found.normalisation)
    }

    /// The models that are meant, in the order they were named, programs last.
    fn requests(&self) -> Outcome<Vec<ModelRequest>> {
        let mut common = Choices { inputs_normalisation: self.normalisation()?, ..Choices::default() };
        let OfModels { architecture, runtime, input, output, layout, outputs, bits, batch, device, timeout } =
            &self.model;
        let given = [
            ("architecture", architecture),
            ("runtime", runtime),
            ("input", input),
            ("output", output),
            ("layout", layout),
            ("outputs", outputs),
            ("bits", bits),
            ("batch", batch),
        ];
        for (key, value) in given {
            if let Some(value) = value {
                common.set(key, value).map_err(|problem| format!("--{problem}"))?;
            }
        }
        if let Some(timeout) = timeout.filter(|seconds| !(seconds.is_finite() && *seconds > 0.0)) {
            return Err(format!("--timeout {timeout}: give seconds, more than 0").into());
        }
        if let Some(device) = device.as_ref().filter(|device| !["cpu", "cuda"].contains(&device.as_str())) {
            return Err(format!("--device {device}: give cpu or cuda").into());
        }
        (common.device, common.timeout) = (device.clone(), *timeout);
        common.image = self.reading.size.map(|side| [3, side, side]); // some checkpoints do not tell
        self.models.iter().try_for_each(|text| refuse_other_formats(text))?;
        let models = self.models.iter().map(|text| ModelRequest::parse(text, &common));
        let mut requests: Vec<ModelRequest> = models.collect::<Result<_, _>>()?;
        let program =
            |command: &String| ModelRequest { source: Source::Program(command.clone()), choices: common.clone() };
        requests.extend(self.program.iter().map(program));
        self.refuse_what_concerns_none(&requests)?;
        Ok(requests)
    }
}

impl Arguments {
    /// Refuses options about models of a kind that is not among these.
    fn refuse_what_concerns_none(&self, requests: &[ModelRequest]) -> Result<(), String> {
        let files = || {
            requests.iter().filter_map(|request| match &request.source {
                Source::File(path) => Some(path.as_path()),
                Source::Program(_) => None,
            })
        };
        let OfModels { architecture, runtime, input, output, layout, outputs, bits, timeout, .. } = &self.model;
        let (checkpoint, onnx) = (files().any(|path| !is_onnx(path)), files().any(is_onnx));
        let program = !self.program.is_empty();
        let options = [
            ("architecture", architecture.is_some(), checkpoint, "checkpoints"),
            ("runtime", runtime.is_some(), onnx, "ONNX files"),
            ("input", input.is_some(), onnx, "ONNX files"),
            ("output", output.is_some(), onnx, "ONNX files"),
            ("layout", layout.is_some(), onnx, "ONNX files"),
            ("outputs", outputs.is_some(), onnx || program, "ONNX files and programs"),
            ("bits", bits.is_some(), onnx || program, "ONNX files and programs"),
            ("timeout", timeout.is_some(), program, "programs (--program)"),
        ];
        match options.into_iter().find(|(_, given, concerned, _)| *given && !concerned) {
            Some((option, .., what)) => Err(format!("--{option} is for {what}, and none is named; leave it out")),
            None => Ok(()),
        }
    }

    /// Refuses what is said about pixels or bits where there are none, and a normalisation of other channels than the images have.
    fn refuse_kinds_of_inputs(&self, about: &AboutInputs, requests: &[ModelRequest]) -> Result<(), String> {
        let Reading { normalise, mean, std, .. } = &self.reading;
        let given = [
            ("normalise", normalise, InputKind::Images, "images"),
            ("mean", mean, InputKind::Images, "images"),
            ("std", std, InputKind::Images, "images"),
            ("bits", &self.model.bits, InputKind::Bits, "bits"),
        ];
        if let Some((option, .., what)) =
            given.into_iter().find(|(_, value, kind, _)| value.is_some() && about.kind != *kind)
        {
            return Err(format!("--{option} is for {what}, and {} has none; leave it out", about.source));
        }
        let own = |request: &ModelRequest| match about.kind {
            InputKind::Images => request.choices.signs.then_some("bits"),
            InputKind::Bits => request.choices.normalisation.is_some().then_some("a normalisation"),
            _ => [(request.choices.signs, "bits"), (request.choices.normalisation.is_some(), "a normalisation")]
                .into_iter()
                .find_map(|(given, what)| given.then_some(what)),
        };
        if let Some(what) = requests.iter().find_map(own) {
            return Err(format!(
                "a model's settings name {what}, which says nothing about {}; leave it out",
                about.source
            ));
        }
        let (InputKind::Images, Some(&channels)) = (about.kind, about.shape.first()) else { return Ok(()) };
        let chosen = |request: &ModelRequest| {
            request.choices.normalisation.clone().or_else(|| request.choices.inputs_normalisation.clone())
        };
        for Normalisation { mean, std } in requests.iter().filter_map(chosen) {
            for (name, values) in [("mean", mean), ("std", std)] {
                if ![1, channels].contains(&values.len()) {
                    let count = values.len();
                    return Err(format!(
                        "{name}: {count} values, but the images have {}; give one, or one for each",
                        counted(channels, "channel")
                    ));
                }
            }
        }
        Ok(())
    }
}

/// Refuses settings of one model, `PATH:key=value`, that say nothing about a file of its format.
fn refuse_other_formats(text: &str) -> Outcome<()> {
    let ModelRequest { source, choices } = ModelRequest::parse(text, &Choices::default())?;
    let Source::File(path) = source else { return Ok(()) };
    let of_onnx = [
        ("runtime", choices.runtime.is_some()),
        ("input", choices.input.is_some()),
        ("output", choices.output.is_some()),
        ("layout", choices.channels_last.is_some()),
        ("outputs", choices.outputs.is_some()),
        ("bits", choices.signs),
    ];
    let of_checkpoints = [("architecture", choices.architecture.is_some())];
    let (wrong, what) =
        if is_onnx(&path) { (&of_checkpoints[..], "checkpoints") } else { (&of_onnx[..], "ONNX files") };
    match wrong.iter().find(|(_, given)| *given) {
        Some((key, _)) => Err(format!("{}: {key} is for {what}; leave it out", path.display()).into()),
        None => Ok(()),
    }
}

fn is_onnx(path: &Path) -> bool {
    path.extension().is_some_and(|ending| ending == "onnx")
}

/// The command as it was typed, to repeat it.
fn command() -> String {
    let quoted = |text: String| {
        let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,@+%".contains(c);
        if !text.is_empty() && text.chars().all(plain) { text } else { format!("'{}'", text.replace('\'', "'\\''")) }
    };
    let typed = crate::TYPED.get().map_or(&[][..], Vec::as_slice).iter().skip(1);
    let typed: Vec<String> = typed.map(|text| quoted(text.to_string_lossy().into_owned())).collect();
    format!("pudica {}", typed.join(" "))
}

/// `runs/measure/MODEL-INPUTS`, with the identity of all that was asked in its name.
fn default_folder(question: &Question) -> PathBuf {
    let plain = |text: &str| -> String {
        let stem = Path::new(text).file_name().unwrap_or_default().to_string_lossy().into_owned();
        let kept = stem.chars().map(|c| if c.is_ascii_alphanumeric() || c == '-' || c == '_' { c } else { '-' });
        kept.take(40).collect()
    };
    let name = question.models.first().map_or(String::new(), |model| plain(&model.about().name));
    let more =
        if question.models.len() > 1 { format!("-and-{}-more", question.models.len() - 1) } else { String::new() };
    let inputs = plain(&question.inputs.about().source);
    PathBuf::from(format!("runs/measure/{name}{more}-{inputs}-{}", &question.identity()[..6]))
}

/// Both engines on some inputs.
fn check(requests: &[ModelRequest], inputs: Option<&InputSet>, json: bool) -> Outcome {
    let count = inputs.map_or(0, |inputs| inputs.about().count.min(8));
    let read = |index| inputs.map(|inputs| inputs.read(index).map(|labelled| labelled.input));
    let some: Vec<_> = (0..count).filter_map(read).collect::<Result<_, _>>()?;
    for request in requests {
        let Source::File(path) = &request.source else {
            return Err("--check compares engines for ONNX files; a program has only itself".into());
        };
        if !is_onnx(path) {
            return Err(format!("--check compares engines for ONNX files, and {} is none", path.display()).into());
        }
        let found = pudica_model::onnx::check(path, &request.choices, &some)?;
        if json {
            println!("{}", serde_json::to_string(&found)?);
            continue;
        }
        println!("{}: {}, {} and {}", path.display(), counted(found.inputs, "input"), found.tract, found.ort);
        let (difference, largest) = (number(found.largest_difference), number(found.largest_output));
        println!(
            "  largest difference {difference} of outputs up to {largest}; the same class for {} of {}",
            found.agreeing, found.inputs
        );
    }
    Ok(Ending::Done)
}

/// All nudges and responses.
fn list(json: bool) {
    if json {
        let nudges: Vec<serde_json::Value> = NUDGES
            .iter()
            .map(|nudge| {
                let parameters: Vec<serde_json::Value> = nudge
                    .parameters
                    .iter()
                    .map(|p| serde_json::json!({"name": p.name, "default": p.default, "meaning": p.meaning}))
                    .collect();
                let touches: Vec<&str> = nudge.touches.iter().map(|kind| kind_name(*kind)).collect();
                serde_json::json!({"name": nudge.name, "touches": touches, "sites": nudge.sites, "parameters": parameters, "meaning": nudge.meaning})
            })
            .collect();
        let responses: Vec<serde_json::Value> = RESPONSES
            .iter()
            .map(|(_, name, meaning, labels)| serde_json::json!({"name": name, "meaning": meaning, "needs_labels": labels}))
            .collect();
        println!("{}", serde_json::json!({"nudges": nudges, "responses": responses}));
        return;
    }
    println!("Nudges, as --nudge NAME:key=value,...; a value may be a list (variance=0.1,1,5), which makes a curve:");
    for nudge in &NUDGES {
        let touches: Vec<&str> = nudge.touches.iter().map(|kind| kind_name(*kind)).collect();
        let touches = if touches.is_empty() { "any model".to_string() } else { touches.join(", ") };
        let needs = match nudge.needs {
            Needs::Answers => "",
            Needs::Weights => "; needs weights",
            Needs::Gradients => "; needs gradients and labels",
            Needs::Embeddings => "; needs embeddings",
        };
        println!("\n{} ({touches}; sites: {}{needs})\n  {}", nudge.name, nudge.sites, nudge.meaning);
        for parameter in nudge.parameters {
            let default = match parameter.default {
                "" => String::new(),
                value => format!(" [{value}]"),
            };
            println!("    {:<11}{}{default}", parameter.name, parameter.meaning);
        }
    }
    println!("\nResponses, as --response NAME:\n");
    for (_, name, meaning, labels) in RESPONSES {
        println!("  {name:<16} {meaning}{}", if labels { "; needs labels" } else { "" });
    }
}

/// A table for the terminal.
fn print(summary: &Summary) {
    for model in &summary.models {
        let about = &model.about;
        let accuracy =
            model.clean_accuracy.as_ref().map_or(String::new(), |value| format!(", accuracy {}", written(value)));
        let weights = about.parameters.map_or(String::new(), |count| format!(", {} weights", grouped(count)));
        println!("{} ({}{weights}): {}{accuracy}", about.name, about.runtime, counted(model.inputs, "input"));
        about.notes.iter().for_each(|note| println!("  {note}"));
    }
    println!();
    let width =
        |of: &dyn Fn(&pudica_measure::results::Measured) -> usize| summary.results.iter().map(of).max().unwrap_or(0);
    let (models, nudges) = (width(&|r| r.model.chars().count()), width(&|r| r.nudge.chars().count()));
    let responses = width(&|r| r.response.chars().count());
    for result in &summary.results {
        let exact = if result.exact { "  exact" } else { "" };
        let note = result.note.as_ref().map_or(String::new(), |note| format!("  ({note})"));
        let found = written(&result.found);
        println!(
            "{:<models$}  {:<nudges$}  {:<responses$}  {found}{exact}{note}",
            result.model, result.nudge, result.response
        );
    }
    if !summary.differences.is_empty() {
        println!("\ndifferences on the same inputs:");
        for difference in &summary.differences {
            let pair = format!("{} - {}", difference.model, difference.with);
            let clear = difference.found.ci95.is_some_and(|[low, high]| low > 0.0 || high < 0.0);
            let star = if clear { " *" } else { "" };
            println!("  {pair}  {}  {}  {}{star}", difference.nudge, difference.response, written(&difference.found));
        }
        println!("  (* the 95 % interval excludes 0)");
    }
    summary.notes.iter().for_each(|note| println!("note: {note}"));
}

/// The function of bits that a model computes.
fn print_boolean(found: &BooleanDetail) {
    let numbers = |values: &[f64]| values.iter().map(|value| number(*value)).collect::<Vec<_>>().join(" ");
    println!("\n{} as a function of {} bits, exactly:", found.model, found.n);
    println!("  average sensitivity  {}", number(found.average_sensitivity));
    println!("  influences           {}", numbers(&found.influences));
    println!("  weight by degree     {}", numbers(&found.degree_profile));
    println!("  fraction of ones     {}", number(found.ones));
}

/// `0.34 [0.30, 0.38]`.
fn written(value: &Value) -> String {
    let Some([low, high]) = value.ci95.filter(|[low, high]| low < high) else { return number(value.value) };
    // Two digits of the interval's width; where it is small beside the number, as many of the number.
    let decimals = (2.0 - (high - low).log10().floor()).clamp(0.0, 12.0) as usize;
    match value.value.abs().max(high.abs()) {
        size if size != 0.0 && !(1e-3..1e6).contains(&size) => format!("{:.2e} [{low:.2e}, {high:.2e}]", value.value),
        _ => format!("{:.decimals$} [{low:.decimals$}, {high:.decimals$}]", value.value),
    }
}
