//! Measures while PARITY is learnt, aligned at convergence: Figures 3, 12, 13 and 14.

use pudica_statistics::{AlignedPoint, Curve, Mean, align, mean};
use serde_json::{Map, json};

use crate::claims::{Claim, Parts, apart, single};
use crate::figure::colour::{PALETTE, point};
use crate::figure::{Axis, Figure, Mark, Panel, Scale, Style};
use crate::findings::{Cell, Findings, Table, head, with_count};
use crate::group::range_of;
use crate::published::FIG_3_WINDOW;
use crate::run::Run;
use crate::sweep::{Sweep, different};

/// The weight decay of Fig. 3: the paper's default.
const FIG_3_DECAY: f64 = 0.1;

/// What is tracked: its name in the metrics, its label, and whether it spans powers of ten.
const TRACKED: [(&str, &str, bool); 4] = [
    ("loss", "loss", true),
    ("sharpness", "sharpness", false),
    ("param_norm", "parameter norm", false),
    ("blowup", "LayerNorm blowup", true),
];

/// A run whose loss has fallen below the threshold.
struct Tracked<'a> {
    run: &'a Run,
    weight_decay: f64,
    /// The column it is drawn in: its weight decay, and whatever else was swept.
    column: String,
    converged_at: u64,
}

impl Tracked<'_> {
    /// What was tracked, by step.
    fn curve(&self, name: &str) -> impl Iterator<Item = (u64, f64)> {
        self.run.curve("step", name).map(|(step, value)| (step as u64, value.mean))
    }

    /// A quantity at the first tracked step, at convergence, and at the last step.
    fn moments(&self, name: &str) -> Option<[f64; 3]> {
        let curve: Vec<(u64, f64)> = self.curve(name).collect();
        let at = curve.iter().find(|(step, _)| *step >= self.converged_at)?.1;
        Some([curve.first()?.1, at, curve.last()?.1])
    }
}

/// The columns of a sweep: weight decays, and whatever else was swept.
fn columns(sweep: &Sweep) -> Vec<String> {
    let axes = sweep.other_axes(&[DECAY]);
    different(sweep.runs.iter().map(|run| column(run, &axes)))
}

fn column(run: &Run, axes: &[String]) -> String {
    let others = run.words(axes);
    let decay = format!("weight decay {}", run.text(DECAY));
    if others.is_empty() { decay } else { format!("{decay}, {others}") }
}

/// `hahn/dynamics`.
pub fn around_convergence(sweep: &Sweep) -> Findings {
    let mut findings = Findings::default();
    let tracked = converged(sweep);
    let decays = sweep.numbers(DECAY);
    let shown = if decays.contains(&FIG_3_DECAY) { FIG_3_DECAY } else { decays.first().copied().unwrap_or(0.0) };
    let own: Vec<&Tracked> = tracked.iter().filter(|run| run.weight_decay == shown).collect();
    let (note, columns) = (note(sweep, &tracked), columns(sweep));
    let own_columns = different(own.iter().map(|run| &run.column));
    let mut panels = Vec::new();
    for column in &own_columns {
        let own: Vec<&Tracked> = own.iter().copied().filter(|run| run.column == **column).collect();
        let title = |name: &str| if own_columns.len() > 1 { format!("{name}, {column}") } else { name.to_string() };
        panels.extend(
            TRACKED[..2].iter().map(|quantity| aligned_panel(&own, quantity, &title(quantity.1), window(sweep))),
        );
    }
    share_rows(&mut panels, 1);
    findings.draw(
        "fig3",
        "Figure 3",
        "Loss and sharpness around convergence",
        &format!("Loss and sharpness around the step where the loss first falls below {} (0 on the axis), weight decay {shown}, mean of the {} runs that reach it with its 95 % interval, drawn where at least half of the runs remain.", threshold(sweep), own.len()),
        Figure { panels, columns: 2, note: note.clone(), ..Figure::default() },
    );
    findings.draw(
        "fig12",
        "Figure 12",
        "Four measures around convergence",
        "The four tracked measures around convergence, one column for each weight decay.",
        grid(&tracked, &columns, &note, window(sweep)),
    );
    findings.draw(
        "fig14",
        "Figure 14",
        "Norm and blowup after convergence",
        "Parameter norm and LayerNorm blowup after convergence: the mean path at each weight decay, from convergence (symbol) onwards, as long as at least half of the runs remain.",
        paths(&tracked, &columns, note),
    );
    add_statistics(&mut findings, sweep, &tracked, &decays);
    findings.claims = claims(&tracked, shown);
    findings
}

/// `hahn/dynamics-long`.
pub fn long(sweep: &Sweep) -> Findings {
    let mut findings = Findings::default();
    let (tracked, decays) = (converged(sweep), sweep.numbers(DECAY));
    findings.draw(
        "fig13",
        "Figure 13",
        "Four measures long after convergence",
        "The four tracked measures long after convergence, one column for each weight decay.",
        grid(&tracked, &columns(sweep), &note(sweep, &tracked), None),
    );
    add_statistics(&mut findings, sweep, &tracked, &decays);
    findings.claims = long_claims(&tracked);
    findings
}

/// All runs whose loss has fallen below the threshold, finished or not.
fn converged(sweep: &Sweep) -> Vec<Tracked<'_>> {
    let axes = sweep.other_axes(&[DECAY]);
    let tracked = |run| {
        let below = threshold_of(run)?;
        let (step, _) = Run::curve(run, "step", "loss").find(|(_, loss)| loss.mean < below)?;
        Some(Tracked { run, weight_decay: run.number(DECAY)?, column: column(run, &axes), converged_at: step as u64 })
    };
    sweep.runs.iter().filter_map(tracked).collect()
}

/// The setting that columns differ in.
const DECAY: &str = "train.weight_decay";

fn threshold_of(run: &Run) -> Option<f64> {
    run.number("track.converged_below")
}

fn threshold(sweep: &Sweep) -> f64 {
    sweep.runs.first().and_then(threshold_of).unwrap_or(0.01)
}

fn note(sweep: &Sweep, tracked: &[Tracked]) -> String {
    let (runs, below) = (sweep.record.runs.len(), threshold(sweep));
    let at_the_end = tracked.iter().filter(|run| run.run.is_converged()).count();
    let reached =
        format!("{} scale · {} of {runs} runs reached a loss below {below}", sweep.record.scale, tracked.len());
    match tracked.len() - at_the_end {
        0 => reached,
        _ => format!("{reached}, {at_the_end} of them converged to the end"),
    }
}

/// At the published length of training, the published window; otherwise everything.
fn window(sweep: &Sweep) -> Option<(i64, i64)> {
    sweep.runs.first().filter(|run| run.number("train.steps") == Some(20_000.0)).map(|_| FIG_3_WINDOW)
}

fn curves(runs: &[&Tracked], quantity: &str) -> Vec<Curve> {
    runs.iter().map(|run| Curve { converged_at: run.converged_at, points: run.curve(quantity).collect() }).collect()
}

fn aligned_panel(runs: &[&Tracked], quantity: &(&str, &str, bool), title: &str, window: Option<(i64, i64)>) -> Panel {
    let (name, label, log) = *quantity;
    let place = TRACKED.iter().position(|known| known.0 == name).unwrap_or(0);
    let possible = |point: AlignedPoint| AlignedPoint { value: point.value.within(range_of(name)), ..point };
    let points: Vec<AlignedPoint> = align(&curves(runs, name))
        .into_iter()
        .map(possible)
        .filter(|point| window.is_none_or(|(from, to)| (from..=to).contains(&point.offset)))
        .collect();
    let style = Style::line(PALETTE[place]);
    let band = points.iter().map(|point| (point.offset as f64, point.value.low, point.value.high)).collect();
    let line = points.iter().map(|point| (point.offset as f64, point.value.mean));
    Panel {
        title: title.into(),
        x: Axis::linear("steps since convergence"),
        y: if log { Axis::log(label) } else { Axis::linear(label) },
        marks: vec![
            Mark::Moment(0.0),
            Mark::Band { points: band, style: style.clone().faint(0.18) },
            Mark::line(line, style),
        ],
    }
}

/// A row for each quantity, a column for each weight decay; what a row or column shares is written once.
fn grid(tracked: &[Tracked], columns: &[String], note: &str, window: Option<(i64, i64)>) -> Figure {
    let mut panels = Vec::new();
    for (row, quantity) in TRACKED.iter().enumerate() {
        for (column, name) in columns.iter().enumerate() {
            let own: Vec<&Tracked> = tracked.iter().filter(|run| run.column == *name).collect();
            let title = if row == 0 { name.clone() } else { String::new() };
            let mut panel = aligned_panel(&own, quantity, &title, window);
            if row + 1 < TRACKED.len() {
                panel.x.label.clear();
            }
            if column > 0 {
                panel.y.label.clear();
            }
            panels.push(panel);
        }
    }
    share_rows(&mut panels, columns.len());
    Figure { panels, columns: columns.len(), note: note.into(), ..Figure::default() }
}

/// Gives all panels of a row the same vertical axis, so that columns can be compared. It follows the means: where few runs are
/// left their intervals may be far wider, and are cut at the frame.
fn share_rows(panels: &mut [Panel], columns: usize) {
    for row in panels.chunks_mut(columns.max(1)) {
        let means: Vec<f64> = row.iter().flat_map(Panel::line_values).collect();
        let low = means.iter().copied().fold(f64::INFINITY, f64::min);
        let high = means.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        if low < high {
            let margin = 0.2;
            let range = if row[0].y.scale == Scale::Log {
                let factor = (high / low).powf(margin);
                (low / factor, high * factor)
            } else {
                (low - margin * (high - low), high + margin * (high - low))
            };
            row.iter_mut().for_each(|panel| panel.y.range = Some(range));
        }
    }
}

/// Mean paths in the plane of norm and blowup.
fn paths(tracked: &[Tracked], columns: &[String], note: String) -> Figure {
    let mut panel = Panel {
        title: "After convergence".into(),
        x: Axis::linear("parameter norm"),
        y: Axis::log("LayerNorm blowup"),
        marks: Vec::new(),
    };
    let mut legend = Vec::new();
    for (place, column) in columns.iter().enumerate() {
        let own: Vec<&Tracked> = tracked.iter().filter(|run| run.column == *column).collect();
        let (norms, blowups) = (align(&curves(&own, "param_norm")), align(&curves(&own, "blowup")));
        let path: Vec<(f64, f64)> = norms
            .iter()
            .filter(|norm| norm.offset >= 0)
            .filter_map(|norm| {
                let blowup = blowups.iter().find(|blowup| blowup.offset == norm.offset)?;
                Some((norm.value.mean, blowup.value.mean))
            })
            .collect();
        let symbol = point(place).sized(5.0).faint(1.0);
        if let Some((x, y)) = path.first() {
            let start = vec![(*x, *y, format!("convergence, {column}"))];
            panel.marks.push(Mark::points(start, symbol.clone()));
        }
        panel.marks.push(Mark::line(path, Style::line(&symbol.colour)));
        legend.push((column.clone(), symbol));
    }
    Figure { panels: vec![panel], columns: 1, legend, note, ..Figure::default() }
}

/// Over runs, the mean of a number of each.
fn over<'a>(runs: &[&Tracked<'a>], of: impl Fn(&Tracked<'a>) -> Option<f64>) -> Option<Mean> {
    mean(&runs.iter().filter_map(|run| of(run)).collect::<Vec<_>>())
}

/// Section 7.3, Figures 3, 12 and 14; each number is a difference within a run, so runs are compared with themselves.
fn claims(tracked: &[Tracked], decay: f64) -> Vec<Claim> {
    let own: Vec<&Tracked> = tracked.iter().filter(|run| run.weight_decay == decay).collect();
    let change = |runs: &[&Tracked], name: &str, from: usize, to: usize| {
        let of = |run: &Tracked| run.moments(name).map(|moments| moments[to] - moments[from]);
        over(runs, of).as_ref().and_then(single)
    };
    let mut jump = Parts::default();
    jump.above("sharpness at convergence minus that at the start", change(&own, "sharpness", 0, 1));
    let mut claims = vec![jump.claim(
        "fig3",
        "Sharpness jumps at the step where the loss falls.",
        "Is sharpness higher when the loss has fallen than at the start?",
        own.len(),
    )];
    let mut level = Parts::default();
    level.above("sharpness at the end", over(&own, |run| Some(run.moments("sharpness")?[2])).as_ref().and_then(single));
    level.above("sharpness at convergence minus that at the end", change(&own, "sharpness", 2, 1));
    claims.push(level.claim(
        "fig3",
        "Afterwards sharpness declines to a level well above 0.",
        "Does sharpness decline after convergence, and end above 0?",
        own.len(),
    ));
    let decayed: Vec<&Tracked> = tracked.iter().filter(|run| run.weight_decay > 0.0).collect();
    let mut trade = Parts::default();
    trade.above("fall of the norm after convergence", change(&decayed, "param_norm", 2, 1));
    let rise =
        |run: &Tracked| run.moments("blowup").map(|[_, at, end]| (end / at).log10()).filter(|rise| rise.is_finite());
    trade.above("rise of log_{10} blowup", over(&decayed, rise).as_ref().and_then(single));
    claims.push(trade.claim(
        "fig12",
        "With weight decay above 0, the norm then falls and the blowup rises.",
        "With weight decay, do parameters shrink while the blowup grows after convergence?",
        decayed.len(),
    ));
    claims
}

/// Figure 13.
fn long_claims(tracked: &[Tracked]) -> Vec<Claim> {
    let end = |decay: f64| {
        let own: Vec<&Tracked> = tracked.iter().filter(|run| run.weight_decay == decay).collect();
        over(&own, |run| Some(run.moments("sharpness")?[2]))
    };
    let (without, with) = (end(0.0), end(FIG_3_DECAY));
    let mut lower = Parts::default();
    lower.above("sharpness at the end, weight decay 0.1 minus 0,", apart(with, without));
    vec![lower.claim(
        "fig13",
        "After 100,000 steps, zero weight decay ends with lower sharpness than 0.1.",
        "Does training without weight decay end with lower sharpness?",
        tracked.len(),
    )]
}

/// Before, at and after convergence, and at the end, for each weight decay.
fn add_statistics(findings: &mut Findings, sweep: &Sweep, tracked: &[Tracked], decays: &[f64]) {
    let mut by_decay = Map::new();
    let mut rows = Vec::new();
    for decay in decays {
        let own: Vec<&Tracked> = tracked.iter().filter(|run| run.weight_decay == *decay).collect();
        let began = sweep.runs.iter().filter(|run| run.number(DECAY) == Some(*decay)).count();
        let mut entry = Map::new();
        entry.insert("runs_kept".into(), own.len().into());
        entry.insert("runs_discarded".into(), (began - own.len()).into());
        let steps: Vec<f64> = own.iter().map(|run| run.converged_at as f64).collect();
        entry.insert("converged_at".into(), json!(mean(&steps)));
        let mut row: Vec<Cell> = vec![(*decay).into(), own.len().into(), (began - own.len()).into()];
        for (name, _, _) in &TRACKED[1..] {
            let moments = [("start", Moment::Start), ("peak", Moment::Peak), ("end", Moment::End)];
            let found = moments.map(|(when, moment)| {
                let values: Vec<f64> = own.iter().filter_map(|run| moment.of(run, name)).collect();
                (when, mean(&values))
            });
            entry.insert((*name).into(), found.iter().map(|(when, mean)| (when.to_string(), json!(mean))).collect());
            let possible = |mean: &Option<Mean>| with_count(mean.map(|mean| mean.within(range_of(name))));
            row.extend(found[1..].iter().map(|(_, mean)| possible(mean)));
        }
        by_decay.insert(decay.to_string(), entry.into());
        rows.push(row);
    }
    findings.summary.insert("by_weight_decay".into(), by_decay.into());
    let head = head([
        "weight decay",
        "reached",
        "not reached",
        "sharpness, highest",
        "sharpness, end",
        "norm, highest",
        "norm, end",
        "blowup, highest",
        "blowup, end",
    ]);
    findings.tables.push(Table {
        title: "Highest and last values of each measure".into(),
        head,
        rows,
        note: "Means with 95 % intervals over the runs whose loss reached the threshold, also over those that left it again by the end.".into(),
    });
}

/// A moment of training.
enum Moment {
    Start,
    Peak,
    End,
}

impl Moment {
    fn of(&self, run: &Tracked, name: &str) -> Option<f64> {
        let values: Vec<f64> = run.curve(name).map(|(_, value)| value).collect();
        match self {
            Moment::Start => values.first().copied(),
            Moment::Peak => values.into_iter().reduce(f64::max),
            Moment::End => values.last().copied(),
        }
    }
}
