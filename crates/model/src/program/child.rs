//! The process: what is written to it, what it answers, and how it ends.
//!
//! Writing and reading are done by a thread each: a program that does not read or does not answer must not stop us for longer than its time.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{ChildStdin, ChildStdout, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use pudica_boolean::shortened;
use serde_json::Value;

use super::message::Message;
use crate::{ModelError, ModelResult};

/// No header is longer than this.
const LONGEST_LINE: u64 = 1 << 16;

/// No answer has more values than this.
const MOST_VALUES: u64 = 1 << 28;

/// How long an ended program is waited for, to tell how it ended.
const PATIENCE: Duration = Duration::from_secs(2);

/// A running program.
pub(super) struct Child {
    process: std::process::Child,
    called: String,
    questions: Sender<Vec<u8>>,
    answers: Receiver<Result<Reply, Broken>>,
    /// Why it is not asked any more.
    over: Option<String>,
}

/// An answer: its line, and the bytes after it.
pub(super) struct Reply {
    pub line: String,
    header: Value,
    bytes: Vec<u8>,
}

/// Why there is no answer.
enum Broken {
    Ended,
    CutOff { expected: u64, found: u64 },
    Unreadable(String),
}

/// The program's name in messages.
pub(super) fn called(words: &[String]) -> String {
    shortened(&words.join(" "), 80)
}

impl Child {
    /// Starts a program. What it writes to its standard error goes to ours.
    pub fn start(words: &[String]) -> ModelResult<Self> {
        let called = called(words);
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).stdin(Stdio::piped()).stdout(Stdio::piped());
        // Ctrl-C asks us to stop after the batch; the program must still answer that one.
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        let mut process = command.spawn().map_err(|error| {
            ModelError::Other(format!("{called}: the program '{}' cannot be started: {error}", words[0]))
        })?;
        let (Some(stdin), Some(stdout)) = (process.stdin.take(), process.stdout.take()) else {
            return Err(ModelError::Other(format!("{called}: the program cannot be spoken to")));
        };
        let (questions, to_write) = channel();
        let (answered, answers) = channel();
        std::thread::spawn(move || write(stdin, &to_write));
        std::thread::spawn(move || read(stdout, &answered));
        Ok(Self { process, called, questions, answers, over: None })
    }

    /// Sends a message and waits for the answer.
    pub fn ask(&mut self, message: Message, timeout: Duration) -> ModelResult<Reply> {
        if let Some(problem) = &self.over {
            return Err(ModelError::Other(problem.clone()));
        }
        let answer = match self.answers.try_recv() {
            Ok(Ok(reply)) => {
                return Err(self.end(format!("it answered {} before it was asked", shortened(&reply.line, 80))));
            }
            Ok(broken) => Ok(broken), // since the answer before
            Err(_) => {
                // Where the writer is gone, so is the program: the reader says how.
                let _ = self.questions.send(message.bytes);
                self.answers.recv_timeout(timeout)
            }
        };
        let problem = match answer {
            Ok(Ok(reply)) => match reply.header.get("error") {
                None => return Ok(reply),
                Some(error) => {
                    let error = error.as_str().map_or(error.to_string(), str::to_string);
                    format!("it answered to {} with an error: {}", message.what, shortened(&error, 400))
                }
            },
            Ok(Err(Broken::Ended)) => format!("the program ended{} before it answered to {}", self.how(), message.what),
            Ok(Err(Broken::CutOff { expected, found })) => {
                format!(
                    "the program ended{} after {found} of the {expected} bytes of its answer to {}",
                    self.how(),
                    message.what
                )
            }
            Ok(Err(Broken::Unreadable(problem))) => problem,
            Err(RecvTimeoutError::Timeout) => {
                format!("no answer to {} after {} s; --timeout gives it longer", message.what, timeout.as_secs_f64())
            }
            Err(RecvTimeoutError::Disconnected) => "the program cannot be heard any more".into(),
        };
        Err(self.end(problem))
    }

    /// The values of an answer to `rows` inputs, if there is one for each input and class, all of them numbers.
    pub fn checked(&mut self, reply: Reply, rows: usize, classes: usize) -> ModelResult<Vec<f32>> {
        let number = |key: &str| reply.header.get(key).and_then(Value::as_u64);
        let problem = match (number("rows"), number("classes")) {
            (Some(found), _) if found != rows as u64 => Some(format!("{found} rows were answered for {rows} inputs")),
            (Some(_), Some(found)) if found != classes as u64 => {
                Some(format!("{found} classes were answered, but it said hello with {classes}"))
            }
            (Some(_), Some(_)) => None,
            _ => Some(format!("its answer {} tells no rows and classes", shortened(&reply.line, 80))),
        };
        if let Some(problem) = problem {
            return Err(self.end(problem));
        }
        let (values, _) = reply.bytes.as_chunks::<4>();
        let values: Vec<f32> = values.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect();
        match values.iter().position(|value| !value.is_finite()) {
            Some(at) => {
                let (row, class) = (at / classes, at % classes);
                Err(self
                    .end(format!("its answer to input {row} of a batch of {rows} is {} for class {class}", values[at])))
            }
            None => Ok(values),
        }
    }

    /// Ends the conversation: the program is killed, and every later question gets the same sentence.
    fn end(&mut self, problem: String) -> ModelError {
        self.kill();
        let sentence = format!("{}: {problem}", self.called);
        self.over = Some(sentence.clone());
        ModelError::Other(sentence)
    }

    fn kill(&mut self) {
        // Where it has ended by itself there is nothing to do.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }

    /// How an ended program ended, as " (exit status: 1)".
    fn how(&mut self) -> String {
        let start = Instant::now();
        loop {
            match self.process.try_wait() {
                Ok(Some(status)) => return format!(" ({status})"),
                Ok(None) if start.elapsed() < PATIENCE => std::thread::sleep(Duration::from_millis(10)),
                _ => return " its output".into(),
            }
        }
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Writes what is asked, until nothing more is or the program reads no more.
fn write(mut stdin: ChildStdin, questions: &Receiver<Vec<u8>>) {
    while let Ok(bytes) = questions.recv() {
        if stdin.write_all(&bytes).and_then(|()| stdin.flush()).is_err() {
            return;
        }
    }
}

/// Reads answers, until one is broken.
fn read(stdout: ChildStdout, answers: &Sender<Result<Reply, Broken>>) {
    let mut stdout = BufReader::with_capacity(1 << 16, stdout);
    loop {
        let reply = reply(&mut stdout);
        let broken = reply.is_err();
        if answers.send(reply).is_err() || broken {
            return;
        }
    }
}

fn reply(stdout: &mut impl BufRead) -> Result<Reply, Broken> {
    let unreadable = |error: std::io::Error| Broken::Unreadable(format!("its answer cannot be read: {error}"));
    let mut line = Vec::new();
    stdout.by_ref().take(LONGEST_LINE).read_until(b'\n', &mut line).map_err(unreadable)?;
    if line.is_empty() {
        return Err(Broken::Ended);
    }
    let text = String::from_utf8_lossy(&line).trim().to_string();
    let header = serde_json::from_slice::<Value>(&line).ok().filter(Value::is_object).ok_or_else(|| {
        Broken::Unreadable(format!(
            "'{}' came where an answer should begin with one line of JSON; a program must print nothing else to its standard output, and as many \
             bytes as it says (4 for each value)",
            shortened(&text.escape_debug().to_string(), 80)
        ))
    })?;
    let size = |key: &str| header.get(key).and_then(Value::as_u64);
    let mut bytes = Vec::new();
    // Its hello tells classes, but no rows.
    if let (Some(rows), Some(classes)) = (size("rows"), size("classes")) {
        let values = rows.checked_mul(classes).filter(|values| *values <= MOST_VALUES);
        let expected = 4 * values.ok_or_else(|| {
            Broken::Unreadable(format!(
                "an answer of {rows} rows and {classes} classes is larger than what is read here"
            ))
        })?;
        // Memory grows with what is really there.
        stdout.by_ref().take(expected).read_to_end(&mut bytes).map_err(unreadable)?;
        if (bytes.len() as u64) < expected {
            return Err(Broken::CutOff { expected, found: bytes.len() as u64 });
        }
    }
    Ok(Reply { line: text, header, bytes })
}
