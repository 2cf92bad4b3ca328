//! The job scripts, as they are submitted and as `--dry-run` prints them.

use super::Options;
use crate::arguments::repeated;
use pudica_lab::plan::quoted;
use pudica_lab::{Machine, Plan};
use std::path::Path;
use std::str::FromStr;

/// A task is told so many seconds before its end, to save; less where the limit is short.
const NOTICE_SECONDS: f64 = 180.0;

/// A time as sbatch takes it: minutes, minutes:seconds, hours:minutes:seconds, days-hours, days-hours:minutes, ...
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TimeLimit(f64);

impl TimeLimit {
    pub fn seconds(self) -> f64 {
        self.0
    }

    /// Seconds before the end at which a task is told.
    fn notice(self) -> u64 {
        NOTICE_SECONDS.min(self.0 / 3.0).max(1.0) as u64
    }
}

impl FromStr for TimeLimit {
    type Err = String;

    fn from_str(text: &str) -> Result<TimeLimit, String> {
        let wrong = || {
            format!(
                "--time '{}': give it as sbatch takes it, such as 30 (minutes), 2:00:00 or 1-12:00:00",
                repeated(text)
            )
        };
        let (days, rest) = match text.split_once('-') {
            Some((days, rest)) => (Some(days.parse::<u32>().map_err(|_| wrong())?), rest),
            None => (None, text),
        };
        let parts: Vec<f64> = rest
            .split(':')
            .map(|part| part.parse::<u32>().map(f64::from))
            .collect::<Result<_, _>>()
            .map_err(|_| wrong())?;
        let seconds = match (days, parts.as_slice()) {
            (None, [minutes]) => minutes * 60.0,
            (None, [minutes, seconds]) => minutes * 60.0 + seconds,
            (_, [hours, minutes, seconds]) => hours * 3600.0 + minutes * 60.0 + seconds,
            (Some(_), [hours]) => hours * 3600.0,
            (Some(_), [hours, minutes]) => hours * 3600.0 + minutes * 60.0,
            _ => return Err(wrong()),
        } + f64::from(days.unwrap_or(0)) * 86_400.0;
        if seconds > 0.0 { Ok(TimeLimit(seconds)) } else { Err(wrong()) }
    }
}

/// What the scripts are made of.
pub struct Script<'a> {
    pub options: &'a Options,
    pub limit: Option<TimeLimit>,
    pub plan: &'a Plan,
    pub machine: &'a Machine,
    pub folder: &'a Path,
    pub parts: usize,
}

impl Script<'_> {
    /// The array's script: each task makes one of the `left` parts.
    pub fn task(&self, left: &[usize]) -> Result<String, Box<dyn std::error::Error>> {
        let Options { partition, account, gpus, cpus, mem, time, at_once, sbatch, .. } = self.options;
        let mut lines = self.head(&format!("pudica-{}", self.plan.recipe.name), "%A_%a");
        let throttle = at_once.map_or(String::new(), |count| format!("%{count}"));
        lines.push(format!("#SBATCH --array={}{throttle}", ranges(left)));
        lines.push("#SBATCH --requeue".into());
        let notice = self.limit.map_or(NOTICE_SECONDS as u64, TimeLimit::notice);
        lines.push(format!("#SBATCH --signal=B:USR1@{notice}"));
        let cpus = cpus.map(|count| count.to_string());
        let asked = [
            ("partition", partition),
            ("account", account),
            ("gpus", gpus),
            ("cpus-per-task", &cpus),
            ("mem", mem),
            ("time", time),
        ];
        lines.extend(directives(&asked));
        lines.extend(sbatch.iter().map(|options| format!("#SBATCH {options}")));
        self.body(&mut lines)?;
        let command = self.plan.command();
        let command = command.strip_prefix("pudica ").unwrap_or(&command);
        let flag = |name: &str, value: Option<usize>| value.map_or(String::new(), |value| format!(" --{name} {value}"));
        lines.push("# exec: the signal before the time limit goes to this process, and it must be pudica.".into());
        lines.push(format!(
            "exec {} {command}{}{} --out {} --unit \"$SLURM_ARRAY_TASK_ID/{}\" --requeue{}",
            program()?,
            flag("jobs", self.machine.jobs),
            flag("together", self.machine.together),
            quoted(&self.folder.display().to_string()),
            self.parts,
            if self.machine.repair { " --repair" } else { "" }
        ));
        Ok(lines.join("\n") + "\n")
    }

    /// The script of the job after them.
    pub fn report(&self) -> Result<String, Box<dyn std::error::Error>> {
        let Options { partition, account, time, sbatch, .. } = self.options;
        let mut lines = self.head(&format!("pudica-{}-report", self.plan.recipe.name), "%j");
        lines.extend(directives(&[("partition", partition), ("account", account), ("time", time)]));
        lines.extend(sbatch.iter().map(|options| format!("#SBATCH {options}")));
        self.body(&mut lines)?;
        lines.push(format!("exec {} report {}", program()?, quoted(&self.folder.display().to_string())));
        Ok(lines.join("\n") + "\n")
    }

    fn head(&self, name: &str, log: &str) -> Vec<String> {
        let name: String =
            name.chars().map(|c| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '-' }).collect();
        let folder = self.folder.display().to_string().replace('%', "%%");
        vec![
            "#!/bin/bash".into(),
            format!("#SBATCH --job-name={name}"),
            format!("#SBATCH --output=\"{folder}/slurm/{log}.log\""),
            "#SBATCH --open-mode=append".into(),
        ]
    }

    /// Where it starts, and what comes before.
    fn body(&self, lines: &mut Vec<String>) -> Result<(), Box<dyn std::error::Error>> {
        lines.push(format!("cd {} || exit 2", quoted(&std::env::current_dir()?.display().to_string())));
        lines.extend(self.options.setup.clone());
        Ok(())
    }
}

/// This program.
fn program() -> Result<String, Box<dyn std::error::Error>> {
    Ok(quoted(&std::env::current_exe()?.display().to_string()))
}

fn directives(asked: &[(&str, &Option<String>)]) -> Vec<String> {
    let given = asked.iter().filter_map(|(name, value)| value.as_ref().map(|value| (name, value)));
    given.map(|(name, value)| format!("#SBATCH --{name}={value}")).collect()
}

/// `1-4,7` for 1, 2, 3, 4, 7.
fn ranges(numbers: &[usize]) -> String {
    let mut ranges: Vec<(usize, usize)> = Vec::new();
    for number in numbers {
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == *number => *last = *number,
            _ => ranges.push((*number, *number)),
        }
    }
    let word =
        |(first, last): &(usize, usize)| if first == last { first.to_string() } else { format!("{first}-{last}") };
    ranges.iter().map(word).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_as_sbatch_reads_them() {
        let read = |text: &str| text.parse::<TimeLimit>().map(TimeLimit::seconds);
        for (text, seconds) in [
            ("30", 1800.0),
            ("1:30", 90.0),
            ("2:00:00", 7200.0),
            ("1-0", 86400.0),
            ("1-2:30", 95400.0),
            ("0-0:0:5", 5.0),
        ] {
            assert_eq!(read(text), Ok(seconds), "{text}");
        }
        for text in ["", "0", "2h", "1:2:3:4", "-1", "1-", "1.5"] {
            assert!(read(text).is_err(), "{text}");
        }
        assert_eq!(
            ("2:00:00".parse::<TimeLimit>().unwrap().notice(), "1".parse::<TimeLimit>().unwrap().notice()),
            (180, 20)
        );
    }

    #[test]
    fn arrays_are_written_briefly() {
        assert_eq!(ranges(&[1, 2, 3, 4, 7, 9, 10]), "1-4,7,9-10");
        assert_eq!(ranges(&[5]), "5");
    }
}
