//! Parts of a plan, made apart, are the plan: every run in one part, with the numbers of one process, and students beside their teachers.

mod common;
mod fake;

use std::path::Path;

use common::{numbers, plan, runs};
use fake::Fake;
use pudica_lab::{Event, Machine, Plan, Stop, SweepFolder, Tally, Unit, execute_with};

fn recipe() -> String {
    fake::recipe(20, 10.0, "grid.n = '3..9'\ngrid.seed = '0..4'")
}

fn run(plan: &Plan, folder: &Path, unit: Option<Unit>) -> Tally {
    let machine = Machine { program: "test".into(), jobs: Some(2), unit, ..Machine::default() };
    execute_with(&Fake { together: 4, ..Fake::default() }, plan, folder, &machine, &|_: &Event| {}, &Stop::new())
        .unwrap()
}

#[test]
fn the_parts_are_the_plan() {
    let whole = tempfile::tempdir().unwrap();
    let plan = plan(&recipe(), &[]);
    assert_eq!(run(&plan, whole.path(), None).runs, 24);
    for of in [1, 2, 5, 24, 30] {
        let shared = tempfile::tempdir().unwrap();
        let mut sizes = Vec::new();
        for part in 1..=of {
            let tally = run(&plan, shared.path(), Some(Unit { part, of }));
            assert_eq!((tally.remaining, tally.converged), (0, tally.runs));
            sizes.push(tally.runs);
            let sweep = SweepFolder::open(shared.path()).unwrap();
            assert_eq!(sweep.record().runs.len(), 24, "the record is of the whole plan");
            assert_eq!(sweep.missing(), 24 - sizes.iter().sum::<usize>());
        }
        assert_eq!(sizes.iter().sum::<usize>(), 24);
        if of <= 24 {
            assert!(sizes.iter().max().unwrap() - sizes.iter().min().unwrap() <= 1, "{of}: {sizes:?}");
        }
        assert_eq!(numbers(shared.path()), numbers(whole.path()), "in {of} parts");
    }
    // Six groups of four in lock-step: in six parts, each has one length.
    for part in 1..=6 {
        let alone = tempfile::tempdir().unwrap();
        run(&plan, alone.path(), Some(Unit { part, of: 6 }));
        let lengths: Vec<String> = runs(alone.path()).iter().map(|run| run.settings.text("n")).collect();
        assert_eq!(lengths, vec![(part + 2).to_string(); 4]);
    }
}

#[test]
fn students_are_made_where_their_teacher_is() {
    let plan = plan(&fake::stages("set.target = 'random:0'\ngrid.seed = '0..5'", ""), &[]);
    let mut made = 0;
    for part in 1..=3 {
        let alone = tempfile::tempdir().unwrap();
        let tally = run(&plan, alone.path(), Some(Unit { part, of: 3 }));
        assert_eq!((tally.skipped, tally.remaining, tally.errors.len()), (0, 0, 0));
        let here = runs(alone.path());
        let students: Vec<_> = here.iter().filter(|run| run.record.sweep == "refit").collect();
        assert_eq!(2 * students.len(), here.len());
        for student in students {
            assert!(here.iter().any(|run| Some(&run.record.id) == student.record.parent.as_ref()));
        }
        made += here.len();
    }
    assert_eq!(made, 10);
}
