//! A short run of every target, always the same one: sound files are accepted, and nothing panics, hangs or takes much memory.

use pudica_fuzz::{Fuzzer, TARGETS, watch};

#[test]
fn every_target_for_a_moment() {
    watch::install();
    // What libraries would do in other threads counts, too.
    rayon::ThreadPoolBuilder::new().num_threads(1).use_current_thread().build_global().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let mut wrong = Vec::new();
    for target in &TARGETS {
        let mut fuzzer = Fuzzer::new(target, &[19], folder.path(), folder.path()).unwrap();
        let seeds = (target.seeds)().len() as u64;
        while fuzzer.tally.executions < target.short {
            fuzzer.once();
            if fuzzer.tally.executions == seeds && 2 * fuzzer.tally.accepted < seeds {
                wrong.push(format!("{}: {} of {seeds} sound files are accepted", target.name, fuzzer.tally.accepted));
            }
        }
        println!("{}: {:?}", target.name, fuzzer.tally);
        if fuzzer.tally.failures() > 0 {
            wrong.push(format!("{}: {:?}", target.name, fuzzer.tally));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}
