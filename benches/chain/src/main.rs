//! One job in its own sandbox: a script that calls a trivial tool and prints; ours warm and on demand, compared to
//! pydantic-monty's pool, smolagents' evaluator and `bwrap` with `python3`. Then the costs of its parts.

mod house;
mod peer;

use std::cell::Cell;
use std::time::Duration;

use measure::{Row, Step, fact, interleave};

use crate::house::{House, Recording};
use crate::peer::{Python, bwrap};

/// Number of jobs per round; a round's value is their median.
const JOBS: usize = 50;
/// The same for jobs that take tens of milliseconds.
const SLOW_JOBS: usize = 8;
/// Pause before each job, ours and a peer's, so that the pool of two children is full again.
const REFILL: Duration = Duration::from_millis(25);
/// Number of scripts per round of the sustained rate.
const SUSTAINED: usize = 400;
/// Number of them that run in parallel.
const AT_ONCE: usize = 4;

fn main() {
    haft_sandbox::enter();
    let warm = House::new(2, Recording::Nothing);
    let cold = House::new(0, Recording::Nothing);
    let recorded = House::new(2, Recording::Everything);
    fact("engine", warm.described());
    let python = Python::start();
    fact("bwrap", bwrap::version());

    let last = Figures::default();
    let (w, c, r) = (&warm, &cold, &recorded);
    let steps: Vec<Step<'_>> = vec![
        us("haft/chain/10 calls/p50", || {
            last.ten(&times(JOBS, || w.script(10)))
        }),
        us("haft/chain/10 calls/p99", || last.ten_p99.get()),
        us("monty/chain/10 calls/p50", || {
            middle(&python.times("monty", JOBS))
        }),
        us("smolagents/chain/10 calls/p50", || {
            middle(&python.times("smolagents", JOBS))
        }),
        us("bwrap/chain/10 calls/p50", || {
            middle(&times(SLOW_JOBS, bwrap::job))
        }),
        us("haft/chain/10 calls on demand/p50", || {
            middle(&times(JOBS, || c.script(10)))
        }),
        us("haft/chain/10 calls recorded/p50", || {
            middle(&times(JOBS, || r.script(10)))
        }),
        us("haft/chain/no call/p50", || {
            keep(&last.none, middle(&times(JOBS, || w.script(0))))
        }),
        us("haft/chain/50 calls/p50", || {
            keep(&last.fifty, middle(&times(JOBS, || w.script(50))))
        }),
        us("haft/chain/nested call", || keep(&last.nested, w.nested())),
        us("haft/chain/nested call recorded", || r.nested()),
        us("haft/chain/bridged call", || last.bridged()),
        us("haft/chain/bridge beyond the executor", || {
            last.bridged() - last.nested.get()
        }),
        (
            Row::new("haft/chain/sustained", "scripts/s"),
            Box::new(|| w.rate(SUSTAINED, AT_ONCE)),
        ),
        (
            Row::new("haft/chain/deadline", "ms late"),
            Box::new(|| w.late()),
        ),
        (
            Row::new("haft/chain/idle child", "KiB"),
            Box::new(|| w.idle_child()),
        ),
    ];
    interleave(measure::rounds(7), steps);
}

/// Figures from which later rows of a round are computed.
#[derive(Debug, Default)]
struct Figures {
    ten_p99: Cell<f64>,
    none: Cell<f64>,
    fifty: Cell<f64>,
    nested: Cell<f64>,
}

impl Figures {
    fn ten(&self, times: &[f64]) -> f64 {
        self.ten_p99.set(share(times, 0.99));
        middle(times)
    }

    /// Returns what each of fifty calls adds to a script.
    fn bridged(&self) -> f64 {
        (self.fifty.get() - self.none.get()) / 50.0
    }
}

fn us<'a>(name: &str, step: impl FnMut() -> f64 + 'a) -> Step<'a> {
    (Row::new(name, "us"), Box::new(step))
}

fn keep(cell: &Cell<f64>, value: f64) -> f64 {
    cell.set(value);
    value
}

/// Returns the microseconds of each of `count` jobs, with a pause before each.
fn times(count: usize, job: impl Fn() -> f64) -> Vec<f64> {
    let once = |_| {
        std::thread::sleep(REFILL);
        job()
    };
    (0..count).map(once).collect()
}

fn middle(times: &[f64]) -> f64 {
    share(times, 0.5)
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a place in a short list"
)]
fn share(times: &[f64], share: f64) -> f64 {
    let mut times = times.to_vec();
    times.sort_by(f64::total_cmp);
    let at = (times.len() as f64 * share) as usize;
    times
        .get(at.min(times.len() - 1))
        .copied()
        .unwrap_or_default()
}
