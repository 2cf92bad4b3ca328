//! `hahn/random-initialization`: how sensitive networks are before they are trained, and how much room high sensitivity has among weights.

use pudica_statistics::{Contrast, Mean, Share, contrast, mean};
use serde_json::{Map, Value, json};

use super::title_of;
use crate::claims::{Claim, Decision, Parts};
use crate::figure::colour::point;
use crate::figure::{Axis, Figure, Mark, Panel, Point, Style};
use crate::findings::{Cell, Drawn, Findings, ScaleWords, Table, counted, head, number, with_count, with_interval};
use crate::group::band_and_line;
use crate::run::Run;
use crate::sweep::{Sweep, different, different_numbers, means_by};

/// Average sensitivity above this fraction of n is high: half of what a random function has.
const HIGH: f64 = 0.25;
/// Longer strings are sampled.
const LONGEST_EXACT: f64 = 20.0;
/// A volume below this is small.
const SMALL: f64 = 0.05;

const LENGTHS: &str = "Left: average sensitivity of networks with random weights against input length, outputs cut at their median, so that \
    half of all strings are 1 (log scales); grey: a random function, n / 2. Right: the mean degree of their outputs as they are, as_{n} over \
    the variance (Eq. 17), which no cut and no scale changes. Means over random weights and their 95 % intervals.";
const LOWER: &str = "Section 6, with Bhattamishra et al. (2023): random transformers have low average sensitivity, lower than recurrent \
    networks.";
const PROFILES: &str = "Left: the fraction of the outputs' variance at each degree (log scale). Right: of all strings, the fraction that is \
    sensitive to so many of its bits (the sensitivity profile), outputs cut at their median. Means over random weights.";
const SIZES: &str = "Left: average sensitivity of random transformers against their number of layers. Right: against the scale of the initial \
    weights, 1 being the usual initialisation. Means over random weights and their 95 % intervals.";
const VOLUME: &str = "Left: the fraction of random weights whose network has an average sensitivity above c n, against c. Right: the fraction \
    of neighbours of trained transformers, whose weights all got normal noise of standard deviation ρ, with an average sensitivity above \
    n / 4, with Wilson's 95 % intervals (those on the left are in the table).";
const SMALL_VOLUME: &str = "Section 6 from Eq. 70: transformers of high sensitivity can only inhabit a small volume in parameter space, and \
    the neighbours of a transformer on long inputs have low sensitivity whatever it computes.";

/// Networks that differ in their length and random weights alone.
struct Family<'a> {
    title: String,
    kind: String,
    style: Style,
    runs: Vec<&'a Run>,
}

impl<'a> Family<'a> {
    fn by_length(&self, measure: &str) -> Vec<(f64, Mean)> {
        means_by(&self.runs, "n", measure)
    }

    /// The lengths at which there are networks.
    fn lengths(&self) -> Vec<f64> {
        different_numbers(self.runs.iter().filter_map(|run| run.number("n")))
    }

    fn at(&self, n: f64) -> impl Iterator<Item = &'a Run> {
        self.runs.iter().copied().filter(move |run| run.number("n") == Some(n))
    }

    /// The mean over networks of length n of the fractions that `of` gives, as far as all have them.
    fn fractions(&self, n: f64, of: impl Fn(&Run) -> Vec<f64>) -> Vec<(f64, Mean)> {
        let all: Vec<Vec<f64>> = self.at(n).map(of).filter(|fractions| !fractions.is_empty()).collect();
        let places = all.iter().map(Vec::len).min().unwrap_or(0);
        let at = |place: usize| mean(&all.iter().map(|fractions| fractions[place]).collect::<Vec<_>>());
        (0..places).filter_map(|place| Some((place as f64, at(place)?))).collect()
    }

    /// The fraction of its networks of length n whose average sensitivity is above c n.
    fn volume(&self, n: f64, c: f64) -> Option<Share> {
        let found: Vec<f64> = self.at(n).filter_map(|run| run.value("average_sensitivity")).collect();
        share(&found, c * n)
    }
}

fn share(values: &[f64], above: f64) -> Option<Share> {
    let high = values.iter().filter(|value| **value > above).count();
    (!values.is_empty()).then(|| Share::of(high as u64, values.len() as u64, false))
}

fn as_mean(share: &Share) -> Mean {
    Mean { mean: share.share, std_error: 0.0, low: share.low, high: share.high, count: share.tried as usize }
}

const SCALE: ScaleWords = ScaleWords {
    paper: "The sizes are ours, chosen before any result was seen: the paper has no such experiment.",
    other: "Small networks and short inputs, chosen before any result was seen, to show the effect on two CPU cores in minutes. The paper has no such experiment.",
};

/// `hahn/random-initialization`.
pub fn findings(sweep: &Sweep) -> Findings {
    let untrained: Vec<&Run> = sweep.finished().filter(|run| run.number("train.steps") == Some(0.0)).collect();
    let cuts = different(untrained.iter().map(|run| run.text("measure.cut")));
    let main = if cuts.iter().any(|cut| cut == "median") {
        "median".to_string()
    } else {
        cuts.first().cloned().unwrap_or_default()
    };
    let cut: Vec<&Run> = untrained.iter().copied().filter(|run| run.text("measure.cut") == main).collect();
    let usual: Vec<&Run> = cut.iter().copied().filter(|run| scale_of(run) == 1.0).collect();
    let families = families(&usual);
    let mut findings = Findings { scale: SCALE, ..Findings::default() };
    findings.figures.push(Drawn::new(
        "initial-sensitivity",
        "Sensitivity at initialisation",
        LENGTHS,
        LOWER,
        lengths(&families),
    ));
    if let Some(n) = profile_length(&families) {
        let title = format!("Degrees and strings at n = {n}");
        findings.figures.push(Drawn::new("initial-profiles", &title, PROFILES, "", profiles(&families, n)));
    }
    findings.figures.push(Drawn::new("initial-sizes", "Layers and scales", SIZES, "", sizes(&families, &cut)));
    let trained: Vec<&Run> = sweep.finished().filter(|run| run.number("train.steps") != Some(0.0)).collect();
    let volumes = volumes(&trained);
    let n = most_networks(&families.iter().collect::<Vec<_>>());
    findings.figures.push(Drawn::new(
        "volume",
        "The volume of high sensitivity",
        VOLUME,
        SMALL_VOLUME,
        volume(&families, n, &volumes),
    ));
    findings.tables.push(table(&families));
    findings.tables.extend(zero_table(&untrained));
    findings.tables.extend((!volumes.is_empty()).then(|| volume_table(&volumes)));
    findings.claims = vec![lower(&families), small(&families), neighbours(&trained, &volumes)];
    let numbers = |family: &Family| -> Value {
        let of = |measure: &str| -> Map<String, Value> {
            family.by_length(measure).into_iter().map(|(n, mean)| (n.to_string(), json!(mean))).collect()
        };
        let high = family.by_length("average_sensitivity").into_iter();
        let high: Map<String, Value> = high.map(|(n, _)| (n.to_string(), json!(family.volume(n, HIGH)))).collect();
        json!({ "average_sensitivity": of("average_sensitivity"), "mean_degree": of("mean_degree"), "degree_one": of("degree_one"),
            "sensitivity_min": of("sensitivity_min"), "sensitivity_max": of("sensitivity_max"), "above_a_quarter_of_n": high })
    };
    let summary: Map<String, Value> = families.iter().map(|family| (family.title.clone(), numbers(family))).collect();
    findings.summary.insert("by_network".into(), summary.into());
    findings.summary.insert("neighbours".into(), volumes.iter().map(Volume::summary).collect());
    findings
}

/// The scale of the initial weights; 1 where there is no such setting.
fn scale_of(run: &Run) -> f64 {
    run.number("model.init_scale").unwrap_or(1.0)
}

/// A kind of network for people.
pub(super) fn kind_title(kind: &str) -> String {
    match kind {
        "encoder" => "transformer".into(),
        "mlp" => "perceptron".into(),
        "lstm" | "gru" => kind.to_uppercase(),
        "ssm" => "state space".into(),
        other => other.into(),
    }
}

/// What a network is called: of transformers, with their layers where these differ; of state-space models, whether eigenvalues may be
/// negative.
fn title(run: &Run, several: bool) -> String {
    let (kind, layers) = (run.text("model.kind"), run.number("model.layers").unwrap_or(0.0) as usize);
    match (kind.as_str(), several, run.text("model.eigenvalues").as_str()) {
        ("encoder", true, _) => format!("transformer, {}", counted(layers, "layer")),
        ("ssm", _, "signed") => "state space, signed".into(),
        (kind, ..) => kind_title(kind),
    }
}

fn families<'a>(runs: &[&'a Run]) -> Vec<Family<'a>> {
    let encoders = runs.iter().filter(|run| run.text("model.kind") == "encoder");
    let several = different(encoders.map(|run| run.text("model.layers"))).len() > 1;
    let titles = different(runs.iter().map(|run| title(run, several)));
    let family = |(place, name): (usize, String)| {
        let own: Vec<&Run> = runs.iter().copied().filter(|run| title(run, several) == name).collect();
        Family { kind: own[0].text("model.kind"), runs: own, style: point(place), title: name }
    };
    titles.into_iter().enumerate().map(family).collect()
}

/// Those that are known at several lengths, which is what comparing architectures needs; all where none are.
fn at_several_lengths<'a, 'b>(families: &'b [Family<'a>]) -> Vec<&'b Family<'a>> {
    let several: Vec<&Family> = families.iter().filter(|family| family.lengths().len() > 1).collect();
    if several.is_empty() { families.iter().collect() } else { several }
}

fn series(family: &Family, curve: &[(f64, Mean)]) -> Vec<Mark> {
    let name = |mean: &Mean| format!("{}: mean of {}", family.title, counted(mean.count, "network"));
    let points = curve.iter().map(|(x, mean)| Point::mean(*x, mean, name(mean)));
    let symbols = Mark::points(points, family.style.clone().sized(2.6));
    band_and_line(curve, &family.style.colour, 1, 0).into_iter().chain([symbols]).collect()
}

/// The same without intervals, where many networks are side by side.
fn without_band(family: &Family, curve: &[(f64, Mean)]) -> Vec<Mark> {
    series(family, curve).split_off(1)
}

fn legend<'a>(families: impl IntoIterator<Item = &'a Family<'a>>) -> Vec<(String, Style)> {
    families.into_iter().map(|family| (family.title.clone(), family.style.clone())).collect()
}

fn grey() -> Style {
    Style::line("#777777").faint(0.8)
}

fn lengths(families: &[Family]) -> Figure {
    let shown = at_several_lengths(families);
    let mut panels = Vec::new();
    for (measure, label, name) in [
        ("average_sensitivity", "average sensitivity", "Outputs cut at their median"),
        ("mean_degree", "mean degree", "Outputs as they are"),
    ] {
        let mut marks: Vec<Mark> = shown.iter().flat_map(|family| series(family, &family.by_length(measure))).collect();
        if measure == "average_sensitivity" {
            let lengths = shown.iter().flat_map(|family| family.by_length(measure)).map(|(n, _)| n);
            let (least, most) =
                lengths.fold((f64::MAX, 0.0), |(least, most), n| (f64::min(least, n), f64::max(most, n)));
            if most > 0.0 {
                marks.insert(0, Mark::line([(least, least / 2.0), (most, most / 2.0)], grey()));
            }
        }
        panels.push(Panel { title: name.into(), x: Axis::log("input length n"), y: Axis::log(label), marks });
    }
    let mut legend: Vec<(String, Style)> =
        shown.iter().map(|family| (family.title.clone(), family.style.clone())).collect();
    legend.push(("random function".into(), grey()));
    Figure { panels, columns: 2, legend, ..Figure::default() }
}

/// The longest strings of which the most kinds of networks have a degree profile.
fn profile_length(families: &[Family]) -> Option<f64> {
    let has = |family: &Family, n: f64| family.at(n).any(|run| !degrees(run).is_empty());
    let lengths = different_numbers(families.iter().flat_map(Family::lengths));
    let known = lengths.into_iter().map(|n| (families.iter().filter(|family| has(family, n)).count(), n));
    known.filter(|(count, _)| *count > 0).max_by(|a, b| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1))).map(|(_, n)| n)
}

/// Fractions of the variance at degrees 0 (nothing), 1, 2, ...
fn degrees(run: &Run) -> Vec<f64> {
    let mut weights: Vec<f64> =
        run.profile("sensitivity.real_degree_profile").iter().map(|weight| weight.mean).collect();
    let variance: f64 = weights.iter().skip(1).sum();
    if variance <= 0.0 {
        return Vec::new();
    }
    weights[0] = 0.0;
    weights.into_iter().map(|weight| weight / variance).collect()
}

fn strings(run: &Run) -> Vec<f64> {
    let counts: Vec<f64> = run.profile("sensitivity.histogram").iter().map(|count| count.mean).collect();
    let all: f64 = counts.iter().sum();
    counts.into_iter().map(|count| count / all).collect()
}

fn profiles(families: &[Family], n: f64) -> Figure {
    let mut shown = at_several_lengths(families);
    shown.retain(|family| family.at(n).next().is_some());
    let panel = |title: &str, x: &str, y: Axis, of: fn(&Run) -> Vec<f64>, from: usize| Panel {
        title: title.into(),
        x: Axis::whole(x),
        y,
        marks: shown
            .iter()
            .flat_map(|family| without_band(family, &family.fractions(n, of).split_off(from.min(1))))
            .collect(),
    };
    let panels = vec![
        panel("Degree profile", "degree", Axis::log("fraction of the variance").within(1e-8, 1.0), degrees, 1),
        panel(
            "Sensitivity profile",
            "bits a string is sensitive to",
            Axis::fraction("fraction of strings"),
            strings,
            0,
        ),
    ];
    Figure { panels, columns: 2, legend: legend(shown), ..Figure::default() }
}

fn sizes(families: &[Family], cut: &[&Run]) -> Figure {
    let transformers: Vec<&Family> = families.iter().filter(|family| family.kind == "encoder").collect();
    let layers: Vec<&Run> = transformers.iter().flat_map(|family| family.runs.iter().copied()).collect();
    let by_layers = most_values(&layers, "model.layers");
    let title =
        by_layers.first().and_then(|run| run.number("n")).map_or(String::new(), |n| format!("Transformers, n = {n}"));
    let style = transformers.first().map_or(point(0), |family| family.style.clone());
    let curve = means_by(&by_layers, "model.layers", "average_sensitivity");
    let whole = Family { title: "transformer".into(), kind: String::new(), style, runs: Vec::new() };
    let left = Panel {
        title,
        x: Axis::whole("layers"),
        y: Axis::linear("average sensitivity"),
        marks: series(&whole, &curve),
    };
    let scaled: Vec<&Run> = most_values(cut, "model.init_scale");
    let n = scaled.first().and_then(|run| run.number("n")).unwrap_or(0.0);
    let of_scale = |family: &Family| -> Vec<(f64, Mean)> {
        let alike = |run: &&Run| family.runs.first().is_some_and(|one| same_network(one, run));
        means_by(&scaled.iter().copied().filter(alike).collect::<Vec<_>>(), "model.init_scale", "average_sensitivity")
    };
    let shown: Vec<(&Family, Vec<(f64, Mean)>)> =
        families.iter().map(|family| (family, of_scale(family))).filter(|(_, curve)| curve.len() > 1).collect();
    let right = Panel {
        title: format!("All networks, n = {n}"),
        x: Axis::log("scale of the initial weights"),
        y: Axis::linear("average sensitivity"),
        marks: shown.iter().flat_map(|(family, curve)| series(family, curve)).collect(),
    };
    let legend = legend(shown.iter().map(|(family, _)| *family));
    Figure { panels: vec![left, right], columns: 2, legend, ..Figure::default() }
}

/// Whether two networks differ at most in the scale of their weights, their length and their seed.
fn same_network(one: &Run, other: &Run) -> bool {
    ["model.kind", "model.layers", "model.d", "model.eigenvalues"].iter().all(|key| one.text(key) == other.text(key))
}

/// The runs of the length at which a setting has the most values.
fn most_values<'a>(runs: &[&'a Run], key: &str) -> Vec<&'a Run> {
    let at = |n: f64| runs.iter().copied().filter(move |run| run.number("n") == Some(n));
    let lengths = different_numbers(runs.iter().filter_map(|run| run.number("n")));
    let values = |n: f64| different(at(n).map(|run| run.text(key))).len();
    lengths.into_iter().max_by_key(|n| values(*n)).map_or(Vec::new(), |n| at(n).collect())
}

/// The length at which the most networks are.
fn most_networks(families: &[&Family]) -> f64 {
    let count = |n: f64| families.iter().map(|family| family.at(n).count()).sum::<usize>();
    let lengths = different_numbers(families.iter().flat_map(|family| family.lengths()));
    lengths.into_iter().max_by(|a, b| count(*a).cmp(&count(*b)).then(a.total_cmp(b))).unwrap_or(0.0)
}

/// The neighbours of the networks that learnt one function, under one noise.
struct Volume {
    target: String,
    n: f64,
    rho: f64,
    /// Average sensitivities.
    found: Vec<f64>,
    networks: usize,
}

impl Volume {
    fn share(&self) -> Option<Share> {
        share(&self.found, HIGH * self.n)
    }

    fn summary(&self) -> Value {
        json!({ "target": self.target, "n": self.n, "rho": self.rho, "networks": self.networks,
            "average_sensitivity": mean(&self.found), "above_a_quarter_of_n": self.share() })
    }
}

/// Those of all networks that have learnt their function.
fn volumes(trained: &[&Run]) -> Vec<Volume> {
    let mut all: Vec<Volume> = Vec::new();
    for run in trained.iter().filter(|run| run.is_converged()) {
        let rho = |place: usize| run.value(&format!("volume.{place}.rho"));
        for (place, rho) in (0..).map_while(|place| Some((place, rho(place)?))) {
            let own = run.profile(&format!("volume.{place}.average_sensitivities"));
            let found: Vec<f64> = own.iter().map(|one| one.mean).collect();
            let (target, n) = (run.text("target"), run.number("n").unwrap_or(0.0));
            match all.iter_mut().find(|one| (&one.target, one.n, one.rho) == (&target, n, rho)) {
                Some(known) => {
                    known.found.extend(found);
                    known.networks += 1;
                }
                None => all.push(Volume { target, n, rho, found, networks: 1 }),
            }
        }
    }
    all
}

fn volume(families: &[Family], n: f64, volumes: &[Volume]) -> Figure {
    let mut shown = at_several_lengths(families);
    shown.retain(|family| family.at(n).count() > 1);
    let curve = |family: &Family| -> Vec<(f64, Mean)> {
        let fractions = (0..=24).map(|step| f64::from(step) / 40.0);
        fractions.filter_map(|c| Some((c, as_mean(&family.volume(n, c)?)))).collect()
    };
    let left = Panel {
        title: format!("Random weights, n = {n}"),
        x: Axis::linear("c"),
        y: Axis::fraction("fraction above c n"),
        marks: shown.iter().flat_map(|family| without_band(family, &curve(family))).collect(),
    };
    let targets = different(volumes.iter().map(|volume| (volume.target.clone(), volume.n.to_bits())));
    let mut marks = Vec::new();
    let mut legend = legend(shown);
    for (place, (target, n)) in targets.iter().enumerate() {
        let style = point(place + families.len());
        let own = volumes.iter().filter(|volume| volume.target == *target && volume.n.to_bits() == *n);
        let curve: Vec<(f64, Mean)> = own.filter_map(|volume| Some((volume.rho, as_mean(&volume.share()?)))).collect();
        marks.extend(band_and_line(&curve, &style.colour, 1, 0));
        let name = format!("{} trained, n = {}", title_of(target), f64::from_bits(*n));
        marks.push(Mark::points(
            curve.iter().map(|(x, mean)| Point::mean(*x, mean, name.as_str())),
            style.clone().sized(2.6),
        ));
        legend.push((name, style));
    }
    let mut panels = vec![left];
    if !volumes.is_empty() {
        panels.push(Panel {
            title: "Neighbours of trained transformers".into(),
            x: Axis::log("standard deviation ρ of the noise"),
            y: Axis::fraction("fraction above n / 4"),
            marks,
        });
    }
    Figure { columns: panels.len(), panels, legend, ..Figure::default() }
}

fn table(families: &[Family]) -> Table {
    let mut rows = Vec::new();
    for family in families {
        for (n, sensitivity) in family.by_length("average_sensitivity") {
            let of = |measure: &str| {
                with_interval(mean(&family.at(n).filter_map(|run| run.value(measure)).collect::<Vec<_>>()))
            };
            let high = family.volume(n, HIGH);
            let high =
                high.map_or_else(|| Cell::from("–"), |share| Cell::within(share.share, Some((share.low, share.high))));
            rows.push(vec![
                family.title.as_str().into(),
                n.into(),
                with_count(Some(sensitivity)),
                of("mean_degree"),
                // Few strings tell little about one degree.
                if n > LONGEST_EXACT { Cell::from("–") } else { of("degree_one") },
                of("sensitivity_min"),
                of("sensitivity_max"),
                high,
            ]);
        }
    }
    Table {
        title: "Networks at initialisation".into(),
        head: head([
            "network",
            "n",
            "average sensitivity",
            "mean degree",
            "fraction at degree 1",
            "least sensitive string",
            "most sensitive string",
            "fraction above n / 4",
        ]),
        rows,
        note: "Outputs are cut at their median for average sensitivity and for strings: a random bias of the last layer would otherwise make most networks constant. Mean degree and the fraction at degree 1 are those of the outputs as they are. Up to n = 20 every string is tried, beyond a sample. Means over random weights with 95 % intervals; of the last column Wilson's.".into(),
    }
}

/// Cut at 0, as a sign is taken: how many networks are constant then.
fn zero_table(untrained: &[&Run]) -> Option<Table> {
    let zero: Vec<&Run> = untrained.iter().copied().filter(|run| run.text("measure.cut") == "zero").collect();
    let mut rows = Vec::new();
    for family in families(&zero) {
        for (n, sensitivity) in family.by_length("average_sensitivity") {
            let found: Vec<f64> = family.at(n).filter_map(|run| run.value("average_sensitivity")).collect();
            let constant = found.iter().filter(|value| **value == 0.0).count();
            rows.push(vec![
                family.title.as_str().into(),
                n.into(),
                with_count(Some(sensitivity)),
                format!("{constant} of {}", found.len()).as_str().into(),
            ]);
        }
    }
    (!rows.is_empty()).then(|| Table {
        title: "The same networks cut at 0".into(),
        head: head(["network", "n", "average sensitivity", "constant networks"]),
        rows,
        note: "Cut at 0, as the sign of an output is taken. Networks whose outputs have the same sign on all strings are constant, and of those that are not many are 1 on few strings: low sensitivity here is also that of a large bias.".into(),
    })
}

fn volume_table(volumes: &[Volume]) -> Table {
    let row = |volume: &Volume| {
        let high = volume.share();
        vec![
            title_of(&volume.target).as_str().into(),
            volume.n.into(),
            volume.rho.into(),
            with_count(mean(&volume.found)),
            high.map_or_else(|| Cell::from("–"), |share| Cell::within(share.share, Some((share.low, share.high)))),
            volume.networks.into(),
        ]
    };
    Table {
        title: "Neighbours of trained transformers".into(),
        head: head(["learnt", "n", "ρ", "average sensitivity of neighbours", "fraction above n / 4", "networks"]),
        rows: volumes.iter().map(row).collect(),
        note: "A neighbour is a network with normal noise of standard deviation ρ on all weights but the positional embeddings, as for sharpness. Networks that have not learnt their function are left out.".into(),
    }
}

/// Transformers, those with the most runs, beside each kind of recurrent network.
fn lower(families: &[Family]) -> Claim {
    let transformers = families.iter().filter(|family| family.kind == "encoder");
    let transformer = transformers.max_by_key(|family| (family.lengths().len(), family.runs.len()));
    let mut parts = Parts::default();
    let mut runs = transformer.map_or(0, |family| family.runs.len());
    for kind in ["lstm", "gru"] {
        let Some((transformer, other)) = transformer.zip(families.iter().find(|family| family.kind == kind)) else {
            continue;
        };
        let several = |long: bool| other.lengths().into_iter().any(|n| (n > LONGEST_EXACT) == long);
        for (long, name) in
            [(false, "n up to 20"), (true, "longer inputs")].into_iter().filter(|(long, _)| several(*long))
        {
            let found = over_lengths(other, transformer, |n| (n > LONGEST_EXACT) == long);
            parts.above(&format!("{} minus transformer, {name},", kind.to_uppercase()), found);
        }
        runs += other.runs.len();
    }
    parts.claim(
        "initial-sensitivity",
        LOWER,
        "At initialisation, are transformers less sensitive than LSTMs and GRUs?",
        runs,
    )
}

/// How much more sensitive one family is than another, in the mean over these lengths, where both are.
fn over_lengths(one: &Family, other: &Family, these: impl Fn(f64) -> bool) -> Option<Contrast> {
    let others = other.by_length("average_sensitivity");
    let pairs: Vec<(Mean, Mean)> = one
        .by_length("average_sensitivity")
        .into_iter()
        .filter(|(n, _)| these(*n))
        .filter_map(|(n, mean)| Some((mean, others.iter().find(|(m, _)| *m == n)?.1)))
        .collect();
    let weight = 1.0 / pairs.len() as f64;
    let terms = pairs.iter().flat_map(|(one, other)| [(weight, one.into()), (-weight, other.into())]);
    contrast(&terms.collect::<Vec<_>>())
}

/// The fraction of random transformers of high sensitivity, of all depths, at the length at which most of them are.
fn small(families: &[Family]) -> Claim {
    let mut parts = Parts::default();
    let transformers: Vec<&Family> = families.iter().filter(|family| family.kind == "encoder").collect();
    let n = most_networks(&transformers);
    let found: Vec<f64> = transformers
        .iter()
        .flat_map(|family| family.at(n))
        .filter_map(|run| run.value("average_sensitivity"))
        .collect();
    if let Some(share) = share(&found, HIGH * n) {
        parts.add(below(&share, SMALL), words(&format!("n = {n}, all depths:"), &share));
    }
    parts.claim(
        "volume",
        SMALL_VOLUME,
        "Do fewer than 5 % of random transformers have an average sensitivity above n / 4?",
        found.len(),
    )
}

/// Neighbours of networks that compute PARITY.
fn neighbours(trained: &[&Run], volumes: &[Volume]) -> Claim {
    let mut parts = Parts::default();
    let parity: Vec<&Volume> = volumes.iter().filter(|volume| volume.target == "parity").collect();
    let longest = parity.iter().map(|volume| volume.n).fold(0.0, f64::max);
    let noisiest = parity.iter().filter(|volume| volume.n == longest).max_by(|a, b| a.rho.total_cmp(&b.rho));
    if let Some((most, share)) = noisiest.and_then(|most| Some((most, most.share()?))) {
        parts.add(below(&share, 0.5), words(&format!("n = {}, ρ = {}:", most.n, most.rho), &share));
    }
    let runs = trained.iter().filter(|run| run.text("target") == "parity").count();
    parts.claim(
        "volume",
        SMALL_VOLUME,
        "Under the largest noise, do most neighbours of transformers that compute PARITY have an average sensitivity below n / 4?",
        runs,
    )
}

fn below(share: &Share, limit: f64) -> Decision {
    match share {
        share if share.high < limit => Decision::Agrees,
        share if share.low > limit => Decision::Disagrees,
        _ => Decision::CannotTell,
    }
}

fn words(name: &str, share: &Share) -> String {
    let Share { satisfied, tried, low, high, .. } = share;
    let low = if *satisfied == 0 { 0.0 } else { *low };
    format!("{name} {satisfied} of {tried}, a fraction of {} [{}, {}]", number(share.share), number(low), number(*high))
}
