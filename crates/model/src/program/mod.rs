//! A program that answers on its standard output: any model in any language. `docs/measure.md` describes the protocol.

mod child;
mod message;
mod words;

use std::path::{Path, PathBuf};
use std::time::Duration;

use pudica_boolean::shortened;
use pudica_data::{digest, identity, name_of};
use serde::Deserialize;

use crate::{About, Choices, Input, Model, ModelError, ModelResult, Normalisation, Outputs, Scores, Takes};
use child::Child;
use message::Message;

/// How long a program may take for a batch, in seconds, where nobody says.
const USUAL_TIMEOUT: f64 = 60.0;

/// How long it may take to start at least: it loads a framework and a model first.
const LONGEST_START: f64 = 60.0;

/// Inputs at a time where neither the user nor the program says.
const USUAL_BATCH: usize = 64;

/// What a program says of itself.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Hello {
    /// The version of the protocol.
    pudica: u32,
    name: Option<String>,
    /// `images`, `rows`, `tokens`, `texts`; anything where it does not say.
    takes: Option<String>,
    /// Of one input: channels, height and width of images, columns of rows, the number of tokens.
    #[serde(default)]
    shape: Vec<Option<usize>>,
    vocabulary: Option<usize>,
    classes: usize,
    /// What the classes are called.
    #[serde(default)]
    class_names: Vec<String>,
    outputs: Option<Outputs>,
    batch: Option<usize>,
    parameters: Option<u64>,
    /// Whatever changes when its answers do: a version, a checksum of weights.
    identity: Option<String>,
}

/// A program and the conversation with it.
struct Program {
    about: About,
    child: Child,
    batch: usize,
    timeout: Duration,
    normalisation: Option<Normalisation>,
    signs: bool,
}

/// Starts a program and asks what it is.
pub(crate) fn open(command: &str, choices: &Choices) -> ModelResult<Box<dyn Model>> {
    let words = words::split(command).map_err(|problem| ModelError::Other(format!("--program: {problem}")))?;
    let seconds = choices.timeout.unwrap_or(USUAL_TIMEOUT);
    let timeout = duration(seconds)?;
    let mut child = Child::start(&words)?;
    let line = child.ask(Message::hello(), duration(seconds.max(LONGEST_START))?)?.line;
    let said = |problem: String| {
        let line = shortened(&line, 200);
        ModelError::Other(format!("{}: its answer to hello, {line}, {problem}", child::called(&words)))
    };
    let hello: Hello = serde_json::from_str(&line).map_err(|error| said(format!("is not understood: {error}")))?;
    if hello.pudica != 1 {
        return Err(said(format!("is of version {} of the protocol, not 1", hello.pudica)));
    }
    if !(1..=1 << 20).contains(&hello.classes) {
        return Err(said(format!("tells {} classes: 1 or more are needed", hello.classes)));
    }
    if !hello.class_names.is_empty() && hello.class_names.len() != hello.classes {
        return Err(said(format!("has {} class_names for {} classes", hello.class_names.len(), hello.classes)));
    }
    let takes = hello.takes().map_err(said)?;
    let batch = choices.batch.or(hello.batch).unwrap_or(USUAL_BATCH);
    if !(1..=1 << 16).contains(&batch) {
        return Err(said(format!("wants {batch} inputs at a time: 1 to 65536 are possible")));
    }
    let mut notes = Vec::new();
    let outputs = choices.outputs.or(hello.outputs).unwrap_or_else(|| {
        notes.push("The program does not say what its outputs are; they are taken as logits.".into());
        Outputs::Logits
    });
    let files: Vec<PathBuf> = words.iter().map(PathBuf::from).filter(|path| path.is_file()).collect();
    let own: Vec<&PathBuf> = files.iter().filter(|path| *path != Path::new(&words[0])).collect();
    let name = choices.name.clone().or(hello.name.clone());
    let name = name.unwrap_or_else(|| own.first().map_or(child::called(&words), |path| name_of(path)));
    let normalisation = choices.normalisation.clone().or(choices.inputs_normalisation.clone());
    let about = About {
        name: shortened(&name, 100),
        runtime: "program".into(),
        takes,
        outputs,
        classes: hello.classes,
        class_names: hello.class_names,
        parameters: hello.parameters,
        digest: identity([
            command,
            &digest(Path::new(""), &files)?,
            &hello.identity.unwrap_or_default(),
            &format!("{:?} {:?} {outputs} {}", normalisation, choices.signs, hello.classes),
        ]),
        notes,
    };
    Ok(Box::new(Program { about, child, batch, timeout, normalisation, signs: choices.signs }))
}

fn duration(seconds: f64) -> ModelResult<Duration> {
    let found = Duration::try_from_secs_f64(seconds).ok().filter(|duration| !duration.is_zero());
    found.ok_or_else(|| ModelError::Other(format!("--timeout {seconds}: give a number of seconds above 0")))
}

impl Hello {
    fn takes(&self) -> Result<Takes, String> {
        let axis = |at: usize| self.shape.get(at).copied().flatten();
        let axes = |count: usize| match self.shape.len() {
            0 => Ok(()),
            found if found == count => Ok(()),
            found => Err(format!("gives a shape of {found} sizes; {count} are needed, null for any")),
        };
        match self.takes.as_deref() {
            Some("images") => {
                axes(3)?;
                Ok(Takes::Images { channels: axis(0), height: axis(1), width: axis(2) })
            }
            Some("rows" | "bits") => {
                axes(1)?;
                Ok(Takes::Rows { width: axis(0) })
            }
            Some("tokens") => {
                axes(1)?;
                Ok(Takes::Tokens { length: axis(0), vocabulary: self.vocabulary })
            }
            Some("texts") => Ok(Takes::Texts),
            None | Some("anything") => Ok(Takes::Anything),
            Some(other) => {
                let other = shortened(other, 40);
                Err(format!("takes '{other}'; say images, rows, tokens, texts or anything"))
            }
        }
    }
}

impl Model for Program {
    fn about(&self) -> &About {
        &self.about
    }

    fn batch(&self) -> usize {
        self.batch
    }

    fn normalisation(&self) -> Option<Normalisation> {
        self.normalisation.clone()
    }

    fn scores(&mut self, inputs: &[Input]) -> ModelResult<Scores> {
        let classes = self.about.classes;
        let mut values = Vec::with_capacity(inputs.len() * classes);
        // What is sent together has one shape: sequences may differ in length.
        for alike in inputs.chunk_by(Input::is_alike) {
            for batch in alike.chunks(self.batch) {
                let message = Message::of(batch, self.normalisation.as_ref(), self.signs);
                let message =
                    message.map_err(|problem| ModelError::Other(format!("{}: {problem}", self.about.name)))?;
                let reply = self.child.ask(message, self.timeout)?;
                values.extend(self.child.checked(reply, batch.len(), classes)?);
            }
        }
        Ok(Scores { classes, values })
    }
}
