//! Rounds, cases and rows that all measurements share. It uses no JSON library, which could change a peer's features.

use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

pub mod case;
pub mod random;
pub mod sources;

/// One series of figures, one value per round. Printed as a JSON line, which `report` collects.
#[derive(Debug, Clone)]
pub struct Row {
    /// What was measured: plain words and slashes.
    pub name: String,
    /// The unit of the values.
    pub unit: &'static str,
    /// One value per round.
    pub rounds: Vec<f64>,
}

impl Row {
    /// Creates a series without values.
    pub fn new(name: impl Into<String>, unit: &'static str) -> Self {
        Self {
            name: name.into(),
            unit,
            rounds: Vec::new(),
        }
    }

    /// Prints it as a line of JSON.
    pub fn print(&self) {
        let rounds: Vec<String> = self.rounds.iter().map(|v| format!("{v:.3}")).collect();
        let (name, unit, rounds) = (&self.name, self.unit, rounds.join(","));
        println!(r#"{{"name":"{name}","unit":"{unit}","rounds":[{rounds}]}}"#);
    }
}

/// Prints a fact about the run: a version, a count, a verified equality.
pub fn fact(name: &str, value: impl std::fmt::Display) {
    let value = value.to_string().replace(['"', '\\'], "'");
    println!(r#"{{"fact":"{name}","value":"{value}"}}"#);
}

/// Returns the number of rounds: the first argument, otherwise `default`.
pub fn rounds(default: usize) -> usize {
    let given = std::env::args().nth(1).and_then(|word| word.parse().ok());
    given.unwrap_or(default).max(1)
}

/// One measurement: does its work once and returns the amount in the row's unit.
pub type Step<'a> = (Row, Box<dyn FnMut() -> f64 + 'a>);

/// Runs all steps once to warm up, then alternates them for `rounds` rounds, and prints the rows.
/// If an argument after the rounds is a row's name, runs only that row, here or in another group: for profilers.
pub fn interleave(rounds: usize, mut steps: Vec<Step<'_>>) -> Vec<Row> {
    let is_here = |word: &String| steps.iter().any(|(row, _)| row.name == *word);
    let is_row = |word: &String| word.starts_with("haft/") || is_here(word);
    if let Some(only) = std::env::args().skip(2).find(is_row) {
        steps.retain(|(row, _)| row.name == only);
    }
    for (_, step) in &mut steps {
        step();
    }
    for _ in 0..rounds {
        for (row, step) in &mut steps {
            row.rounds.push(step());
        }
    }
    let rows: Vec<Row> = steps.into_iter().map(|(row, _)| row).collect();
    rows.iter().for_each(Row::print);
    rows
}

/// Returns the nanoseconds for each of the `count` items that `work` handles.
pub fn each(count: usize, work: impl FnOnce()) -> f64 {
    let begun = Instant::now();
    work();
    begun.elapsed().as_nanos() as f64 / count as f64
}

/// Returns the milliseconds of wall time.
pub fn wall_ms<T>(work: impl FnOnce() -> T) -> (f64, T) {
    let begun = Instant::now();
    let got = work();
    (begun.elapsed().as_secs_f64() * 1e3, got)
}

/// Returns the milliseconds of this thread's CPU time.
pub fn cpu_ms<T>(work: impl FnOnce() -> T) -> (f64, T) {
    let begun = thread_cpu();
    let got = work();
    (thread_cpu().saturating_sub(begun).as_secs_f64() * 1e3, got)
}

fn thread_cpu() -> Duration {
    let now = clock_gettime(ClockId::ThreadCPUTime);
    let nanoseconds = now.tv_sec * 1_000_000_000 + now.tv_nsec;
    Duration::from_nanos(u64::try_from(nanoseconds).unwrap_or_default())
}
