//! Its figures: every panel is a kernel at a depth, every colour an architecture.

use pudica_lab::spectra::SpectraPlan;
use pudica_theory::spectra::degrees::mean_degree;
use pudica_theory::spectra::{Estimate, Kernel};

use super::{KERNELS, Kind};
use crate::experiments::Drawn;
use crate::figure::colour::{PALETTE, point};
use crate::figure::{Axis, Figure, Mark, Panel, Style};

const BY_DEGREE: &str = "Share of the variance at each degree (log scale), of the widest finite networks; bars are ± 2 standard errors \
    over random weights. Lines: the infinitely wide network, for attention its exact kernel by tokens (not the paper's function of \
    ⟨x, y⟩). Shares that are not shown are below the panel, or 0.";
const LOW_DEGREES: &str = "Of the variance that is not constant, the share at degrees 1 to k; the widest networks, ± 2 standard errors \
    over random weights. Higher is a stronger bias to simple functions.";
const OPEN_QUESTION: &str =
    "The paper leaves open how the bias of transformers compares with that of other architectures (Section 8).";
const BY_WIDTH: &str = "Mean degree of the variance against width (log scale), ± 2 standard errors over random weights; lines: infinite \
    width, for attention its exact kernel.";

/// All figures.
pub fn draw(plan: &SpectraPlan, kinds: &[Kind], computed: usize, planned: usize) -> Vec<Drawn> {
    let mut names: Vec<&str> = Vec::new();
    for kind in kinds {
        if !names.contains(&kind.network.name.as_str()) {
            names.push(&kind.network.name);
        }
    }
    let widths = || plan.settings.widths.iter().copied();
    let figures = Figures {
        kinds,
        names,
        depths: &plan.settings.depths,
        narrowest: widths().min().unwrap_or(1),
        widest: widths().max().unwrap_or(1),
        note: format!("{} scale · {computed} of {planned} networks computed · d = {}", plan.scale, plan.settings.dim),
    };
    let mut drawn = vec![figures.by_degree(), figures.low_degrees()];
    if figures.narrowest < figures.widest {
        drawn.push(figures.by_width());
    }
    drawn
}

struct Figures<'a> {
    kinds: &'a [Kind],
    /// Architectures, in the order of their colours.
    names: Vec<&'a str>,
    depths: &'a [usize],
    narrowest: usize,
    widest: usize,
    note: String,
}

impl Figures<'_> {
    fn by_degree(&self) -> Drawn {
        let marks = |kind: &Kind, kernel: Kernel| {
            let shares = kind.summary(kernel).fractional_variance.iter().enumerate();
            let shares: Vec<(f64, Estimate)> = shares.map(|(degree, share)| (degree as f64, *share)).collect();
            let curve = |limit: &[f64]| limit.iter().enumerate().map(|(k, share)| (k as f64, *share)).collect();
            let limit = kind.limit(kernel).map(|limit| self.line(kind, curve(limit)));
            limit.into_iter().chain(self.points(kind, &shares)).collect()
        };
        let (x, y) = (Axis::whole("degree"), Axis::log("share of the variance").within(1e-5, 1.0));
        let panels =
            self.panels(x, y, |kind, kernel| if kind.width == self.widest { marks(kind, kernel) } else { vec![] });
        self.drawn("spectra", "Variance by degree", BY_DEGREE, panels)
    }

    fn low_degrees(&self) -> Drawn {
        let marks = |kind: &Kind, kernel: Kernel| {
            let shares = (1..).zip(&kind.summary(kernel).low_degree_share);
            let shares: Vec<(f64, Estimate)> = shares.map(|(degree, share)| (f64::from(degree), *share)).collect();
            let joined = self.line(kind, shares.iter().map(|(degree, share)| (*degree, share.mean)).collect());
            std::iter::once(joined).chain(self.points(kind, &shares)).collect()
        };
        let x = Axis::whole("degrees up to k").within(0.7, 3.3);
        let y = Axis::linear("share of the non-constant variance").within(0.0, 1.02);
        let panels =
            self.panels(x, y, |kind, kernel| if kind.width == self.widest { marks(kind, kernel) } else { vec![] });
        let drawn = self.drawn("low-degrees", "Weight on low degrees", LOW_DEGREES, panels);
        Drawn { published: OPEN_QUESTION.into(), ..drawn }
    }

    fn by_width(&self) -> Drawn {
        let marks = |kind: &Kind, kernel: Kernel| {
            let mut marks = self.points(kind, &[(kind.width as f64, kind.summary(kernel).mean_degree)]);
            if kind.width == self.widest
                && let Some(limit) = kind.limit(kernel)
            {
                let ends = [self.narrowest, self.widest].map(|width| (width as f64, mean_degree(limit)));
                marks.push(self.line(kind, ends.into()));
            }
            marks
        };
        let x = Axis::log("width").within(0.8 * self.narrowest as f64, 1.25 * self.widest as f64);
        let panels = self.panels(x, Axis::linear("mean degree"), marks);
        self.drawn("widths", "Finite and infinite width", BY_WIDTH, panels)
    }

    /// A panel for each kernel and depth.
    fn panels(&self, x: Axis, y: Axis, marks: impl Fn(&Kind, Kernel) -> Vec<Mark>) -> Vec<Panel> {
        let mut panels = Vec::new();
        for (kernel, name) in KERNELS {
            for depth in self.depths {
                let shown = self.kinds.iter().filter(|kind| kind.network.depth == *depth);
                let title = format!("{name}, {depth} layer{}", if *depth == 1 { "" } else { "s" });
                let marks = shown.flat_map(|kind| marks(kind, kernel)).collect();
                panels.push(Panel { title, x: x.clone(), y: y.clone(), marks });
            }
        }
        panels
    }

    fn drawn(&self, file: &str, title: &str, caption: &str, panels: Vec<Panel>) -> Drawn {
        let legend = self.names.iter().enumerate().map(|(place, name)| (name.to_string(), point(place))).collect();
        let columns = self.depths.len().clamp(1, 3);
        let figure = Figure { panels, columns, legend, note: self.note.clone(), ..Figure::default() };
        Drawn { file: file.into(), title: title.into(), caption: caption.into(), published: String::new(), figure }
    }

    fn place(&self, kind: &Kind) -> usize {
        self.names.iter().position(|name| *name == kind.network.name).unwrap_or(0)
    }

    fn line(&self, kind: &Kind, points: Vec<(f64, f64)>) -> Mark {
        Mark::Line { points, style: Style::line(PALETTE[self.place(kind) % PALETTE.len()]).faint(0.8) }
    }

    /// Symbols with bars of two standard errors to each side.
    fn points(&self, kind: &Kind, values: &[(f64, Estimate)]) -> Vec<Mark> {
        let name = &kind.network.name;
        let bar = |(x, value): &(f64, Estimate)| {
            value.std_error.map(|error| (*x, value.mean - 2.0 * error, value.mean + 2.0 * error))
        };
        let symbol = |(x, value): &(f64, Estimate)| (*x, value.mean, format!("{name}: {:.4}", value.mean));
        let bars = Style::line(PALETTE[self.place(kind) % PALETTE.len()]);
        vec![
            Mark::Intervals { points: values.iter().filter_map(bar).collect(), style: bars },
            Mark::Points { points: values.iter().map(symbol).collect(), style: point(self.place(kind)) },
        ]
    }
}
