//! Dispatch by haft with every check on: strict scan, schema, permission, rules, budget, time limit, result within limits.

use haft::Executor;
use measure::{Step, fact, interleave, rounds};

mod audit;
mod bench;
mod list;
mod render;
mod request;
mod tools;

use bench::{Bench, Kind};

fn main() {
    let rounds = rounds(9);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .expect("a runtime");

    let benches: Vec<Bench> = measure::case::SIZES
        .iter()
        .flat_map(|&n| Kind::ALL.map(|kind| Bench::new(kind, n)))
        .collect();
    let executor = Executor::new(bench::policy_with_rules());
    let ruled = [Kind::Value, Kind::Typed].map(|kind| Bench::with(kind, 1_000, executor.clone()));
    let mut steps: Vec<Step<'_>> = benches.iter().map(|b| b.step(&runtime, "")).collect();
    steps.extend(ruled.iter().map(|b| b.step(&runtime, "/rules")));
    interleave(rounds, steps);
    drop(benches);

    let recorded = audit::Recorded::new(&runtime);
    interleave(rounds, recorded.steps());
    drop(recorded);

    let outcomes = render::Outcomes::new();
    interleave(rounds, outcomes.steps());
    drop(outcomes);

    let changes = request::ChangeSet::new();
    fact("request bytes", changes.bytes());
    interleave(rounds, changes.steps());
    drop(changes);

    let list = list::List::new(1_000);
    fact("list bytes", list.bytes());
    interleave(rounds * 5, list.steps());
}
