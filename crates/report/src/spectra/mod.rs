//! The report of `vasudeva/spectra`: which architecture puts more weight on low degrees.

mod figures;

use std::fmt::Write;
use std::path::Path;

use pudica_lab::Result;
use pudica_lab::spectra::{Measured, SpectraPlan, read_spectra};
use pudica_theory::spectra::degrees::share_up_to;
use pudica_theory::spectra::{
    Architecture, Estimate, Family, Kernel, Summary, cube_spectrum, infinite_spectrum, summarise,
};
use serde_json::{Value, json};

use crate::experiments::{Findings, Table, number};
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
    let planned = plan.settings.specimens()?.len();
    let kinds = kinds(&plan, &measured)?;
    let mut findings =
        Findings { figures: figures::draw(&plan, &kinds, measured.len(), planned), ..Findings::default() };
    add_tables(&mut findings, &kinds);
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
    /// Of its CK and its NTK.
    summaries: [Summary; 2],
    /// The fractional variances of the infinitely wide network, where they are known.
    limits: [Option<Vec<f64>>; 2],
}

impl Kind {
    fn summary(&self, kernel: Kernel) -> &Summary {
        &self.summaries[usize::from(kernel == Kernel::Ntk)]
    }

    fn limit(&self, kernel: Kernel) -> Option<&[f64]> {
        self.limits[usize::from(kernel == Kernel::Ntk)].as_deref()
    }
}

const KERNELS: [(Kernel, &str); 2] = [(Kernel::Ck, "CK"), (Kernel::Ntk, "NTK")];

fn kinds(plan: &SpectraPlan, measured: &[Measured]) -> Result<Vec<Kind>> {
    let mut kinds = Vec::new();
    for network in plan.settings.kinds()? {
        let limits = KERNELS.map(|(kernel, _)| infinitely_wide(&network, kernel));
        for width in &plan.settings.widths {
            let same = |one: &&Measured| one.specimen.network == network && one.specimen.size.width == *width;
            let spectra: Vec<_> = measured.iter().filter(same).map(|one| one.spectrum.clone()).collect();
            if !spectra.is_empty() {
                let summaries = KERNELS.map(|(kernel, _)| summarise(&spectra, kernel));
                kinds.push(Kind { network: network.clone(), width: *width, summaries, limits: limits.clone() });
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

fn add_tables(findings: &mut Findings, kinds: &[Kind]) {
    let widest = kinds.iter().map(|kind| kind.width).max();
    let mut all = Vec::new();
    for (kernel, name) in KERNELS {
        let mut shown: Vec<&Kind> = kinds.iter().filter(|kind| Some(kind.width) == widest).collect();
        shown.sort_by(|a, b| {
            let low = |kind: &Kind| kind.summary(kernel).low_degree_share[1].mean;
            a.network.depth.cmp(&b.network.depth).then(low(b).total_cmp(&low(a)))
        });
        let mut rows = Vec::new();
        for kind in shown {
            let summary = kind.summary(kernel);
            let limit = kind.limit(kernel);
            let wide = limit.map_or("–".into(), |shares| number(share_up_to(shares, 2)));
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
            let (limit, summary) = (kind.limit(kernel), kind.summary(kernel));
            for (degree, share) in summary.fractional_variance.iter().enumerate() {
                let error = share.std_error.map(|error| error.to_string()).unwrap_or_default();
                let infinite = limit.map(|shares| shares[degree].to_string()).unwrap_or_default();
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
    page::whole(&page::Sheet {
        heading: page::Heading {
            title: &plan.title,
            source: &plan.source,
            about: &plan.about,
            badge: "quick",
            scale: &plan.scale,
            scale_words: "The paper has no such experiment: nothing here repeats a published number.",
        },
        counts: vec![(planned.to_string(), "networks planned"), (computed.to_string(), "computed")],
        findings,
        problems: Vec::new(),
        settings: page::settings_table(&plan.settings),
        repeat: page::Repeat {
            command: &plan.command(),
            program: &plan.program,
            recipe_text: &plan.recipe_text,
            folder: "networks/ (both kernels of every network)",
        },
    })
}
