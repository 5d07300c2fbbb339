//! The rows: the settings, the call, the expected result and record.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

/// One row.
#[derive(Debug, Clone)]
pub(crate) struct Row {
    pub(crate) name: &'static str,
    pub(crate) profile: &'static str,
    pub(crate) allow: &'static [&'static str],
    pub(crate) ask: &'static [&'static str],
    pub(crate) deny: &'static [&'static str],
    /// The approver: none, or automatic approval up to this risk.
    pub(crate) auto: Option<&'static str>,
    pub(crate) enable: &'static [&'static str],
    pub(crate) call_timeout_s: f64,
    pub(crate) tool: &'static str,
    pub(crate) arguments: &'static str,
    pub(crate) status: &'static str,
    /// Whether the tool starts.
    pub(crate) starts: bool,
}

/// The result of a call, and the lines it left: `started`, `ended:STATUS`.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Got {
    pub(crate) status: String,
    pub(crate) lines: Vec<String>,
}

impl Row {
    pub(crate) fn expect(&self) -> Got {
        let started = self.starts.then(|| "started".to_owned());
        let ended = format!("ended:{}", self.status);
        Got {
            status: self.status.into(),
            lines: started.into_iter().chain([ended]).collect(),
        }
    }
}

impl Row {
    /// Returns whether a file of the workspace changes: the tools that change one do so whenever they succeed.
    pub(crate) fn changes(&self) -> bool {
        self.status == "ok" && matches!(self.tool, "write_file" | "delete_file" | "far.touch")
    }
}

const WRITE: &str = r#"{"path":"src/new.rs","content":"x","mode":"create"}"#;
const READ: &str = r#"{"path":"README.md"}"#;

pub(crate) fn row(
    name: &'static str,
    profile: &'static str,
    tool: &'static str,
    status: &'static str,
) -> Row {
    Row {
        name,
        profile,
        allow: &[],
        ask: &[],
        deny: &[],
        auto: None,
        enable: &[],
        call_timeout_s: 600.0,
        tool,
        arguments: if tool == "write_file" { WRITE } else { READ },
        status,
        starts: status == "ok",
    }
}

/// Risk, rule, guard, approver, limits.
#[rustfmt::skip]
pub(crate) fn rows() -> Vec<Row> {
    vec![
        row("safe runs", "workspace", "read_file", "ok"),
        row("safe runs read-only", "read-only", "read_file", "ok"),
        row("high is denied read-only", "read-only", "write_file", "denied"),
        Row { allow: &["Edit"], ..row("no rule lifts read-only", "read-only", "write_file", "denied") },
        row("high with nobody to ask is denied", "workspace", "write_file", "denied"),
        row("high runs trusted", "trusted", "write_file", "ok"),
        Row { auto: Some("high"), ..row("the approver lets high run", "workspace", "write_file", "ok") },
        Row { auto: Some("safe"), ..row("the approver stops at its risk", "workspace", "write_file", "denied") },
        Row { allow: &["Edit(/src/**)"], ..row("an allow rule lets it run", "workspace", "write_file", "ok") },
        Row { allow: &["Edit(/docs/**)"], ..row("an allow rule for elsewhere does not", "workspace", "write_file", "denied") },
        Row { deny: &["Edit(src/**)"], ..row("a deny rule wins over the profile", "trusted", "write_file", "denied") },
        Row { deny: &["read_file"], allow: &["read_file"], ..row("deny comes before allow", "workspace", "read_file", "denied") },
        Row { ask: &["Read(README.md)"], ..row("an ask rule asks about a safe call", "trusted", "read_file", "denied") },
        Row { ask: &["Read(README.md)"], auto: Some("high"), ..row("and the approver answers", "trusted", "read_file", "ok") },
        Row { arguments: r#"{"path":".git/config","content":"x"}"#, allow: &["Edit"], auto: Some("high"), ..row("no rule or approver lowers a guard", "trusted", "write_file", "denied") },
        Row { arguments: r#"{"path":"../outside.txt"}"#, allow: &["Read"], ..row("no rule opens the edge", "trusted", "read_file", "denied") },
        Row { arguments: READ, enable: &["delete_file"], ..row("critical is asked when trusted", "trusted", "delete_file", "denied") },
        Row { arguments: READ, enable: &["delete_file"], auto: Some("high"), ..row("auto does not reach critical", "trusted", "delete_file", "denied") },
        row("a tool that nothing enables is unknown", "trusted", "delete_file", "error"),
        row("an unknown tool is an error", "trusted", "raed_file", "error"),
        Row { arguments: r#"{"path":1,"start":0}"#, ..row("wrong arguments are an error", "trusted", "read_file", "error") },
        Row { arguments: r#"{"path":"README.md","path":"LICENSE"}"#, ..row("arguments that read two ways are an error", "trusted", "read_file", "error") },
        Row { arguments: r#"{"path":"nothing.md"}"#, starts: true, ..row("a tool that fails is an error", "workspace", "read_file", "error") },
        Row { arguments: r#"{"pattern":"(a|b)+c+never","path":"big.txt"}"#, call_timeout_s: 0.001, starts: true, ..row("the deadline is the host's", "workspace", "grep_files", "timeout") },
    ]
}

/// Returns a call that a rule denies whatever else allows it, and the same call if one allows it.
#[rustfmt::skip]
pub(crate) fn denied() -> Vec<Row> {
    let write = |name, status| row(name, "trusted", "write_file", status);
    let delete = |name, status| Row { arguments: READ, enable: &["delete_file"], ..row(name, "trusted", "delete_file", status) };
    vec![
        Row { deny: &["write_*"], allow: &["*"], auto: Some("high"), ..write("tools of that name are denied", "denied") },
        Row { deny: &["write_file"], allow: &["*"], auto: Some("high"), ..write("the tool is denied", "denied") },
        Row { deny: &["Edit(src/**)"], allow: &["write_file"], auto: Some("high"), ..write("the file is denied", "denied") },
        Row { deny: &["Edit"], allow: &["delete_file"], ..delete("a removal is denied", "denied") },
        Row { allow: &["Edit"], ..delete("P18 a rule for changes allows no removal", "denied") },
        Row { allow: &["write_file"], ..write("the tool is allowed", "ok") },
        Row { allow: &["delete_file"], ..delete("the removal is allowed", "ok") },
    ]
}

/// Returns the files in the scene's workspace, except the large one, which no row touches.
pub(crate) fn files(scene: &tempfile::TempDir) -> Vec<(PathBuf, Option<Vec<u8>>)> {
    let mut found = Vec::new();
    let mut folders = vec![scene.path().join("ws")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path.clone());
            }
            let content = (path.is_file() && !path.ends_with("big.txt")).then(|| fs::read(&path));
            found.push((path, content.transpose().unwrap()));
        }
    }
    found.sort();
    found
}

/// Creates a workspace with a project, a large file and a repository's folder, and a home next to it.
pub(crate) fn scene() -> tempfile::TempDir {
    let scene = tempfile::tempdir().unwrap();
    let ws = scene.path().join("ws");
    for folder in ["ws/src", "ws/.git", "config"] {
        fs::create_dir_all(scene.path().join(folder)).unwrap();
    }
    fs::write(ws.join("README.md"), "# hello\n").unwrap();
    fs::write(ws.join(".git/config"), "[core]\n").unwrap();
    fs::write(
        ws.join("big.txt"),
        "abababababababababab no match here\n".repeat(600_000),
    )
    .unwrap();
    fs::write(scene.path().join("outside.txt"), "secret").unwrap();
    scene
}

/// Returns the call lines of all runs below a home, except those of the tool that only nests.
pub(crate) fn lines(home: &Path) -> Vec<String> {
    let runs = fs::read_dir(home.join("runs"))
        .into_iter()
        .flatten()
        .flatten();
    let records = runs.filter_map(|run| fs::read_to_string(run.path().join("events.jsonl")).ok());
    let mut words = Vec::new();
    for record in records {
        for line in record.lines() {
            let event: Value = serde_json::from_str(line).unwrap();
            if event["tool"] == "tool_chain" {
                continue;
            }
            match event["type"].as_str() {
                Some("call_started") => words.push("started".to_owned()),
                Some("call_ended") => {
                    words.push(format!("ended:{}", event["status"].as_str().unwrap()));
                }
                _ => {}
            }
        }
    }
    words
}
