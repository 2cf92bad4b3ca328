//! `vasudeva/synthetic`: which tokens one attention layer uses.

use pudica_lab::Kind;
use pudica_statistics::{Contrast, Mean, Range, mean};
use serde_json::{Map, Value, json};

use crate::claims::{Claim, Decision, Parts, single};
use crate::figure::colour::PALETTE;
use crate::figure::{Axis, Figure, Mark, Panel, Style};
use crate::findings::{Cell, Drawn, Findings, ScaleWords, Table, head, plain, with_error};
use crate::group::{Group, band_and_line};
use crate::published::{in_figure_2, predictor_sensitivity, trend};
use crate::run::Run;
use crate::sweep::Sweep;

/// A data setting: its runs, and its two predictors.
struct Setting<'a> {
    group: Group<'a>,
    /// n_s, n_f, n_d and m.
    task: [usize; 4],
    /// M: different tokens.
    vocabulary: usize,
}

impl Setting<'_> {
    fn new(group: Group<'_>) -> Setting<'_> {
        let numbers: Vec<usize> = group.text("data").split(':').filter_map(|number| number.parse().ok()).collect();
        let at = |place: usize| numbers.get(place).copied().unwrap_or(0);
        Setting { group, task: [0, 1, 2, 3].map(at), vocabulary: at(4) }
    }

    /// The sensitivity of the predictor that uses one kind of token only; `None` until a run has finished.
    fn predictor(&self, kind: &str, detail: &str) -> Option<Mean> {
        self.group.same(&format!("predictor_{kind}{detail}"))
    }

    /// The less sensitive of the two predictors.
    fn less_sensitive(&self) -> Option<&'static str> {
        let [sparse, frequent] = PREDICTORS.map(|kind| self.predictor(kind, ""));
        Some(if sparse?.mean < frequent?.mean { "sparse" } else { "frequent" })
    }

    /// The mean over finished runs of a number of each, to be compared with 0.
    fn over_runs(&self, of: impl Fn(&Run) -> Option<f64>) -> Option<Contrast> {
        let finished = self.group.runs.iter().filter(|run| run.is_finished());
        mean(&finished.filter_map(|run| of(run)).collect::<Vec<_>>()).as_ref().and_then(single)
    }

    /// By how much OOD accuracy is on the side of 1/2 that the use of one kind of token puts it on: 0 for sparse ones, 1 for frequent ones.
    /// Where all runs have 0 or 1, the number of sequences says how sure that is.
    fn ood_beyond_half(&self, kind: &str) -> Option<Contrast> {
        let finished: Vec<&&Run> = self.group.runs.iter().filter(|run| run.is_finished()).collect();
        let accuracies: Vec<f64> = finished.iter().filter_map(|run| run.value("ood_accuracy")).collect();
        let sequences = self.group.number("eval.sequences").unwrap_or(0.0) as u64 * accuracies.len() as u64;
        let Mean { mean, std_error, low, high, count } =
            mean(&accuracies)?.within(Range::Fraction).of_cases(sequences.max(1));
        if count == 1 && low == high {
            return None;
        }
        let (value, low, high) = match kind {
            "frequent" => (mean - 0.5, low - 0.5, high - 0.5),
            _ => (0.5 - mean, 0.5 - high, 0.5 - low),
        };
        // The interval decides; its probability is not asked for.
        Some(Contrast { value, std_error, low, high, p: f64::NAN, freedom: f64::INFINITY })
    }

    fn published(&self, kind: &str) -> Option<f64> {
        let (sparse, frequent) =
            predictor_sensitivity(self.task).filter(|_| self.group.number("length") == Some(50.0))?;
        Some(if kind == "sparse" { sparse } else { frequent })
    }

    fn json(&self) -> Value {
        let [n_s, n_f, n_d, m] = self.task;
        let length = self.group.first().settings.get("length");
        json!({"length": length, "vocabulary": self.vocabulary, "n_s": n_s, "n_f": n_f, "n_d": n_d, "m": m})
    }
}

const PREDICTORS: [&str; 2] = ["sparse", "frequent"];

/// The columns of the table of trained layers.
const SHOWN: [&str; 9] = [
    "ood_accuracy",
    "train_accuracy",
    "test_accuracy",
    "alignment_sparse",
    "alignment_frequent",
    "attention_sparse",
    "attention_frequent",
    "attention_irrelevant",
    "sensitivity",
];

const SCALE: ScaleWords = ScaleWords {
    paper: "All published settings. The paper does not state M, the loss, the learning rate, the start, the epochs and the number of runs: those are ours.",
    other: "A smoke test: fewer settings, runs or epochs than the paper. Where it disagrees with the paper, that may be its size.",
};

/// Figures 2 and 10, Tables 1 and 3, and the layer at the end.
pub fn findings(sweep: &Sweep) -> Findings {
    let title = |data: String| {
        let numbers: Vec<&str> = data.split(':').take(4).collect();
        format!("({})", numbers.join(", "))
    };
    let settings: Vec<Setting> = sweep.groups(|run| title(run.text("data"))).into_iter().map(Setting::new).collect();
    let predictors: Value =
        settings.iter().flat_map(|setting| PREDICTORS.map(|kind| predictor(setting, kind))).collect();
    let trained: Value = settings.iter().map(|setting| trained(sweep, setting)).collect();
    Findings {
        figures: figures(&settings),
        tables: vec![predictor_table(sweep, &settings), trained_table(sweep, &settings)],
        summary: Map::from_iter([("predictors".to_string(), predictors), ("trained".to_string(), trained)]),
        claims: claims(&settings),
        scale: SCALE,
        ..Findings::default()
    }
}

/// Section 4: which tokens the layer uses, by accuracy where they disagree, by alignment and by attention; and the predictors' sensitivities.
fn claims(settings: &[Setting]) -> Vec<Claim> {
    let (mut used, mut aligned, mut attended) = (Parts::default(), Parts::default(), Parts::default());
    let mut runs = 0;
    for setting in settings {
        let Some(kind) = setting.less_sensitive() else { continue };
        let label = format!("{} {kind}", setting.group.label);
        runs += setting.group.runs.len();
        used.above(&label, setting.ood_beyond_half(kind));
        aligned.above(&label, setting.over_runs(|run| lead(run, "alignment", kind)));
        attended.above(&label, setting.over_runs(|run| lead(run, "attention", kind)));
    }
    let figure = "fig2";
    let mut claims = vec![
        used.claim(
            figure,
            "Where sparse tokens are less sensitive, OOD accuracy drops to 0; where frequent ones are, it stays high: the layer uses the less sensitive tokens.",
            "Does the layer use the less sensitive tokens (OOD accuracy on their side of 1/2, by how much)?",
            runs,
        ),
        aligned.claim(
            figure,
            "Alignment is close to 1 with the direction of the tokens that are used.",
            "Is alignment with the less sensitive tokens larger than with the others, run by run?",
            runs,
        ),
        attended.claim(
            figure,
            "Attention is highest on the tokens that are used.",
            "Is attention to the less sensitive tokens larger than to each other kind, run by run?",
            runs,
        ),
    ];
    let mut exact = Parts::default();
    for setting in settings {
        for kind in PREDICTORS {
            let (Some(published), Some(found)) = (setting.published(kind), setting.predictor(kind, "")) else {
                continue;
            };
            let equal = (published - found.mean).abs() < 0.5e-4 + 1e-12;
            let decision = if equal { Decision::Agrees } else { Decision::Disagrees };
            exact.add(decision, format!("{} {kind} {:.4} (published {published:.4})", setting.group.label, found.mean));
        }
    }
    claims.push(exact.claim(
        "",
        "Tables 1 and 3: the sensitivities of the predictors that use one kind of token only.",
        "Are the predictors' sensitivities, in closed form, those of Tables 1 and 3 to four digits?",
        runs,
    ));
    claims
}

/// How much larger a measure of one kind of token is than of the largest other kind.
fn lead(run: &Run, measure: &str, kind: &str) -> Option<f64> {
    let value = |kind: &str| run.value(&format!("{measure}_{kind}"));
    let others = ["sparse", "frequent", "irrelevant"].into_iter().filter(|other| *other != kind).filter_map(value);
    Some(value(kind)? - others.reduce(f64::max)?)
}

fn predictor(setting: &Setting, kind: &str) -> Value {
    let of = |detail: &str| setting.predictor(kind, detail).map(|found| found.mean);
    let simulated = setting.predictor(kind, "_simulated");
    json!({
        "task": setting.json(), "predictor": kind, "exact": of(""), "exact_ties_keep": of("_ties_keep"),
        "simulated": simulated.map(|found| json!({"mean": found.mean, "std_error": found.std_error})),
    })
}

/// The last value of each measure of the layer; its predictors have a table of their own.
fn trained(sweep: &Sweep, setting: &Setting) -> Value {
    let of_layer = |name: &&&str| **name != "epoch" && !name.ends_with('*');
    let measures = Kind::find(&sweep.record.kind).map_or(&[][..], |kind| kind.measures);
    let last = measures.iter().filter(of_layer).map(|name| (name.to_string(), json!(setting.group.value(name))));
    let last: Map<String, Value> = last.collect();
    json!({"data": setting.json(), "less_sensitive_predictor": setting.less_sensitive(), "final": last})
}

const TRAINED: &str = "Means over runs ± one standard error. OOD accuracy is 0 for a layer that uses sparse tokens only and 1 for one \
    that uses frequent tokens only.";

/// Tables 1 and 3.
fn predictor_table(sweep: &Sweep, settings: &[Setting]) -> Table {
    let mut rows = Vec::new();
    for setting in settings {
        for kind in PREDICTORS {
            let exact = |detail| plain(setting.predictor(kind, detail));
            rows.push(vec![
                setting.group.label.clone().into(),
                setting.vocabulary.into(),
                format!("{kind} only").into(),
                exact(""),
                with_error(setting.predictor(kind, "_simulated")),
                exact("_ties_keep"),
                setting.published(kind).into(),
            ]);
        }
    }
    let mut names = head([
        "(n_{s}, n_{f}, n_{d}, m)",
        "M",
        "predictor",
        "closed form",
        "simulated",
        "closed form, ties kept",
        "published",
    ]);
    if !sweep.is_builtin() {
        names.pop();
        rows.iter_mut().for_each(|row: &mut Vec<Cell>| drop(row.pop()));
    }
    Table {
        title: sweep.titled("Tables 1 and 3", "Sensitivity of the predictors that use one kind of token"),
        head: names,
        rows,
        note: "Closed form: Definition 4.3, where sign(0) is neither label, so that a tie is a change; the last column does not count ties. \
               Simulated: random sequences and replacements, ± one standard error over sequences. The paper does not state M: 59 gives \
               its first half to every digit; its 0.0339 would need M = 69, too few for m = 36."
            .into(),
    }
}

fn trained_table(sweep: &Sweep, settings: &[Setting]) -> Table {
    // The error of one run is over inputs, not over runs.
    let cell =
        |mean: Option<Mean>| if mean.is_some_and(|mean| mean.count == 1) { plain(mean) } else { with_error(mean) };
    let row = |setting: &Setting| {
        let group = &setting.group;
        let cells = SHOWN.iter().map(|name| cell(group.value(name)));
        let names = [group.label.clone().into(), setting.less_sensitive().into()];
        names.into_iter().chain(cells).chain([group.runs.len().into()]).collect()
    };
    let names = SHOWN.iter().map(|name| name.replace('_', " ").replace("ood", "OOD"));
    let head = head(["(n_{s}, n_{f}, n_{d}, m)", "less sensitive"]).into_iter().chain(names).chain(["runs".into()]);
    Table {
        title: "The layer at the end of training".into(),
        head: head.collect(),
        rows: settings.iter().map(row).collect(),
        note: match sweep.is_builtin() {
            true => format!(
                "{TRAINED} Published: near 0 where sparse tokens are less sensitive, high where frequent ones are; alignment \
                near 1 and most attention on the tokens that are used."
            ),
            false => TRAINED.into(),
        },
    }
}

const CAPTION: &str = "Columns are data settings (n_{s}, n_{f}, n_{d}, m). From top to bottom: fraction of right labels; cosine of the rows of \
    U W_{v}^{T} with v_{sp}, v_{freq} and v_{irrel}; attention to the tokens of each kind; sensitivity on the training set (Definition 4.3, all \
    replacements). Lines are means over runs, bands their 95 % intervals where there are three or more. Dashed: the predictors that use one kind of token only.";

/// A curve: its title, its place in the palette, and its name.
type Curve = (&'static str, usize, &'static str);

const ACCURACIES: [Curve; 3] = [
    ("training set", 6, "train_accuracy"),
    ("test set", 1, "test_accuracy"),
    ("sparse tokens of the other label (OOD)", 0, "ood_accuracy"),
];
const ALIGNMENTS: [Curve; 3] = [
    ("sparse", 3, "alignment_sparse"),
    ("frequent", 2, "alignment_frequent"),
    ("irrelevant", 4, "alignment_irrelevant"),
];
const ATTENTIONS: [Curve; 3] = [
    ("sparse", 3, "attention_sparse"),
    ("frequent", 2, "attention_frequent"),
    ("irrelevant", 4, "attention_irrelevant"),
];
const SENSITIVITY: [Curve; 1] = [("sensitivity", 5, "sensitivity")];

/// Figure 2 for its two settings, and Figure 10 in two halves where there are others.
fn figures(settings: &[Setting]) -> Vec<Drawn> {
    let some = |keep: &dyn Fn(&Setting) -> bool| settings.iter().filter(|setting| keep(setting)).collect::<Vec<_>>();
    let of_figure_2 = some(&|setting| in_figure_2(setting.task));
    let all_in_figure_2 = of_figure_2.len() == settings.len();
    let mut figures = vec![("fig2", "Figure 2", "Which tokens the layer uses", of_figure_2)];
    if !all_in_figure_2 {
        let where_lower = |kind: &str| some(&|setting| setting.less_sensitive() == Some(kind));
        let [top, bottom] = PREDICTORS.map(where_lower);
        figures.push(("fig10-top", "Figure 10, top", "Where sparse tokens are less sensitive", top));
        figures.push(("fig10-bottom", "Figure 10, bottom", "Where frequent tokens are less sensitive", bottom));
    }
    figures.retain(|(.., settings)| !settings.is_empty());
    figures.into_iter().map(|(file, number, title, settings)| drawn(file, number, title, &settings)).collect()
}

/// A column for each data setting; accuracy, alignment, attention and sensitivity from top to bottom.
fn drawn(file: &str, number: &str, title: &str, settings: &[&Setting]) -> Drawn {
    let mut panels = Vec::new();
    for (name, curves, range) in [
        ("accuracy", &ACCURACIES[..], Some((-0.02, 1.02))),
        ("alignment", &ALIGNMENTS[..], Some((-0.2, 1.02))),
        ("attention", &ATTENTIONS[..], Some((0.0, 1.0))),
        ("sensitivity", &SENSITIVITY[..], None),
    ] {
        for setting in settings {
            let group = &setting.group;
            let curve = |(_, place, name): &Curve| band_and_line(&group.curve("epoch", name), PALETTE[*place], 3, 0);
            let mut marks: Vec<Mark> = curves.iter().flat_map(curve).collect();
            let mut y = Axis::linear(name);
            y.range = range;
            if name == "sensitivity" {
                let logged = group.runs.iter().flat_map(|run| run.curve("epoch", name)).map(|(_, value)| value.mean);
                let mut highest = logged.fold(0.01, f64::max);
                for kind in PREDICTORS {
                    let Some(level) = setting.predictor(kind, "") else { continue };
                    highest = highest.max(level.mean);
                    marks.push(Mark::Level(level.mean, format!("{kind} only")));
                }
                y = y.within(-0.005, 1.1 * highest);
            }
            let title = if name == "accuracy" { group.label.clone() } else { String::new() };
            let x = Axis::whole(if name == "sensitivity" { "epoch" } else { "" });
            panels.push(Panel { title, x, y, marks });
        }
    }
    let legend = [&ACCURACIES[..], &ALIGNMENTS[..], &SENSITIVITY[..]].concat();
    let legend = legend.iter().map(|(name, place, _)| (name.to_string(), Style::line(PALETTE[*place]))).collect();
    let figure = Figure { panels, columns: settings.len().min(3), legend, ..Figure::default() };
    // Hahn & Rofin have a Figure 2 as well.
    let published = trend(if file == "fig2" { "fig2-tokens" } else { file });
    Drawn { number: number.into(), ..Drawn::new(file, title, CAPTION, published, figure) }
}
