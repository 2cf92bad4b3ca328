//! Reading the command line: numbers with their ranges, and mistakes answered by what would be right.

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Command, CommandFactory, FromArgMatches};
use std::error::Error;
use std::ffi::OsString;
use std::num::{IntErrorKind, ParseFloatError, ParseIntError};
use std::ops::RangeInclusive;

use crate::text::grouped;
use pudica_boolean::shortened;

/// A whole number of this range, for `value_parser`.
pub fn whole<T: TryFrom<u64>>(range: RangeInclusive<u64>) -> impl Fn(&str) -> Result<T, String> + Clone {
    move |text| {
        let number = text.parse::<u64>().ok().filter(|number| range.contains(number));
        number
            .and_then(|number| T::try_from(number).ok())
            .ok_or_else(|| format!("give a whole number from {} to {}", grouped(*range.start()), grouped(*range.end())))
    }
}

/// The arguments that were typed, after the program's name.
pub fn parse<A: CommandFactory + FromArgMatches>(typed: &[OsString]) -> Result<A, Refusal> {
    let mut command = with_negative_numbers(A::command());
    let read = command.try_get_matches_from_mut(typed).and_then(|matches| A::from_arg_matches(&matches));
    read.map_err(|error| match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            Refusal::Help(error.format(&mut command))
        }
        ErrorKind::InvalidUtf8 => {
            let wrong = typed.iter().find(|word| word.to_str().is_none()).map(|word| word.to_string_lossy());
            Refusal::Sentence(format!("'{}' is no text in UTF-8", repeated(&wrong.unwrap_or_default())))
        }
        _ => Refusal::Sentence(sentence(&error.format(&mut command), &help_of(&command, typed))),
    })
}

/// Why there is nothing to run.
pub enum Refusal {
    /// A page was asked for, or is the best answer.
    Help(clap::Error),
    /// What is wrong.
    Sentence(String),
}

/// Negative numbers are values, which the parser of each argument takes or refuses; not unknown flags.
fn with_negative_numbers(command: Command) -> Command {
    let command =
        command.mut_args(|arg| if arg.get_action().takes_values() { arg.allow_negative_numbers(true) } else { arg });
    command.mut_subcommands(with_negative_numbers)
}

/// The command that explains what was typed: `pudica data show --help`.
fn help_of(command: &Command, typed: &[OsString]) -> String {
    let (mut command, mut words) = (command, command.get_name().to_string());
    for word in typed.iter().skip(1) {
        let Some(next) = command.find_subcommand(word) else { break };
        words = format!("{words} {}", next.get_name());
        command = next;
    }
    format!("`{words} --help`")
}

/// The most letters of what was typed that a message repeats.
const REPEATED: usize = 80;

/// clap's paragraphs as one sentence: what is wrong, then what would be right. Usage lines are left to --help.
fn sentence(error: &clap::Error, help: &str) -> String {
    if let Some(sentence) = about_number(error) {
        return sentence;
    }
    let mut text = error.to_string();
    for kind in [ContextKind::InvalidValue, ContextKind::InvalidArg, ContextKind::InvalidSubcommand] {
        if let Some(ContextValue::String(typed)) = error.get(kind) {
            text = text.replace(typed, &repeated(typed));
        }
    }
    let paragraphs: Vec<String> =
        text.split("\n\n").map(|part| part.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
    let wrong = paragraphs[0].trim_start_matches("error: ");
    let tips: Vec<&str> = paragraphs
        .iter()
        .filter_map(|part| part.strip_prefix("tip: "))
        .filter(|tip| !tip.starts_with("to pass "))
        .collect();
    match (tips.is_empty(), error.kind()) {
        (false, _) => format!("{wrong}: {}", tips.join("; ")),
        (true, ErrorKind::ValueValidation) => wrong.into(),
        (true, _) => format!("{wrong}; {help} tells what there is"),
    }
}

/// What was typed, as a message repeats it: short, and on one line.
pub fn repeated(typed: &str) -> String {
    shortened(&typed.replace(char::is_control, " "), REPEATED)
}

/// "invalid digit found in string" says nothing about what would be right.
fn about_number(error: &clap::Error) -> Option<String> {
    let source = error.source()?;
    let right = match source.downcast_ref::<ParseIntError>().map(ParseIntError::kind) {
        Some(IntErrorKind::PosOverflow) => "it is too large",
        Some(_) => "give a whole number, 0 or more",
        None if source.is::<ParseFloatError>() => "give a number",
        None => return None,
    };
    let (argument, value) = (error.get(ContextKind::InvalidArg)?, error.get(ContextKind::InvalidValue)?);
    Some(format!("invalid value '{}' for '{argument}': {right}", repeated(&value.to_string())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser, Debug, PartialEq)]
    struct Example {
        #[arg(long, value_parser = whole::<usize>(1..=10_000))]
        n: Option<usize>,
        #[arg(long, default_value_t = 0)]
        seed: u64,
        #[arg(long)]
        rho: Option<f64>,
        #[arg(long)]
        flag: bool,
        rest: Vec<String>,
    }

    fn read(arguments: &[&str]) -> Result<Example, String> {
        let typed: Vec<OsString> = ["example"].iter().chain(arguments).map(OsString::from).collect();
        parse::<Example>(&typed).map_err(|refusal| match refusal {
            Refusal::Sentence(sentence) => sentence,
            Refusal::Help(page) => panic!("{page}"),
        })
    }

    #[test]
    fn numbers_out_of_range_are_answered_with_the_range() {
        assert_eq!(read(&["--n", "10000", "--seed", "7"]).unwrap().n, Some(10_000));
        for arguments in [&["--n", "-3"][..], &["--n=-3"], &["--n", "0"], &["--n", "10001"], &["--n", "x"]] {
            let error = read(arguments).unwrap_err();
            assert!(error.ends_with("for '--n <N>': give a whole number from 1 to 10,000"), "{error}");
        }
        for arguments in [&["--seed", "-1"][..], &["--seed=-1"], &["--seed", "x"], &["--seed", "1.5"]] {
            let error = read(arguments).unwrap_err();
            assert!(error.ends_with("for '--seed <SEED>': give a whole number, 0 or more"), "{error}");
        }
        assert!(read(&["--seed", "99999999999999999999"]).unwrap_err().contains("it is too large"));
        assert_eq!(read(&["--rho", "x"]).unwrap_err(), "invalid value 'x' for '--rho <RHO>': give a number");
    }

    #[test]
    fn mistakes_are_one_sentence() {
        let told = |arguments: &[&str]| read(arguments).unwrap_err();
        assert_eq!(told(&["--nn", "3"]), "unexpected argument '--nn' found: a similar argument exists: '--n'");
        assert_eq!(told(&["--xyz"]), "unexpected argument '--xyz' found; `pudica --help` tells what there is");
        assert_eq!(
            told(&["--n"]),
            "a value is required for '--n <N>' but none was supplied; `pudica --help` tells what there is"
        );
        let long = told(&["--n", &"x\n\n".repeat(40_000)]);
        assert!(long.len() < 200 && !long.contains('\n') && long.ends_with("from 1 to 10,000"), "{long}");
    }
}
