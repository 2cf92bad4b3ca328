//! `pudica construct` and `pudica bounds` as a user runs them.

mod common;

use common::object as json;
use serde_json::Value;
use std::path::Path;

fn text(arguments: &[&str]) -> String {
    common::printed(Path::new("."), arguments)
}

fn refused(arguments: &[&str]) -> String {
    common::refused(Path::new("."), arguments)
}

/// A construction saved where tests may write.
fn saved(folder: &Path, name: &str, n: &str) -> String {
    let path = folder.join(format!("{name}-{n}.safetensors")).display().to_string();
    text(&["construct", name, "--n", n, "--save", &path]);
    path
}

#[test]
fn a_built_transformer_is_right_on_every_string() {
    let found = json(&["construct", "parity", "--n", "9"]);
    assert_eq!(found["construction"], "parity");
    assert_eq!((&found["check"]["strings"], &found["check"]["exhaustive"]), (&512.into(), &true.into()));
    assert_eq!(
        (&found["check"]["double"]["correct"], &found["check"]["single"]["correct"]),
        (&512.into(), &512.into())
    );
    let shown = text(&["construct", "majority", "--n", "40", "--samples", "11"]);
    assert!(shown.contains("11 random strings with 0 to 40 ones; nothing is verified about the others"), "{shown}");
}

#[test]
fn bounds_of_a_saved_construction() {
    let folder = tempfile::tempdir().unwrap();
    let parity = saved(folder.path(), "parity", "6");
    let found = json(&["bounds", &parity, "--versus", "first", "--rho", "0.02,0.001", "--draws", "3"]);
    assert_eq!((&found["shape"]["n"], &found["shape"]["heads"]), (&6.into(), &2.into()));
    let symbols: Vec<&str> =
        found["constants"]["list"].as_array().unwrap().iter().map(|c| c["symbol"].as_str().unwrap()).collect();
    assert_eq!(symbols, ["C_V", "R", "C_P", "C_A(2)", "C_MLP", "L_MLP", "C(0)", "C(1)", "C(2)", "|Y(1)|", "C"]);
    let claims = found["claims"].as_array().unwrap();
    let of = |name: &str| claims.iter().filter(|claim| claim["name"] == name).collect::<Vec<_>>();
    assert_eq!(of("Theorem 4")[0]["checked"]["method"], "exhaustively");
    assert_eq!((of("Theorem 6").len(), of("Lemma 16").len(), of("Lemma 21").len()), (2, 4, 2));
    assert!(claims.iter().all(|claim| claim["verdict"] != "fails"), "{claims:#?}");
    assert!((found["theorem4"]["average_sensitivity"].as_f64().unwrap() - 6.0).abs() < 0.01);
    let shown = text(&["bounds", &parity, "--draws", "2", "--samples", "4"]);
    assert!(shown.contains("all 64 cases") && shown.contains("holds trivially"), "{shown}");
}

#[test]
fn two_networks_and_shorter_strings() {
    let folder = tempfile::tempdir().unwrap();
    let (long, short) = (saved(folder.path(), "majority", "7"), saved(folder.path(), "first", "5"));
    let found = json(&["bounds", &long, "--n", "5", "--versus", &short, "--draws", "2", "--samples", "4"]);
    assert_eq!(found["shape"]["n"], 5);
    assert_eq!(found["lemma21"]["versus"], short);
    assert!(refused(&["bounds", &long, "--versus", &short]).contains("strings of 5 bits, the other of 7"));
    assert!(refused(&["bounds", &long, "--n", "8"]).contains("1 to 7 bits, not 8"));
    assert!(refused(&["bounds", &long, "--heads", "5"]).contains("a width of 32, which 5 heads do not divide"));
    assert!(refused(&["bounds", &long, "--rho", "-1"]).contains("must be above 0 and at most 1000000, not -1"));
    assert!(refused(&["bounds", &long, "--draws", "1"]).contains("a whole number from 2 to 100,000"));
    assert!(refused(&["bounds", &long, "--versus", "frist"]).contains("did you mean 'first'?"));
    assert!(refused(&["bounds", &long, "--draws", "1000000000000"]).contains("a whole number from 2 to 100,000"));
    assert!(refused(&["bounds", "/dev/zero"]).contains("is not a file"));
}

#[test]
fn what_is_no_network_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    assert!(refused(&["bounds", &path("nothing")]).contains("give a run's folder or a .safetensors file"));
    assert!(refused(&["bounds", &path("")]).contains("is not a run's folder"));
    std::fs::write(folder.path().join("junk.safetensors"), "junk").unwrap();
    assert!(refused(&["bounds", &path("junk.safetensors")]).contains("not a readable safetensors file"));
    std::fs::write(folder.path().join("config.json"), "{}").unwrap();
    assert!(refused(&["bounds", &path("")]).contains("is not a run's configuration"));
}

#[test]
fn impossible_constructions_are_refused() {
    assert!(refused(&["construct", "parity", "--n", "1"]).contains("at least 2 bits"));
    assert!(refused(&["construct", "parity", "--n", "0"]).contains("a whole number from 1 to 10,000"));
    assert!(refused(&["construct", "parity", "--n", "5", "--gain", "-2"]).contains("positive number, not -2"));
    assert!(refused(&["construct", "parity", "--n", "30", "--samples", "1"]).contains("a whole number from 2 to"));
    assert!(
        refused(&["construct", "first", "--n", "3", "--save", "/nowhere/at/all"])
            .contains("cannot write /nowhere/at/all")
    );
    assert!(refused(&["construct", "two-majority", "--n", "2", "--string", "0a"]).contains("has 'a'"));
    assert!(refused(&["construct", "two-majority", "--n", "5", "--string", "101"]).contains("3 bits, but --n is 5"));
    assert!(refused(&["construct", "parity", "--n", "20", "--samples", "99999999"]).contains("53,687,091 fit"));
    assert!(
        refused(&["construct", "parity", "--n", "20", "--samples", "1000000000000"]).contains("a whole number from 2")
    );
    assert!(refused(&["construct", "parity", "--n", "4", "--gain", "1e300"]).contains("choose a smaller --gain"));
    assert!(refused(&["construct", "pairty", "--n", "3"]).contains("parity"));
    assert!(refused(&["construct", "automaton", "mod:1", "--n", "3"]).contains("not modulo 1"));
}

#[test]
fn two_majorities_make_a_parity() {
    let found = json(&["construct", "two-majority", "--n", "16", "--string", "0111000000000000"]);
    assert_eq!((&found["check"]["agreeing"], &found["check"]["exhaustive"]), (&65536.into(), &true.into()));
    assert_eq!(found["worked"]["odd"], true);
    assert!(text(&["construct", "two-majority", "--n", "4", "--string", "0110"]).contains("1 of 2 say yes: even"));
}

#[test]
fn automata_with_and_without_scratchpad() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ends.toml");
    let table = "alphabet = ['a', 'b']\nstates = ['s', 't']\nstart = 's'\naccept = ['t']\n\
                 [transitions]\ns = { a = 's', b = 't' }\nt = { a = 's', b = 't' }\n";
    std::fs::write(&path, table).unwrap();
    let path = path.display().to_string();
    let found = json(&["construct", "automaton", &path, "--n", "5"]);
    // It remembers the last symbol only.
    assert!(found["steps"].as_array().unwrap().iter().all(|step| step["without"] == 1.0 && step["with"] == 1.0));
    let parity = json(&["construct", "automaton", "parity", "--n", "30"]);
    assert_eq!((&parity["steps"][29]["without"], &parity["steps"][29]["with"]), (&30.0.into(), &2.0.into()));
    std::fs::write(&path, table.replace("start = 's'", "start = 'x'")).unwrap();
    let refusal = refused(&["construct", "automaton", &path, "--n", "5"]);
    assert!(refusal.contains("ends.toml: start names 'x', which is not in states"), "{refusal}");
}

#[test]
fn runs_can_start_from_a_construction() {
    let folder = tempfile::tempdir().unwrap();
    let (recipe, out) = (folder.path().join("built.toml"), folder.path().join("out").display().to_string());
    let text_of = |start: &str| {
        format!(
            "title = 'built'\nfigures = 'constructions'\n[small.settings]\nmodel = {{ d = 32, ff = 32, start = '{start}' }}\n\
             train = {{ steps = 0, batch = 16 }}\neval.batches = 1\nmeasure = {{ batches = 2, draws = 2 }}\n\
             [[small.sweep]]\nname = 'all'\ngrid.n = [4, 5]\n"
        )
    };
    std::fs::write(&recipe, text_of("construct:parity")).unwrap();
    let recipe = recipe.display().to_string();
    text(&["run", &recipe, "--out", &out]);
    let summary = std::fs::read_to_string(Path::new(&out).join("summary.json")).unwrap();
    let summary: Value = serde_json::from_str(&summary).unwrap();
    assert_eq!(summary["runs"]["kept"], 2);
    let found = &summary["by_construction"]["PARITY, gain n"];
    assert!((found["average_sensitivity"]["5"]["mean"].as_f64().unwrap() - 5.0).abs() < 1e-9, "{found}");
    assert!(Path::new(&out).join("report.html").exists());
    // A run's folder is a network to bound.
    let run = std::fs::read_dir(Path::new(&out).join("runs")).unwrap().next().unwrap().unwrap().path();
    let bounds = json(&["bounds", run.to_str().unwrap(), "--draws", "2", "--samples", "4"]);
    assert_eq!(bounds["shape"]["d"], 32);

    std::fs::write(&recipe, text_of("construct:pairty")).unwrap();
    assert!(refused(&["run", &recipe, "--out", &out]).contains("did you mean 'parity'?"));
}
