//! Transformers built by hand, right at every length, under noise on their weights: at which length they fail.

use pudica_lab::kinds::boolean::Construction;
use pudica_statistics::{Line, Mean, Range, Term, difference, linregress, mean};
use serde_json::{Value, json};

use super::constructions::title;
use crate::claims::{Claim, Decision, Parts, apart, interval};
use crate::figure::colour::{point, viridis};
use crate::figure::{Axis, Figure, Mark, Panel, Point, Style};
use crate::findings::{Cell, Findings, ScaleWords, Table, counted, head, number, plain, with_count};
use crate::group::band_and_line;
use crate::run::Run;
use crate::sweep::{Sweep, different, different_numbers};

/// The loss of the best constant answer to PARITY and FIRST on the ±1 scale; by Theorem 6 also the limit for PARITY.
const CONSTANT: f64 = 1.0;

/// A transformer has failed where its loss is half of that.
const FAILED: f64 = CONSTANT / 2.0;

/// The runs of one construction at one gain.
struct Family<'a> {
    start: String,
    title: String,
    runs: Vec<&'a Run>,
}

/// Its loss under noise of one size.
struct UnderNoise {
    rho: f64,
    /// By length: the mean over runs.
    by_length: Vec<(f64, Mean)>,
    /// The length at which each seed's loss reaches [`FAILED`], where it lies between two lengths that were measured.
    fails_at: Vec<f64>,
    seeds: usize,
}

/// The loss under noise, for outputs ±1: that without noise, and what noise adds.
fn noisy_loss(run: &Run) -> Option<f64> {
    Some(4.0 * run.value("eval_loss")? + run.value("sharpness")?)
}

impl Family<'_> {
    /// From small noise to large.
    fn under_noise(&self) -> Vec<UnderNoise> {
        sorted(&self.runs, "measure.rho").into_iter().map(|rho| self.under(rho)).collect()
    }

    fn under(&self, rho: f64) -> UnderNoise {
        let own: Vec<&Run> = self.runs.iter().copied().filter(|run| run.number("measure.rho") == Some(rho)).collect();
        let at = |runs: &[&Run], n: f64| -> Vec<f64> {
            runs.iter().filter(|run| run.number("n") == Some(n)).filter_map(|run| noisy_loss(run)).collect()
        };
        let lengths = sorted(&own, "n");
        let by_length = lengths.iter().filter_map(|n| Some((*n, mean(&at(&own, *n))?))).collect();
        let seeds = different_numbers(own.iter().filter_map(|run| run.number("seed")));
        let of_seed = |seed: &f64| {
            let own: Vec<&Run> = own.iter().copied().filter(|run| run.number("seed") == Some(*seed)).collect();
            let curve = lengths.iter().filter_map(|n| Some((*n, *at(&own, *n).first()?)));
            crossing(&curve.collect::<Vec<_>>())
        };
        UnderNoise { rho, by_length, fails_at: seeds.iter().filter_map(of_seed).collect(), seeds: seeds.len() }
    }

    /// The power of rho that the length of failure follows: least squares over seeds and sizes of noise, both in logarithms.
    fn power(&self) -> Option<Line> {
        let points = |noise: UnderNoise| noise.fails_at.into_iter().map(move |n| (noise.rho.log10(), n.log10()));
        linregress(&self.under_noise().into_iter().flat_map(points).collect::<Vec<_>>()).filter(|line| line.points > 2)
    }

    fn is(&self, target: &str) -> bool {
        self.runs.iter().all(|run| run.text("target") == target)
    }

    /// as_n / n of its function: Theorem 6's lower bound for long inputs.
    fn bound(&self, n: f64) -> Option<f64> {
        let construction: Construction = self.runs.first()?.text("target").parse().ok()?;
        Some(construction.average_sensitivity(n as usize) / n)
    }
}

impl UnderNoise {
    /// The mean length of failure, of the logarithms; only where it is known of every seed.
    fn length(&self) -> Option<Mean> {
        let logarithms: Vec<f64> = self.fails_at.iter().map(|n| n.log10()).collect();
        let mean = mean(&logarithms).filter(|mean| mean.count == self.seeds)?;
        let [value, low, high] = [mean.mean, mean.low, mean.high].map(|log| 10f64.powf(log));
        Some(Mean { mean: value, low, high, ..mean })
    }

    /// The length of failure for people, also where it is beyond the lengths measured.
    fn words(&self) -> Cell {
        let (Some((first, shortest)), Some((last, longest))) = (self.by_length.first(), self.by_length.last()) else {
            return Cell::Missing;
        };
        match self.length() {
            Some(length) => with_count(Some(length)),
            None if shortest.mean >= FAILED => format!("{first} or less").into(),
            None if longest.mean < FAILED => format!("more than {last}").into(),
            None => "some seeds only".into(),
        }
    }
}

/// Where a loss by rising length first reaches [`FAILED`], linear between lengths in their logarithm; not before the first or after the last.
fn crossing(curve: &[(f64, f64)]) -> Option<f64> {
    let pair = curve.windows(2).find(|pair| pair[1].1 >= FAILED)?;
    let ((short, before), (long, after)) = (pair[0], pair[1]);
    (before < FAILED).then(|| short * (long / short).powf((FAILED - before) / (after - before)))
}

/// A size of noise as the recipe writes it: 0.003, 3·10^{−4}.
fn written(rho: f64) -> String {
    if rho >= 1e-3 {
        return rho.to_string();
    }
    let text = format!("{rho:e}");
    let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let power = format!("10^{{{exponent}}}").replace('-', "−");
    if digits == "1" { power } else { format!("{digits}·{power}") }
}

/// The different numbers of a setting, rising.
fn sorted(runs: &[&Run], key: &str) -> Vec<f64> {
    let mut numbers = different_numbers(runs.iter().filter_map(|run| run.number(key)));
    numbers.sort_by(f64::total_cmp);
    numbers
}

const SCALE: ScaleWords = ScaleWords {
    paper: "The recipe's full lengths, sizes of noise and draws, nothing changed; the paper does not run this.",
    other: "Fewer draws of noise, lengths and sizes of noise than at the scale paper. The paper does not run this.",
};

/// `hahn/noise-lengths`.
pub fn findings(sweep: &Sweep) -> Findings {
    let runs: Vec<&Run> = sweep.finished().collect();
    let family = |start: String| Family {
        title: title(&start),
        runs: runs.iter().copied().filter(|run| run.text("model.start") == start).collect(),
        start,
    };
    let families: Vec<Family> =
        different(runs.iter().map(|run| run.text("model.start"))).into_iter().map(family).collect();
    let rhos = sorted(&runs, "measure.rho");
    let colour = |rho: f64| {
        let place = rhos.iter().position(|known| *known == rho).unwrap_or(0) as f64;
        viridis(0.9 * place / (rhos.len().max(2) - 1) as f64)
    };
    let mut findings = Findings { scale: SCALE, ..Findings::default() };
    let rho_words = |rho: &f64| (format!("ρ = {}", written(*rho)), Style::line(&colour(*rho)));
    findings.draw(
        "noise-lengths",
        "",
        "Loss under weight noise against length",
        "Mean squared error, for outputs ±1, of transformers built by hand against the length of their inputs, with normal noise of standard deviation ρ on every weight but the positions: means over runs, which differ in strings and noise only, and their 95 % intervals. Dashed: the loss of a constant answer, which by Theorem 6 PARITY's must reach for long inputs, however small ρ is. With gain 1 LayerNorm's epsilon makes outputs fade, which is loss without any noise.",
        Figure {
            panels: families.iter().map(|family| loss_panel(family, colour)).collect(),
            columns: 2,
            legend: rhos.iter().map(rho_words).collect(),
            ..Figure::default()
        },
    );
    findings.draw(
        "failing-lengths",
        "",
        "The length at which they fail",
        "The length at which the loss under noise reaches 1/2, half of a constant answer's, against the size of the noise: for each seed, linear between lengths in their logarithm; means over seeds with 95 % intervals, drawn where every seed fails within the lengths measured.",
        Figure {
            panels: vec![failing_panel(&families)],
            columns: 1,
            legend: families.iter().enumerate().map(|(place, family)| (family.title.clone(), point(place))).collect(),
            ..Figure::default()
        },
    );
    findings.tables.push(failing_table(&families, &rhos));
    findings.tables.extend(families.iter().map(longest_table));
    findings.claims.extend(claims(&families).into_iter().flatten());
    findings
        .summary
        .insert("by_construction".into(), families.iter().map(summary).collect::<serde_json::Map<_, _>>().into());
    findings
}

fn summary(family: &Family) -> (String, Value) {
    let under = |noise: UnderNoise| {
        let losses: serde_json::Map<String, Value> =
            noise.by_length.iter().map(|(n, loss)| (n.to_string(), json!(loss))).collect();
        (noise.rho.to_string(), json!({ "loss": losses, "fails_at": noise.length() }))
    };
    let by_rho: serde_json::Map<String, Value> = family.under_noise().into_iter().map(under).collect();
    (family.start.clone(), json!({ "by_rho": by_rho, "failing_length_power_of_rho": family.power() }))
}

fn loss_panel(family: &Family, colour: impl Fn(f64) -> String) -> Panel {
    let mut marks = Vec::new();
    for noise in family.under_noise() {
        let colour = colour(noise.rho);
        let losses: Vec<(f64, Mean)> =
            noise.by_length.iter().map(|(n, loss)| (*n, loss.within(Range::Positive))).collect();
        marks.extend(band_and_line(&losses, &colour, 3, 0));
        let name = |mean: &Mean| format!("ρ = {}: mean of {}", noise.rho, counted(mean.count, "run"));
        let points = losses.iter().map(|(n, mean)| Point::mean(*n, mean, name(mean)));
        marks.push(Mark::points(points, Style::line(&colour).sized(2.4)));
    }
    marks.push(Mark::Level(CONSTANT, String::new()));
    Panel { title: family.title.clone(), x: Axis::log("input length n"), y: Axis::linear("MSE under noise"), marks }
}

fn failing_panel(families: &[Family]) -> Panel {
    let mut marks = Vec::new();
    for (place, family) in families.iter().enumerate() {
        let lengths: Vec<(f64, Mean)> =
            family.under_noise().iter().filter_map(|noise| Some((noise.rho, noise.length()?))).collect();
        let bars = lengths.iter().map(|(rho, mean)| (*rho, mean.low, mean.high)).collect();
        marks.push(Mark::Intervals { points: bars, style: point(place) });
        let points: Vec<Point> =
            lengths.iter().map(|(rho, mean)| Point::mean(*rho, mean, family.title.as_str())).collect();
        marks.push(Mark::line(points.clone(), Style::line(&point(place).colour)));
        marks.push(Mark::points(points, point(place)));
    }
    Panel {
        title: "Length of failure".into(),
        x: Axis::log("noise on each weight, ρ"),
        y: Axis::log("length n at which the loss is 1/2"),
        marks,
    }
}

fn failing_table(families: &[Family], rhos: &[f64]) -> Table {
    let names = families.iter().map(|family| family.title.clone());
    let noises: Vec<Vec<UnderNoise>> = families.iter().map(Family::under_noise).collect();
    let row = |rho: &f64| {
        let cell =
            |noises: &Vec<UnderNoise>| noises.iter().find(|noise| noise.rho == *rho).map(UnderNoise::words).into();
        std::iter::once(written(*rho).into()).chain(noises.iter().map(cell)).collect()
    };
    let power = |family: &Family| family.power().map(|line| format!("ρ^{{{}}}", number(line.slope))).into();
    let mut rows: Vec<Vec<Cell>> = rhos.iter().map(row).collect();
    rows.push(std::iter::once("proportional to".into()).chain(families.iter().map(power)).collect());
    Table {
        title: "The length at which they fail".into(),
        head: std::iter::once("ρ".to_string()).chain(names).collect(),
        rows,
        note: "The length at which the loss under noise reaches 1/2: means over seeds with their 95 % intervals. The last row is the least-squares line through the logarithms.".into(),
    }
}

/// What noise does at the longest inputs, beside Theorem 6.
fn longest_table(family: &Family) -> Table {
    let longest = sorted(&family.runs, "n").pop().unwrap_or(f64::NAN);
    let row = |noise: UnderNoise| {
        let own = |run: &&&Run| run.number("n") == Some(longest) && run.number("measure.rho") == Some(noise.rho);
        let mean_of = |measure: &str| {
            mean(&family.runs.iter().filter(own).filter_map(|run| run.value(measure)).collect::<Vec<_>>())
        };
        let loss = noise.by_length.last().filter(|(n, _)| *n == longest).map(|(_, loss)| *loss);
        vec![
            written(noise.rho).into(),
            with_count(loss),
            plain(mean_of("output_shift")),
            family.bound(longest).into(),
            plain(mean_of("eval_loss").map(|mean| Mean { mean: 4.0 * mean.mean, ..mean })),
        ]
    };
    Table {
        title: format!("{} at n = {longest}", family.title),
        head: head(["ρ", "MSE under noise", "shift of outputs", "Theorem 6: as_{n} / n", "MSE without noise"]),
        rows: family.under_noise().into_iter().map(row).collect(),
        note: "All for outputs ±1. The shift of outputs is the L of Theorem 6, which approaches or exceeds as_{n} / n as n grows and then the noise shrinks; at one n and one ρ neither is promised.".into(),
    }
}

/// The corollary in Section 6, and what Theorem 6 does not say of insensitive functions.
fn claims(families: &[Family]) -> Option<[Claim; 2]> {
    let parity: Vec<&Family> = families.iter().filter(|family| family.is("parity")).collect();
    let runs_of = |families: &[&Family]| families.iter().map(|family| family.runs.len()).sum();
    let mut fails = Parts::default();
    for family in &parity {
        for noise in family.under_noise() {
            let (shortest, longest) = (noise.by_length.first()?, noise.by_length.last()?);
            let beyond = difference(&longest.1, Term { value: FAILED, std_error: 0.0, freedom: f64::INFINITY });
            let gain = family.title.trim_start_matches("PARITY, ");
            let name = format!("{gain}, ρ = {}:", written(noise.rho));
            match Decision::above(beyond) {
                Decision::Agrees => fails.add(Decision::Agrees, interval(&name, beyond)),
                // Not yet failed at the longest inputs there are: the loss must at least be on its way.
                _ => fails.above(&format!("{name} longest minus shortest"), difference(&longest.1, &shortest.1)),
            }
        }
    }
    let others: Vec<&Family> = families.iter().filter(|family| family.is("majority") || family.is("first")).collect();
    let mut lower = Parts::default();
    let at_longest = |noise: Option<UnderNoise>| noise.and_then(|noise| noise.by_length.last().map(|(_, loss)| *loss));
    // The gains that constructions have by themselves.
    let first = parity.first()?;
    for noise in first.under_noise() {
        let rho = noise.rho;
        let sensitive = at_longest(Some(noise));
        for family in &others {
            let own = at_longest(family.under_noise().into_iter().find(|noise| noise.rho == rho));
            let name = format!("{}, ρ = {}:", family.title.trim_end_matches(", gain n"), written(rho));
            lower.above(&name, apart(sensitive, own));
        }
    }
    let runs = runs_of(&parity);
    let compared = runs_of(&others) + first.runs.len();
    Some([
        fails.claim(
            "noise-lengths",
            "Section 6: for a sensitive function, the slightest deviation from the exact minimum leads to failure when inputs get sufficiently long.",
            "Does PARITY built by hand fail under every size of weight noise (loss at the longest inputs minus 1/2), or at least get worse with length?",
            runs,
        ),
        lower.claim(
            "noise-lengths",
            "Section 6: for functions with sublinear average sensitivity no such phenomenon is predicted.",
            "Is the loss of MAJORITY and FIRST built by hand lower than PARITY's (theirs subtracted from it) at the longest inputs, under the same noise?",
            compared,
        ),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_crossing_is_linear_in_the_logarithm_of_length() {
        let found = crossing(&[(8.0, 0.1), (16.0, 0.25), (64.0, 0.75), (128.0, 0.2)]).unwrap();
        assert!((found - 32.0).abs() < 1e-9, "{found}");
        assert_eq!(crossing(&[(8.0, 0.6), (16.0, 0.9)]), None, "failed before the first length");
        assert_eq!(crossing(&[(8.0, 0.1), (16.0, 0.4)]), None, "not yet failed");
        assert_eq!(crossing(&[]), None);
    }

    #[test]
    fn sizes_of_noise_are_written_as_in_the_recipe() {
        assert_eq!([0.01, 0.003, 1e-3, 3e-4, 1e-5].map(written), ["0.01", "0.003", "0.001", "3·10^{−4}", "10^{−5}"]);
    }
}
