//! Searching and listing files in this process, compared to ripgrep: the same matches, wall time.

use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use haft::workspace::Workspace;
use haft::{Executor, Outcome, Policy, RunLimits, Session, ToolCall, ToolRegistry};
use haft_builtins::Builtins;
use measure::{Row, Step, fact, interleave, wall_ms};
use tokio::runtime::Runtime;

mod data;
mod tree;

use data::{Entries, Matches};

/// Name, pattern: found in hardly any file, in some, in most. Each is small enough when compiled that it may search lines of
/// 4 MiB: sources hold generated lines of more than half of that, which the class of `\w` would exclude.
const PATTERNS: [(&str, &str); 3] = [
    ("rare", "unsafe impl GlobalAlloc"),
    ("some", r"fn\s+[a-z_]+_handler"),
    ("common", r"\.clone\(\)"),
];
/// More matches than any of the patterns has.
const ALL: usize = 50_000;
/// The limit on common matches.
const CAP: usize = 250;

fn main() {
    let rg = Command::new("rg").arg("--version").output();
    let rg = rg.expect("MISSING PEER: rg is not on PATH; install ripgrep");
    let version = String::from_utf8_lossy(&rg.stdout);
    fact("ripgrep", version.lines().next().unwrap_or_default());
    let folder = tempfile::tempdir().expect("a folder");
    let files = tree::build(folder.path());
    assert!(files >= 5_000, "only {files} files in the tree");
    fact("files searched", files);

    let here = Here::new(folder.path());
    for (name, pattern) in PATTERNS {
        let (ours, theirs) = (here.matches(pattern), rg_matches(folder.path(), pattern));
        assert_eq!(ours, theirs, "the matches of {pattern:?} differ");
        assert!(!ours.is_empty(), "{pattern:?} is nowhere");
        fact(
            &format!("matches of {name}"),
            format!("{}, identical", ours.len()),
        );
    }
    let (ours, theirs) = (here.list(), rg_list(folder.path()));
    assert_eq!(ours, theirs, "the lists differ");
    fact("files listed", format!("{}, identical", ours.len()));

    let rounds = measure::rounds(9);
    let mut steps: Vec<Step<'_>> = Vec::new();
    for (name, pattern) in PATTERNS {
        let row = Row::new(format!("haft/grep/{name}"), "ms");
        let here = &here;
        steps.push((row, Box::new(move || wall_ms(|| here.grep(pattern, ALL)).0)));
        let row = Row::new(format!("rg/grep/{name}"), "ms");
        let root = folder.path();
        steps.push((row, Box::new(move || wall_ms(|| rg_grep(root, pattern)).0)));
    }
    let (_, common) = PATTERNS[2];
    let row = Row::new("haft/grep/common/capped", "ms");
    steps.push((row, Box::new(|| wall_ms(|| here.grep(common, CAP)).0)));
    let row = Row::new("haft/list", "ms");
    steps.push((row, Box::new(|| wall_ms(|| here.all_files()).0)));
    let row = Row::new("haft/glob", "ms");
    steps.push((row, Box::new(|| wall_ms(|| here.glob()).0)));
    let row = Row::new("rg/list", "ms");
    steps.push((row, Box::new(|| wall_ms(|| rg_files(folder.path())).0)));
    interleave(rounds, steps);
}

/// The standard tools on the tree, called through the executor.
struct Here {
    runtime: Runtime,
    executor: Executor,
    session: Session,
}

impl Here {
    fn new(root: &Path) -> Self {
        let workspace = Workspace::open(root).expect("the tree");
        let registry = ToolRegistry::new();
        let policy = Policy::read_only().with_workspace(&workspace);
        let builtins = Builtins::new(workspace)
            .tools()
            .expect("the standard tools");
        registry
            .add_all(builtins.into_iter().map(|builtin| builtin.tool))
            .expect("distinct names");
        // The test compares the whole result, so nothing may be cut.
        let limits = RunLimits {
            max_calls: u64::MAX,
            total_timeout: Duration::from_hours(100),
            inline_tokens: usize::MAX,
            ..RunLimits::default()
        };
        let session = Session::builder(Arc::new(registry)).with_limits(limits);
        Self {
            runtime: Runtime::new().expect("a runtime"),
            executor: Executor::new(policy.expect("no rules")),
            session: session.build().expect("limits that make sense"),
        }
    }

    fn call(&self, tool: &str, arguments: &str) -> Outcome {
        let call = ToolCall::new(tool, arguments);
        let outcome = self
            .runtime
            .block_on(self.executor.execute(&self.session, call));
        assert!(outcome.is_ok(), "{tool}: {:?}", outcome.error);
        outcome
    }

    fn grep(&self, pattern: &str, limit: usize) -> Outcome {
        let pattern = serde_json::to_string(pattern).expect("a string");
        self.call(
            "grep_files",
            &format!(r#"{{"pattern":{pattern},"limit":{limit}}}"#),
        )
    }

    fn all_files(&self) -> Outcome {
        self.call("list_files", r#"{"depth":64,"limit":50000}"#)
    }

    fn glob(&self) -> Outcome {
        self.call("glob_files", r#"{"pattern":"**","limit":50000}"#)
    }

    /// Returns path and line number of each match, sorted.
    fn matches(&self, pattern: &str) -> Vec<(String, u64)> {
        let outcome = self.grep(pattern, ALL);
        let found: Matches = data::of(&outcome);
        assert!(
            !found.truncated,
            "{pattern:?}: cut at {}: {:?}",
            found.matches.len(),
            found.notes
        );
        let mut lines: Vec<(String, u64)> = found
            .matches
            .into_iter()
            .map(|m| (m.path, m.line))
            .collect();
        lines.sort();
        lines
    }

    /// Returns the paths of all files, sorted.
    fn list(&self) -> Vec<String> {
        let outcome = self.all_files();
        let found: Entries = data::of(&outcome);
        assert!(!found.truncated, "cut at {}", found.entries.len());
        let files = found.entries.into_iter().filter(|e| e.kind == "file");
        let mut paths: Vec<String> = files.map(|e| e.path).collect();
        paths.sort();
        paths
    }
}

/// Returns ripgrep's complete output.
fn rg(root: &Path, arguments: &[&str]) -> Vec<u8> {
    let mut command = Command::new("rg");
    command
        .args(arguments)
        .current_dir(root)
        .stdin(Stdio::null());
    command.output().expect("rg runs").stdout
}

fn rg_grep(root: &Path, pattern: &str) -> Vec<u8> {
    rg(
        root,
        &[
            "--no-heading",
            "--line-number",
            "--color=never",
            "-e",
            pattern,
            ".",
        ],
    )
}

fn rg_files(root: &Path) -> Vec<u8> {
    rg(root, &["--files", "--color=never"])
}

fn rg_matches(root: &Path, pattern: &str) -> Vec<(String, u64)> {
    let output = rg_grep(root, pattern);
    let mut lines: Vec<(String, u64)> = String::from_utf8_lossy(&output)
        .lines()
        .filter_map(|line| {
            let mut parts = line.splitn(3, ':');
            let path = parts.next()?.trim_start_matches("./").to_owned();
            Some((path, parts.next()?.parse().ok()?))
        })
        .collect();
    lines.sort();
    lines
}

fn rg_list(root: &Path) -> Vec<String> {
    let output = rg_files(root);
    let mut paths: Vec<String> = String::from_utf8_lossy(&output)
        .lines()
        .map(str::to_owned)
        .collect();
    paths.sort();
    paths
}
