//! Runs all measurements, compares them with the goals, writes raw rounds and `docs/performance.md`.
//!
//! `report BENCHES PROGRAMS HAFT`: this workspace's folder, the folder of its built programs, the release binary.
//! A missing peer, or an answer that differs from the peer's, is exit status 1; the table shows missed goals.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::{env, fs};

mod figures;
mod goals;
mod machine;
mod page;

use figures::Figures;
use machine::Machine;

/// A program and its arguments after the number of rounds.
struct Member<'a> {
    name: &'a str,
    rounds: usize,
    arguments: Vec<&'a Path>,
}

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("bench: {message}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), String> {
    let words: Vec<PathBuf> = env::args().skip(1).map(PathBuf::from).collect();
    let [benches, programs, haft] = &words[..] else {
        return Err("usage: report BENCHES PROGRAMS HAFT".into());
    };
    let machine = Machine::begin();
    let mut figures = Figures::default();
    let mut failures = Vec::new();
    for member in members(programs, haft) {
        let lines = measure(programs, &member);
        let taken = lines.and_then(|lines| figures.take(member.name, &lines));
        failures.extend(taken.err());
    }
    let machine = machine.end();
    let table = goals::table(&figures);
    println!("\n{table}");
    if failures.is_empty() && table.contains(goals::MISSING) {
        failures.push("a goal has no figures: see the table".into());
    }
    if !failures.is_empty() {
        return Err(failures.join("\nbench: "));
    }
    figures.keep(&benches.join("results"))?;
    let page = benches.join("../docs/performance.md");
    page::write(&page, &machine, &figures, &table)
}

/// Returns the programs in their order. The peers of dispatch are separate programs: they take turns.
fn members<'a>(programs: &'a Path, haft: &'a Path) -> Vec<Member<'a>> {
    let plain = |name, rounds| Member {
        name,
        rounds,
        arguments: Vec::new(),
    };
    // Leaked once: paths that live as long as the program.
    let rmcp: &'a Path = Box::leak(programs.join("mcp-rmcp").into_boxed_path());
    let gateways: &'a Path = Box::leak(programs.with_file_name("gateways").into_boxed_path());
    let mut all = Vec::new();
    for _ in 0..3 {
        all.extend([plain("dispatch-agentkit", 5), plain("dispatch-haft", 5)]);
    }
    all.extend([
        plain("tokens", 5),
        plain("json", 15),
        plain("wire", 9),
        plain("search", 9),
        plain("search-tools", 9),
        plain("skills", 15),
        plain("memory", 9),
        plain("inbox", 5),
        Member {
            arguments: vec![haft],
            ..plain("spawn", 15)
        },
        plain("changes", 9),
        plain("chain", 7),
        plain("progress", 9),
        Member {
            arguments: vec![haft, rmcp],
            ..plain("mcp", 7)
        },
        Member {
            arguments: vec![haft, rmcp, gateways],
            ..plain("gateway", 5)
        },
        Member {
            arguments: vec![haft],
            ..plain("cli", 9)
        },
        Member {
            arguments: vec![haft],
            ..plain("hook", 5)
        },
    ]);
    all
}

/// Runs a program and returns its lines.
fn measure(programs: &Path, member: &Member<'_>) -> Result<String, String> {
    let (name, rounds) = (member.name, member.rounds.to_string());
    eprintln!("bench: {name}");
    let mut command = Command::new(programs.join(name));
    command.arg(&rounds).args(&member.arguments);
    let output = command
        .output()
        .map_err(|e| format!("MISSING: {name} was not built: {e}"))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let mut message = format!("{name} failed ({})", output.status);
    for line in String::from_utf8_lossy(&output.stderr).lines() {
        let _ = write!(message, "\n  {line}");
    }
    Err(message)
}

/// Writes a file; the error names it.
fn save(path: &Path, text: &str) -> Result<(), String> {
    fs::write(path, text).map_err(|e| format!("write {}: {e}", path.display()))
}
