//! PyTorch beside ours: a process that is asked for times, in turns with our own. Part of `bench/encoder` and `bench/classifiers`.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use crate::Failure;

/// A script in a process of its own: it first says what it is, then answers each line with milliseconds.
pub struct Torch {
    process: Child,
    questions: ChildStdin,
    answers: BufReader<ChildStdout>,
    /// What it says it is: versions, threads, allocator.
    pub description: String,
}

impl Torch {
    /// Starts `command` with these further arguments.
    pub fn start(command: &[String], arguments: &[&str]) -> Result<Self, Failure> {
        let (program, leading) = command.split_first().ok_or("a command must follow --")?;
        let mut started = Command::new(program);
        started.args(leading).args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = started.spawn()?;
        let questions = process.stdin.take().ok_or("no pipe to PyTorch")?;
        let mut answers = BufReader::new(process.stdout.take().ok_or("no pipe from PyTorch")?);
        let mut description = String::new();
        answers.read_line(&mut description)?;
        Ok(Self { process, questions, answers, description: description.trim().to_string() })
    }

    /// The milliseconds of `steps` steps of `what`: each, or their mean, as the script has it.
    pub fn steps(&mut self, what: &str, steps: usize) -> Result<Vec<f64>, Failure> {
        writeln!(self.questions, "{what} {steps}")?;
        let mut answer = String::new();
        self.answers.read_line(&mut answer)?;
        let times = answer.split_whitespace().map(str::parse).collect::<Result<Vec<f64>, _>>();
        times
            .ok()
            .filter(|times| !times.is_empty())
            .ok_or_else(|| format!("PyTorch gave no time for {what}: {answer}").into())
    }
}

impl Drop for Torch {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The median.
pub fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}
