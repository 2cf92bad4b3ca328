//! Figures 2 and 10: a column for each data setting; accuracy, alignment, attention and sensitivity from top to bottom.

use pudica_lab::synthetic::SyntheticPlan;

use super::{Quantity, Setting};
use crate::experiments::Drawn;
use crate::figure::colour::PALETTE;
use crate::figure::{Axis, Figure, Mark, Panel, Style};
use crate::published::{in_figure_2, trend};

const CAPTION: &str = "Columns are data settings (n_s, n_f, n_d, m). From top to bottom: share of right labels; cosine of the rows of \
    U Wv^T with v_sp, v_freq and v_irrel; attention to the tokens of each kind; sensitivity on the training set (Definition 4.3, all \
    replacements). Lines are means over runs, bands their 95 % confidence intervals. Dashed: the predictors that use one kind of token only.";

/// A curve: its name, its place in the palette, and what of a measurement it shows.
type Curve = (&'static str, usize, Quantity);

const ACCURACIES: [Curve; 3] = [
    ("training set", 6, |point| point.train_accuracy),
    ("test set", 1, |point| point.test_accuracy),
    ("sparse tokens of the other label (OOD)", 0, |point| point.ood_accuracy),
];
const ALIGNMENTS: [Curve; 3] = [
    ("sparse", 3, |point| point.alignment.sparse),
    ("frequent", 2, |point| point.alignment.frequent),
    ("irrelevant", 4, |point| point.alignment.irrelevant),
];
const ATTENTIONS: [Curve; 3] = [
    ("sparse", 3, |point| point.attention.sparse),
    ("frequent", 2, |point| point.attention.frequent),
    ("irrelevant", 4, |point| point.attention.irrelevant),
];
const SENSITIVITY: [Curve; 1] = [("sensitivity", 5, |point| point.sensitivity.mean)];

/// Figure 2 for its two settings, and Figure 10 in two halves where there are others.
pub fn draw(plan: &SyntheticPlan, settings: &[Setting]) -> Vec<Drawn> {
    let planned = plan.settings.seeds;
    let runs: usize = settings.iter().map(|setting| setting.runs.len()).sum();
    let note = format!("{} scale · {runs} of {} runs made", plan.scale, planned * settings.len() as u64);
    let shown: Vec<&Setting> = settings.iter().filter(|setting| !setting.runs.is_empty()).collect();
    let some = |keep: &dyn Fn(&Setting) -> bool| shown.iter().copied().filter(|s| keep(s)).collect::<Vec<_>>();
    let of_figure_2 = some(&|setting| in_figure_2(&setting.task));
    let all_in_figure_2 = of_figure_2.len() == shown.len();
    let mut figures = vec![("fig2", "Figure 2", of_figure_2)];
    if !all_in_figure_2 {
        figures.push((
            "fig10-top",
            "Figure 10, top: sparse tokens are less sensitive",
            some(&Setting::sparse_is_lower),
        ));
        let bottom = some(&|setting| !setting.sparse_is_lower());
        figures.push(("fig10-bottom", "Figure 10, bottom: frequent tokens are less sensitive", bottom));
    }
    figures.retain(|(_, _, settings)| !settings.is_empty());
    figures.into_iter().map(|(file, title, settings)| drawn(file, title, &settings, &note)).collect()
}

fn drawn(file: &str, title: &str, settings: &[&Setting], note: &str) -> Drawn {
    let mut panels = Vec::new();
    for (name, curves, range) in [
        ("accuracy", &ACCURACIES[..], Some((-0.02, 1.02))),
        ("alignment", &ALIGNMENTS[..], Some((-0.2, 1.02))),
        ("attention", &ATTENTIONS[..], Some((0.0, 1.0))),
        ("sensitivity", &SENSITIVITY[..], None),
    ] {
        for setting in settings {
            let mut marks: Vec<Mark> = curves.iter().flat_map(|shown| curve(setting, shown)).collect();
            let mut y = Axis::linear(name);
            y.range = range;
            if name == "sensitivity" {
                let levels = [("sparse only", setting.sparse.exact), ("frequent only", setting.frequent.exact)];
                marks.extend(levels.map(|(name, level)| Mark::Level(level, name.into())));
                let highest = setting.all_points().map(|point| point.sensitivity.mean).fold(0.0, f64::max);
                y = y.within(-0.005, 1.1 * highest.max(setting.sparse.exact).max(setting.frequent.exact).max(0.01));
            }
            let title = if name == "accuracy" { setting.label() } else { String::new() };
            let x = Axis::whole(if name == "sensitivity" { "epoch" } else { "" });
            panels.push(Panel { title, x, y, marks });
        }
    }
    let legend = [&ACCURACIES[..], &ALIGNMENTS[..], &SENSITIVITY[..]].concat();
    let legend = legend.iter().map(|(name, place, _)| (name.to_string(), Style::line(PALETTE[*place]))).collect();
    let figure = Figure { panels, columns: settings.len().min(3), legend, note: note.into(), ..Figure::default() };
    // Hahn & Rofin have a Figure 2 as well.
    let published = trend(if file == "fig2" { "fig2-tokens" } else { file });
    Drawn { file: file.into(), title: title.into(), caption: CAPTION.into(), published: published.into(), figure }
}

/// Mean and interval over runs at each measured epoch.
fn curve(setting: &Setting, (_, place, quantity): &Curve) -> Vec<Mark> {
    let (mut line, mut band) = (Vec::new(), Vec::new());
    for (epoch, mean) in setting.means(*quantity) {
        line.push((epoch as f64, mean.mean));
        band.push((epoch as f64, mean.low, mean.high));
    }
    let style = Style::line(PALETTE[*place]);
    vec![Mark::Band { points: band, style: style.clone().faint(0.2) }, Mark::Line { points: line, style }]
}
