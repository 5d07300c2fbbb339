//! A day's work with each toolchain in commands of haft: `scripts/toolchains`, with which `make toolchains` fills a table of the guide.
//! It needs no network beyond the package registries in this machine's settings.

#![expect(
    clippy::print_stderr,
    reason = "what could not be tested here is said aloud"
)]

use std::io::ErrorKind;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::harness::Lab;
use crate::signals::jailed;

/// Maximum number of requests that a user answers about a project.
const PROMPTS: usize = 2;

/// Returns the script's report on one toolchain; `None` if it cannot run here.
#[expect(
    clippy::disallowed_methods,
    reason = "the script starts the binary under test"
)]
fn tell(name: &str) -> Option<Value> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/toolchains");
    let mut command = Command::new("python3");
    command
        .arg(script)
        .args([env!("CARGO_BIN_EXE_haft"), "--json", name]);
    let output = match command
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()
    {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            eprintln!("SKIPPED: {name}: no python3 here");
            return None;
        }
        output => output.unwrap(),
    };
    assert!(output.status.success(), "{name}: {}", output.status);
    let told: Vec<Value> = serde_json::from_slice(&output.stdout).unwrap();
    told.into_iter().next()
}

fn check(name: &str) {
    if !jailed(&Lab::new()) {
        return;
    }
    let Some(told) = tell(name) else {
        return;
    };
    if let Some(why) = told["skipped"].as_str() {
        eprintln!("SKIPPED: {name}: {why}");
        return;
    }
    assert_eq!(told["failed"], Value::Null, "{told}");
    let count = |list: &str| told[list].as_array().unwrap().len();
    assert!(count("prompts") <= PROMPTS, "{told}");
    assert_eq!(count("again"), 0, "{told}");
}

#[test]
fn npm_installs_builds_tests_and_commits_with_two_requests() {
    check("npm");
}

#[test]
fn pnpm_installs_builds_tests_and_commits_with_two_requests() {
    check("pnpm");
}

#[test]
fn pip_installs_builds_tests_and_commits_with_two_requests() {
    check("pip");
}

#[test]
fn uv_installs_builds_tests_and_commits_with_two_requests() {
    check("uv");
}

#[test]
fn cargo_installs_builds_tests_and_commits_with_two_requests() {
    check("cargo");
}

#[test]
fn go_installs_builds_tests_and_commits_with_two_requests() {
    check("go");
}
