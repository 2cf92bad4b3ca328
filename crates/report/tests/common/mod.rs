//! Sweep folders with made-up runs.

#![allow(dead_code)] // not every test needs all of it

use std::path::Path;

use pudica_lab::plan::{labels, varying};
use pudica_lab::settings::flatten;
use pudica_lab::store::{FORMAT, RunFolder};
use pudica_lab::{Kind, Outcome, Plan, Recipe, Request, RunSummary, Settings, SweepFolder};
use serde_json::{Map, Value, json};

/// A run that is planned and not begun.
pub struct Planned {
    pub id: String,
    /// As in config.json.
    pub settings: Value,
    stored: Settings,
    folder: RunFolder,
}

/// Begins the sweep of a built-in recipe in a folder.
pub fn begin(recipe: &str, scale: Option<&str>, overrides: &[&str], folder: &Path) -> Vec<Planned> {
    begin_sweep(Recipe::find(recipe).unwrap(), scale, overrides, folder)
}

/// Begins the sweep of somebody's own recipe, given as its text.
pub fn begin_own(text: &str, folder: &Path) -> Vec<Planned> {
    begin_sweep(Recipe::parse("own.toml", text).unwrap(), None, &[], folder)
}

fn begin_sweep(recipe: Recipe, scale: Option<&str>, overrides: &[&str], folder: &Path) -> Vec<Planned> {
    let overrides = overrides.iter().map(|text| text.to_string()).collect();
    let plan =
        Plan::new(&recipe, &Request { scale: scale.map(String::from), overrides, ..Request::default() }).unwrap();
    let claimed = SweepFolder::claim(folder, &plan, &pudica_lab::Machine::default(), &mut Vec::new()).unwrap();
    let planned = |run: &pudica_lab::plan::PlannedRun| Planned {
        id: run.id.clone(),
        settings: run.settings.tree(),
        stored: run.settings.clone(),
        folder: claimed.run(&run.id),
    };
    plan.runs.iter().map(planned).collect()
}

/// Begins a sweep of a recipe of a kind, with runs of these settings: by hand, as any program could.
pub fn begin_by_hand(recipe: &str, kind: &str, figures: &str, runs: &[Value], folder: &Path) -> Vec<Planned> {
    let kind = Kind::find(kind).unwrap();
    let planned = |given: &Value| {
        let mut settings = kind.defaults();
        for (key, value) in flatten(given) {
            settings.set(&key, value).unwrap();
        }
        let stored = kind.resolve(&settings).unwrap();
        let id = kind.id(&stored).unwrap();
        Planned { settings: stored.tree(), stored, folder: RunFolder::new(folder.join("runs").join(&id)), id }
    };
    let planned: Vec<Planned> = runs.iter().map(planned).collect();
    let all: Vec<&Settings> = planned.iter().map(|run| &run.stored).collect();
    let labels = labels(kind, &all, &varying(&all));
    let record = |(run, label): (&Planned, String)| json!({"id": run.id, "sweep": "all", "label": label});
    let runs: Vec<Value> = planned.iter().zip(labels).map(record).collect();
    let record = json!({
        "format": FORMAT, "program": "by hand", "recipe": recipe, "kind": kind.name, "title": "By hand", "source": "",
        "about": "", "figures": figures, "scale": "quick", "overrides": [], "command": format!("pudica run {recipe}"),
        "recipe_text": "", "runs": runs,
    });
    std::fs::create_dir_all(folder).unwrap();
    std::fs::write(folder.join("sweep.json"), record.to_string()).unwrap();
    planned
}

impl Planned {
    /// A whole number among its settings.
    pub fn whole(&self, pointer: &str) -> u64 {
        self.settings.pointer(pointer).unwrap().as_u64().unwrap()
    }

    /// A number among its settings.
    pub fn number(&self, pointer: &str) -> f64 {
        self.settings.pointer(pointer).unwrap().as_f64().unwrap()
    }

    /// A text among its settings.
    pub fn text(&self, pointer: &str) -> &str {
        self.settings.pointer(pointer).unwrap().as_str().unwrap()
    }

    /// Begins it and logs these lines.
    pub fn log(&self, lines: impl IntoIterator<Item = Value>) {
        self.folder.create(&self.stored).unwrap();
        lines.into_iter().for_each(|line| self.folder.log(line.as_object().unwrap()).unwrap());
    }

    /// Ends it with these measures and detail.
    pub fn finish(&self, converged: bool, measures: Value, detail: Value) {
        self.end(Outcome::Finished, None, converged, measures, detail);
    }

    /// Ends it with a problem.
    pub fn fail(&self, problem: &str) {
        self.end(Outcome::Failed, Some(problem.into()), false, json!({}), json!({}));
    }

    fn end(&self, outcome: Outcome, problem: Option<String>, converged: bool, measures: Value, detail: Value) {
        let object = |value: Value| -> Map<String, Value> { value.as_object().unwrap().clone() };
        let summary = RunSummary {
            format: FORMAT,
            id: self.id.clone(),
            outcome,
            problem,
            steps: 1,
            converged,
            seconds: 30.0,
            device: "made up".into(),
            made_by: None,
            measures: object(measures),
            detail: object(detail),
            files: None,
        };
        self.folder.finish(&summary).unwrap();
    }
}

/// summary.json of a folder.
pub fn summary(folder: &Path) -> Value {
    serde_json::from_str(&std::fs::read_to_string(folder.join("summary.json")).unwrap()).unwrap()
}

/// Names of the figures of a report, and that each has a PNG, a CSV and a place in the page; the page itself.
pub fn checked(report: &pudica_report::Report) -> (Vec<String>, String) {
    checked_page(&report.page, &report.figures)
}

/// The same of a page and its figures.
pub fn checked_page(path: &Path, figures: &[std::path::PathBuf]) -> (Vec<String>, String) {
    let page = std::fs::read_to_string(path).unwrap();
    let mut names = Vec::new();
    for svg in figures {
        let name = svg.file_stem().unwrap().to_string_lossy().into_owned();
        let png = std::fs::read(svg.with_extension("png")).unwrap();
        assert!(png.starts_with(b"\x89PNG") && png.len() > 5_000, "{}", svg.display());
        assert!(page.contains(&format!("id=\"{name}\"")), "{name}");
        let numbers = std::fs::read_to_string(svg.with_extension("csv")).unwrap();
        assert!(
            numbers.starts_with("panel,x_axis,y_axis,series,mark,x,y,low,high,label,run,")
                && numbers.lines().count() > 1
        );
        assert!(page.contains(&format!("href=\"figures/{name}.csv\"")), "{name}");
        names.push(name);
    }
    // Self-contained: nothing is fetched from anywhere.
    assert!(!page.contains("src=\"http") && !page.contains("@import") && !page.contains("<script src"));
    // Nothing is marked up that a reader should not see.
    let text = &page[page.find("<body>").unwrap()..page.rfind("<script>").unwrap()];
    assert!(!text.contains("^{") && !text.contains("_{"), "{}", path.display());
    assert!(page.contains("Repeat it"));
    (names, page)
}

/// Where a test writes a report: a folder of its own, or, where PUDICA_KEEP_REPORTS names one, in there, to be looked at.
pub fn place(temporary: &Path, name: &str) -> std::path::PathBuf {
    std::env::var_os("PUDICA_KEEP_REPORTS").map_or(temporary.into(), |kept| Path::new(&kept).join(name))
}
