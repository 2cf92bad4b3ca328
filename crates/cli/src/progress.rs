//! What a sweep shows while it runs: a bar on a terminal, plain lines elsewhere, or JSON lines for programs.

use crate::text::{counted, grouped, number, seconds};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use pudica_lab::store::Outcome;
use pudica_lab::{Event, Observer};
use std::io::IsTerminal;
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// Prints the events of a sweep.
pub enum Progress {
    /// One bar for the sweep, one line for each ended run above it.
    Bar(ProgressBar),
    /// Lines: each ended run, and every half minute how far the sweep is.
    Lines(Mutex<Instant>),
    /// Every event as a line of JSON.
    Json,
}

/// Where there is no terminal, time between lines that only say how far it is.
const PAUSE: Duration = Duration::from_secs(30);

impl Progress {
    /// A bar when stderr is a terminal, lines when not, JSON when asked for.
    pub fn new(json: bool) -> Self {
        if json {
            return Self::Json;
        }
        if !std::io::stderr().is_terminal() {
            return Self::Lines(Mutex::new(Instant::now()));
        }
        let bar = ProgressBar::with_draw_target(Some(1000), ProgressDrawTarget::stderr());
        if let Ok(style) = ProgressStyle::with_template("{bar:24} {percent:>3} %  {elapsed_precise}  {wide_msg}") {
            bar.set_style(style);
        }
        Self::Bar(bar)
    }

    fn say(&self, line: &str) {
        match self {
            Self::Bar(bar) => bar.println(line),
            _ => eprintln!("{line}"),
        }
    }
}

impl Observer for Progress {
    fn notice(&self, event: &Event) {
        if let Self::Json = self {
            if let Ok(line) = serde_json::to_string(event) {
                println!("{line}");
            }
            return;
        }
        match event {
            Event::SweepStarted { folder, runs, finished, total_steps } => {
                let before = if *finished > 0 { format!(", {finished} of them made before") } else { String::new() };
                let steps = match total_steps {
                    0 => String::new(),
                    steps => format!(", {} training steps in all", grouped(*steps)),
                };
                self.say(&format!("{}{before}{steps}, into {}", counted(*runs, "run"), folder.display()));
            }
            Event::Notice { text } => self.say(&format!("  {text}")),
            Event::RunStarted { label, from_step, .. } if *from_step > 0 => {
                self.say(&format!("  continuing {label} from step {}", grouped(*from_step)));
            }
            Event::Progress { label, step, steps, loss, done, seconds_left, .. } => {
                let left = seconds_left.map_or(String::new(), |s| format!("{} left", seconds(s)));
                match self {
                    Self::Bar(bar) => {
                        bar.set_position((done * 1000.0) as u64);
                        let at = if *steps > 0 { format!(" {step}/{steps}") } else { String::new() };
                        let loss = if loss.is_finite() { format!(" loss {}", number(*loss)) } else { String::new() };
                        bar.set_message(format!("{left}; {label}{at}{loss}"));
                    }
                    Self::Lines(last) => {
                        let mut last = last.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
                        if last.elapsed() >= PAUSE {
                            *last = Instant::now();
                            eprintln!("{:.0} % done, {left}", done * 100.0);
                        }
                    }
                    Self::Json => {}
                }
            }
            Event::RunEnded { label, outcome, converged, problem, measures, ended, runs, done, .. } => {
                let found = measures.iter().map(|(name, value)| {
                    let value = value.as_f64().map_or("-".into(), number);
                    format!("{} {value}", name.replace('_', " "))
                });
                let found = found.collect::<Vec<_>>().join(", ");
                let how = match (outcome, problem) {
                    (Outcome::Finished, _) if *converged => String::new(),
                    (Outcome::Finished, _) => ", did not converge".to_string(),
                    (_, Some(problem)) => format!(", {problem}"),
                    (Outcome::Failed, None) => ", failed".to_string(),
                    (Outcome::Skipped, None) => ", skipped".to_string(),
                };
                self.say(&format!("  [{ended}/{runs}] {label}: {found}{how}"));
                if let Self::Bar(bar) = self {
                    bar.set_position((done * 1000.0) as u64);
                }
            }
            Event::SweepEnded(_) => {
                if let Self::Bar(bar) = self {
                    bar.finish_and_clear();
                }
            }
            Event::RunStarted { .. } | Event::ReportWritten { .. } => {}
        }
    }
}
