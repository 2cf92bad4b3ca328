//! `pudica boolean`: exact or sampled analysis of one Boolean function.

use crate::Ending;
use crate::text::{bar, grouped, number, seconds};
use clap::{Args, ValueEnum};
use pudica_boolean::analysis::{Analysis, Method, Quantity, Request, Subject, analyse};
use pudica_boolean::comparison::{Comparison, LowerBound, compare};
use pudica_boolean::files::{Table, TableFormat, read_table};
use pudica_boolean::named::CATALOGUE;
use pudica_boolean::sampled::{Budget, Precision, Sampled};
use pudica_boolean::{Convention, Error, Expression, Function, Named, TruthTable};
use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Analyse a Boolean function: sensitivity, influences, Fourier-Walsh spectrum.
///
/// Exact from the truth table, up to n = 30 for everything and n = 36 for sensitivities; from random inputs, with
/// confidence intervals, up to n = 10,000.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// A named function such as majority, kparity:3 or random:7 (see --list)
    #[arg(value_name = "FUNCTION", required_unless_present_any = ["expr", "table", "list"])]
    function: Option<String>,
    /// Show the named functions, one line each
    #[arg(long)]
    list: bool,
    /// Number of variables
    #[arg(long, value_name = "N")]
    n: Option<usize>,
    /// An expression over x1, x2, ... with ! & ^ | and parentheses
    #[arg(long, value_name = "EXPR", conflicts_with_all = ["function", "table"])]
    expr: Option<String>,
    /// A truth table of 2^n rows: text of 0 and 1, packed bits, or .npy (bool, uint8, float32). Row r is the input whose bits, x1
    /// first, spell r in binary
    #[arg(long, value_name = "FILE", conflicts_with = "function")]
    table: Option<PathBuf>,
    /// How the table is written, when its first bytes would mislead
    #[arg(long, value_enum, requires = "table")]
    table_format: Option<FormatName>,
    /// Compare with a second function (a name, or a table's file): distance, and Lemma 21's lower bound at its best alpha
    #[arg(long, value_name = "FUNCTION")]
    versus: Option<String>,
    /// Values as ±1 (the theory's) or 0 and 1 (what networks are trained on); squared measures differ by 4
    #[arg(long, value_enum, default_value = "pm1")]
    convention: ConventionName,
    /// Compute only these, separated by commas; names as in the JSON (influences need no transform)
    #[arg(long, value_name = "A,B,...", value_delimiter = ',')]
    measures: Option<Vec<String>>,
    /// Correlation for the noise stability
    #[arg(long, default_value_t = 0.9, allow_hyphen_values = true)]
    rho: f64,
    /// Write all 2^n Fourier-Walsh coefficients as .npy (float64); entry S has x1 as its most significant bit
    #[arg(long, value_name = "FILE")]
    spectrum: Option<PathBuf>,
    /// Exact or sampled; by default exact where a truth table fits (n <= 36)
    #[arg(long, value_enum)]
    method: Option<MethodName>,
    /// Sample until the 95 % interval of the average sensitivity is this wide to each side: 0.01, or 1% of the estimate
    #[arg(long, value_name = "P", allow_hyphen_values = true)]
    precision: Option<String>,
    /// Stop sampling after this many seconds even if not precise enough
    #[arg(long, value_name = "SECONDS", default_value_t = 60.0)]
    time_limit: f64,
    /// Which random inputs are drawn
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Threads to use; all cores by default
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  pudica boolean majority --n 21                        a table and a plot of the degree profile
  pudica boolean majority --n 21 --json                 the same for programs
  pudica boolean --expr \"x1 & (x2 | !x3) ^ x4\"
  pudica boolean --table f.npy --spectrum coefficients.npy
  pudica boolean random:7 --n 30 --measures influences  no transform, under a second
  pudica boolean majority --n 1001 --precision 0.1      sampled, with confidence intervals
  pudica boolean parity --n 12 --versus first           distance and Lemma 21's bound";

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
    let request = arguments.request()?;
    let subject = arguments.subject()?;
    let comparison = arguments.comparison(&subject)?;
    let mut progress = SamplingProgress::new(request.budget.precision);
    let analysis = analyse(subject, &request, &mut |samples, half_width| progress.show(samples, half_width))?;
    progress.clear();
    if arguments.json {
        let mut object = serde_json::to_value(&analysis)?;
        if let (Some(comparison), Some(object)) = (&comparison, object.as_object_mut()) {
            object.insert("versus".into(), serde_json::to_value(comparison)?);
        }
        println!("{object}");
    } else {
        print(&analysis);
        if let (Some(comparison), Some(other)) = (&comparison, &arguments.versus) {
            print_comparison(comparison, &analysis.function, other);
        }
    }
    Ok(Ending::Done)
}

impl Arguments {
    fn subject(&self) -> Result<Subject, Error> {
        if let Some(text) = &self.expr {
            let expression = Expression::parse(text, self.n)?;
            return Ok(Subject::Function(Function::Boolean(Box::new(expression))));
        }
        if let Some(path) = &self.table {
            let format = self.table_format.map(|name| match name {
                FormatName::Text => TableFormat::Text,
                FormatName::Packed => TableFormat::Packed,
                FormatName::Npy => TableFormat::Npy,
            });
            let subject = Subject::Table(read_table(path, format)?);
            return match self.n {
                Some(n) if n != subject.variables() => Err(Error::Table {
                    path: path.clone(),
                    problem: format!(
                        "the table has 2^{} rows, but --n {n} asks for 2^{n}: leave --n out",
                        subject.variables()
                    ),
                }),
                _ => Ok(subject),
            };
        }
        let named: Named = self.function.as_deref().unwrap_or_default().parse()?;
        let n = self
            .n
            .or(named.natural_variables())
            .ok_or_else(|| Error::Variables(format!("say how many variables: pudica boolean {named} --n 20")))?;
        named.at(n).map(Subject::Function)
    }

    fn request(&self) -> Result<Request, Error> {
        if !(-1.0..=1.0).contains(&self.rho) {
            return Err(Error::Parameter(format!("--rho {} is no correlation: give a number from -1 to 1", self.rho)));
        }
        if !(self.time_limit > 0.0 && self.time_limit < 1e9) {
            return Err(Error::Parameter(format!("--time-limit {} is no number of seconds", self.time_limit)));
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
            rho: self.rho,
            budget: Budget {
                precision: precision.unwrap_or(Precision::Relative(0.01)),
                time_limit: Duration::from_secs_f64(self.time_limit),
                seed: self.seed,
            },
            spectrum_file: self.spectrum.clone(),
        })
    }

    fn comparison(&self, subject: &Subject) -> Result<Option<Comparison>, Error> {
        let Some(other) = &self.versus else { return Ok(None) };
        let boolean = |subject: &Subject, name: &str| -> Result<TruthTable, Error> {
            match subject {
                Subject::Function(Function::Boolean(f)) => f.table(),
                Subject::Table(Table::Boolean(table)) => Ok(table.clone()),
                _ => Err(Error::Measure(format!("{name} has real values; only Boolean functions are compared"))),
            }
        };
        let first = boolean(subject, "the function")?;
        let second = if Path::new(other).is_file() {
            Subject::Table(read_table(Path::new(other), None)?)
        } else {
            Subject::Function(other.parse::<Named>()?.at(first.variables())?)
        };
        compare(&first, &boolean(&second, other)?).map(Some)
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

fn print(analysis: &Analysis) {
    let how = match analysis.method {
        Method::Exact => "exact",
        Method::Sampled => "sampled, 95 % intervals",
    };
    println!("{}, n = {}  ({how}; values {})\n", analysis.function, analysis.n, analysis.convention);
    let row = |name: &str, value: String| println!("  {name:<26} {value}");
    if let Some(quantity) = &analysis.average_sensitivity {
        let other = match (&analysis.average_sensitivity_by_convention, analysis.convention) {
            (Some(both), Convention::PlusMinus) => format!("   ({} with values 0, 1)", number(both.zero_one)),
            (Some(both), Convention::ZeroOne) => format!("   ({} with values ±1)", number(both.pm1)),
            _ => String::new(),
        };
        row("average sensitivity", format!("{}{other}", show(quantity)));
    }
    if let Some(max) = analysis.max_sensitivity {
        let at = |value: Option<usize>| value.map_or("none".into(), |s| s.to_string());
        let (zero, one) = (analysis.max_sensitivity_at_0, analysis.max_sensitivity_at_1);
        let split = if zero.or(one).is_some() {
            format!("   (on 0-inputs {}, on 1-inputs {})", at(zero), at(one))
        } else {
            String::new()
        };
        row("max sensitivity", format!("{}{split}", number(max)));
    }
    if let Some(value) = analysis.block_sensitivity {
        row("block sensitivity", value.to_string());
    }
    if let Some(value) = analysis.certificate_complexity {
        row("certificate complexity", value.to_string());
    }
    if let Some(value) = analysis.degree {
        row("degree", value.to_string());
    }
    if let Some(value) = analysis.spectral_norm {
        row("spectral norm", number(value));
    }
    if let Some(stability) = analysis.noise_stability {
        row(&format!("noise stability at {}", stability.rho), number(stability.value));
    }
    if analysis.precision_reached == Some(false) {
        row("note", "the time limit came before the precision asked for (--time-limit)".into());
    }
    if let Some(influences) = &analysis.influences {
        print_influences(influences);
    }
    if let Some(histogram) = &analysis.sensitivity_histogram {
        let rows = histogram.iter().enumerate().map(|(s, &count)| (s, count as f64, grouped(count)));
        print_bars("inputs by number of sensitive bits", rows);
    }
    if let Some(profile) = &analysis.degree_profile {
        let rows = profile.iter().enumerate().map(|(degree, &weight)| (degree, weight, number(weight)));
        print_bars("degree profile (spectral weight by degree)", rows);
    }
    println!();
    for (name, check) in analysis.checks.all() {
        let mark = if check.holds { "holds" } else { "FAILS" };
        println!("  check {name:<10} {mark}: {} ({} and {})", check.claim, number(check.left), number(check.right));
    }
    println!("  {}", seconds(analysis.seconds));
}

fn show(quantity: &Quantity) -> String {
    match quantity {
        Quantity::Exact(value) => number(*value),
        Quantity::Sampled(Sampled { estimate, ci95 }) => {
            let [low, high] = ci95.map(number);
            format!("{}  [{low}, {high}]  from {} inputs", number(estimate.mean), grouped(estimate.samples))
        }
    }
}

/// All of them when they differ, up to a screenful; one line when they are equal.
fn print_influences(influences: &[Quantity]) {
    let first = influences.first().map_or(0.0, Quantity::value);
    if influences.len() > 1 && influences.iter().all(|influence| influence.value() == first) {
        println!("  {:<26} {} for every variable", "influences", number(first));
        return;
    }
    const SHOWN: usize = 32;
    let rows = influences.iter().enumerate().take(SHOWN);
    print_bars("influences", rows.map(|(i, influence)| (i + 1, influence.value(), show(influence))));
    if influences.len() > SHOWN {
        println!("    ... and {} more (--json has all)", influences.len() - SHOWN);
    }
}

/// A row a value: label, bar, text. Runs of zeros at the ends are left out.
fn print_bars(title: &str, rows: impl Iterator<Item = (usize, f64, String)>) {
    let rows: Vec<_> = rows.collect();
    let largest = rows.iter().map(|row| row.1).fold(0.0, f64::max);
    let (Some(first), Some(last)) = (rows.iter().position(|r| r.1 > 0.0), rows.iter().rposition(|r| r.1 > 0.0)) else {
        println!("\n  {title}: all zero");
        return;
    };
    println!("\n  {title}");
    for (label, value, text) in &rows[first..=last] {
        println!("  {label:>5}  {:<32} {text}", bar(value / largest, 32));
    }
}

fn print_comparison(comparison: &Comparison, first: &str, second: &str) {
    let bound = |bound: &LowerBound| match bound.rmse {
        0.0 => "says nothing here".to_string(),
        rmse => format!("RMSE >= {}  (best alpha {})", number(rmse), number(bound.alpha)),
    };
    let [a, b] = comparison.average_sensitivities;
    println!("\n  {first} against {second}");
    println!("  {:<26} {} of inputs", "differ on", number(comparison.distance));
    println!("  {:<26} {}", "RMSE (values ±1)", number(comparison.rmse));
    println!("  {:<26} {} and {}", "average sensitivities", number(a), number(b));
    println!("  {:<26} {}", "Lemma 21", bound(&comparison.lemma21));
    println!("  {:<26} {}", "Lemma 21, reversed", bound(&comparison.lemma21_reversed));
    println!("  {:<26} {}", "holds", if comparison.holds { "yes" } else { "NO" });
}
