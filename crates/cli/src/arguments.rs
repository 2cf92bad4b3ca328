//! Reading the command line: numbers with their ranges, and mistakes answered by what would be right.

use clap::error::{ContextKind, ErrorKind};
use clap::{Command, CommandFactory, FromArgMatches};
use std::error::Error;
use std::ffi::OsString;
use std::num::{IntErrorKind, ParseIntError};
use std::ops::RangeInclusive;

use crate::text::grouped;

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
pub fn parse<A: CommandFactory + FromArgMatches>(typed: &[OsString]) -> Result<A, clap::Error> {
    let mut command = with_negative_numbers(A::command());
    let matches = command.try_get_matches_from_mut(typed).map_err(in_words)?;
    A::from_arg_matches(&matches).map_err(|error| error.format(&mut command))
}

/// Negative numbers are values, which the parser of each argument takes or refuses; not unknown flags.
fn with_negative_numbers(command: Command) -> Command {
    let command =
        command.mut_args(|arg| if arg.get_action().takes_values() { arg.allow_negative_numbers(true) } else { arg });
    command.mut_subcommands(with_negative_numbers)
}

/// "invalid digit found in string" says nothing about what would be right.
fn in_words(error: clap::Error) -> clap::Error {
    let Some(kind) = error.source().and_then(|source| source.downcast_ref::<ParseIntError>()).map(ParseIntError::kind)
    else {
        return error;
    };
    let (Some(argument), Some(value)) = (error.get(ContextKind::InvalidArg), error.get(ContextKind::InvalidValue))
    else {
        return error;
    };
    let right = match kind {
        IntErrorKind::PosOverflow => "it is too large",
        _ => "give a whole number, 0 or more",
    };
    clap::Error::raw(ErrorKind::ValueValidation, format!("invalid value '{value}' for '{argument}': {right}\n"))
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
        flag: bool,
        rest: Vec<String>,
    }

    fn read(arguments: &[&str]) -> Result<Example, String> {
        let command = with_negative_numbers(Example::command());
        let matches = command.try_get_matches_from(["example"].iter().chain(arguments)).map_err(in_words);
        matches.map(|matches| Example::from_arg_matches(&matches).unwrap()).map_err(|error| error.to_string())
    }

    #[test]
    fn numbers_out_of_range_are_answered_with_the_range() {
        assert_eq!(read(&["--n", "10000", "--seed", "7"]).unwrap().n, Some(10_000));
        for arguments in [&["--n", "-3"][..], &["--n=-3"], &["--n", "0"], &["--n", "10001"], &["--n", "x"]] {
            let error = read(arguments).unwrap_err();
            assert!(error.contains("'--n <N>': give a whole number from 1 to 10,000"), "{error}");
        }
        for arguments in [&["--seed", "-1"][..], &["--seed=-1"], &["--seed", "x"], &["--seed", "1.5"]] {
            let error = read(arguments).unwrap_err();
            assert!(error.contains("'--seed <SEED>': give a whole number, 0 or more"), "{error}");
        }
        assert!(read(&["--seed", "99999999999999999999"]).unwrap_err().contains("it is too large"));
        assert!(read(&["--nn", "3"]).unwrap_err().contains("--n"));
    }
}
