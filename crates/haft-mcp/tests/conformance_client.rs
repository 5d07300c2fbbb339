//! The client half of the MCP conformance suite, in both revisions: `examples/conformance_client.rs` plays every scenario.
//!
//! `make needs` installs the suite below `HAFT_NEEDS`; without it the test is skipped and says so.
#![expect(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "tests start real programs, say what they skip, and stop where they cannot go on"
)]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

/// The revisions and their minimum numbers of passed checks, so that a suite that checks nothing fails.
const REVISIONS: [(&str, usize); 2] = [("2025-11-25", 280), ("2026-07-28", 420)];

/// Scenarios that fail, each with its reason. A listed scenario that passes fails the test, too.
const EXPECTED: [(&str, &str); 6] = [
    (
        "auth/client-credentials-jwt",
        "an extension: haft signs in for a person, never as a service of its own",
    ),
    (
        "auth/client-credentials-basic",
        "an extension: haft signs in for a person, never as a service of its own",
    ),
    (
        "auth/enterprise-managed-authorization",
        "an extension: it wants an identity provider of a company",
    ),
    ("auth/dpop", "an extension: tokens bound to a key"),
    ("auth/dpop-nonce", "an extension: tokens bound to a key"),
    (
        "auth/wif-jwt-bearer",
        "an extension: identities of workloads",
    ),
];

/// Returns the suite's program and the Node that runs it.
fn installed() -> Option<(PathBuf, PathBuf)> {
    let needs = std::env::var_os("HAFT_NEEDS")?;
    let home = Path::new(&needs).join("conformance/node_modules");
    let node = home.join("node/bin/node");
    let suite = home.join("@modelcontextprotocol/conformance/dist/index.js");
    (node.exists() && suite.exists()).then_some((node, suite))
}

/// Returns the client, which cargo builds beside the tests.
fn client() -> PathBuf {
    let deps = std::env::current_exe().unwrap();
    let client = deps
        .ancestors()
        .nth(2)
        .unwrap()
        .join("examples/conformance_client");
    assert!(
        client.exists(),
        "build it first: cargo build -p haft-mcp --example conformance_client"
    );
    client
}

/// Returns a scenario's name without the time of the run, which the suite appends.
fn without_time(folder: &str) -> &str {
    const APPENDED: &str = "-2026-11-20T20-20-20-200Z";
    let (scenario, time) = folder.split_at(folder.len() - APPENDED.len());
    let same =
        |(is, like): (char, char)| is == like || (is.is_ascii_digit() && like.is_ascii_digit());
    assert!(
        time.chars().zip(APPENDED.chars()).all(same),
        "no time at the end of {folder}"
    );
    scenario
}

/// Collects every file of checks below a folder, with its scenario.
fn checks(folder: &Path, root: &Path, found: &mut Vec<(String, Vec<Value>)>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            checks(&path, root, found);
        } else if path.ends_with("checks.json") {
            let scenario = folder.strip_prefix(root).unwrap().display().to_string();
            let list = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
            found.push((without_time(&scenario).to_owned(), list));
        }
    }
}

#[test]
fn no_required_check_of_the_client_suite_fails() {
    let Some((node, suite)) = installed() else {
        eprintln!(
            "SKIPPED: the conformance suite is not below HAFT_NEEDS; `make needs` installs it"
        );
        return;
    };
    for (revision, least) in REVISIONS {
        let folder = tempfile::tempdir().unwrap();
        let output = Command::new(&node)
            .arg(&suite)
            .args(["client", "--requirements", revision, "--command"])
            .arg(client())
            .arg("-o")
            .arg(folder.path())
            .env_remove("NODE_OPTIONS")
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        let mut found = Vec::new();
        checks(folder.path(), folder.path(), &mut found);
        let of = |status: &str| -> Vec<(&String, &Value)> {
            let all = found
                .iter()
                .flat_map(|(scenario, list)| list.iter().map(move |c| (scenario, c)));
            all.filter(|(_, check)| check["status"] == status).collect()
        };
        let failed: BTreeSet<&str> = of("FAILURE")
            .into_iter()
            .map(|(name, _)| name.as_str())
            .collect();
        let expected: BTreeSet<&str> = EXPECTED.iter().map(|(name, _)| *name).collect();
        let shown = of("FAILURE");
        let shown: Vec<_> = shown
            .iter()
            .filter(|(name, _)| !expected.contains(name.as_str()))
            .collect();
        assert_eq!(failed, expected, "{revision}: {shown:#?}\n{said}");
        let passed = of("SUCCESS").len();
        eprintln!(
            "{revision}: {passed} checks passed in {} scenarios",
            found.len()
        );
        assert!(
            passed >= least,
            "{revision}: {passed} checks passed\n{said}"
        );
        assert!(output.status.success(), "{revision}: {said}");
    }
}
