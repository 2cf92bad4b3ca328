//! Curves with the moments marked, and the moments of all runs.

use pudica_lab::Tally;
use pudica_lab::grokking::{GrokkingPoint, GrokkingRun};
use pudica_lab::store::SweepRecord;

use super::{Group, MOMENTS, Quantity};
use crate::experiments::Drawn;
use crate::figure::colour::PALETTE;
use crate::figure::{Axis, Figure, Mark, Panel, Shape, Style};

/// Points of a curve that are drawn, at most: evenly spaced on the axis, which is logarithmic.
const DRAWN: usize = 300;

/// Panels from top to bottom: the axis' name, its curves, and the moments marked in it.
struct Row {
    name: &'static str,
    log: bool,
    curves: &'static [(usize, Quantity)],
    /// Places in [`MOMENTS`].
    marked: &'static [usize],
}

const ROWS: [Row; 4] = [
    Row {
        name: "accuracy",
        log: false,
        curves: &[(6, |point| point.train_accuracy), (1, |point| point.test_accuracy)],
        marked: &[2, 4],
    },
    Row { name: "sensitivity", log: false, curves: &[(0, |point| point.sensitivity)], marked: &[1, 3] },
    Row {
        name: "loss",
        log: true,
        curves: &[(6, |point| point.train_loss), (1, |point| point.test_loss)],
        marked: &[2, 4],
    },
    Row { name: "weight norm", log: false, curves: &[(2, |point| point.weight_norm)], marked: &[] },
];

const CURVES: &str = "Columns are what is learnt; every run is a line. From top to bottom: share of right results on training and test pairs; \
    share of training pairs whose answer changes under noise on both embeddings; cross-entropy; Euclidean norm of all parameters. Dashed: \
    where the test accuracy (sensitivity, in its own panel) has changed by a tenth and by half, mean over runs. Epochs are on a log scale.";
const PUBLISHED: &str = "Sensitivity falls before the test accuracy rises.";
const ONSETS: &str = "Epochs (log scale) at which each run memorises, at which its sensitivity and its test accuracy start to change (a tenth of \
    the change is done) and at which half of it is done. Large symbols with bars: means over runs and 95 % intervals.";

/// Both figures.
pub fn draw(record: &SweepRecord, tally: &Tally, groups: &[Group]) -> Vec<Drawn> {
    let note = format!("{} scale · {} of {} runs finished", record.scale, tally.converged, tally.runs);
    let drawn = |file: &str, title: &str, caption: &str, figure: Figure| Drawn {
        file: file.into(),
        title: title.into(),
        caption: caption.into(),
        published: PUBLISHED.into(),
        figure,
    };
    vec![
        drawn("grokking", "Curves", CURVES, curves(groups, &note)),
        drawn("onsets", "What comes first", ONSETS, onsets(groups, &note)),
    ]
}

fn curves(groups: &[Group], note: &str) -> Figure {
    // One group has its four panels in a square; several have a column each, three beside each other.
    let (together, columns) =
        if groups.len() == 1 { (1, 2) } else { (groups.len().clamp(1, 3), groups.len().clamp(1, 3)) };
    let mut panels = Vec::new();
    for some in groups.chunks(together) {
        for (place, row) in ROWS.iter().enumerate() {
            for group in some {
                let title = if place == 0 { group.label.clone() } else { String::new() };
                let label = if place + columns / together >= ROWS.len() { "epoch" } else { "" };
                let last = group.runs.iter().filter_map(|(run, _)| run.points.last()).map(|point| point.epoch).max();
                let x = Axis::log(label).within(1.0, last.unwrap_or(1).max(2) as f64);
                let y = match (row.log, row.name) {
                    (true, _) => Axis::log(row.name),
                    (false, "accuracy") => Axis::linear(row.name).within(-0.02, 1.02),
                    (false, _) => Axis::linear(row.name),
                };
                let moments = row.marked.iter().filter_map(|place| group.moment(MOMENTS[*place].2));
                let mut marks: Vec<Mark> = moments.map(|moment| Mark::Moment(moment.mean)).collect();
                for (colour, quantity) in row.curves {
                    marks.extend(group.runs.iter().map(|(run, _)| line(run, *colour, *quantity)));
                }
                panels.push(Panel { title, x, y, marks });
            }
            // A last row with fewer groups keeps its columns.
            let blank = || Panel { title: String::new(), x: Axis::linear(""), y: Axis::linear(""), marks: Vec::new() };
            panels.extend((some.len()..together).map(|_| blank()));
        }
    }
    let named = [("training pairs", 6), ("test pairs", 1), ("sensitivity", 0), ("norm", 2)];
    let legend = named.map(|(name, place)| (name.to_string(), Style::line(PALETTE[place]))).into();
    Figure { panels, columns, legend, note: note.into(), ..Figure::default() }
}

fn line(run: &GrokkingRun, colour: usize, quantity: Quantity) -> Mark {
    let points = thinned(&run.points).map(|point| (point.epoch as f64, quantity(point))).collect();
    Mark::Line { points, style: Style::line(PALETTE[colour]).sized(0.6).faint(0.8) }
}

/// Epochs from 1 on, evenly spaced on a log axis.
fn thinned(points: &[GrokkingPoint]) -> impl Iterator<Item = &GrokkingPoint> {
    let last = points.len().saturating_sub(1).max(1) as f64;
    let mut places: Vec<usize> =
        (0..=DRAWN).map(|step| last.powf(step as f64 / DRAWN as f64).round() as usize).collect();
    places.dedup();
    places.into_iter().filter_map(|place| points.get(place))
}

fn onsets(groups: &[Group], note: &str) -> Figure {
    let names = ["memorised", "sensitivity, start", "test, start", "sensitivity, half", "test, half"].map(String::from);
    let panel = |group: &Group| {
        let (mut all, mut means, mut bars) = (Vec::new(), Vec::new(), Vec::new());
        for (place, (_, name, of)) in MOMENTS.iter().enumerate() {
            let x = place as f64;
            for (run, onsets) in &group.runs {
                let seed = run.config.seed;
                all.extend(of(onsets).map(|epoch| (x, epoch.max(1.0), format!("{name}: epoch {epoch}, seed {seed}"))));
            }
            if let Some(mean) = group.moment(*of) {
                means.push((x, mean.mean.max(1.0), format!("{name}: {:.0}", mean.mean)));
                bars.push((x, mean.low.max(1.0), mean.high));
            }
        }
        let marks = vec![
            Mark::Points { points: all, style: Style::point(PALETTE[5], Shape::Circle).faint(0.6) },
            Mark::Intervals { points: bars, style: Style::line(PALETTE[6]) },
            Mark::Points { points: means, style: Style::point(PALETTE[0], Shape::Diamond).sized(4.5).faint(1.0) },
        ];
        Panel { title: group.label.clone(), x: Axis::linear("").named(&names), y: Axis::log("epoch"), marks }
    };
    Figure { panels: groups.iter().map(panel).collect(), columns: 1, note: note.into(), ..Figure::default() }
}
