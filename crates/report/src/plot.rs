//! A quantity against another, coloured and panelled by further ones: what a recipe's `plot` asks for, and what every own recipe gets.

use pudica_lab::recipe::Plot;
use pudica_statistics::{Mean, mean};

use crate::figure::colour::{point, viridis};
use crate::figure::{Axis, ColourBar, Figure, Mark, Panel, Point, Shape, Style};
use crate::findings::{Drawn, counted};
use crate::group::{band_and_line, range_of};
use crate::run::Run;
use crate::sweep::{Sweep, different, different_numbers};

/// More values than this have a continuous scale of colours, and a scatter instead of means.
const FEW: usize = 12;
/// More panels than this are not drawn.
const MOST_PANELS: usize = 12;
/// More runs than this are not drawn one by one beside their means.
const MOST_POINTS: usize = 600;

/// What is drawn: names of settings or measures.
pub struct Drawing<'a> {
    pub x: &'a str,
    pub y: &'a str,
    pub colour: Option<&'a str>,
    /// Every combination of their values is a panel.
    pub panels: Vec<&'a str>,
}

impl<'a> Drawing<'a> {
    /// The figure that was asked for.
    pub fn asked(plot: &'a Plot) -> Drawing<'a> {
        Drawing {
            x: &plot.x,
            y: &plot.y,
            colour: plot.colour.as_deref(),
            panels: plot.panel.as_deref().into_iter().collect(),
        }
    }

    /// The figure with its caption.
    pub fn draw(&self, sweep: &Sweep, file: &str) -> Drawn {
        let runs: Vec<&Run> = sweep.kept().filter(|run| run.quantity(self.y).is_some()).collect();
        let texts = |key: &str| in_order(&runs, key);
        let x = Scale::of(&runs, self.x);
        let series = match self.colour {
            Some(key) => texts(key),
            None => vec![String::new()],
        };
        let bar = self.colour.filter(|_| series.len() > FEW).and_then(|key| colour_bar(&runs, key));
        let style = |place: usize, text: &str| match (&bar, text.parse::<f64>()) {
            (Some(bar), Ok(value)) => {
                let part = (value - bar.low) / (bar.high - bar.low).max(f64::MIN_POSITIVE);
                Style::point(&viridis(part), Shape::Circle)
            }
            _ => point(place),
        };
        let mut panels = Vec::new();
        let all = different(runs.iter().map(|run| self.panel_of(run)));
        for title in all.iter().take(MOST_PANELS) {
            let own: Vec<&Run> = runs.iter().copied().filter(|run| self.panel_of(run) == *title).collect();
            let mut marks = Vec::new();
            for (place, text) in series.iter().enumerate() {
                let series: Vec<&Run> =
                    own.iter().copied().filter(|run| self.colour.is_none_or(|key| shown(run, key) == *text)).collect();
                marks.extend(self.marks(sweep, &series, &x, style(place, text)));
            }
            panels.push(Panel { title: title.clone(), x: x.axis(self.x), y: Axis::linear(&words(self.y)), marks });
        }
        share_height(&mut panels);
        let legend = match (self.colour, &bar) {
            (Some(key), None) => {
                let named = |(place, text): (usize, &String)| (format!("{key} = {text}"), style(place, text));
                series.iter().enumerate().map(named).collect()
            }
            _ => Vec::new(),
        };
        let columns = panels.len().clamp(1, 3);
        let mut caption = self.caption(sweep, &runs, &x);
        if all.len() > MOST_PANELS {
            caption += &format!(" The first {MOST_PANELS} of {} panels.", all.len());
        }
        let title = format!("{} against {}", capitalised(&words(self.y)), words(self.x));
        Drawn::new(file, &title, &caption, "", Figure { panels, columns, legend, colour_bar: bar, ..Figure::default() })
    }

    fn panel_of(&self, run: &Run) -> String {
        self.panels.iter().map(|key| format!("{key} = {}", shown(run, key))).collect::<Vec<_>>().join(", ")
    }

    /// One series: its runs, and their means where several share a place.
    fn marks(&self, sweep: &Sweep, runs: &[&Run], x: &Scale, style: Style) -> Vec<Mark> {
        let placed: Vec<(f64, f64, &Run)> =
            runs.iter().filter_map(|run| Some((x.place(run, self.x)?, run.quantity(self.y)?, *run))).collect();
        let points = |opacity: f64, size: f64| {
            Mark::points(placed.iter().map(|(x, y, run)| run.point(*x, *y)), style.clone().faint(opacity).sized(size))
        };
        if !x.is_averaged(&placed) {
            return vec![points(0.75, 3.2)];
        }
        // Runs that should be at each place: as many as are at the fullest, converged or not.
        let planned = sweep.runs_per_cell();
        let mut places = different_numbers(placed.iter().map(|(place, ..)| *place));
        places.sort_by(f64::total_cmp);
        let at = |place: f64| placed.iter().filter(|point| point.0 == place).map(|point| point.1).collect::<Vec<f64>>();
        let possible = |place: &f64| Some((*place, mean(&at(*place))?.within(range_of(self.y))));
        let means: Vec<(f64, Mean)> = places.iter().filter_map(possible).collect();
        let mut marks = match x {
            Scale::Numbers { .. } => band_and_line(&means, &style.colour, 3, planned).into(),
            Scale::Names(_) => vec![Mark::Intervals {
                points: means
                    .iter()
                    .filter(|(_, mean)| mean.count >= 3)
                    .map(|(x, mean)| (*x, mean.low, mean.high))
                    .collect(),
                style: Style::line(&style.colour),
            }],
        };
        if runs.len() <= MOST_POINTS {
            marks.push(points(0.35, 2.4));
        }
        let name = |mean: &Mean| format!("mean of {}", counted(mean.count, "run"));
        let middle = |(x, mean): &(f64, Mean)| Point::mean(*x, mean, name(mean)).few(2 * mean.count < planned);
        marks.push(Mark::points(means.iter().map(middle), style.faint(1.0).sized(3.4)));
        marks
    }

    fn caption(&self, sweep: &Sweep, runs: &[&Run], x: &Scale) -> String {
        let shown = [&[self.x, self.y][..], self.colour.as_slice(), &self.panels[..]].concat();
        let pooled = sweep.other_axes(&shown);
        let over = match &pooled[..] {
            [] => "seeds".to_string(),
            pooled => format!("seeds and {}", pooled.join(", ")),
        };
        let placed: Vec<(f64, f64, &Run)> =
            runs.iter().filter_map(|run| Some((x.place(run, self.x)?, 0.0, *run))).collect();
        let mut caption = match x.is_averaged(&placed) {
            true => format!(
                "Small points are converged runs; large ones are means over {over}, with 95 % intervals where there are three runs or more. \
                 Faint lines lead to means over less than half of the runs."
            ),
            false => "Every point is a converged run.".into(),
        };
        let discarded = sweep.tally().discarded;
        if discarded > 0 {
            caption += &format!(
                " {} not converge and {} left out.",
                match discarded {
                    1 => "1 run did".into(),
                    count => format!("{count} runs did"),
                },
                if discarded == 1 { "is" } else { "are" }
            );
        }
        caption
    }
}

/// How runs are spread along the horizontal axis.
enum Scale {
    /// By a number; whether it is a setting, so that several runs share it.
    Numbers { is_setting: bool, log: bool, whole: bool },
    /// By names, in order.
    Names(Vec<String>),
}

impl Scale {
    fn of(runs: &[&Run], key: &str) -> Scale {
        let numbers: Option<Vec<f64>> = runs.iter().map(|run| run.quantity(key)).collect();
        match numbers {
            Some(numbers) if !numbers.is_empty() => Scale::Numbers {
                is_setting: runs[0].settings.contains_key(key),
                log: spans_decades(&numbers, 50.0),
                whole: numbers.iter().all(|number| number.fract() == 0.0),
            },
            _ => Scale::Names(in_order(runs, key)),
        }
    }

    fn place(&self, run: &Run, key: &str) -> Option<f64> {
        match self {
            Scale::Numbers { .. } => run.quantity(key),
            Scale::Names(names) => names.iter().position(|name| *name == shown(run, key)).map(|place| place as f64),
        }
    }

    fn axis(&self, key: &str) -> Axis {
        match self {
            Scale::Numbers { log: true, .. } => Axis::log(&words(key)),
            Scale::Numbers { whole: true, .. } => Axis::whole(&words(key)),
            Scale::Numbers { .. } => Axis::linear(&words(key)),
            Scale::Names(names) => Axis::linear(&words(key)).named(names),
        }
    }

    /// Whether means are drawn: not over a measure, and not where nearly every run has a place of its own.
    fn is_averaged(&self, placed: &[(f64, f64, &Run)]) -> bool {
        let is_setting = matches!(self, Scale::Names(_) | Scale::Numbers { is_setting: true, .. });
        let places = different_numbers(placed.iter().map(|(place, ..)| *place)).len();
        is_setting && (places <= FEW || 2 * places <= placed.len())
    }
}

/// The text of a setting, or of a measure.
fn shown(run: &Run, key: &str) -> String {
    match run.settings.contains_key(key) {
        true => run.text(key),
        false => run.value(key).map(|value| value.to_string()).unwrap_or_default(),
    }
}

/// The different texts of a quantity: numbers rising, others in the order of the plan.
fn in_order(runs: &[&Run], key: &str) -> Vec<String> {
    let mut texts = different(runs.iter().map(|run| shown(run, key)));
    let number = |text: &String| text.parse::<f64>();
    if texts.iter().all(|text| number(text).is_ok()) {
        texts.sort_by(|a, b| number(a).unwrap_or(0.0).total_cmp(&number(b).unwrap_or(0.0)));
    }
    texts
}

/// The scale of colours of a quantity of many numbers; `None` where it is not a number.
fn colour_bar(runs: &[&Run], key: &str) -> Option<ColourBar> {
    let values: Vec<f64> = runs.iter().map(|run| run.quantity(key)).collect::<Option<_>>()?;
    let low = values.iter().copied().reduce(f64::min)?;
    let high = values.iter().copied().reduce(f64::max)?;
    Some(ColourBar { label: words(key), low, high })
}

/// Whether numbers are better shown by powers of ten.
pub fn spans_decades(values: &[f64], at_least: f64) -> bool {
    let low = values.iter().copied().fold(f64::INFINITY, f64::min);
    let high = values.iter().copied().fold(0.0, f64::max);
    low > 0.0 && high / low >= at_least
}

/// Gives all panels one vertical axis, so that they can be compared: by powers of ten where values span several.
fn share_height(panels: &mut [Panel]) {
    let values: Vec<f64> = panels.iter().flat_map(Panel::shown_values).collect();
    let means: Vec<f64> = panels.iter().flat_map(Panel::line_values).collect();
    let log = spans_decades(&values, 100.0) || (!means.is_empty() && spans_decades(&means, 100.0));
    let shown = values.into_iter().filter(|value| !log || *value > 0.0);
    let (low, high) = shown.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), v| (low.min(v), high.max(v)));
    for panel in panels {
        if log {
            panel.y = Axis::log(&panel.y.label);
        }
        if low < high {
            let range =
                if log { (low / 1.3, high * 1.3) } else { (low - 0.05 * (high - low), high + 0.05 * (high - low)) };
            panel.y.range = Some(range);
        }
    }
}

/// A name for people: settings as they are written in a recipe, measures in words.
pub fn words(name: &str) -> String {
    name.replace('_', " ")
}

/// The same at the start of a title.
pub fn capitalised(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or(String::new(), |first| first.to_uppercase().chain(letters).collect())
}
