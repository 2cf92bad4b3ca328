//! `pudica spectrum`: eigenvalues of a network's kernels on the cube, by degree.

use crate::Ending;
use crate::text::{bar, number};
use clap::{Args, ValueEnum};
use pudica_theory::TheoryError;
use pudica_theory::spectra::analysis::{Accuracy, EmpiricalAnswer, Method};
use pudica_theory::spectra::cube::CubeSpectrum;
use pudica_theory::spectra::finite::check_size;
use pudica_theory::spectra::{
    Activation, Analysis, Architecture, Empirical, Estimate, Family, Kernel, Monotone, Readout, Request, Size, analyse,
};
use std::io::{IsTerminal, Write};

/// Compute the spectrum of a network's kernel on the cube: which degrees it favours.
///
/// Eigenvalues mu_k by degree and the fraction of the variance C(d,k) mu_k / sum, for infinitely wide MLPs (relu, erf) and linear
/// attention to 512 dimensions; the exact attention kernel by its tokens to 14; finite networks, softmax attention and LSTM too, by
/// their Jacobians to 12. Proposition 3.1 of Vasudeva et al. (2024), that mu falls along even and along odd degrees, is checked.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// relu or erf (MLPs; mlp is relu), linear-attention, softmax-attention or lstm (the last two only with --empirical)
    #[arg(value_name = "ARCH")]
    arch: String,
    /// Dimensions of the cube: input bits
    #[arg(long, value_name = "D")]
    dim: usize,
    /// Hidden layers of an MLP, attention layers of a transformer, layers of an LSTM
    #[arg(long, value_name = "L", default_value_t = 1)]
    depth: usize,
    /// ck: only the readout is trained; ntk: everything is
    #[arg(long, value_enum, default_value = "ntk", ignore_case = true)]
    kernel: KernelName,
    /// Variance of a weight times its fan-in, readout included (default 2; LSTM 1). Attention's matrices have 1
    #[arg(long, value_name = "V", allow_hyphen_values = true)]
    weight_variance: Option<f64>,
    /// Variance of a bias
    #[arg(long, value_name = "V", default_value_t = 0.0, allow_hyphen_values = true)]
    bias_variance: f64,
    /// Nonlinearity of the dense layer after each attention layer (identity: no dense layer), or of `mlp`
    #[arg(long, value_enum)]
    activation: Option<ActivationName>,
    /// Number of tokens the bits are cut into, of D/T bits each [default: as square as D allows, T >= D/T]
    #[arg(long, value_name = "T")]
    tokens: Option<usize>,
    /// How a transformer's tokens are read out: a weight for each, or their mean
    #[arg(long, value_enum)]
    readout: Option<ReadoutName>,
    /// Compute the exact attention kernel on the whole cube, up to D = 14 (up to 10 it is computed anyway)
    #[arg(long)]
    exact: bool,
    /// Add R finite networks with random weights, up to D = 12
    #[arg(long, value_name = "R")]
    empirical: Option<u64>,
    /// Width of the finite networks
    #[arg(long, value_name = "W", default_value_t = 64, requires = "empirical")]
    width: usize,
    /// Attention heads of the finite networks
    #[arg(long, value_name = "H", default_value_t = 8, requires = "empirical")]
    heads: usize,
    /// Seed of the first finite network's weights; the others have the next seeds
    #[arg(long, default_value_t = 0, requires = "empirical")]
    seed: u64,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  pudica spectrum relu --dim 128 --depth 4 --kernel ntk     an infinitely wide MLP
  pudica spectrum erf --dim 512 --weight-variance 4 --bias-variance 0.1 --json
  pudica spectrum linear-attention --dim 10                 the paper's claim, and the exact kernel of 5 tokens of 2 bits
  pudica spectrum linear-attention --dim 14 --tokens 2 --exact
  pudica spectrum lstm --dim 10 --empirical 5               five finite networks, with standard errors
  pudica run vasudeva/spectra                               all architectures side by side, with figures";

#[derive(Clone, Copy, ValueEnum)]
enum KernelName {
    Ck,
    Ntk,
}

#[derive(Clone, Copy, ValueEnum)]
enum ActivationName {
    Relu,
    Erf,
    Identity,
}

#[derive(Clone, Copy, ValueEnum)]
enum ReadoutName {
    Flatten,
    Mean,
}

impl Arguments {
    /// What it does, for who waits.
    pub fn doing(&self) -> String {
        let networks =
            self.empirical.map_or(String::new(), |count| format!(" of {count} finite networks, width {}", self.width));
        format!("computing the kernel's spectrum for {} on {} bits{networks}", self.arch, self.dim)
    }
}

/// Runs the command.
pub fn run(arguments: &Arguments) -> Result<Ending, Box<dyn std::error::Error>> {
    let request = arguments.request()?;
    if let Some(Empirical { size, .. }) = &request.empirical {
        check_size(&request.network, *size)?; // before what the infinitely wide network takes
    }
    let terminal = std::io::stderr().is_terminal();
    let mut progress = |done: u64, all: u64| {
        if terminal {
            eprint!("\r\x1b[K{}", if done < all { format!("{done} of {all} networks") } else { String::new() });
            let _ = std::io::stderr().flush(); // progress is a courtesy
        }
    };
    let analysis = analyse(&request, &mut progress)?;
    if arguments.json {
        println!("{}", serde_json::to_string(&analysis)?);
    } else {
        print(&analysis);
    }
    Ok(Ending::Done)
}

impl Arguments {
    fn request(&self) -> Result<Request, TheoryError> {
        // `mlp --activation erf` is another way to say `erf`.
        let (arch, activation) = match (self.arch.to_ascii_lowercase().as_str(), self.activation) {
            ("mlp", Some(ActivationName::Relu)) => ("relu", None),
            ("mlp", Some(ActivationName::Erf)) => ("erf", None),
            (_, activation) => (self.arch.as_str(), activation),
        };
        let mut network = Architecture::named(arch, self.dim)?;
        let only_for = |flag: &str, whom: &str| {
            Err(TheoryError::Argument(format!("{flag} is for {whom}, not for {}: leave it out", network.name)))
        };
        let transformer = network.has_attention();
        if activation.is_some() && !transformer {
            return only_for("--activation", "transformers");
        }
        if self.readout.is_some() && !transformer {
            return only_for("--readout", "transformers");
        }
        if let Some(tokens) = self.tokens {
            network = network.with_tokens(tokens)?;
        }
        network.depth = self.depth;
        network.weight_variance = self.weight_variance.unwrap_or(network.weight_variance);
        network.bias_variance = self.bias_variance;
        match activation {
            Some(ActivationName::Relu) => network.activation = Activation::Relu,
            Some(ActivationName::Erf) => network.activation = Activation::Erf,
            Some(ActivationName::Identity) => network.activation = Activation::Identity,
            None => {}
        }
        if let Some(ReadoutName::Mean) = self.readout {
            network.readout = Readout::Mean;
        }
        Ok(Request {
            network,
            kernel: match self.kernel {
                KernelName::Ck => Kernel::Ck,
                KernelName::Ntk => Kernel::Ntk,
            },
            exact: self.exact.then_some(true),
            empirical: self.empirical.map(|networks| Empirical {
                networks,
                seed: self.seed,
                size: Size { width: self.width, heads: self.heads },
            }),
        })
    }
}

fn print(analysis: &Analysis) {
    println!("{}\n", headline(analysis));
    if analysis.method == Method::InfiniteWidth {
        if analysis.network.family == Family::LinearAttention && analysis.network.tokens > 1 {
            println!("  as the paper reads it: a function of <x, y> alone (tokens given their mean covariances)\n");
        }
        print_degrees(analysis);
        row("mean degree", number(analysis.mean_degree));
        print_chains("Prop. 3.1", &analysis.monotone);
        if let Some(accuracy) = &analysis.accuracy {
            print_accuracy(accuracy);
        }
    }
    if let Some(exact) = &analysis.exact {
        print_exact(exact, analysis);
    }
    if let Some(empirical) = &analysis.empirical {
        print_empirical(empirical, analysis);
    }
}

fn headline(analysis: &Analysis) -> String {
    let network = &analysis.network;
    let kernel = if analysis.kernel == Kernel::Ck { "CK" } else { "NTK" };
    let layers = if network.depth == 1 { "1 layer".into() } else { format!("{} layers", network.depth) };
    let mut what = match network.family {
        Family::Mlp => format!("{} MLP, {layers}", network.name),
        Family::Lstm => format!("LSTM, {layers}, {} tokens of {} bits", network.tokens, network.token_width),
        Family::LinearAttention | Family::SoftmaxAttention => format!(
            "{}, {layers} (each followed by {}), {} tokens of {} bits",
            network.name,
            match network.activation {
                Activation::Identity => "nothing",
                Activation::Relu => "a dense relu layer",
                Activation::Erf => "a dense erf layer",
            },
            network.tokens,
            network.token_width
        ),
    };
    if network.has_attention() {
        what += if network.readout == Readout::Mean { ", mean read" } else { ", every token read" };
    }
    let (weights, biases) = (number(network.weight_variance), number(network.bias_variance));
    format!("{kernel} of {what}, on {{-1,1}}^{}  (weight variance {weights}, bias variance {biases})", analysis.dim)
}

fn row(name: &str, value: String) {
    println!("  {name:<26} {value}");
}

/// mu beyond the range of f64 as a power of ten.
fn eigenvalue(mu: f64, log10: f64) -> String {
    match mu {
        0.0 if log10.is_finite() => format!("1e{log10:.1}"),
        _ => number(mu),
    }
}

fn print_degrees(analysis: &Analysis) {
    const SHOWN: usize = 24;
    let shares = &analysis.fractional_variance;
    let largest = shares.iter().copied().fold(0.0, f64::max);
    println!("  degree  eigenvalue mu_k  fraction of the variance, C(d,k) mu_k / sum");
    for (degree, share) in shares.iter().enumerate().take(SHOWN) {
        let mu = eigenvalue(analysis.mu[degree], analysis.log10_mu[degree]);
        println!("  {degree:>6}  {mu:<15}  {:<26} {}", bar(share / largest, 26), number(*share));
    }
    if shares.len() > SHOWN {
        let rest = number(shares[SHOWN..].iter().sum());
        let (degree, log10) = (shares.len() - 1, analysis.log10_mu[shares.len() - 1]);
        let last = eigenvalue(analysis.mu[degree], log10);
        println!("  degrees {SHOWN} to {degree} hold {rest} together; mu_{degree} = {last} (--json has all)");
    }
    println!();
}

fn print_chains(name: &str, chains: &Monotone) {
    let verdict = |holds: bool, parity: usize| {
        let broken: Vec<String> =
            chains.violations.iter().filter(|k| *k % 2 == parity).map(|k| k.to_string()).collect();
        match holds {
            true => "holds".to_string(),
            false => format!("FAILS at degree {} (mu_k > mu_(k-2))", broken.join(", ")),
        }
    };
    row(name, format!("even chain mu_0 >= mu_2 >= ...: {}", verdict(chains.even, 0)));
    row("", format!("odd chain mu_1 >= mu_3 >= ...:  {}", verdict(chains.odd, 1)));
}

fn print_accuracy(accuracy: &Accuracy) {
    let Accuracy { relative_error, log10_resolution, bits } = accuracy;
    row(
        "accuracy",
        format!(
            "every mu_k to {relative_error:.0e} of itself ({bits} bits); those given as 0 are below 1e{log10_resolution:.0}"
        ),
    );
}

fn print_exact(exact: &CubeSpectrum, analysis: &Analysis) {
    println!("\n  the exact kernel, by its tokens, on all 2^{} inputs\n", analysis.dim);
    println!("  degree  claimed share  exact share  exact mu_k (smallest to largest monomial)");
    for (degree, share) in exact.fractional_variance.iter().enumerate() {
        let claimed = number(analysis.fractional_variance[degree]);
        let [low, high] = exact.mu_range[degree].map(number);
        println!(
            "  {degree:>6}  {claimed:<13}  {:<11}  {} ({low} to {high})",
            number(*share),
            number(exact.mu[degree])
        );
    }
    println!();
    print_chains("chains of the exact mu_k", &exact.monotone);
    let percent = |share: f64| format!("{} %", number((share * 1e4).round() / 100.0));
    let distance = &exact.distance;
    row(
        "not a function of <x, y>",
        format!(
            "{} of the kernel's squared norm: {} between monomials, {} within degrees",
            percent(distance.not_univariate),
            percent(distance.off_diagonal),
            percent(distance.within_degrees)
        ),
    );
    let Some(eigen) = &exact.eigen else {
        return row("eigenfunctions", "not computed: blocks of more than 4096 monomials".into());
    };
    row("eigenfunctions", format!("{} of their weight at one degree each, on average", percent(eigen.purity)));
    println!("\n  eigenvalue    copies  mean degree  main degree");
    for found in eigen.largest.iter().take(10) {
        let main = (0..found.degrees.len()).max_by(|a, b| found.degrees[*a].total_cmp(&found.degrees[*b])).unwrap_or(0);
        let share = percent(found.degrees[main]);
        println!("  {:<12}  {:>6}  {:>11.3}  {main} ({share})", number(found.value), found.copies, found.mean_degree);
    }
}

fn print_empirical(empirical: &EmpiricalAnswer, analysis: &Analysis) {
    let summary = &empirical.summary;
    let heads =
        if analysis.network.has_attention() { format!(", {} heads", empirical.asked.size.heads) } else { "".into() };
    println!(
        "\n  finite networks: {} with random weights, width {}{heads}, {} parameters (± standard error)\n",
        summary.networks, empirical.asked.size.width, empirical.parameters
    );
    let infinite = analysis.method == Method::InfiniteWidth;
    println!("  degree  {}finite width", if infinite { "infinite width  " } else { "" });
    for (degree, share) in summary.fractional_variance.iter().enumerate() {
        let claimed =
            if infinite { format!("{:<14}  ", number(analysis.fractional_variance[degree])) } else { String::new() };
        println!("  {degree:>6}  {claimed}{}", estimate(share));
    }
    println!();
    row("mean degree", estimate(&summary.mean_degree));
    print_chains("chains of the mean mu_k", &summary.monotone);
    let [one, two, three] = &summary.low_degree_share;
    row("not constant: degree 1", estimate(one));
    row("  degrees to 2, to 3", format!("{}, {}", estimate(two), estimate(three)));
    if let Some(off_diagonal) = &summary.off_diagonal {
        row("between monomials", format!("{} of the kernel's squared norm", estimate(off_diagonal)));
    }
    if let (Some(values), Some(degrees)) = (&summary.eigenvalue_shares, &summary.eigenfunction_degrees) {
        println!("\n  largest eigenvalues, of their sum   mean degree of the eigenfunction");
        for (value, degree) in values.iter().zip(degrees).take(8) {
            println!("  {:<34}  {}", estimate(value), estimate(degree));
        }
    }
}

fn estimate(estimate: &Estimate) -> String {
    match estimate.std_error {
        Some(error) => format!("{} ± {}", number(estimate.mean), number(error)),
        None => format!("{} (one network)", number(estimate.mean)),
    }
}
