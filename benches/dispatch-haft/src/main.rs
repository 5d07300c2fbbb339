//! Dispatch by haft with every check on: strict scan, schema, permission, rules, budget, deadline, result within limits.

use measure::{Step, fact, interleave, rounds};

mod audit;
mod bench;
mod list;
mod tools;

use bench::{Bench, Kind};

fn main() {
    fact("haft", env!("CARGO_PKG_VERSION"));
    let rounds = rounds(9);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .expect("a runtime");

    let benches: Vec<Bench> = measure::case::SIZES
        .iter()
        .flat_map(|&n| Kind::ALL.map(|kind| Bench::new(kind, n)))
        .collect();
    let steps: Vec<Step<'_>> = benches.iter().map(|bench| bench.step(&runtime)).collect();
    interleave(rounds, steps);
    drop(benches);

    let recorded = audit::Recorded::new(&runtime);
    interleave(rounds, recorded.steps());
    drop(recorded);

    let list = list::List::new(1_000);
    fact("list bytes", list.bytes());
    interleave(rounds * 5, list.steps());
}
