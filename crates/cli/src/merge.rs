//! `pudica merge`: folders of one sweep, made on machines that share no disk, as one folder with its report.

use crate::Ending;
use crate::experiments::{Outcome, write_report};
use crate::progress::Progress;
use crate::text::counted;
use clap::Args;
use pudica_lab::store::{Merged, merge};
use pudica_lab::{Event, Observer};
use std::path::PathBuf;

/// Join folders of one sweep that were made on several machines, and write the report
///
/// The folders are parts of one command (`--unit 1/2`), or their commands list some of the recipe's values each (`n=4,8`, `seed=0..5`).
/// The report says which runs of the whole sweep are still missing. Runs that have ended are copied and checked. One that has ended in
/// several folders must have the same numbers in all of them. Running the same command again goes on after an interruption, and takes up
/// what was made since.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// Folders that `pudica run` wrote
    #[arg(value_name = "DIR", required = true)]
    folders: Vec<PathBuf>,
    /// The folder for all of them: a new one, or one of them
    #[arg(long, value_name = "DIR")]
    into: PathBuf,
    /// Leave the weights of finished runs out, and take runs that have none
    ///
    /// They are most of a folder's bytes; reports do not need them.
    #[arg(long)]
    without_weights: bool,
    /// Print one JSON object per line for each event
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  pudica run hahn/tradeoff --out a --unit 1/2        on one machine
  pudica run hahn/tradeoff --out b --unit 2/2        on another; then copy one of the two folders to the other
  pudica merge a b --into tradeoff
  pudica run hahn/scratchpad --out short n=4,8       some lengths here
  pudica run hahn/scratchpad --out long n=16,24      others there
  pudica merge short long --into scratchpad --without-weights";

pub fn run(arguments: &Arguments) -> Outcome {
    let Merged { copied, kept, begun, notices, made_by } =
        merge(&arguments.folders, &arguments.into, !arguments.without_weights)?;
    let progress = Progress::new(arguments.json);
    let say = |text: String| progress.notice(&Event::Notice { text });
    notices.into_iter().for_each(say);
    let unfinished = if begun > 0 { format!(", {} unfinished", counted(begun, "run")) } else { String::new() };
    say(format!("{} copied, {kept} there already{unfinished}", counted(copied, "finished run")));
    if made_by.len() > 1 {
        let of: Vec<String> = made_by.iter().map(|(what, count)| format!("{count} by {what}")).collect();
        say(format!(
            "the runs were not all made alike ({}): last bits may differ; each summary.json says by what",
            of.join(", ")
        ));
    }
    write_report(&arguments.into, &progress, &[])?;
    Ok(Ending::Done)
}
