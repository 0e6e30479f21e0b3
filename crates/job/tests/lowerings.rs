//! How often a whole run lowers its row program. One test, for the count is of the whole process.

mod pair;

use pair::{World, whole};

/// How many row programs both parties lowered together in a run with this computation.
fn lowered(compute: &str) -> u64 {
    let mut world = World::new();
    world.study = world.study.replace("engine = \"yao\"", compute);
    assert!(world.study.contains(compute), "{}", world.study);
    let before = program::lower::lowerings();
    whole(world.run());
    program::lower::lowerings() - before
}

#[test]
fn a_row_program_is_lowered_once_per_engine_at_a_party() {
    // The link settles the back end among all candidates, and two workers share what was prepared.
    assert_eq!(lowered("engine = \"auto\"\nshards = 2"), 2, "once at each of two parties");
    // Garbling is lowered for either garbler, and the cheaper one is taken.
    assert_eq!(lowered("engine = \"yao\""), 4, "for two garblers at each of two parties");
}
