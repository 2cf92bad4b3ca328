//! What a sweep shows while it runs: a bar on a terminal, plain lines elsewhere, or JSON lines for programs.

use crate::text::{counted, cut, grouped, number, seconds};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use pudica_lab::store::Outcome;
use pudica_lab::{Event, Observer};
use std::io::IsTerminal;
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread;
use std::time::{Duration, Instant};

/// Prints the events of a sweep.
pub enum Progress {
    /// One bar for the sweep, one line for each ended run above it, none wider than the terminal.
    Bar(ProgressBar),
    /// Lines: each ended run, and after a while without any, how far the sweep is.
    Lines(Pace),
    /// Every event as a line of JSON.
    Json,
}

impl Progress {
    /// A bar when stderr is a terminal, lines when not, JSON when asked for.
    pub fn new(json: bool) -> Self {
        if json {
            return Self::Json;
        }
        if !std::io::stderr().is_terminal() {
            return Self::Lines(Pace::default());
        }
        crate::out::spoke();
        let bar = ProgressBar::with_draw_target(Some(1000), ProgressDrawTarget::stderr());
        if let Ok(style) = ProgressStyle::with_template(template(width())) {
            bar.set_style(style);
        }
        Self::Bar(bar)
    }

    fn say(&self, line: &str) {
        match self {
            Self::Bar(bar) => bar.println(cut(line, width())),
            Self::Lines(pace) => {
                pace.state().last = Instant::now();
                eprintln!("{line}");
            }
            Self::Json => {}
        }
    }
}

/// Columns of the terminal.
fn width() -> usize {
    terminal_size::terminal_size_of(std::io::stderr()).map_or(80, |(width, _)| usize::from(width.0))
}

/// The bar and what stands beside it, in a terminal of so many columns: the message takes what is left of the line, and is cut there.
fn template(width: usize) -> &'static str {
    match width {
        ..50 => "{percent:>3} % {wide_msg}",
        50..90 => "{bar:12} {percent:>3} %  {wide_msg}",
        _ => "{bar:24} {percent:>3} %  {elapsed_precise}  {wide_msg}",
    }
}

/// "3 min 5 s left".
fn left(seconds_left: f64) -> String {
    match seconds_left < 1.0 {
        true => "less than 1 s left".into(),
        false => format!("{} left", seconds(seconds_left)),
    }
}

/// Says how far a sweep is whenever nothing was printed for a while, whether or not the experiment tells of itself.
#[derive(Clone)]
pub struct Pace(Arc<Mutex<State>>);

struct State {
    began: Instant,
    /// When something was printed last.
    last: Instant,
    /// How long to wait from there.
    pause: Duration,
    done: f64,
    seconds_left: Option<f64>,
    is_running: bool,
}

/// The first line comes soon, further ones less and less often.
const FIRST_PAUSE: Duration = Duration::from_secs(5);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

impl Default for Pace {
    fn default() -> Pace {
        let now = Instant::now();
        let state =
            State { began: now, last: now, pause: FIRST_PAUSE, done: 0.0, seconds_left: None, is_running: false };
        Pace(Arc::new(Mutex::new(state)))
    }
}

impl Pace {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Begins to look at the clock, until [`Pace::stop`].
    fn start(&self) {
        let pace = self.clone();
        pace.state().is_running = true;
        thread::spawn(move || {
            while pace.state().is_running {
                thread::sleep(Duration::from_millis(200));
                if let Some(line) = pace.state().due(Instant::now()) {
                    eprintln!("{line}");
                }
            }
        });
    }

    fn stop(&self) {
        self.state().is_running = false;
    }
}

impl State {
    /// How far it is, if that is to be said now.
    fn due(&mut self, now: Instant) -> Option<String> {
        if !self.is_running || now.duration_since(self.last) < self.pause {
            return None;
        }
        self.last = now;
        self.pause = (2 * self.pause).min(LONGEST_PAUSE);
        let left = self.seconds_left.map_or(String::new(), |s| format!(", {}", left(s)));
        let so_far = seconds(now.duration_since(self.began).as_secs_f64());
        Some(format!("{:.0} % done after {so_far}{left}", self.done * 100.0))
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
                    1 => ", 1 training step in all".into(),
                    steps => format!(", {} training steps in all", grouped(*steps)),
                };
                self.say(&format!("{}{before}{steps}, into {}", counted(*runs, "run"), folder.display()));
                if let Self::Lines(pace) = self {
                    pace.start();
                }
            }
            Event::Notice { text } => self.say(&format!("  {text}")),
            Event::RunStarted { label, from_step, .. } if *from_step > 0 => {
                self.say(&format!("  continuing {label} from step {}", grouped(*from_step)));
            }
            Event::Progress { label, step, steps, loss, done, seconds_left, .. } => match self {
                Self::Bar(bar) => {
                    bar.set_position((done * 1000.0) as u64);
                    let left = seconds_left.map_or(String::new(), |s| format!("{}; ", left(s)));
                    let at = if *steps > 0 { format!(" {step}/{steps}") } else { String::new() };
                    let loss = if loss.is_finite() { format!(" loss {}", number(*loss)) } else { String::new() };
                    bar.set_message(format!("{left}{label}{at}{loss}"));
                }
                Self::Lines(pace) => {
                    let mut state = pace.state();
                    (state.done, state.seconds_left) = (*done, *seconds_left);
                }
                Self::Json => {}
            },
            Event::RunEnded {
                label, outcome, converged, problem, measures, ended, runs, done, seconds_left, ..
            } => {
                let found = measures.iter().map(|(name, value)| {
                    let value = value.as_f64().map_or("-".into(), number);
                    format!("{} {value}", name.replace('_', " "))
                });
                let found = found.collect::<Vec<_>>().join(", ");
                let how = match (outcome, problem) {
                    (Outcome::Finished, _) if *converged => String::new(),
                    (Outcome::Finished, _) => "did not converge".to_string(),
                    (_, Some(problem)) => problem.clone(),
                    (Outcome::Failed, None) => "failed".to_string(),
                    (Outcome::Skipped, None) => "skipped".to_string(),
                };
                // What went wrong comes first: the end of a line may be cut.
                let told = [how, found].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(", ");
                self.say(&format!("  [{ended}/{runs}] {label}: {told}"));
                match self {
                    Self::Bar(bar) => bar.set_position((done * 1000.0) as u64),
                    Self::Lines(pace) => {
                        let mut state = pace.state();
                        (state.done, state.seconds_left) = (*done, *seconds_left);
                    }
                    Self::Json => {}
                }
            }
            Event::SweepEnded(_) => match self {
                Self::Bar(bar) => bar.finish_and_clear(),
                Self::Lines(pace) => pace.stop(),
                Self::Json => {}
            },
            Event::RunStarted { .. } | Event::ReportWritten { .. } => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use indicatif::TermLike;
    use std::io;

    /// A terminal that remembers what was written, in lines.
    #[derive(Clone, Debug)]
    struct Terminal {
        columns: u16,
        written: Arc<Mutex<String>>,
    }

    impl TermLike for Terminal {
        fn width(&self) -> u16 {
            self.columns
        }
        fn move_cursor_up(&self, _: usize) -> io::Result<()> {
            Ok(())
        }
        fn move_cursor_down(&self, _: usize) -> io::Result<()> {
            Ok(())
        }
        fn move_cursor_right(&self, _: usize) -> io::Result<()> {
            Ok(())
        }
        fn move_cursor_left(&self, _: usize) -> io::Result<()> {
            Ok(())
        }
        fn write_line(&self, text: &str) -> io::Result<()> {
            self.write_str(text)
        }
        fn write_str(&self, text: &str) -> io::Result<()> {
            // Lines that fill the terminal end without a line break: each piece counts for itself.
            self.written.lock().unwrap().push_str(&format!("{text}\n"));
            Ok(())
        }
        fn clear_line(&self) -> io::Result<()> {
            Ok(())
        }
        fn flush(&self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn nothing_is_wider_than_the_terminal() {
        let long = "majority n=24 model.d=128 train.lr=0.003 seed=0: eval loss 0.000012, sharpness 0.114, blowup 1021.4, norm 37.2";
        for columns in [40, 60, 80, 100, 140] {
            let terminal = Terminal { columns, written: Arc::default() };
            let bar =
                ProgressBar::with_draw_target(Some(1000), ProgressDrawTarget::term_like(Box::new(terminal.clone())));
            let columns = usize::from(columns);
            bar.set_style(ProgressStyle::with_template(template(columns)).unwrap());
            bar.set_position(420);
            bar.set_message(format!("3 min 5 s left; {long}"));
            bar.println(cut(&format!("  [1/70] {long}"), columns));
            let written = terminal.written.lock().unwrap().clone();
            let lines: Vec<&str> = written.lines().map(str::trim_end).filter(|line| !line.is_empty()).collect();
            assert!(lines.iter().all(|line| line.chars().count() <= columns), "at {columns}: {written}");
            assert!(lines.iter().any(|line| line.starts_with("  [1/70] majority n=24")), "at {columns}: {written}");
            assert!(lines.iter().any(|line| line.contains("42 %") && line.contains("3 min 5 s left")), "{written}");
        }
    }

    #[test]
    fn lines_come_soon_and_then_less_often() {
        let pace = Pace::default();
        let mut state = pace.state();
        let began = state.began;
        let at = |second: u64| began + Duration::from_secs(second);
        assert_eq!(state.due(at(100)), None, "it has not started");
        state.is_running = true;
        (state.done, state.seconds_left) = (0.25, Some(30.0));
        let said: Vec<u64> = (0..=300).filter(|second| state.due(at(*second)).is_some()).collect();
        assert_eq!(said, [5, 15, 35, 75, 135, 195, 255]);
        assert_eq!(state.due(at(400)).unwrap(), "25 % done after 6 min 40 s, 30.0 s left");
    }
}
