//! `pudica boolean`: exact or sampled analysis of one Boolean function.

mod csv;
mod latex;
mod page;

use crate::Ending;
use crate::arguments::whole;
use crate::text::{grouped, number, seconds};
use clap::{Args, ValueEnum};
use pudica_boolean::analysis::{Method, Request, Subject, analyse};
use pudica_boolean::comparison::{Comparison, compare};
use pudica_boolean::files::{Table, TableFormat, read_table};
use pudica_boolean::given::TableFile;
use pudica_boolean::named::CATALOGUE;
use pudica_boolean::restriction::Restriction;
use pudica_boolean::sampled::{Budget, Precision};
use pudica_boolean::{Convention, Error, Expression, Function, Given, MAX_TABLE_VARIABLES, TruthTable};
use pudica_lab::kinds::boolean::function_of_run;
use pudica_lab::store::RunFolder;
use std::io::{IsTerminal, Write};
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Analyse a Boolean function: sensitivity, influences, Fourier-Walsh spectrum.
///
/// Exact from the truth table, up to n = 30 for everything and n = 36 for sensitivities; from random inputs, with
/// confidence intervals, up to n = 10,000.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// A named function such as majority, kparity:3 or threshold:n/3 (see --list), expr:EXPRESSION, table:FILE, or run:FOLDER (what the
    /// network of a finished run computes)
    #[arg(value_name = "FUNCTION", required_unless_present_any = ["expr", "table", "list"])]
    function: Option<String>,
    /// List the named functions
    #[arg(long)]
    list: bool,
    /// Number of variables
    #[arg(long, value_name = "N", value_parser = whole::<usize>(1..=10_000))]
    n: Option<usize>,
    /// An expression over x1, x2, ... with ! & ^ | maj(...) and parentheses; the same as expr:EXPR
    #[arg(long, value_name = "EXPR", conflicts_with_all = ["function", "table"])]
    expr: Option<String>,
    /// A truth table of 2^n rows: text of 0 and 1, packed bits, or .npy (bool, integers, floats). Row r is the input whose
    /// bits, x1 first, spell r in binary
    #[arg(long, value_name = "FILE", conflicts_with = "function")]
    table: Option<PathBuf>,
    /// Format of the table, if its first bytes mislead
    #[arg(long, value_enum)]
    table_format: Option<FormatName>,
    /// Compare with a second function (a name, an expression, or the file of a table): distance, and Lemma 21's lower bound at
    /// its best alpha
    #[arg(long, value_name = "FUNCTION")]
    versus: Option<String>,
    /// Values as ±1 (the theory's) or 0 and 1 (what networks are trained on); squared measures differ by a factor of 4
    #[arg(long, value_enum, default_value = "pm1")]
    convention: ConventionName,
    /// Compute only these, separated by commas; names as in the JSON (influences need no transform)
    #[arg(long, value_name = "A,B,...", value_delimiter = ',')]
    measures: Option<Vec<String>>,
    /// Correlations for the noise stability, separated by commas
    #[arg(long, value_name = "R,...", value_delimiter = ',', default_values_t = [0.9], allow_hyphen_values = true)]
    rho: Vec<f64>,
    /// How many of the largest coefficients to tell
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = whole::<usize>(1..=100_000))]
    top: usize,
    /// Measure also with bits that are 1 with this probability, instead of 1/2: mean, variance, influences, and the spectrum in the basis
    /// that belongs to p
    #[arg(long, value_name = "P", allow_hyphen_values = true)]
    p: Option<f64>,
    /// Fix variables and analyse the function of the others: x3=1 or x3=1,x5=0
    #[arg(long, value_name = "XI=BIT,...")]
    fix: Option<String>,
    /// Write all 2^n Fourier-Walsh coefficients as .npy (float64); entry S has x1 as its most significant bit
    #[arg(long, value_name = "FILE")]
    spectrum: Option<PathBuf>,
    /// Exact or sampled; by default exact where a truth table fits (n <= 36)
    #[arg(long, value_enum)]
    method: Option<MethodName>,
    /// Sample (even where exact numbers could be had) until the 95 % interval of the average sensitivity is this wide to each
    /// side: 0.01, or 1% of the estimate
    #[arg(long, value_name = "P", allow_hyphen_values = true)]
    precision: Option<String>,
    /// Stop sampling after this many seconds even if not precise enough
    #[arg(long, value_name = "SECONDS", default_value_t = 60.0)]
    time_limit: f64,
    /// Seed of the random inputs
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Threads to use [default: one per core]
    #[arg(long, value_name = "N", value_parser = whole::<usize>(1..=crate::MOST_THREADS))]
    threads: Option<usize>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
    /// Print CSV, one number per line: quantity, of what, value, 95 % interval
    #[arg(long, conflicts_with = "json")]
    csv: bool,
    /// Print a LaTeX table, and the largest coefficients as a formula
    #[arg(long, conflicts_with_all = ["json", "csv", "versus"])]
    latex: bool,
}

const EXAMPLES: &str = "\
Examples:
  pudica boolean majority --n 21                        a table and a plot of the degree profile
  pudica boolean majority --n 21 --json                 the same for programs (--csv: for spreadsheets)
  pudica boolean --expr \"x1 & (x2 | !x3) ^ x4\"
  pudica boolean --table f.npy --spectrum coefficients.npy
  pudica boolean threshold:n/3 --n 12 --top 20          parameters may depend on n
  pudica boolean tribes:3 --n 12 --p 0.7 --fix x1=1     bits that are 1 with probability 0.7; a restriction
  pudica boolean random:7 --n 30 --measures influences  no transform, under a second
  pudica boolean majority --n 9 --rho 0.5,0.9,0.99      noise stability at several correlations
  pudica boolean majority --n 1001 --precision 0.1      sampled, with confidence intervals
  pudica boolean parity --n 12 --versus \"x1 & x2\"       distance and Lemma 21's bound";

#[derive(Clone, Copy, ValueEnum)]
enum ConventionName {
    Pm1,
    #[value(name = "01")]
    ZeroOne,
}

#[derive(Clone, Copy, ValueEnum)]
enum MethodName {
    Exact,
    Sampled,
}

#[derive(Clone, Copy, ValueEnum)]
enum FormatName {
    Text,
    Packed,
    Npy,
}

/// Runs the command.
pub fn run(arguments: &Arguments) -> Result<Ending, Box<dyn std::error::Error>> {
    if arguments.list {
        let width = CATALOGUE.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
        CATALOGUE.iter().for_each(|(name, description)| println!("{name:<width$}  {description}"));
        return Ok(Ending::Done);
    }
    if let Some(threads) = arguments.threads {
        rayon::ThreadPoolBuilder::new().num_threads(threads).build_global()?;
    }
    let mut request = arguments.request()?;
    let mut subject = arguments.subject()?;
    if let Some(fixed) = &arguments.fix {
        let restriction: Restriction = fixed.parse()?;
        request.names = Some(restriction.free(subject.variables())?);
        request.name += &format!(" with {fixed}");
        subject = restriction.of(subject)?;
    }
    let comparison = arguments.comparison(&subject)?;
    let mut progress = SamplingProgress::new(request.budget.precision);
    let analysis = analyse(subject, &request, &mut |samples, half_width| progress.show(samples, half_width))?;
    progress.clear();
    if arguments.json {
        let mut object = serde_json::to_value(&analysis)?;
        if let Some(comparison) = &comparison {
            object["versus"] = serde_json::to_value(comparison)?;
        }
        if let Some(path) = &arguments.spectrum {
            object["spectrum_file"] = serde_json::to_value(path)?;
        }
        println!("{object}");
        return Ok(Ending::Done);
    }
    if arguments.csv {
        csv::print(&analysis, comparison.as_ref());
        return Ok(Ending::Done);
    }
    if arguments.latex {
        latex::print(&analysis, arguments.top);
        return Ok(Ending::Done);
    }
    page::print(&analysis);
    if let (Some(comparison), Some(other)) = (&comparison, &arguments.versus) {
        page::print_comparison(comparison, &analysis.function, other);
    }
    if let Some(path) = &arguments.spectrum {
        println!("\n  wrote all {} coefficients to {}", grouped(1 << analysis.n), path.display());
    }
    if analysis.method == Method::Sampled && arguments.method.is_none() && analysis.n <= MAX_TABLE_VARIABLES {
        println!("  Sampled because of --precision; without it, all of this is computed exactly.");
    }
    Ok(Ending::Done)
}

impl Arguments {
    /// What it does, for who waits.
    pub fn doing(&self) -> String {
        let file = self.table.as_ref().map(|path| path.display().to_string());
        let name = self.expr.clone().or(file).or(self.function.clone()).unwrap_or_default();
        let n = self.n.map_or(String::new(), |n| format!(" of {n} variables"));
        format!("computing the measures of {}{n}", pudica_boolean::shortened(&name, 80))
    }

    fn subject(&self) -> Result<Subject, Box<dyn std::error::Error>> {
        // clap's `requires` is silent here, because --table and FUNCTION exclude each other.
        if self.table_format.is_some() && self.table.is_none() {
            return Err("--table-format is for --table FILE: name the file so, or leave it out".into());
        }
        if let Some(path) = &self.table {
            let format = self.table_format.map(|name| match name {
                FormatName::Text => TableFormat::Text,
                FormatName::Packed => TableFormat::Packed,
                FormatName::Npy => TableFormat::Npy,
            });
            let file = TableFile { path: path.clone(), digest: None };
            let table = read_table(path, format)?;
            file.check_variables(table.variables(), self.n)?;
            return Ok(Subject::Table(table));
        }
        match &self.expr {
            Some(text) => Ok(Given::Expression(Expression::parse(text, None)?).at(self.n)?),
            None => read(self.function.as_deref().unwrap_or_default(), self.n),
        }
    }

    fn request(&self) -> Result<Request, Error> {
        if let Some(rho) = self.rho.iter().find(|rho| !(-1.0..=1.0).contains(*rho)) {
            return Err(Error::Parameter(format!(
                "--rho {} is no correlation: give a number from -1 to 1",
                number(*rho)
            )));
        }
        if let Some(p) = self.p.filter(|p| !(0.0..=1.0).contains(p)) {
            return Err(Error::Parameter(format!("--p {} is no probability: give a number from 0 to 1", number(p))));
        }
        if !(self.time_limit > 0.0 && self.time_limit < 1e9) {
            return Err(Error::Parameter(format!(
                "--time-limit {}: give a number of seconds above 0",
                number(self.time_limit)
            )));
        }
        let measures = self.measures.as_ref().map(|names| names.iter().map(|name| name.parse()).collect());
        let precision = self.precision.as_deref().map(parse_precision).transpose()?;
        let method = match self.method {
            Some(MethodName::Exact) if precision.is_some() => {
                return Err(Error::Parameter("--precision is for sampling: leave it out, or --method exact".into()));
            }
            Some(MethodName::Exact) => Some(Method::Exact),
            Some(MethodName::Sampled) => Some(Method::Sampled),
            None => precision.map(|_| Method::Sampled),
        };
        let file = self.table.as_ref().map(|path| path.display().to_string());
        Ok(Request {
            name: self.expr.clone().or(file).or(self.function.clone()).unwrap_or_default(),
            convention: match self.convention {
                ConventionName::Pm1 => Convention::PlusMinus,
                ConventionName::ZeroOne => Convention::ZeroOne,
            },
            method,
            measures: measures.transpose()?,
            rhos: self.rho.clone(),
            top: self.top,
            p: self.p,
            names: None,
            budget: Budget {
                precision: precision.unwrap_or(Precision::Relative(0.01)),
                time_limit: Duration::from_secs_f64(self.time_limit),
                seed: self.seed,
            },
            spectrum_file: self.spectrum.clone(),
        })
    }

    fn comparison(&self, subject: &Subject) -> Result<Option<Comparison>, Box<dyn std::error::Error>> {
        let Some(other) = &self.versus else { return Ok(None) };
        let boolean = |subject: &Subject, name: &str| -> Result<TruthTable, Error> {
            match subject {
                Subject::Function(Function::Boolean(f)) => f.table(),
                Subject::Table(Table::Boolean(table)) => Ok(table.clone()),
                _ => Err(Error::Measure(format!("{name} has real values; only Boolean functions are compared"))),
            }
        };
        let first = boolean(subject, "the function")?;
        let second = read(other, Some(first.variables()))?;
        Ok(Some(compare(&first, &boolean(&second, other)?)?))
    }
}

/// What a function is given by: as a target is, or `run:FOLDER`, what the network of a finished run computes.
fn read(text: &str, n: Option<usize>) -> Result<Subject, Box<dyn std::error::Error>> {
    let Some(folder) = text.strip_prefix("run:") else { return Ok(text.parse::<Given>()?.at(n)?) };
    if folder.is_empty() {
        return Err("'run:' needs the folder of a finished run: write run:FOLDER".into());
    }
    let table = function_of_run(&RunFolder::new(folder.into()))?;
    match n.filter(|n| *n != table.variables()) {
        Some(n) => Err(format!("{folder}: the network reads {} bits, but n={n}", table.variables()).into()),
        None => Ok(Subject::Table(table.into())),
    }
}

/// "0.01" or "1%".
fn parse_precision(text: &str) -> Result<Precision, Error> {
    let wrong = || Error::Parameter(format!("--precision '{text}' is not a positive number such as 0.01, or 1%"));
    let (number, relative) = match text.strip_suffix('%') {
        Some(number) => (number, true),
        None => (text, false),
    };
    let value: f64 = number.trim().parse().map_err(|_| wrong())?;
    match value > 0.0 && value.is_finite() {
        true if relative => Ok(Precision::Relative(value / 100.0)),
        true => Ok(Precision::Absolute(value)),
        false => Err(wrong()),
    }
}

/// Says on stderr how far sampling is, once it takes longer than a moment.
struct SamplingProgress {
    started: Instant,
    shown: Instant,
    precision: Precision,
    terminal: bool,
}

impl SamplingProgress {
    fn new(precision: Precision) -> Self {
        let now = Instant::now();
        Self { started: now, shown: now, precision, terminal: std::io::stderr().is_terminal() }
    }

    fn show(&mut self, samples: u64, half_width: f64) {
        let pause = if self.terminal { 0.3 } else { 10.0 };
        if self.started.elapsed().as_secs_f64() < 1.0 || self.shown.elapsed().as_secs_f64() < pause {
            return;
        }
        self.shown = Instant::now();
        let left = match self.precision {
            // Half-widths shrink with the square root of the work.
            Precision::Absolute(wanted) => {
                let left = self.started.elapsed().as_secs_f64() * ((half_width / wanted).powi(2) - 1.0).max(0.0);
                format!(", about {} to ±{}", seconds(left), number(wanted))
            }
            Precision::Relative(_) => String::new(),
        };
        let line = format!("{} inputs, ±{}{left}", grouped(samples), number(half_width));
        if self.terminal {
            eprint!("\r\x1b[K{line}");
            let _ = std::io::stderr().flush(); // progress is a courtesy
        } else {
            eprintln!("{line}");
        }
    }

    fn clear(&self) {
        if self.terminal && self.shown > self.started {
            eprint!("\r\x1b[K");
        }
    }
}
