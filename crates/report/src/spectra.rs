//! The report of `vasudeva/spectra`: which architecture puts more weight on low degrees.

use std::fmt::Write;
use std::path::Path;

use pudica_lab::Result;
use pudica_lab::spectra::{Measured, SpectraPlan, read_spectra};
use pudica_theory::spectra::degrees::{mean_degree, share_up_to};
use pudica_theory::spectra::{
    Architecture, Estimate, Family, Kernel, Summary, cube_spectrum, infinite_spectrum, summarise,
};
use serde_json::{Map, Value, json};

use crate::experiments::{Drawn, Findings, Table, number};
use crate::figure::colour::{PALETTE, point};
use crate::figure::{Axis, Figure, Mark, Panel, Style};
use crate::{figure_files, page, write_text};

/// What was written.
#[derive(Clone, Debug)]
pub struct SpectraReport {
    /// The page to open.
    pub page: std::path::PathBuf,
    /// The figures, as SVG; a PNG lies beside each.
    pub figures: Vec<std::path::PathBuf>,
    /// Networks computed, of those planned.
    pub networks: (usize, usize),
}

/// Writes `results.csv`, `summary.json`, `figures/` and `report.html` into the folder of a study, finished or not.
pub fn write_spectra(folder: &Path) -> Result<SpectraReport> {
    let (plan, measured) = read_spectra(folder)?;
    let planned = plan.specimens()?.len();
    let kinds = kinds(&plan, &measured)?;
    let findings = findings(&plan, &kinds, measured.len(), planned);
    let mut summary = json!({
        "recipe": pudica_lab::spectra::NAME, "scale": plan.scale, "overrides": plan.overrides, "command": plan.command(),
        "networks": {"planned": planned, "computed": measured.len()},
        "seconds_of_computing": measured.iter().map(|one| one.seconds).sum::<f64>(),
    });
    if let Value::Object(summary) = &mut summary {
        summary.extend(findings.summary.clone());
    }
    write_text(&folder.join("summary.json"), &format!("{summary:#}\n"))?;
    write_text(&folder.join("results.csv"), &table_of_all(&kinds))?;
    let figures = figure_files(folder, &findings.figures)?;
    let page = folder.join("report.html");
    write_text(&page, &html(&plan, &findings, measured.len(), planned))?;
    Ok(SpectraReport { page, figures, networks: (measured.len(), planned) })
}

/// Networks of one architecture, depth and width.
struct Kind {
    network: Architecture,
    width: usize,
    ck: Summary,
    ntk: Summary,
}

impl Kind {
    fn summary(&self, kernel: Kernel) -> &Summary {
        match kernel {
            Kernel::Ck => &self.ck,
            Kernel::Ntk => &self.ntk,
        }
    }
}

const KERNELS: [(Kernel, &str); 2] = [(Kernel::Ck, "CK"), (Kernel::Ntk, "NTK")];

fn kinds(plan: &SpectraPlan, measured: &[Measured]) -> Result<Vec<Kind>> {
    let mut kinds = Vec::new();
    for network in plan.kinds()? {
        for width in &plan.settings.widths {
            let same = |one: &&Measured| one.specimen.network == network && one.specimen.size.width == *width;
            let spectra: Vec<_> = measured.iter().filter(same).map(|one| one.spectrum.clone()).collect();
            if !spectra.is_empty() {
                let [ck, ntk] = [Kernel::Ck, Kernel::Ntk].map(|kernel| summarise(&spectra, kernel));
                kinds.push(Kind { network: network.clone(), width: *width, ck, ntk });
            }
        }
    }
    Ok(kinds)
}

/// The fractional variance of the infinitely wide network: exact, also for attention; None where there is no closed form.
fn infinitely_wide(network: &Architecture, kernel: Kernel) -> Option<Vec<f64>> {
    match network.family {
        Family::Mlp => infinite_spectrum(network, kernel).ok().map(|spectrum| spectrum.fractional_variance),
        Family::LinearAttention => cube_spectrum(network, kernel).ok().map(|spectrum| spectrum.fractional_variance),
        _ => None,
    }
}

fn findings(plan: &SpectraPlan, kinds: &[Kind], computed: usize, planned: usize) -> Findings {
    let mut findings = Findings::default();
    let note = format!("{} scale · {computed} of {planned} networks computed · d = {}", plan.scale, plan.settings.dim);
    let widest = plan.settings.widths.last().copied().unwrap_or(0);
    let names = &plan.settings.architectures;
    let style = |name: &str| point(names.iter().position(|known| known == name).unwrap_or(0));
    let line =
        |name: &str| Style::line(PALETTE[names.iter().position(|known| known == name).unwrap_or(0) % PALETTE.len()]);
    let legend: Vec<_> = names.iter().map(|name| (name.clone(), style(name))).collect();
    let depths = &plan.settings.depths;

    // Every panel: a kernel at a depth.
    let panels =
        |title: &dyn Fn(&str, usize) -> String, x: Axis, y: Axis, marks: &dyn Fn(&Kind, Kernel) -> Vec<Mark>| {
            let mut panels = Vec::new();
            for (kernel, name) in KERNELS {
                for depth in depths {
                    let shown = kinds.iter().filter(|kind| kind.network.depth == *depth);
                    let marks = shown.flat_map(|kind| marks(kind, kernel)).collect();
                    panels.push(Panel { title: title(name, *depth), x: x.clone(), y: y.clone(), marks });
                }
            }
            panels
        };
    let layers = |name: &str, depth: usize| format!("{name}, {depth} layer{}", if depth == 1 { "" } else { "s" });
    let points = |kind: &Kind, values: &[(f64, Estimate)]| {
        let name = &kind.network.name;
        let interval =
            |(x, e): &(f64, Estimate)| e.std_error.map(|error| (*x, e.mean - 1.96 * error, e.mean + 1.96 * error));
        vec![
            Mark::Intervals { points: values.iter().filter_map(interval).collect(), style: line(name) },
            Mark::Points {
                points: values.iter().map(|(x, e)| (*x, e.mean, format!("{name}: {:.4}", e.mean))).collect(),
                style: style(name),
            },
        ]
    };

    let by_degree = |kind: &Kind, kernel: Kernel| {
        if kind.width != widest {
            return Vec::new();
        }
        let shares = kind.summary(kernel).fractional_variance.iter().enumerate();
        let shares: Vec<(f64, Estimate)> = shares.map(|(degree, share)| (degree as f64, *share)).collect();
        let curve = |values: Vec<f64>| values.into_iter().enumerate().map(|(k, share)| (k as f64, share)).collect();
        let limit = infinitely_wide(&kind.network, kernel)
            .map(|values| Mark::Line { points: curve(values), style: line(&kind.network.name).faint(0.8) });
        limit.into_iter().chain(points(kind, &shares)).collect()
    };
    findings.figures.push(Drawn {
        file: "spectra".into(),
        title: "Variance by degree".into(),
        caption: format!("Share of the variance at each degree (log scale), finite networks of width {widest} with random weights; bars are 95 % intervals over networks. Lines: the infinitely wide network, for attention its exact kernel by tokens (not the paper's function of ⟨x, y⟩). Shares below the panel are near 0."),
        published: String::new(),
        figure: Figure {
            panels: panels(&layers, Axis::whole("degree"), Axis::log("share of the variance").within(1e-5, 1.0), &by_degree),
            columns: depths.len().clamp(1, 3),
            legend: legend.clone(),
            note: note.clone(),
            ..Figure::default()
        },
    });

    let cumulated = |kind: &Kind, kernel: Kernel| {
        if kind.width != widest {
            return Vec::new();
        }
        let summary = kind.summary(kernel);
        let shares: Vec<(f64, Estimate)> =
            (1..).zip(&summary.low_degree_share).map(|(k, e)| (f64::from(k), *e)).collect();
        let curve = shares.iter().map(|(x, e)| (*x, e.mean)).collect();
        let joined = Mark::Line { points: curve, style: line(&kind.network.name).faint(0.6) };
        std::iter::once(joined).chain(points(kind, &shares)).collect()
    };
    findings.figures.push(Drawn {
        file: "low-degrees".into(),
        title: "Weight on low degrees".into(),
        caption: format!("Of the variance that is not constant, the share at degrees 1 to k; width {widest}, 95 % intervals over networks. Higher is a stronger bias to simple functions."),
        published: "The paper leaves open how the bias of transformers compares with that of other architectures (Section 8).".into(),
        figure: Figure {
            panels: panels(&layers, Axis::whole("degrees up to k").within(0.7, 3.3), Axis::linear("share of the non-constant variance").within(0.0, 1.02), &cumulated),
            columns: depths.len().clamp(1, 3),
            legend: legend.clone(),
            note: note.clone(),
            ..Figure::default()
        },
    });

    let by_width = |kind: &Kind, kernel: Kernel| {
        let mut marks = points(kind, &[(kind.width as f64, kind.summary(kernel).mean_degree)]);
        if kind.width == widest
            && let Some(limit) = infinitely_wide(&kind.network, kernel)
        {
            let degree = mean_degree(&limit);
            let ends = [plan.settings.widths[0] as f64, widest as f64].map(|width| (width, degree));
            marks.push(Mark::Line { points: ends.into(), style: line(&kind.network.name).faint(0.8) });
        }
        marks
    };
    if plan.settings.widths.len() > 1 {
        findings.figures.push(Drawn {
            file: "widths".into(),
            title: "Finite and infinite width".into(),
            caption: "Mean degree of the variance against width (log scale), 95 % intervals over networks; lines: infinite width.".into(),
            published: String::new(),
            figure: Figure {
                panels: panels(&layers, Axis::log("width"), Axis::linear("mean degree"), &by_width),
                columns: depths.len().clamp(1, 3),
                legend,
                note,
                ..Figure::default()
            },
        });
    }
    add_tables(&mut findings, kinds, widest);
    findings
}

fn add_tables(findings: &mut Findings, kinds: &[Kind], widest: usize) {
    let mut all = Vec::new();
    for (kernel, name) in KERNELS {
        let mut shown: Vec<&Kind> = kinds.iter().filter(|kind| kind.width == widest).collect();
        shown.sort_by(|a, b| {
            let low = |kind: &Kind| kind.summary(kernel).low_degree_share[1].mean;
            a.network.depth.cmp(&b.network.depth).then(low(b).total_cmp(&low(a)))
        });
        let mut rows = Vec::new();
        for kind in shown {
            let summary = kind.summary(kernel);
            let limit = infinitely_wide(&kind.network, kernel);
            let wide = limit.as_ref().map_or("–".into(), |shares| number(share_up_to(shares, 2)));
            let [one, two, three] = summary.low_degree_share.map(|share| estimate(&share));
            rows.push(vec![
                kind.network.name.clone(),
                kind.network.depth.to_string(),
                one,
                two,
                wide,
                three,
                estimate(&summary.mean_degree),
                summary.off_diagonal.map_or("–".into(), |share| estimate(&share)),
                summary.networks.to_string(),
            ]);
            all.push(
                json!({"arch": kind.network.name, "depth": kind.network.depth, "width": kind.width, "kernel": kernel,
                "infinite_fractional_variance": limit, "finite": summary}),
            );
        }
        findings.tables.push(Table {
            title: format!("{name}: most weight on degrees 1 and 2 first"),
            head: ["architecture", "layers", "degree 1", "degrees 1–2", "the same, infinite width", "degrees 1–3", "mean degree", "between monomials", "networks"].map(String::from).into(),
            rows,
            note: "Shares of the variance that is not constant, ± one standard error over networks; mean degree with the constant. Between monomials: the share of the kernel's squared norm that no function of ⟨x, y⟩ has.".into(),
        });
    }
    findings.summary.insert("kinds".into(), all.into());
}

fn estimate(estimate: &Estimate) -> String {
    match estimate.std_error {
        Some(error) => format!("{} ± {}", number(estimate.mean), number(error)),
        None => number(estimate.mean),
    }
}

/// A row for each architecture, depth, width, kernel and degree.
fn table_of_all(kinds: &[Kind]) -> String {
    let mut text = String::from(
        "arch,tokens,token_width,depth,width,kernel,degree,networks,fractional_variance,std_error,infinite_width\n",
    );
    for kind in kinds {
        let Architecture { name, tokens, token_width, depth, .. } = &kind.network;
        for (kernel, kernel_name) in KERNELS {
            let limit = infinitely_wide(&kind.network, kernel);
            let summary = kind.summary(kernel);
            for (degree, share) in summary.fractional_variance.iter().enumerate() {
                let error = share.std_error.map(|error| error.to_string()).unwrap_or_default();
                let infinite = limit.as_ref().map(|shares| shares[degree].to_string()).unwrap_or_default();
                let (width, networks, mean) = (kind.width, summary.networks, share.mean);
                let kernel = kernel_name.to_lowercase();
                let _ = writeln!(
                    text,
                    "{name},{tokens},{token_width},{depth},{width},{kernel},{degree},{networks},{mean},{error},{infinite}"
                );
            }
        }
    }
    text
}

fn html(plan: &SpectraPlan, findings: &Findings, computed: usize, planned: usize) -> String {
    let heading = page::Heading {
        title: &plan.title,
        source: &plan.source,
        about: &plan.about,
        badge: "quick",
        scale: &plan.scale,
        scale_words: "The paper has no such experiment: nothing here repeats a published number.",
    };
    let counts = format!(
        "<div class=\"counts\"><div><b>{planned}</b> networks planned</div><div><b>{computed}</b> computed</div></div>\n"
    );
    let settings: Map<String, Value> = match serde_json::to_value(&plan.settings) {
        Ok(Value::Object(settings)) => settings,
        _ => Map::new(),
    };
    let rows: String = settings
        .iter()
        .map(|(key, value)| format!("<tr><th>{key}</th><td>{}</td></tr>", page::escape(&value.to_string())))
        .collect();
    let mut html = page::opening(&heading) + &counts;
    findings.figures.iter().for_each(|drawn| html += &page::figure(drawn));
    findings.tables.iter().for_each(|table| html += &page::table(table));
    let _ = writeln!(
        html,
        "<section><details><summary>Settings</summary><table class=\"settings\"><tbody>{rows}</tbody></table></details></section>\n\
         <section><h2>Repeat it</h2><pre>{}</pre><p>In this folder: <a href=\"results.csv\">results.csv</a>, \
         <a href=\"summary.json\">summary.json</a>, <a href=\"figures\">figures/</a> (SVG and PNG), networks/ (both kernels of every \
         network). Made by {}.</p><details><summary>The recipe</summary><pre>{}</pre></details></section>\n</main></body></html>",
        page::escape(&plan.command()),
        page::escape(&plan.program),
        page::escape(&plan.recipe_text)
    );
    html
}
