//! Pages of `pudica measure`, from made-up measurements: images, texts, tables, bits, corruptions, and runs that did not get far.

mod common;

use std::path::Path;

use common::{checked_page, place};
use serde_json::{Value, json};

/// A value with the interval of a standard error.
fn value(value: f64, error: f64) -> Value {
    json!({"value": value, "std_error": error, "ci95": [value - 1.96 * error, value + 1.96 * error]})
}

fn fraction(share: f64, error: f64) -> Value {
    let ci95 = [(share - 1.96 * error).max(0.0), (share + 1.96 * error).min(1.0)];
    json!({"value": share, "std_error": error, "ci95": ci95})
}

/// Two JSON objects as one.
fn with(one: Value, other: Value) -> Value {
    let mut one = one.as_object().unwrap().clone();
    one.extend(other.as_object().unwrap().clone());
    Value::Object(one)
}

fn model(name: &str, clean_accuracy: Option<f64>) -> Value {
    json!({
        "name": name, "runtime": "tract 0.23.9", "takes": {"kind": "anything"}, "outputs": "logits", "classes": 10, "parameters": 269_722,
        "digest": "0123456789abcdef", "notes": [], "inputs": 500,
        "clean_accuracy": clean_accuracy.map(|share| fraction(share, 0.012)),
        "clean_loss": clean_accuracy.map(|share| value(1.0 - share, 0.02)),
    })
}

/// `patch-noise:size=4,variance=1` as its kind and its parameters.
fn result(model: &str, nudge: &str, response: &str, found: Value) -> Value {
    let (kind, rest) = nudge.split_once(':').unwrap_or((nudge, ""));
    let mut parameters = serde_json::Map::new();
    for part in rest.split([',', ':']).filter(|part| !part.is_empty()) {
        let (name, text) =
            part.split_once('=').unwrap_or((if part.parse::<f64>().is_ok() { "severity" } else { "name" }, part));
        let number = serde_json::from_str(text).ok().filter(Value::is_number);
        parameters.insert(name.into(), number.unwrap_or_else(|| json!(text)));
    }
    let about = json!({
        "model": model, "nudge": nudge, "kind": kind, "parameters": parameters, "response": response, "inputs": 500,
        "evaluations": 160_000, "exact": false,
    });
    with(about, found)
}

fn difference(model: &str, with_model: &str, nudge: &str, response: &str, found: Value) -> Value {
    with(json!({"model": model, "with": with_model, "nudge": nudge, "response": response, "inputs": 500}), found)
}

fn profile(model: &str, nudge: &str, sites: Value, by_site: &[f64], classes: &[&str]) -> Value {
    let by_class: Vec<Value> = classes
        .iter()
        .enumerate()
        .map(|(place, class)| json!([class, fraction(0.02 + 0.01 * place as f64, 0.006), 50]))
        .collect();
    let inputs: Vec<usize> = (0..by_site.len()).map(|site| 500 - 5 * site).collect();
    json!({
        "model": model, "nudge": nudge, "response": "label", "sites": sites,
        "by_site": by_site.iter().map(|share| fraction(*share, 0.1 * share + 0.002)).collect::<Vec<_>>(),
        "inputs_at_site": inputs, "by_class": by_class,
    })
}

fn example(model: &str, nudge: &str, most: bool, index: usize, by_site: &[f64]) -> Value {
    let mean = by_site.iter().sum::<f64>() / by_site.len() as f64;
    json!({
        "model": model, "nudge": nudge, "response": "label", "most": most, "index": index, "name": format!("input {index}"),
        "label": "cat", "predicted": if most { "dog" } else { "cat" }, "value": mean, "by_site": by_site, "image": null, "words": [],
        "values": [],
    })
}

/// What was asked about.
fn inputs(kind: &str, source: &str, available: usize, classes: &[&str]) -> Value {
    json!({"source": source, "kind": kind, "shape": [3, 32, 32], "count": 500, "available": available, "classes": classes,
        "columns": [], "spread": [], "digest": "0"})
}

/// A measurement of these models and inputs, complete and without a word.
fn summary(models: Vec<Value>, inputs: Value, results: Vec<Value>, differences: Vec<Value>) -> Value {
    json!({
        "format": 1, "program": "pudica 0.1.0", "command": "pudica measure a.onnx b.onnx --inputs x --nudge patch-noise:size=4,variance=1",
        "complete": true, "problem": null, "seconds": 130.0, "inputs": inputs, "models": models, "results": results,
        "differences": differences, "notes": [],
    })
}

/// Writes a folder and its page; returns the names of its figures and the page.
fn written(folder: &Path, summary: &Value, details: Option<Value>) -> (Vec<String>, String) {
    std::fs::create_dir_all(folder).unwrap();
    std::fs::write(folder.join("summary.json"), summary.to_string()).unwrap();
    if let Some(details) = details {
        std::fs::write(folder.join("details.json"), details.to_string()).unwrap();
    }
    let report = pudica_report::write_measure(folder).unwrap();
    checked_page(&report.page, &report.figures)
}

fn details(profiles: Vec<Value>, examples: Vec<Value>, boolean: Vec<Value>) -> Option<Value> {
    Some(json!({"profiles": profiles, "examples": examples, "boolean": boolean}))
}

const CLASSES: [&str; 10] = ["airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"];

/// A picture of 32 x 32 pixels, darker in a corner.
fn picture(path: &Path, index: usize) {
    use resvg::tiny_skia::{Color, Pixmap, PremultipliedColorU8};
    let mut pixels = Pixmap::new(32, 32).unwrap();
    pixels.fill(Color::from_rgba8(120, 160, (40 * index % 255) as u8, 255));
    for (place, pixel) in pixels.pixels_mut().iter_mut().enumerate() {
        if place % 32 + place / 32 < 20 + index {
            *pixel = PremultipliedColorU8::from_rgba(40, (8 * (place % 32)) as u8, 70, 255).unwrap();
        }
    }
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, pixels.encode_png().unwrap()).unwrap();
}

/// 8 x 8 patches, felt most near a place.
fn patches(strength: f64, (row, column): (f64, f64)) -> Vec<f64> {
    let at = |site: usize| {
        let (down, across) = ((site / 8) as f64 - row, (site % 8) as f64 - column);
        strength * (-(down * down + across * across) / 8.0).exp()
    };
    (0..64).map(at).collect()
}

#[test]
fn images_have_curves_maps_and_overlays() {
    let temporary = tempfile::tempdir().unwrap();
    let folder = place(temporary.path(), "measure/images");
    let models = ["resnet20-cifar10.onnx", "vit-small.onnx"];
    let noise = |variance: f64| format!("patch-noise:size=4,variance={variance}");
    let (mut results, mut differences, mut profiles, mut examples) = (vec![], vec![], vec![], vec![]);
    for (place, model) in models.iter().enumerate() {
        let strength = [0.08, 0.03][place];
        for variance in [0.1, 1.0, 5.0] {
            results.push(result(model, &noise(variance), "label", fraction(strength * (1.0 + variance).ln(), 0.004)));
            results.push(result(model, &noise(variance), "l2", value(8.0 * strength * variance, 0.02)));
        }
        results.push(result(model, "patch-replace:size=4", "label", fraction(0.12 - 0.01 * place as f64, 0.01)));
        for (rho, rise) in [(0.0005, 0.01), (0.005, 0.1), (0.05, 1.5)] {
            results.push(result(model, &format!("weight-noise:rho={rho}"), "loss", value(rise, 0.2 * rise)));
        }
        for corruption in ["fog", "snow", "gaussian-blur"] {
            for severity in [1, 3, 5] {
                let nudge = format!("corruption:{corruption}:{severity}");
                results.push(result(model, &nudge, "accuracy", fraction(0.9 - 0.11 * f64::from(severity), 0.02)));
            }
        }
        let grid = json!({"kind": "grid", "rows": 8, "columns": 8});
        let map = patches(3.0 * strength, [(3.0, 3.0), (5.0, 4.0)][place]);
        profiles.push(profile(model, &noise(1.0), grid.clone(), &map, &CLASSES));
        profiles.push(profile(model, &noise(5.0), grid.clone(), &map, &CLASSES));
        profiles.push(profile(model, "patch-replace:size=4", grid, &map, &CLASSES));
        for (index, most) in [(3, true), (7, true), (11, false)] {
            picture(&folder.join(format!("examples/{index}.png")), index);
            let map = patches(if most { 0.9 } else { 0.05 }, (2.0, index as f64 / 2.0));
            let image = json!({"image": format!("examples/{index}.png")});
            examples.push(with(example(model, &noise(5.0), most, index, &map), image.clone()));
            // Of nudges that differ in a number, the largest has examples enough.
            examples.push(with(example(model, &noise(1.0), most, index, &map), image));
        }
    }
    differences.push(difference(models[0], models[1], &noise(5.0), "label", value(0.09, 0.005)));
    differences.push(difference(models[1], models[0], "patch-replace:size=4", "label", value(-0.01, 0.012)));
    let mut summary = summary(
        vec![model(models[0], Some(0.92)), model(models[1], Some(0.89))],
        inputs("images", "cifar10:test", 10_000, &CLASSES),
        results,
        differences,
    );
    summary["models"][0]["about"] = Value::Null; // unknown keys do no harm
    summary["models"][1]["notes"] = json!(["The output is taken as probabilities: each row sums to 1."]);
    summary["notes"] = json!(["vit-small.onnx gives one class to 71 % of all inputs."]);
    let (names, page) = written(&folder, &summary, details(profiles, examples, vec![]));
    for name in ["label", "l2", "loss", "accuracy", "classes-label"] {
        assert!(names.iter().any(|known| known == name), "{name} in {names:?}");
    }
    assert!(names.contains(&"map-patch-noise-size-4-variance-1".to_string()), "{names:?}");
    // The head: question, warning before the answer, and the answer with its difference; the other two are not told apart.
    assert!(page.contains(
        "<h1>How sensitive are 2 models to patch noise, patch replacement, weight noise and corruption?</h1>"
    ));
    assert!(page.contains("500 of 10,000 images in cifar10:test, 10 classes"));
    let (warning, answer) = (page.find("gives one class to 71").unwrap(), page.find("paired difference 0.09").unwrap());
    assert!(warning < answer);
    assert!(
        page.contains("most for <b>resnet20-cifar10.onnx</b> 0.1433 [0.1355, 0.1512], least for <b>vit-small.onnx</b>")
    );
    assert!(page.contains("cannot tell the two apart"));
    // Of two models the difference stands beside their values.
    assert!(page.contains(">resnet20-cifar10.onnx − vit-small.onnx</th>"));
    assert!(page.contains("0.09000 <span class=\"i\">[0.08020, 0.09980]</span> <span class=\"i\">differs</span>"));
    assert!(page.contains("0.01000 <span class=\"i\">[−0.01352, 0.03352]</span> <span class=\"i\">cannot tell</span>"));
    assert!(page.contains("The output is taken as probabilities"));
    // Curves: variance spans 50 and more, so that powers of ten are on its axis; clean accuracy is at severity 0.
    let curves = std::fs::read_to_string(folder.join("figures/label.csv")).unwrap();
    assert!(curves.contains("\"Patch noise, size 4\",variance,label changes,vit-small.onnx,point,5,"), "{curves}");
    let accuracy = std::fs::read_to_string(folder.join("figures/accuracy.csv")).unwrap();
    assert_eq!(accuracy.matches(",point,0,0.92,").count(), 3, "clean in each panel: {accuracy}");
    // Maps: one scale of colours for both models, up to the largest value of any.
    let map = std::fs::read_to_string(folder.join("figures/map-patch-noise-size-4-variance-1.csv")).unwrap();
    assert!(map.contains(",0.24\n") && map.contains(",0.09\n"), "{map}");
    let svg = std::fs::read_to_string(folder.join("figures/map-patch-noise-size-4-variance-1.svg")).unwrap();
    assert_eq!(svg.matches("#fde725").count(), 1, "the brightest colour once");
    // Each picture is in the page once, and shown plain and under its map for both models.
    assert_eq!(page.matches("data:image/png;base64,").count(), 3);
    assert_eq!(page.matches("<use href=\"#picture-0\"").count(), 4);
    assert!(page.contains("cat, taken for dog") && page.contains("cat (right)"));
    // The table for other programs has a column for each parameter.
    let csv = std::fs::read_to_string(folder.join("results.csv")).unwrap();
    let head = "model,nudge,nudge.kind,nudge.size,nudge.variance,nudge.rho,nudge.name,nudge.severity,response,value,std_error,ci95_low,ci95_high,";
    assert!(csv.starts_with(head), "{}", csv.lines().next().unwrap());
    assert_eq!(csv.lines().count(), 1 + 2 * (3 + 3 + 1 + 3 + 9));
    assert!(folder.join("results.parquet").exists());
}

#[test]
fn texts_without_labels_have_a_profile_and_coloured_words() {
    let temporary = tempfile::tempdir().unwrap();
    let folder = place(temporary.path(), "measure/texts");
    let (name, nudge) = ("bert", "word-replace");
    let words = "the plot is thin but <b>the</b> acting is wonderful".split(' ').collect::<Vec<_>>();
    let by_site = [0.01, 0.1, 0.0, 0.4, 0.2, 0.0, 0.1, 0.0, 0.8];
    let words_of = |by_site: &[f64], most: bool| {
        with(example(name, nudge, most, 4, by_site), json!({"words": words, "label": null, "predicted": "positive"}))
    };
    let embedding = "embedding-noise:variance=15";
    let profile_by_place: Vec<f64> = (0..30).map(|site| 0.2 / (1.0 + f64::from(site))).collect();
    let results = vec![
        with(
            result(name, nudge, "label", fraction(0.07, 0.01)),
            json!({"note": "the budget of 100 evaluations reached 3 inputs"}),
        ),
        result(name, nudge, "total-variation", fraction(0.11, 0.01)),
        result(name, embedding, "label", fraction(0.2, 0.01)),
        result(
            name,
            "typo",
            "label",
            json!({"value": 0.0, "std_error": 0.0, "ci95": [0.0, 0.0061], "note": "No change was seen."}),
        ),
    ];
    let positions = |from_end: bool| json!({"kind": "positions", "from_end": from_end});
    let profiles = vec![
        profile(name, nudge, positions(false), &profile_by_place, &[]),
        profile(name, embedding, positions(true), &profile_by_place, &[]),
    ];
    // Of tokens the last is the first site.
    let tokens = with(example(name, embedding, true, 9, &[0.9, 0.1, 0.0]), json!({"words": ["10", "20", "30"]}));
    let examples = vec![words_of(&by_site, true), words_of(&by_site.map(|share| share / 50.0), false), tokens];
    let summary = summary(vec![model(name, None)], inputs("texts", "reviews.tsv", 500, &[]), results, vec![]);
    let (names, page) = written(&folder, &summary, details(profiles, examples, vec![]));
    let profiles = ["profile-word-replace", "profile-embedding-noise-variance-15"];
    assert_eq!(names, [&["label", "total-variation"][..], &profiles].concat());
    assert!(page.contains("<h1>How sensitive is bert to word replacement, embedding noise and typos?</h1>"));
    assert!(page.contains("500 texts in reviews.tsv, without labels"));
    assert!(page.contains("none seen (less than 6.1·10<sup>−3</sup>)"), "an upper limit in the answer");
    assert!(page.contains("&lt; 0.0061") && !page.contains("No change was seen"), "and in the table");
    assert!(page.contains("bert, word-replace: the budget of 100 evaluations reached 3 inputs."));
    // Words: colour by value, the largest bold, all told on hovering; what a text contains is no markup.
    assert!(page.contains("<span style=\"--t:1.000\" title=\"0.800\"><b>wonderful</b></span>"));
    assert!(page.contains("title=\"0\">&lt;b&gt;the&lt;/b&gt;</span>"));
    assert!(page.contains("Most: “wonderful” (0.800), “thin” (0.400), “but” (0.200)."));
    let profile = std::fs::read_to_string(folder.join("figures/profile-word-replace.csv")).unwrap();
    assert!(profile.contains(",point,1,0.1,"), "counted from the beginning: {profile}");
    let profile = std::fs::read_to_string(folder.join("figures/profile-embedding-noise-variance-15.csv")).unwrap();
    assert!(profile.contains(",point,-1,0.1,"), "counted from the end: {profile}");
    assert!(page.contains("title=\"0.900\"><b>30</b></span>") && page.contains("Most: “30” (0.900), “20” (0.100)."));
    assert!(!page.contains("id=\"classes-"));
}

#[test]
fn features_are_ranked() {
    let temporary = tempfile::tempdir().unwrap();
    let folder = place(temporary.path(), "measure/table");
    let nudge = "feature-noise:scale=0.1";
    let features: Vec<String> = (0..34).map(|place| format!("a column with quite a long name {place}")).collect();
    // The second last is felt most.
    let felt = |scale: f64| -> Vec<f64> {
        (0..34).map(|place| scale * if place == 32 { 0.5 } else { 0.01 * f64::from(place) }).collect()
    };
    let sites = json!({"kind": "features", "names": features});
    let results = ["linear", "forest"].iter().map(|name| result(name, nudge, "label", fraction(0.1, 0.01))).collect();
    let profiles = vec![
        profile("linear", nudge, sites.clone(), &felt(1.0), &["yes", "no"]),
        profile("forest", nudge, sites, &felt(0.5), &["yes", "no"]),
    ];
    let values: Vec<f64> = (0..34).map(|place| 1.5 * f64::from(place)).collect();
    let examples = vec![with(example("linear", nudge, true, 8, &felt(1.0)), json!({"values": values}))];
    let summary = summary(
        vec![model("linear", Some(0.7)), model("forest", Some(0.8))],
        inputs("numbers", "table.csv", 500, &["yes", "no"]),
        results,
        vec![],
    );
    let (names, page) = written(&folder, &summary, details(profiles, examples, vec![]));
    assert_eq!(names, ["label", "features-feature-noise-scale-0.1", "classes-label"]);
    assert!(page.contains("500 rows in table.csv, 2 classes"));
    assert!(page.contains("The first 30 of 34 features."));
    let ranked = &page[page.find("features ranked by").unwrap()..];
    let at = |name: &str| {
        ranked.find(&format!(">a column with quite a long name {name}<")).unwrap_or_else(|| panic!("{name}"))
    };
    assert!(at("32") < at("33") && at("33") < at("31") && at("1") < at("0"), "by what is felt");
    assert!(page.contains("a column with quite a long name 32 = 48 (0.500)"), "an example names its largest");
    let drawn = std::fs::read_to_string(folder.join("figures/features-feature-noise-scale-0.1.csv")).unwrap();
    assert!(drawn.contains(",linear,point,0.5,"), "{drawn}");
    assert_eq!(drawn.lines().filter(|line| line.contains(",point,")).count(), 60);
}

#[test]
fn bits_are_exact() {
    let temporary = tempfile::tempdir().unwrap();
    let folder = place(temporary.path(), "measure/bits");
    let boolean = |name: &str, degree: usize, influence: f64| {
        let profile: Vec<f64> = (0..=4).map(|place| f64::from(u8::from(place == degree))).collect();
        let mut histogram = [0u64; 5];
        histogram[(4.0 * influence) as usize] = 16;
        json!({
            "model": name, "n": 4, "average_sensitivity": 4.0 * influence, "influences": vec![influence; 4], "degree_profile": profile,
            "sensitivity_histogram": histogram, "ones": 0.5,
        })
    };
    let exact = |name: &str, share: f64| {
        let found = json!({"value": share, "std_error": 0.0, "ci95": [share, share], "exact": true});
        result(name, "flip", "label", found)
    };
    let bits = json!({"kind": "bits"});
    let by_bit = |name: &str, share: f64| {
        let mut profile = profile(name, "flip", bits.clone(), &[share; 4], &[]);
        profile["by_site"] = json!(vec![json!({"value": share, "std_error": 0.0, "ci95": null}); 4]);
        profile
    };
    let summary = summary(
        vec![model("parity.onnx", Some(1.0)), model("half.onnx", None)],
        inputs("bits", "bits:4", 16, &["0", "1"]),
        vec![exact("parity.onnx", 1.0), exact("half.onnx", 0.5)],
        vec![],
    );
    let details = details(
        vec![by_bit("parity.onnx", 1.0), by_bit("half.onnx", 0.5)],
        vec![],
        vec![boolean("parity.onnx", 4, 1.0), boolean("half.onnx", 2, 0.5)],
    );
    let (names, page) = written(&folder, &summary, details);
    assert_eq!(names, ["label", "boolean"]);
    assert!(page.contains("<b>parity.onnx</b> 1.000 (exact)"));
    assert_eq!(page.matches("<span class=\"i\">exact</span>").count(), 2);
    let figure = std::fs::read_to_string(folder.join("figures/boolean.csv")).unwrap();
    assert!(figure.contains("Weight by degree,degree,Fourier weight,parity.onnx,point,4,1,"), "{figure}");
    assert!(figure.contains("Strings by sensitivity,sensitivity,strings,half.onnx,point,2,16,"), "{figure}");

    // Of bits that were sampled there is a profile, and no Boolean function.
    let sampled = place(temporary.path(), "measure/bits-sampled");
    let results = ["a", "b"].map(|name| result(name, "bit-flip", "label", fraction(0.3, 0.02))).into();
    let same = json!({"value": 0.0, "std_error": 0.0, "ci95": [0.0, 0.0]});
    let differences = vec![difference("b", "a", "bit-flip", "label", same)];
    let about = inputs("bits", "bits:64", 500, &[]);
    let begun = self::summary(vec![model("a", None), model("b", None)], about, results, differences);
    let profiles = ["a", "b"].map(|name| profile(name, "bit-flip", bits.clone(), &[0.1, 0.5, 0.3], &[])).into();
    let (names, page) = written(&sampled, &begun, self::details(profiles, vec![], vec![]));
    assert_eq!(names, ["label", "profile-bit-flip"]);
    assert!(page.contains("<h1>How sensitive are 2 models to bit flips?</h1>") && page.contains("the same, exactly"));
    let figure = std::fs::read_to_string(sampled.join("figures/profile-bit-flip.csv")).unwrap();
    assert!(figure.contains(",b,point,2,0.5,"), "the second bit: {figure}");
}

#[test]
fn nineteen_corruptions_stand_beside_clean_inputs() {
    let temporary = tempfile::tempdir().unwrap();
    let folder = place(temporary.path(), "measure/corruptions");
    let models = ["resnet20", "resnet44", "vit-tiny-patch16-224", "vit-base-patch16-224"];
    let mut results = Vec::new();
    let mut differences = Vec::new();
    for (place, model) in models.iter().enumerate() {
        for corruption in 0..19u32 {
            let share = 0.9 - 0.03 * f64::from(corruption) + 0.01 * place as f64;
            results.push(result(model, &format!("corruption:kind-{corruption}:2"), "accuracy", fraction(share, 0.02)));
        }
        for other in &models[..place] {
            differences.push(difference(
                model,
                other,
                "corruption:kind-0:2",
                "accuracy",
                value(0.01 * place as f64, 0.011),
            ));
        }
    }
    let all = models.iter().map(|name| model(name, Some(0.93))).collect();
    let summary = summary(all, inputs("images", "photos", 500, &CLASSES), results, differences);
    let (names, page) = written(&folder, &summary, None);
    assert_eq!(names, ["accuracy-corruption"]);
    assert!(page.contains("Accuracy under 19 kinds of corruption"));
    assert!(page.contains("inputs as they are"));
    let figure = std::fs::read_to_string(folder.join("figures/accuracy-corruption.csv")).unwrap();
    assert_eq!(figure.lines().filter(|line| line.contains(",point,")).count(), 4 * 20, "19 and clean");
    assert_eq!(figure.matches(",resnet44,point,0.93,19.").count(), 1, "clean is at the top: {figure}");
    assert!(page.contains("highest for <b>vit-base-patch16-224</b>") && page.contains("lowest for <b>resnet20</b>"));
    // Of more than two models, the pairs have a table.
    assert!(page.contains("<td>vit-base-patch16-224: more</td>") && page.contains("<td>cannot tell</td>"));
    assert!(page.contains("11 more nudges below."));
}

#[test]
fn what_did_not_get_far_says_so() {
    let temporary = tempfile::tempdir().unwrap();
    let folder = place(temporary.path(), "measure/stopped");
    let mut stopped = summary(vec![model("serve.py", None)], inputs("images", "photos", 500, &[]), vec![], vec![]);
    stopped["complete"] = json!(false);
    stopped["problem"] = json!("The program `python serve.py` ended after 3 of 8 batches: exit status 1.");
    let (names, page) = written(&folder, &stopped, None);
    assert!(names.is_empty());
    assert!(
        page.contains("<span class=\"badge quick\">not complete</span> The program `python serve.py` ended after 3")
    );
    assert!(page.contains("Nothing is measured yet."));

    // Half of it: the second model has no result, and is a dash.
    let half = place(temporary.path(), "measure/half");
    let results = vec![result("a", "patch-noise:size=4,variance=1", "label", fraction(0.1, 0.03))];
    let mut begun = summary(
        vec![model("a", Some(0.9)), model("b", None)],
        inputs("images", "photos", 500, &CLASSES),
        results,
        vec![],
    );
    begun["complete"] = json!(false);
    let (names, page) = written(&half, &begun, None);
    assert_eq!(names, ["label"]);
    assert!(page.contains("the command below continues") && page.contains("<td class=\"n\">–</td>"));

    // Counts that a damaged file has are shown, and not added beyond all numbers (found by fuzzing).
    let mut results = vec![
        result("a", "patch-noise:size=4,variance=1", "label", fraction(0.1, 0.03)),
        result("a", "patch-noise:size=4,variance=5", "label", fraction(0.1, 0.03)),
    ];
    results.iter_mut().for_each(|result| result["evaluations"] = json!(u64::MAX));
    let inputs = inputs("images", "photos", 500, &CLASSES);
    let (_, page) = written(&half, &summary(vec![model("a", Some(0.9))], inputs, results, vec![]), None);
    assert!(page.contains("18,446,744,073,709,551,615"));

    // What is no measurement is one sentence.
    std::fs::write(folder.join("summary.json"), "{\"format\": 1}").unwrap();
    let error = pudica_report::write_measure(&folder).unwrap_err().to_string();
    assert!(error.contains("summary.json is damaged (missing field"), "{error}");
    std::fs::remove_file(folder.join("summary.json")).unwrap();
    let error = pudica_report::write_measure(&folder).unwrap_err().to_string();
    assert!(error.starts_with("cannot read") && error.contains("summary.json"), "{error}");
    std::fs::write(folder.join("summary.json"), stopped.to_string()).unwrap();
}

#[test]
fn a_map_of_other_places_than_it_has_values_is_refused() {
    let temporary = tempfile::tempdir().unwrap();
    let folder = place(temporary.path(), "measure/map");
    let nudge = "patch-noise:size=4,variance=1";
    let results = vec![result("a", nudge, "label", fraction(0.1, 0.03))];
    let summary = summary(vec![model("a", None)], inputs("images", "photos", 500, &CLASSES), results, vec![]);
    let map_of = |rows: u64, columns: u64, values: &[f64]| {
        let grid = json!({"kind": "grid", "rows": rows, "columns": columns});
        let map = profile("a", nudge, grid, values, &CLASSES);
        details(vec![map], vec![example("a", nudge, true, 1, &[0.1, 0.2, 0.3, 0.4])], vec![])
    };
    let map = |rows: u64, columns: u64| map_of(rows, columns, &[0.1, 0.2, 0.3, 0.4]);
    // A measurement that was stopped before its first value has a map without any, which is not drawn.
    let huge = 9_007_199_254_740_993;
    let stopped = [map_of(2, 2, &[]), map_of(2, huge, &[]), map_of(4, 0, &[])];
    for (sound, is_drawn) in [(map(2, 2), true)].into_iter().chain(stopped.map(|map| (map, false))) {
        let (names, _) = written(&folder, &summary, sound);
        assert_eq!(names.iter().any(|name| name.starts_with("map-")), is_drawn, "{names:?}");
    }
    // The first asked for petabytes when it was drawn (found by fuzzing), the second divides by nothing.
    for (rows, columns) in [(2, huge), (4, 0), (1 << 63, 2), (3, 2)] {
        std::fs::write(folder.join("details.json"), map(rows, columns).unwrap().to_string()).unwrap();
        let error = pudica_report::write_measure(&folder).unwrap_err().to_string();
        let said = format!("details.json is damaged (a map of {rows} x {columns} places has 4 values)");
        assert!(error.contains(&said), "{error}");
    }
}
