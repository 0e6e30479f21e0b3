//! How often a whole run lowers its row program. One test, for the count is of the whole process.

mod pair;

use pair::World;

/// Both parties' runs of a study, and how many row programs they lowered.
fn lowered(world: &World) -> u64 {
    let before = program::lower::lowerings();
    let reports = world.reports();
    assert!(reports.iter().all(|report| report.stages.iter().any(|stage| stage.name == "compute")));
    program::lower::lowerings() - before
}

#[test]
fn a_row_program_is_lowered_once_per_engine_at_a_party() {
    // The link settles the back end among all candidates, and two workers share what was prepared.
    let mut world = World::new();
    world.study = world.study.replace("shards = 1", "shards = 2");
    assert!(world.study.contains("shards = 2") && world.study.contains("\"auto\""), "{}", world.study);
    assert_eq!(lowered(&world), 2, "once at each of two parties");
    // Garbling is lowered for either garbler, and the cheaper one is taken.
    let mut world = World::new();
    world.study = world.study.replace("engine = \"auto\"", "engine = \"yao\"");
    assert!(world.study.contains("\"yao\""), "{}", world.study);
    assert_eq!(lowered(&world), 4, "for two garblers at each of two parties");
}
