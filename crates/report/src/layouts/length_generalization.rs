//! Trained on short inputs, tested on longer ones: accuracy and sensitivity by length.

use pudica_statistics::{Mean, Term, difference, mean};
use serde_json::{Map, Value, json};

use super::title_of;
use crate::claims::{Claim, Parts, apart};
use crate::figure::colour::point;
use crate::figure::{Axis, Figure, Mark, Panel, Point, Style};
use crate::findings::{Cell, Findings, ScaleWords, Table, counted, with_count};
use crate::group::{band_and_line, range_of};
use crate::run::Run;
use crate::sweep::{Sweep, different};

/// The accuracy of guessing.
const CHANCE: f64 = 0.5;

/// So far from it still counts as guessing.
const NEAR_CHANCE: f64 = 0.1;

/// One kind of network that learns one target.
struct Learner<'a> {
    target: String,
    network: String,
    /// The colour and symbol of the network.
    place: usize,
    /// Those that have learnt the lengths they were trained on.
    kept: Vec<&'a Run>,
    finished: usize,
}

impl Learner<'_> {
    /// A measure by length: the mean over runs.
    fn by_length(&self, measure: &str) -> Vec<(f64, Mean)> {
        let at = |(length, name): (usize, String)| {
            let mean = mean(&self.kept.iter().filter_map(|run| run.value(&name)).collect::<Vec<_>>())?;
            Some((length as f64, mean.within(range_of(&name))))
        };
        lengths(&self.kept, measure).into_iter().filter_map(at).collect()
    }

    fn accuracy_at(&self, length: f64) -> Option<Mean> {
        let values: Vec<f64> = self.kept.iter().filter_map(|run| run.value(&format!("accuracy_at_{length}"))).collect();
        mean(&values)
    }

    fn is_transformer(&self) -> bool {
        self.kept.iter().all(|run| is_transformer(run))
    }
}

/// The lengths at which these runs have a measure, rising, with the measure's name at each.
fn lengths(runs: &[&Run], measure: &str) -> Vec<(usize, String)> {
    let prefix = format!("{measure}_at_");
    let names = runs.iter().filter_map(|run| run.summary.as_ref()).flat_map(|summary| summary.measures.keys());
    let mut found: Vec<usize> = names.filter_map(|name| name.strip_prefix(&prefix)?.parse().ok()).collect();
    found.sort_unstable();
    found.dedup();
    found.into_iter().map(|length| (length, format!("{prefix}{length}"))).collect()
}

fn is_transformer(run: &Run) -> bool {
    run.text("model.kind") == "encoder"
}

/// What a network is called: a transformer by its positions, others by their kind; and whatever else was swept.
fn network(run: &Run, axes: &[String]) -> String {
    let name = match (is_transformer(run), run.text("model.position").as_str()) {
        (true, "") => "positions learned".into(), // the default, which is left out
        (true, position) => format!("positions {position}"),
        (false, _) => run.text("model.kind").to_uppercase(),
    };
    match run.words(axes).as_str() {
        "" => name,
        others => format!("{name}, {others}"),
    }
}

const SCALE: ScaleWords = ScaleWords {
    paper: "The recipe's full sizes, nothing changed; the paper does not run this.",
    other: "A smoke test: short inputs and little training, chosen to end in minutes on two CPU cores. The paper does not run this.",
};

/// `hahn/length-generalization`.
pub fn findings(sweep: &Sweep) -> Findings {
    let shown = ["target", "model.kind", "model.position", "n"];
    let mut axes = sweep.other_axes(&shown);
    // What one network has and another has not, and how long it takes to learn, tells them apart no further.
    axes.retain(|axis| !axis.starts_with("model.") && axis != "train.steps");
    let networks = different(sweep.runs.iter().map(|run| network(run, &axes)));
    let mut learners = Vec::new();
    for target in sweep.texts("target") {
        for (place, name) in networks.iter().enumerate() {
            let own = |run: &&Run| run.text("target") == target && network(run, &axes) == *name;
            learners.push(Learner {
                target: target.clone(),
                network: name.clone(),
                place,
                kept: sweep.kept().filter(own).collect(),
                finished: sweep.finished().filter(own).count(),
            });
        }
    }
    let mut findings = Findings { scale: SCALE, ..Findings::default() };
    let legend: Vec<(String, Style)> =
        networks.iter().enumerate().map(|(place, name)| (name.clone(), point(place))).collect();
    let trained = trained(sweep);
    let figure = |measure: &str, y: &dyn Fn() -> Axis, scaled: bool| Figure {
        panels: sweep
            .texts("target")
            .iter()
            .map(|target| panel(&learners, target, measure, y(), scaled, trained))
            .collect(),
        columns: 3,
        legend: legend.clone(),
        ..Figure::default()
    };
    findings.draw(
        "length-generalization",
        "",
        "Accuracy on lengths that were not trained on",
        "Accuracy against the length of inputs, of networks that have learnt the lengths they were trained on (grey): means over runs with 95 % intervals. Dashed, guessing.",
        figure("accuracy", &|| Axis::linear("accuracy").within(0.0, 1.04), false),
    );
    findings.draw(
        "length-sensitivity",
        "",
        "Sensitivity on lengths that were not trained on",
        "Average sensitivity of the learnt function divided by the length of inputs, against that length: 1 for PARITY, 1/n for FIRST, about 0.8/√n for MAJORITY, 0 for a constant answer. Grey: the lengths trained on.",
        figure("average_sensitivity", &|| Axis::linear("average sensitivity / n").within(0.0, 1.04), true),
    );
    findings.tables.extend(sweep.texts("target").iter().map(|target| table(&learners, target)));
    findings.claims = claims(&learners, trained);
    let summary: Map<String, Value> = sweep
        .texts("target")
        .into_iter()
        .map(|target| {
            let own = learners.iter().filter(|learner| learner.target == target);
            let networks: Map<String, Value> = own.map(|learner| (learner.network.clone(), summary(learner))).collect();
            (target, networks.into())
        })
        .collect();
    findings.summary.insert("by_target".into(), summary.into());
    findings
}

/// The shortest and the longest training strings.
fn trained(sweep: &Sweep) -> Option<(f64, f64)> {
    sweep.finished().find_map(|run| Some((run.value("train_lengths.0")?, run.value("train_lengths.1")?)))
}

fn summary(learner: &Learner) -> Value {
    let of = |measure: &str| -> Map<String, Value> {
        learner.by_length(measure).into_iter().map(|(length, mean)| (length.to_string(), json!(mean))).collect()
    };
    json!({
        "kept": learner.kept.len(), "finished": learner.finished, "accuracy": of("accuracy"), "loss": of("loss"),
        "average_sensitivity": of("average_sensitivity"),
    })
}

fn panel(
    learners: &[Learner],
    target: &str,
    measure: &str,
    y: Axis,
    per_bit: bool,
    trained: Option<(f64, f64)>,
) -> Panel {
    let mut marks = Vec::new();
    if let Some((first, last)) = trained {
        let points = [first, last].map(|length| (length, 0.0, 1.04)).to_vec();
        marks.push(Mark::Band { points, style: Style::line("#888888").faint(0.18) });
    }
    if !per_bit {
        marks.push(Mark::Level(CHANCE, String::new()));
    }
    for learner in learners.iter().filter(|learner| learner.target == target) {
        let scale = |(length, Mean { mean, std_error, low, high, count }): (f64, Mean)| {
            let by = if per_bit { length } else { 1.0 };
            let scaled = Mean { mean: mean / by, std_error: std_error / by, low: low / by, high: high / by, count };
            (length, scaled)
        };
        let curve: Vec<(f64, Mean)> = learner.by_length(measure).into_iter().map(scale).collect();
        let style = point(learner.place);
        marks.extend(band_and_line(&curve, &style.colour, 3, learner.finished));
        let name = |mean: &Mean| format!("{}: mean of {}", learner.network, counted(mean.count, "run"));
        marks.push(Mark::points(curve.iter().map(|(x, mean)| Point::mean(*x, mean, name(mean))), style.sized(2.6)));
    }
    Panel { title: title_of(target), x: Axis::whole("input length"), y, marks }
}

fn table(learners: &[Learner], target: &str) -> Table {
    let own: Vec<&Learner> = learners.iter().filter(|learner| learner.target == target).collect();
    let runs: Vec<&Run> = own.iter().flat_map(|learner| learner.kept.iter().copied()).collect();
    let lengths: Vec<usize> = lengths(&runs, "accuracy").into_iter().map(|(length, _)| length).collect();
    let row = |learner: &&Learner| {
        let curve = learner.by_length("accuracy");
        let at = |length: &usize| with_count(curve.iter().find(|(x, _)| *x == *length as f64).map(|(_, mean)| *mean));
        let learnt = format!("{} of {}", learner.kept.len(), learner.finished);
        [Cell::from(learner.network.as_str()), learnt.into()].into_iter().chain(lengths.iter().map(at)).collect()
    };
    let heads = lengths.iter().map(|length| format!("{length} bits"));
    Table {
        title: format!("{}: accuracy by length", title_of(target)),
        head: ["network", "learnt"].map(String::from).into_iter().chain(heads).collect(),
        rows: own.iter().map(row).collect(),
        note: "Means over the runs that have learnt the lengths they were trained on, with 95 % intervals.".into(),
    }
}

/// Section 6, Length Generalization, and what Section 1 and 3 say of other functions and other networks.
fn claims(learners: &[Learner], trained: Option<(f64, f64)>) -> Vec<Claim> {
    let Some((_, longest_trained)) = trained else { return none_yet(learners) };
    let runs: Vec<&Run> = learners.iter().flat_map(|learner| learner.kept.iter().copied()).collect();
    let Some((longest, _)) = lengths(&runs, "accuracy").pop() else { return none_yet(learners) };
    let (twice, longest) = (2.0 * longest_trained, longest as f64);
    let of = |target: &str| -> Vec<&Learner> {
        learners.iter().filter(|learner| learner.target == target && !learner.kept.is_empty()).collect()
    };
    let count = |all: &[&Learner]| all.iter().map(|learner| learner.kept.len()).sum::<usize>();
    let parity: Vec<&Learner> = of("parity").into_iter().filter(|learner| learner.is_transformer()).collect();
    let guess = Term { value: CHANCE, std_error: 0.0, freedom: f64::INFINITY };
    let mut falls = Parts::default();
    for learner in &parity {
        let found = learner.accuracy_at(longest).and_then(|mean| difference(&mean, guess));
        falls.about(&format!("{}, accuracy at {longest} bits minus 1/2,", learner.network), found, NEAR_CHANCE);
    }
    let mut others = Parts::default();
    let mut compared = parity.clone();
    for target in ["majority", "first"] {
        for learner in of(target).into_iter().filter(|learner| learner.is_transformer()) {
            let Some(sensitive) = parity.iter().find(|other| other.network == learner.network) else { continue };
            let name = format!("{}, {} minus PARITY at {twice} bits,", learner.network, title_of(target));
            others.above(&name, apart(learner.accuracy_at(twice), sensitive.accuracy_at(twice)));
            compared.push(learner);
        }
    }
    let mut recurrent = Parts::default();
    let recurrents: Vec<&Learner> = of("parity").into_iter().filter(|learner| !learner.is_transformer()).collect();
    for own in &recurrents {
        for learner in &parity {
            let name = format!("{} minus {} at {longest} bits,", own.network, learner.network);
            recurrent.above(&name, apart(own.accuracy_at(longest), learner.accuracy_at(longest)));
        }
    }
    vec![
        falls.claim("length-generalization", FALLS.0, FALLS.1, count(&parity)),
        others.claim("length-generalization", OTHERS.0, OTHERS.1, count(&compared)),
        recurrent.claim("length-generalization", RECURRENT.0, RECURRENT.1, count(&recurrents) + count(&parity)),
    ]
}

/// What is published, and the question.
const FALLS: (&str, &str) = (
    "Section 6: despite the existence of transformers that generalise to all lengths, transformers struggle with length generalization for PARITY.",
    "Do transformers that have learnt PARITY on short inputs guess, within 0.1, on inputs four times as long?",
);
const OTHERS: (&str, &str) = (
    "Section 3: for MAJORITY transformers show good length generalization; for functions of low sensitivity the theory predicts no obstacle.",
    "Are transformers more accurate on MAJORITY and FIRST than on PARITY, on inputs twice as long as those trained on, whatever their positions?",
);
const RECURRENT: (&str, &str) = (
    "Section 1: recurrent models easily fit PARITY with correct length generalization.",
    "Is a recurrent network more accurate on PARITY than transformers on inputs four times as long as those trained on?",
);

/// The questions, where no run has learnt anything yet.
fn none_yet(learners: &[Learner]) -> Vec<Claim> {
    let runs = learners.iter().map(|learner| learner.finished).sum();
    let claim = |(published, question)| Parts::default().claim("length-generalization", published, question, runs);
    [FALLS, OTHERS, RECURRENT].map(claim).into()
}
