//! Conversations with programs: one that answers, and those that die, hang or answer wrongly.
#![cfg(unix)]

use pudica_model::{Choices, Input, Model, ModelRequest, ModelResult, Outputs, Source, Takes, open};
use pudica_probe::Sequence;
use std::path::Path;
use std::time::{Duration, Instant};

fn start(command: &str, choices: Choices) -> ModelResult<Box<dyn Model>> {
    open(&ModelRequest { source: Source::Program(command.into()), choices })
}

/// A shell program, after it said hello with two classes.
fn shell(script: &str, timeout: f64) -> Box<dyn Model> {
    let hello = r#"read a; echo '{"pudica":1,"takes":"rows","shape":[2],"classes":2,"outputs":"probabilities"}'; "#;
    let command = format!("sh -c {}", quoted(&format!("{hello}{script}")));
    start(&command, Choices { timeout: Some(timeout), ..Choices::default() }).unwrap()
}

fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

fn rows(count: usize) -> Vec<Input> {
    (0..count).map(|row| Input::Row(vec![row as f32, -1.0])).collect()
}

fn problem(model: &mut Box<dyn Model>, count: usize) -> String {
    model.scores(&rows(count)).unwrap_err().to_string()
}

/// Whether there is a Python; says so where there is not.
fn python() -> bool {
    let found =
        std::process::Command::new("python3").arg("--version").output().is_ok_and(|output| output.status.success());
    if !found {
        eprintln!("skipped: there is no python3");
    }
    found
}

#[test]
fn the_example_of_the_documentation_answers() {
    if !python() {
        return;
    }
    let serve = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/examples/serve.py");
    let mut model = start(&format!("python3 {}", quoted(&serve.display().to_string())), Choices::default()).unwrap();
    let about = model.about().clone();
    assert_eq!((about.name.as_str(), about.runtime.as_str(), about.classes), ("larger sum", "program", 2));
    assert_eq!((&about.takes, about.outputs, model.batch()), (&Takes::Rows { width: None }, Outputs::Logits, 256));
    // More than a batch, and rows of two lengths.
    let mut inputs = rows(600);
    inputs.extend([Input::Row(vec![1.0, 2.0, 3.5]), Input::Bits(vec![1, 0, 1])]);
    let scores = model.scores(&inputs).unwrap();
    assert_eq!((scores.classes, scores.rows().count()), (2, 602));
    let expected = |row: usize| [0.0, row as f32 - 1.0];
    assert!(scores.rows().take(600).enumerate().all(|(row, found)| found == expected(row)));
    assert_eq!(scores.rows().skip(600).collect::<Vec<_>>(), [[0.0, 6.5], [0.0, 2.0]]);
    let tokens = Input::Tokens(Sequence { ids: vec![7, 3], touch: None });
    assert_eq!(model.scores(&[tokens]).unwrap().values, [0.0, 10.0]);
    assert!(model.weights().unwrap_err().to_string().contains("larger sum (program) has no weights"));
    // The same program is the same model; another script is not.
    let again = start(&format!("python3 {}", quoted(&serve.display().to_string())), Choices::default()).unwrap();
    assert_eq!(again.about().digest, about.digest);
}

#[test]
fn texts_are_lines_of_json() {
    if !python() {
        return;
    }
    let script = "import json, struct, sys\n\
        i, o = sys.stdin.buffer, sys.stdout.buffer\n\
        i.readline(); o.write(b'{\"pudica\":1,\"takes\":\"texts\",\"classes\":1}\\n'); o.flush()\n\
        rows = json.loads(i.readline())['rows']\n\
        texts = [json.loads(i.readline()) for _ in range(rows)]\n\
        o.write(b'{\"rows\":%d,\"classes\":1}\\n' % rows)\n\
        o.write(b''.join(struct.pack('<f', len(t) if isinstance(t, str) else -len(t[1])) for t in texts)); o.flush()\n";
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("texts.py");
    std::fs::write(&path, script).unwrap();
    let mut model = start(&format!("python3 {}", path.display()), Choices::default()).unwrap();
    assert_eq!((model.about().takes.clone(), model.about().name.as_str()), (Takes::Texts, "texts.py"));
    assert!(model.about().notes[0].contains("taken as logits"));
    let inputs = [Input::Text("naïve\n\"x\"".into(), None), Input::Text("a".into(), Some("four".into()))];
    assert_eq!(model.scores(&inputs).unwrap().values, [9.0, -4.0]);
}

#[test]
fn a_program_that_dies() {
    let mut model = shell("read b; exit 3", 20.0);
    let sentence = problem(&mut model, 1);
    assert!(sentence.contains("the program ended (exit status: 3) before it answered to a batch of 1"), "{sentence}");
    assert_eq!(problem(&mut model, 1), sentence, "and it stays dead");
    let mut model = shell(r#"read b; echo '{"rows":2,"classes":2}'; printf abc"#, 20.0);
    assert!(problem(&mut model, 2).contains("after 3 of the 16 bytes of its answer"));
    let refused = |command: &str| start(command, Choices::default()).err().unwrap().to_string();
    assert!(refused("sh -c 'exit 1'").contains("ended (exit status: 1) before it answered to hello"));
    assert!(refused("/no/such/program x").contains("'/no/such/program' cannot be started"));
    assert!(refused("sh -c 'kill -9 $$'").contains("signal: 9"));
}

#[test]
fn a_program_that_hangs_is_ended() {
    let begun = Instant::now();
    // Much to send, and nobody reads it.
    let mut model = shell("exec sleep 600", 0.3);
    let many: Vec<Input> = (0..64).map(|_| Input::Row(vec![0.5; 100_000])).collect();
    let sentence = model.scores(&many).unwrap_err().to_string();
    assert!(sentence.contains("no answer to a batch of 64 after 0.3 s; --timeout gives it longer"), "{sentence}");
    drop(model);
    assert!(begun.elapsed() < Duration::from_secs(30), "it was not waited for");
    let refused = start("true", Choices { timeout: Some(0.0), ..Choices::default() }).err().unwrap().to_string();
    assert!(refused.contains("above 0"), "{refused}");
}

#[test]
fn a_dropped_model_leaves_no_process() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("pid");
    let model = shell(&format!("echo $$ > {}; read b; exec sleep 600", file.display()), 20.0);
    let mut pid = String::new();
    while pid.trim().is_empty() {
        pid = std::fs::read_to_string(&file).unwrap_or_default();
        std::thread::sleep(Duration::from_millis(5));
    }
    let process = format!("/proc/{}", pid.trim());
    let known = Path::new("/proc/self").exists(); // Linux
    assert!(!known || Path::new(&process).exists());
    drop(model);
    assert!(!Path::new(&process).exists());
}

#[test]
fn wrong_answers() {
    for (script, expected) in [
        (r#"echo '{"rows":2,"classes":2}'; printf 0123456789abcdef"#, "2 rows were answered for 1 inputs"),
        (r#"echo '{"rows":1,"classes":3}'; printf 0123456789ab"#, "3 classes were answered, but it said hello with 2"),
        (
            r#"echo '{"rows":1,"classes":2}'; printf '\0\0\0\0\0\0\300\177'"#,
            "input 0 of a batch of 1 is NaN for class 1",
        ),
        (r#"echo 'Loading model...'"#, "'Loading model...' came where an answer should begin with one line of JSON"),
        (r#"echo '[1]'"#, "one line of JSON"),
        (r#"echo '{"rows":1}'"#, "tells no rows and classes"),
        (r#"echo '{"rows":9999999999999,"classes":9999999999}'"#, "larger than what is read here"),
        (r#"echo '{"error":"out of memory"}'"#, "it answered to a batch of 1 with an error: out of memory"),
        ("head -c 200000 /dev/zero", "one line of JSON"),
    ] {
        let mut model = shell(&format!("read b; {script}; exec sleep 600"), 20.0);
        let sentence = problem(&mut model, 1);
        assert!(sentence.starts_with("sh -c") && sentence.contains(expected), "{script}: {sentence}");
        assert_eq!(problem(&mut model, 1), sentence);
    }
    for (hello, expected) in [
        (r#"{"pudica":2,"classes":2}"#, "version 2"),
        (r#"{"pudica":1}"#, "missing field `classes`"),
        (r#"{"pudica":1,"classes":0}"#, "0 classes"),
        (r#"{"pudica":1,"classes":2,"takes":"sounds"}"#, "takes 'sounds'; say images"),
        (r#"{"pudica":1,"classes":2,"takes":"images","shape":[3]}"#, "a shape of 1 sizes; 3 are needed"),
        (r#"{"pudica":1,"classes":2,"class_names":["a"]}"#, "1 class_names for 2 classes"),
        (r#"{"pudica":1,"classes":2,"batch":0}"#, "0 inputs at a time"),
        (r#"{"pudica":1,"classes":2,"class":2}"#, "unknown field `class`"),
        ("hello", "one line of JSON"),
    ] {
        let command = format!("sh -c {}", quoted(&format!("read a; echo '{hello}'; exec sleep 600")));
        let sentence = start(&command, Choices::default()).err().unwrap().to_string();
        assert!(sentence.contains(expected), "{hello}: {sentence}");
    }
    // An answer that is too long shows with the next one.
    let mut model =
        shell(r#"for i in 1 2; do read b; echo '{"rows":1,"classes":2}'; printf 0123456789; done; sleep 600"#, 20.0);
    model.scores(&rows(1)).unwrap();
    std::thread::sleep(Duration::from_millis(300));
    let sentence = problem(&mut model, 1);
    assert!(sentence.contains("as many bytes as it says"), "{sentence}");
}
