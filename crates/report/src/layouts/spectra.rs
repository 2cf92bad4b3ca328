//! `vasudeva/spectra`: which architecture puts more weight on low degrees. Every panel is a kernel at a depth, every colour an
//! architecture.

use pudica_statistics::Mean;
use serde_json::{Value, json};

use crate::figure::colour::{PALETTE, point};
use crate::figure::{Axis, Figure, Mark, Panel, Point, Style};
use crate::findings::{Drawn, Findings, ScaleWords, Table, head, plain, with_error};
use crate::group::Group;
use crate::sweep::Sweep;

/// The kernels: their names in a summary, and for people.
const KERNELS: [(&str, &str); 2] = [("ck", "CK"), ("ntk", "NTK")];

const BY_DEGREE: &str = "Fraction of the variance at each degree (log scale), of the widest finite networks; bars are ± 2 standard errors \
    over random weights. Lines: the infinitely wide network, for attention its exact kernel by tokens (not the paper's function of \
    ⟨x, y⟩). Shares that are not shown are below the panel, or 0.";
const LOW_DEGREES: &str = "Of the variance that is not constant, the fraction at degrees 1 to k; the widest networks, ± 2 standard errors \
    over random weights. Higher is a stronger bias to simple functions.";
const OPEN_QUESTION: &str =
    "The paper leaves open how the bias of transformers compares with that of other architectures (Section 8).";
const BY_WIDTH: &str = "Mean degree of the variance against width (log scale), ± 2 standard errors over random weights; lines: infinite \
    width, for attention its exact kernel.";

/// Networks of one architecture, depth and width.
struct Kind<'a> {
    group: Group<'a>,
    architecture: String,
    depth: f64,
    width: f64,
}

impl Kind<'_> {
    fn new(group: Group<'_>) -> Kind<'_> {
        let number = |key: &str| group.number(key).unwrap_or(0.0);
        Kind { architecture: group.text("architecture"), depth: number("depth"), width: number("width"), group }
    }

    /// A measure of one of the kernels: `low_degree_2` is `ck_low_degree_2` in a summary.
    fn measure(&self, kernel: &str, name: &str) -> Option<Mean> {
        self.group.value(&format!("{kernel}_{name}"))
    }

    /// Of the variance that is not constant, the shares at degree 1, degrees to 2, and degrees to 3.
    fn low_degrees(&self, kernel: &str) -> [Option<Mean>; 3] {
        [1, 2, 3].map(|degree| self.measure(kernel, &format!("low_degree_{degree}")))
    }

    /// The share of the variance at each degree.
    fn by_degree(&self, kernel: &str) -> Vec<Mean> {
        self.group.profile(&format!("{kernel}.fractional_variance"))
    }

    /// The same of the infinitely wide network; nothing where it is not known.
    fn limit(&self, kernel: &str) -> Vec<f64> {
        self.group.first().profile(&format!("infinite.{kernel}")).iter().map(|share| share.mean).collect()
    }

    /// A measure of the infinitely wide network.
    fn limit_of(&self, kernel: &str, name: &str) -> Option<Mean> {
        self.group.same(&format!("infinite_{kernel}_{name}"))
    }
}

/// Spectra, weight on low degrees and widths, beside infinitely wide networks.
pub fn findings(sweep: &Sweep) -> Findings {
    let groups = sweep.groups(|run| run.text("architecture"));
    let kinds: Vec<Kind> = groups.into_iter().map(Kind::new).collect();
    let widths = || kinds.iter().map(|kind| kind.width);
    let figures = Figures {
        kinds: &kinds,
        names: sweep.texts("architecture"),
        depths: sweep.numbers("depth"),
        narrowest: widths().reduce(f64::min).unwrap_or(1.0),
        widest: widths().reduce(f64::max).unwrap_or(1.0),
        note: format!("{} · d = {}", sweep.note(), sweep.texts("dim").join(", ")),
    };
    let mut findings = Findings {
        scale: ScaleWords {
            other: "The paper has no such experiment: nothing here repeats a published number.",
            ..ScaleWords::default()
        },
        ..Findings::default()
    };
    findings.figures.extend([figures.by_degree(), figures.low_degrees()]);
    if figures.narrowest < figures.widest {
        findings.figures.push(figures.by_width());
    }
    let mut all: Vec<Value> = Vec::new();
    for kernel in KERNELS {
        let shown = most_weight_first(&kinds, kernel.0, figures.widest);
        findings.tables.push(table(&shown, kernel));
        all.extend(shown.into_iter().map(|kind| summary(kind, kernel.0)));
    }
    findings.summary.insert("kinds".into(), all.into());
    findings
}

/// The widest networks by depth, those with the most weight on degrees 1 and 2 first.
fn most_weight_first<'a>(kinds: &'a [Kind<'a>], kernel: &str, widest: f64) -> Vec<&'a Kind<'a>> {
    let mut shown: Vec<&Kind> = kinds.iter().filter(|kind| kind.width == widest).collect();
    let low = |kind: &Kind| kind.low_degrees(kernel)[1].map_or(0.0, |share| share.mean);
    shown.sort_by(|a, b| a.depth.total_cmp(&b.depth).then(low(b).total_cmp(&low(a))));
    shown
}

fn table(kinds: &[&Kind], (kernel, name): (&str, &str)) -> Table {
    let row = |kind: &&Kind| {
        let [one, two, three] = kind.low_degrees(kernel).map(with_error);
        vec![
            kind.architecture.clone().into(),
            kind.depth.into(),
            one,
            two,
            plain(kind.limit_of(kernel, "low_degree_2")),
            three,
            with_error(kind.measure(kernel, "mean_degree")),
            with_error(kind.measure(kernel, "off_diagonal")),
            kind.group.runs.len().into(),
        ]
    };
    Table {
        title: format!("{name}: most weight on degrees 1 and 2 first"),
        head: head([
            "architecture",
            "layers",
            "degree 1",
            "degrees 1–2",
            "the same, infinite width",
            "degrees 1–3",
            "mean degree",
            "between monomials",
            "networks",
        ]),
        rows: kinds.iter().map(row).collect(),
        note: "Fractions of the variance that is not constant, ± one standard error over networks; mean degree with the constant. Between monomials: the fraction of the kernel's squared norm that no function of ⟨x, y⟩ has.".into(),
    }
}

/// Both spectra of a kind of network, for summary.json.
fn summary(kind: &Kind, kernel: &str) -> Value {
    let limit = kind.limit(kernel);
    let finite = json!({
        "networks": kind.group.runs.len(),
        "mu": kind.group.profile(&format!("{kernel}.mu")),
        "fractional_variance": kind.by_degree(kernel),
        "mean_degree": kind.measure(kernel, "mean_degree"),
        "low_degree_share": kind.low_degrees(kernel),
        "off_diagonal": kind.measure(kernel, "off_diagonal"),
    });
    let setting = |key: &str| kind.group.first().settings.get(key);
    json!({"arch": kind.architecture, "depth": setting("depth"), "width": setting("width"), "kernel": kernel,
        "infinite_fractional_variance": (!limit.is_empty()).then_some(limit), "finite": finite})
}

struct Figures<'a> {
    kinds: &'a [Kind<'a>],
    /// Architectures, in the order of their colours.
    names: Vec<String>,
    depths: Vec<f64>,
    narrowest: f64,
    widest: f64,
    note: String,
}

impl Figures<'_> {
    fn by_degree(&self) -> Drawn {
        let marks = |kind: &Kind, kernel: &str| {
            let shares: Vec<(f64, Mean)> = (0..).map(f64::from).zip(kind.by_degree(kernel)).collect();
            let limit: Vec<(f64, f64)> = (0..).map(f64::from).zip(kind.limit(kernel)).collect();
            let limit = (!limit.is_empty()).then(|| self.line(kind, limit));
            limit.into_iter().chain(self.points(kind, &shares)).collect()
        };
        let (x, y) = (Axis::whole("degree"), Axis::log("fraction of the variance").within(1e-5, 1.0));
        self.drawn("spectra", "Variance by degree", BY_DEGREE, self.widest_panels(x, y, marks))
    }

    fn low_degrees(&self) -> Drawn {
        let marks = |kind: &Kind, kernel: &str| {
            let shares = (1..).map(f64::from).zip(kind.low_degrees(kernel));
            let shares: Vec<(f64, Mean)> = shares.filter_map(|(degree, share)| Some((degree, share?))).collect();
            let joined = self.line(kind, shares.iter().map(|(degree, share)| (*degree, share.mean)).collect());
            std::iter::once(joined).chain(self.points(kind, &shares)).collect()
        };
        let x = Axis::whole("degrees up to k").within(0.7, 3.3);
        let y = Axis::linear("fraction of the non-constant variance").within(0.0, 1.02);
        let drawn = self.drawn("low-degrees", "Weight on low degrees", LOW_DEGREES, self.widest_panels(x, y, marks));
        Drawn { published: OPEN_QUESTION.into(), ..drawn }
    }

    fn by_width(&self) -> Drawn {
        let marks =
            |kind: &Kind, kernel: &str| {
                let degree = kind.measure(kernel, "mean_degree").map(|degree| (kind.width, degree));
                let mut marks = self.points(kind, degree.as_slice());
                let limit = kind.limit_of(kernel, "mean_degree").filter(|_| kind.width == self.widest);
                marks.extend(limit.map(|limit| {
                    self.line(kind, [self.narrowest, self.widest].map(|width| (width, limit.mean)).into())
                }));
                marks
            };
        let x = Axis::log("width").within(0.8 * self.narrowest, 1.25 * self.widest);
        let panels = self.panels(x, Axis::linear("mean degree"), marks);
        self.drawn("widths", "Finite and infinite width", BY_WIDTH, panels)
    }

    /// A panel for each kernel and depth.
    fn panels(&self, x: Axis, y: Axis, marks: impl Fn(&Kind, &str) -> Vec<Mark>) -> Vec<Panel> {
        let mut panels = Vec::new();
        for (kernel, name) in KERNELS {
            for depth in &self.depths {
                let shown = self.kinds.iter().filter(|kind| kind.depth == *depth);
                let title = format!("{name}, {depth} layer{}", if *depth == 1.0 { "" } else { "s" });
                let marks = shown.flat_map(|kind| marks(kind, kernel)).collect();
                panels.push(Panel { title, x: x.clone(), y: y.clone(), marks });
            }
        }
        panels
    }

    /// The same of the widest networks alone.
    fn widest_panels(&self, x: Axis, y: Axis, marks: impl Fn(&Kind, &str) -> Vec<Mark>) -> Vec<Panel> {
        self.panels(x, y, |kind, kernel| if kind.width == self.widest { marks(kind, kernel) } else { vec![] })
    }

    fn drawn(&self, file: &str, title: &str, caption: &str, panels: Vec<Panel>) -> Drawn {
        let legend = self.names.iter().enumerate().map(|(place, name)| (name.clone(), point(place))).collect();
        let columns = self.depths.len().clamp(1, 3);
        let figure = Figure { panels, columns, legend, note: self.note.clone(), ..Figure::default() };
        Drawn::new(file, title, caption, "", figure)
    }

    fn place(&self, kind: &Kind) -> usize {
        self.names.iter().position(|name| *name == kind.architecture).unwrap_or(0)
    }

    fn colour(&self, kind: &Kind) -> &'static str {
        PALETTE[self.place(kind) % PALETTE.len()]
    }

    fn line(&self, kind: &Kind, points: Vec<(f64, f64)>) -> Mark {
        Mark::line(points, Style::line(self.colour(kind)).faint(0.8))
    }

    /// Symbols with bars of two standard errors to each side.
    fn points(&self, kind: &Kind, values: &[(f64, Mean)]) -> Vec<Mark> {
        let bar = |(x, value): &(f64, Mean)| {
            let reach = 2.0 * value.std_error;
            (value.count > 1).then_some((*x, value.mean - reach, value.mean + reach))
        };
        let symbol = |(x, value): &(f64, Mean)| Point::mean(*x, value, kind.architecture.as_str());
        let bars = Style::line(self.colour(kind));
        vec![
            Mark::Intervals { points: values.iter().filter_map(bar).collect(), style: bars },
            Mark::points(values.iter().map(symbol), point(self.place(kind))),
        ]
    }
}
