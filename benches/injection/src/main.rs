//! Prompt injection: a scripted model that obeys whatever it reads works through haft, and what reaches the attacker without a request to
//! a person is counted. Its suites are in `suites/`.
//!
//! `injection HAFT [--first] [--tasks] [--only TEXT] [--json FILE] [--log]`: the program; the reduced set; only the ordinary tasks; only
//! cases with this in their names; where figures go as JSON; what happened in each case. Exit code 1 if an aim is missed.

mod case;
mod haft;
mod http;
mod names;
mod network;
mod person;
mod play;
mod report;
mod servers;
mod settings;
mod text;
mod web;
mod workers;
mod world;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use crate::case::Cases;
use crate::play::Played;
use crate::report::Figures;
use crate::workers::Share;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [word, program, first, of] = arguments.as_slice()
        && word == workers::INSIDE
    {
        let number = |text: &String| text.parse().expect("a number");
        let share = Share {
            rest: number(first),
            of: number(of),
        };
        return workers::work(Path::new(program), share);
    }
    let value = |name: &str| {
        let at = arguments.iter().position(|word| word == name)?;
        arguments.get(at + 1).cloned()
    };
    let has = |name: &str| arguments.iter().any(|word| word == name);
    let program = arguments.first().filter(|word| !word.starts_with('-'));
    let program =
        PathBuf::from(program.expect(
            "usage: injection HAFT [--first] [--tasks] [--only TEXT] [--json FILE] [--log]",
        ));
    if !network::is_possible() {
        eprintln!("SKIPPED: this machine gives no user and network namespaces (unshare, ip)");
        return ExitCode::SUCCESS;
    }
    let cases = match Cases::read(&suites()) {
        Ok(cases) => cases,
        Err(error) => {
            eprintln!("injection: {error}");
            return ExitCode::FAILURE;
        }
    };
    let only = value("--only").unwrap_or_default();
    let mut all: Vec<case::Case> = cases.attacks.into_iter().chain(cases.benign).collect();
    all.retain(|case| {
        let is_task = case.orders.is_empty();
        case.name.contains(&only) && (!has("--first") || case.first) && (!has("--tasks") || is_task)
    });
    let played = workers::run(&program, &all);
    if has("--log") {
        print_logs(&played);
    }
    let figures = Figures(&played);
    figures.print();
    if let Some(file) = value("--json") {
        std::fs::write(&file, format!("{:#}\n", figures.json())).expect("the figures are written");
    }
    let mut missed = figures.missed();
    if played.len() < all.len() * settings::POLICIES.len() {
        missed.push("some cases could not be played".to_owned());
    }
    for line in &missed {
        eprintln!("missed: {line}");
    }
    if missed.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

fn suites() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("suites")
}

fn print_logs(played: &[Played]) {
    for one in played {
        let reached = if one.is_reached {
            "reached"
        } else {
            "not reached"
        };
        println!(
            "## {} ({}): {reached}, {} orders, {} prompts, {} denied",
            one.name, one.policy, one.obeyed, one.prompts, one.denied
        );
        for line in &one.log {
            println!("    {line}");
        }
    }
}
