//! `pudica measure`: its inputs, and its folder.

use super::runs::{Folders, cases_of, files};
use super::{file, said, write};
use crate::case::Case;
use crate::mutate::Form;
use crate::target::{Memory, Target};
use pudica_lab::Stop;
use pudica_measure::nudges::NudgeRequest;
use pudica_measure::{Compared, Enough, InputSet, InputsRequest, Question, measure, open_model};
use pudica_model::{Choices, ModelRequest, Source, Takes};
use pudica_report::MeasureDrawing;

const NAMES: [&str; 6] = ["a.npy", "a.npz", "a.csv", "a.tsv", "b.csv", "a.png"];

pub const INPUTS: Target = Target {
    name: "inputs",
    about: "inputs of `pudica measure`: arrays, several arrays, tables, pictures; the first of them are read",
    form: Form::Plain,
    words: &[
        "'descr'",
        "'shape'",
        "'<f4'",
        "'<i8'",
        "'<f2'",
        "'|u1'",
        "(2, 3)",
        "(4,)",
        "inputs.npy",
        "labels.npy",
        "label",
        "text",
        ",",
        "\t",
        "\n",
        "\"",
        "nan",
        "inf",
        "1e39",
        "-1",
    ],
    memory: Memory { constant: 16, factor: 12_000 },
    seeds: || {
        let mut cases = vec![
            Case::new(0, file!("crates/measure/tests/fixtures/half.npy")),
            Case::new(0, file!("crates/measure/tests/fixtures/tokens.npy")),
            Case::new(2, "a,b,label\n1,2.5,x\n-3e2,4,\"y\"\n7,8,x\n"),
            Case::new(3, "text\tlabel\ta\none two\tx\t1\nthree\ty\t2\n"),
            Case::packed(4, "a,b\n1,2\n3,4\n"),
        ];
        cases.extend(Case::zip(1, file!("crates/measure/tests/fixtures/plain.npz")));
        cases.extend(Case::zip(1, file!("crates/measure/tests/fixtures/packed.npz")));
        let pictures = files().into_iter().filter(|(path, _)| path.extension().is_some_and(|ending| ending == "png"));
        cases.extend(pictures.take(1).map(|(_, bytes)| Case::png(5, bytes)));
        cases
    },
    reader: |folder| {
        let folder = folder.to_path_buf();
        let mut turn = 0;
        Box::new(move |part, bytes| {
            let path = folder.join(NAMES[part % NAMES.len()]);
            write(&path, bytes);
            let request = InputsRequest { source: path.display().to_string(), ..InputsRequest::default() };
            turn += 1;
            let takes = match turn % 4 {
                0 => Takes::Anything,
                1 => Takes::Rows { width: None },
                2 => Takes::Tokens { length: None, vocabulary: Some(300) },
                _ => Takes::Images { channels: None, height: Some(4), width: Some(4) },
            };
            let set = InputSet::open(&request, &takes).map_err(|error| error.to_string())?;
            (0..set.about().count.min(8)).try_for_each(|index| said(set.read(index)))
        })
    },
    short: 1000,
};

pub const MEASURED: Target = Target {
    name: "measured",
    about: "summary.json, details.json and examples of a measurement, as tables, figures and a page",
    form: Form::Json,
    words: &[
        "\"results\"",
        "\"models\"",
        "\"differences\"",
        "\"profiles\"",
        "\"sites\"",
        "\"grid\"",
        "\"rows\"",
        "\"columns\"",
        "\"by_site\"",
        "\"value\"",
        "\"ci95\"",
        "null",
        "[]",
        "1e308",
        "0",
        "\"bits\"",
        "\"positions\"",
    ],
    memory: Memory { constant: 512, factor: 4000 },
    seeds: || {
        let mut cases = cases_of("measured", &["summary.json", "details.json"]);
        cases.extend(cases_of("measured-pictures", &["summary.json", "details.json"]));
        cases
    },
    reader: |folder| {
        let folders = Folders::unpack(folder);
        Box::new(move |part, bytes| {
            folders.with(part, bytes, 1, |folder| said(MeasureDrawing::new(folder).map(|drawing| drawing.page())))
        })
    },
    short: 300,
};

pub const CONTINUED: Target = Target {
    name: "continued",
    about: "the folder of a measurement that is continued: measure.json and saved work",
    form: Form::Json,
    words: &[
        "\"work\"",
        "\"identity\"",
        "\"format\"",
        "\"seconds\"",
        "\"from\"",
        "[",
        "]",
        "null",
        "0",
        "1e308",
        "-1",
        "\n",
    ],
    memory: Memory { constant: 32, factor: 2000 },
    seeds: || {
        let made = tempdir("pudica-fuzz-seed");
        let folders = Folders::unpack(&made);
        drop(folders);
        let out = made.join("out");
        said(question(&made).and_then(|mut question| again(&mut question, &out))).expect("a measurement");
        let mut cases = vec![Case::new(0, std::fs::read(out.join("measure.json")).unwrap_or_default())];
        let work = std::fs::read_dir(out.join("work")).into_iter().flatten().flatten();
        cases.extend(work.map(|entry| Case::new(1, std::fs::read(entry.path()).unwrap_or_default())));
        _ = std::fs::remove_dir_all(&made);
        cases
    },
    reader: |folder| {
        drop(Folders::unpack(folder));
        let (root, out) = (folder.to_path_buf(), folder.join("out"));
        _ = std::fs::remove_dir_all(&out); // what a panic has left there
        let mut question = question(&root).expect("a question");
        _ = again(&mut question, &out);
        let saved = std::fs::read_dir(out.join("work")).into_iter().flatten().flatten().next();
        let saved = saved.map_or(out.join("work/none"), |entry| entry.path());
        let owner = out.join("measure.json");
        let sound = std::fs::read(&owner).unwrap_or_default();
        Box::new(move |part, bytes| {
            write(&owner, if part == 0 { bytes } else { &sound });
            if part == 1 {
                write(&saved, bytes);
            }
            again(&mut question, &out)
        })
    },
    short: 20,
};

fn tempdir(name: &str) -> std::path::PathBuf {
    std::env::temp_dir().join(format!("{name}-{}", std::process::id()))
}

/// A few samples of a small network on pictures.
fn question(root: &std::path::Path) -> Result<Question, String> {
    let runs = root.join("sweeps/classifier/runs");
    let run = std::fs::read_dir(&runs).into_iter().flatten().flatten().map(|entry| entry.path()).min();
    let request = ModelRequest { source: Source::File(run.unwrap_or(runs)), choices: Choices::default() };
    let model = open_model(&request, None).map_err(|error| error.to_string())?;
    let source = root.join("measured-pictures/examples").display().to_string();
    let inputs = InputSet::open(&InputsRequest { source, ..InputsRequest::default() }, &model.about().takes);
    let inputs = inputs.map_err(|error| error.to_string())?;
    let nudges = NudgeRequest::parse("patch-noise:size=4,draws=1").map_err(|error| error.to_string())?.settings();
    Ok(Question {
        models: vec![model],
        inputs,
        nudges,
        responses: Compared::usual(false),
        enough: Enough::default(),
        seed: 0,
        channel_std: vec![0.5],
        data: None,
        command: "pudica measure".into(),
        program: "pudica".into(),
    })
}

fn again(question: &mut Question, out: &std::path::Path) -> Result<(), String> {
    said(measure(question, out, &|_: &pudica_lab::Event| {}, &Stop::default()))
}
