//! Runs the MCP conformance suite against the URL of a server and returns a report.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

/// The results of the suite, by scenario.
#[derive(Debug, Default)]
pub(crate) struct Report {
    pub(crate) passed: usize,
    /// The scenario, the check, and what was wrong.
    pub(crate) failed: Vec<(String, String, String)>,
    /// The same for recommendations.
    pub(crate) warned: Vec<(String, String, String)>,
    /// Number of checks in each scenario.
    pub(crate) scenarios: BTreeMap<String, usize>,
}

/// Returns the suite's program and the Node that runs it, if `make needs` installed them.
pub(crate) fn installed() -> Option<(PathBuf, PathBuf)> {
    let home = std::env::var_os("HAFT_NEEDS")
        .map(|needs| Path::new(&needs).join("conformance/node_modules"))?;
    let node = home.join("node/bin/node");
    let suite = home.join("@modelcontextprotocol/conformance/dist/index.js");
    (node.exists() && suite.exists()).then_some((node, suite))
}

/// Runs what a revision requires, and the suite's other checks for it, against the server at this address; `None` if the suite
/// is not installed.
pub(crate) fn run(url: &str, revision: &str, folder: &Path) -> Option<Report> {
    let (node, suite) = installed()?;
    let output = Command::new(node)
        .arg(suite)
        .args(["server", "--url", url, "--requirements", revision])
        .args(["--timeout", "30000", "-o"])
        .arg(folder)
        .env_remove("NODE_OPTIONS")
        .output()
        .unwrap();
    let report = read(folder);
    assert!(
        !report.scenarios.is_empty(),
        "the suite made no checks: {}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    Some(report)
}

/// Reads the files that the suite wrote: a folder for each scenario, with its checks.
fn read(folder: &Path) -> Report {
    let mut report = Report::default();
    let mut folders: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    folders.sort();
    for folder in folders {
        let Ok(text) = fs::read_to_string(folder.join("checks.json")) else {
            continue;
        };
        let name = folder.file_name().unwrap().to_string_lossy().into_owned();
        let name = scenario(&name);
        let checks: Vec<Value> = serde_json::from_str(&text).unwrap();
        report.scenarios.insert(name.clone(), checks.len());
        for check in checks {
            let text = |key: &str| check[key].as_str().unwrap_or_default().to_owned();
            let row = || (name.clone(), text("id"), text("errorMessage"));
            match check["status"].as_str() {
                Some("SUCCESS") => report.passed += 1,
                Some("FAILURE") => report.failed.push(row()),
                Some("WARNING") => report.warned.push(row()),
                _ => {}
            }
        }
    }
    report
}

/// Returns the scenario's name from its folder's name, which ends with the time of the run.
fn scenario(folder: &str) -> String {
    let name = folder.strip_prefix("server-").unwrap_or(folder);
    let end = name.find("-20").unwrap_or(name.len());
    name[..end].to_owned()
}
