//! Times our kernels against single-threaded memory copies of the same arrays and, where given a Python with boofun, against
//! boofun. `bench/boolean/run` sets everything up.

use pudica_boolean::analysis::{Measure, Request, Subject, analyse};
use pudica_boolean::files::Table;
use pudica_boolean::memory::Array;
use pudica_boolean::{Named, Spectrum, TruthTable, flip_counts, sensitivity_profile, walsh};
use std::hint::black_box;
use std::process::Command;
use std::time::Instant;

fn main() {
    let python = std::env::args().nth(1);
    println!("{} threads; arrays on huge pages; medians of interleaved repetitions\n", rayon::current_num_threads());
    println!("{:<34} {:>12} {:>12} {:>8} {:>8}", "what", "ours, ms", "copy, ms", "copies", "floor");
    for (n, floor) in [(20, 4.0), (24, 2.0), (28, 4.0)] {
        walsh_against_copy(n, floor);
    }
    influences_against_copy(30, 20.0);
    analysis(20);
    analysis(25);
    measures(20);
    if let Some(python) = python {
        spectrum_against_boofun(19, 100.0, &python);
    } else {
        println!("\nboofun: not compared (give a Python that has it: bench/boolean/run does)");
    }
}

/// The middle of `repetitions` pairs of timings, taken in turns so that both sides see the same machine.
fn medians(repetitions: usize, mut ours: impl FnMut(), mut other: impl FnMut()) -> (f64, f64) {
    let time = |f: &mut dyn FnMut()| {
        let started = Instant::now();
        f();
        started.elapsed().as_secs_f64() * 1e3
    };
    let pairs: Vec<(f64, f64)> = (0..repetitions).map(|_| (time(&mut ours), time(&mut other))).collect();
    let middle = |mut times: Vec<f64>| {
        times.sort_by(f64::total_cmp);
        times[times.len() / 2]
    };
    (middle(pairs.iter().map(|p| p.0).collect()), middle(pairs.iter().map(|p| p.1).collect()))
}

fn report(what: &str, (ours, copy): (f64, f64), floor: f64) {
    println!("{what:<34} {ours:>12.3} {copy:>12.3} {:>8.2} {floor:>8}", ours / copy);
}

fn walsh_against_copy(n: usize, floor: f64) {
    let mut data = Array::<f32>::zeros(1 << n);
    data.iter_mut().enumerate().for_each(|(i, x)| *x = (i % 7) as f32);
    let source = data.clone();
    let mut copy = data.clone();
    let repetitions = if n <= 20 { 201 } else { 15 };
    let times = medians(
        repetitions,
        || {
            walsh::transform(black_box(&mut data[..]));
            // Keeps the numbers finite: a transform multiplies them by up to 2^(n/2).
            data[0] = 0.0;
            if !data[1].is_finite() || data[1].abs() > 1e20 {
                data.copy_from_slice(&source);
            }
        },
        || copy.copy_from_slice(black_box(&source)),
    );
    report(&format!("f32 Walsh transform, 2^{n}"), times, floor);
}

fn influences_against_copy(n: usize, floor: f64) {
    let table = random_table(n);
    let words = table.words();
    let source = Array::<i32>::zeros(words.len() * 2);
    let mut copy = Array::<i32>::zeros(words.len() * 2);
    let copy_table = || copy.copy_from_slice(black_box(&source));
    let times = medians(9, || drop(black_box(flip_counts(&table))), copy_table);
    report(&format!("all influences, n={n}, from table"), times, floor);
}

fn random_table(n: usize) -> TruthTable {
    Named::Random(1).boolean_at(n).and_then(|f| f.table()).unwrap_or_else(|error| panic!("{error}"))
}

/// Whole analyses, for scale.
fn analysis(n: usize) {
    let table = random_table(n);
    let (spectrum, profile) =
        medians(9, || drop(black_box(Spectrum::of(&table))), || drop(black_box(sensitivity_profile(&table))));
    println!("n={n}: spectrum with degree profile {spectrum:.2} ms, sensitivity histogram {profile:.2} ms");
}

/// What each measure takes, beside the degree profile, which is the transform and little else.
fn measures(n: usize) {
    let table = random_table(n);
    let time = |measure: Measure, p: Option<f64>| {
        let request = Request { measures: Some(vec![measure]), p, ..Request::default() };
        let found = analyse(Subject::Table(Table::Boolean(table.clone())), &request, &mut |_, _| {});
        drop(black_box(found.unwrap_or_else(|error| panic!("{error}"))));
    };
    println!("\n{:<34} {:>12} {:>14} {:>8}", format!("measure, n={n}"), "ms", "transform, ms", "ratio");
    let print = |name: &str, measure: Measure, p: Option<f64>| {
        let (own, transform) = medians(51, || time(measure, p), || time(Measure::DegreeProfile, None));
        println!("{name:<34} {own:>12.2} {transform:>14.2} {:>8.2}", own / transform);
    };
    for (measure, name) in Measure::ALL.iter().filter(|(measure, _)| !measure.needs_search()) {
        print(name, *measure, None);
    }
    print("mean, influences at --p 0.3", Measure::Mean, Some(0.3));
    let biased = || drop(black_box(Spectrum::biased(&table, 0.3)));
    let (own, transform) = medians(51, biased, || time(Measure::DegreeProfile, None));
    println!("{:<34} {own:>12.2} {transform:>14.2} {:>8.2}", "spectrum at p = 0.3", own / transform);
}

fn spectrum_against_boofun(n: usize, floor: f64, python: &str) {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/boofun_spectrum.py");
    let output = Command::new(python).args([script, &n.to_string()]).output();
    let theirs = output.ok().and_then(|o| serde_json::from_slice::<serde_json::Value>(&o.stdout).ok());
    let Some(theirs) = theirs.as_ref().and_then(|t| t["ms"].as_f64()) else {
        println!("\nboofun: {python} {script} failed");
        return;
    };
    let table = random_table(n);
    let (ours, _) = medians(51, || drop(black_box(Spectrum::of(&table))), || {});
    println!(
        "\nspectrum at n={n}: ours {ours:.3} ms, boofun 1.3.0 with numba {theirs:.1} ms: {:.0} times faster (floor {floor})",
        theirs / ours
    );
}
