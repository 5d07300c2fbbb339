//! Commands on a copy of the workspace compared to commands in it, collecting and applying their changes, and undoing them.

mod commit;
mod house;
mod sets;

use measure::{Row, fact, interleave, wall_ms};

use crate::house::House;

/// Number of calls per round: their mean is a round's value.
const CALLS: usize = 8;

fn main() {
    haft_sandbox::enter();
    let rounds = measure::rounds(9);
    let (direct, copy) = (House::new(true), House::new(false));
    fact("copy", copy.usable());
    let many = |house: &House| {
        let (ms, ()) = wall_ms(|| (0..CALLS).for_each(|_| house.run("bash -c true")));
        ms * 1e3 / CALLS as f64
    };
    interleave(
        rounds,
        vec![
            (
                Row::new("haft/run_command/direct", "us"),
                Box::new(|| many(&direct)),
            ),
            (
                Row::new("haft/run_command/copy", "us"),
                Box::new(|| many(&copy)),
            ),
        ],
    );
    sets::measure(rounds);
    commit::measure(rounds);
    interleave(
        rounds.min(5),
        vec![(
            Row::new("haft/undo/1000 files", "ms"),
            Box::new(|| copy.undo_of(1_000)),
        )],
    );
}
