//! What a folder contains: languages, build tools and their commands, found by a bounded walk; and the settings that fit.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::plain_file;

pub mod starter;

/// Maximum number of folder entries that a scan visits: enough for the roots of a large monorepo.
const MAX_ENTRIES: usize = 20_000;

/// Maximum depth below the root at which packages are searched for.
const MAX_DEPTH: usize = 3;

/// Maximum number of manifests that are read.
const MAX_MANIFESTS: usize = 200;

/// Maximum size of a manifest that is read, in bytes.
const MAX_BYTES: u64 = 512 * 1024;

/// Folders that hold installed dependencies or build output.
const SKIPPED: [&str; 10] = [
    "node_modules",
    "target",
    "vendor",
    "dist",
    "build",
    "out",
    "venv",
    "__pycache__",
    "site-packages",
    "coverage",
];

/// Scripts of a package.json that developers run daily. Those that publish or start servers are left out.
const SCRIPTS: [&str; 8] = [
    "test",
    "build",
    "lint",
    "typecheck",
    "type-check",
    "check",
    "test:unit",
    "compile",
];

/// Targets of a Makefile that developers run daily.
const TARGETS: [&str; 5] = ["test", "build", "check", "lint", "all"];

/// Cargo commands. Calls covered by an allow rule need no approval, and an argument can make most of these tools start any program
/// (`--config`, `-exec`, `--script-shell`, `-p PLUGIN`): so a rule states the whole command, and where it allows arguments, the options
/// that start programs need approval.
const CARGO: [&str; 12] = [
    "cargo build",
    "cargo build --release",
    "cargo check",
    "cargo check --all-targets",
    "cargo test",
    "cargo test --workspace",
    "cargo test -p *",
    "cargo clippy",
    "cargo clippy --all-targets",
    "cargo fmt",
    "cargo fmt --all",
    "cargo fmt --check",
];

/// Cargo options that make it start a program named in the command line, or read a package from elsewhere.
const CARGO_OPTIONS: [&str; 4] = [
    "cargo * --config*",
    "cargo * --manifest-path*",
    "cargo * -C*",
    "cargo * -Z*",
];

/// Go commands.
const GO: [&str; 8] = [
    "go build",
    "go build ./...",
    "go test",
    "go test ./...",
    "go test -v ./...",
    "go test -race ./...",
    "go vet",
    "go vet ./...",
];

/// Commands that publish commits, also with git's own options before them (`git -C DIR push`).
const PUBLISHING: [&str; 4] = [
    "git push *",
    "git -* push *",
    "git send-pack *",
    "git -* send-pack *",
];

/// A rule that fits a folder, and why.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct FittingRule {
    /// The rule as written in haft.toml.
    pub rule: String,
    /// The reason, in a few words.
    pub why: String,
}

/// What a folder contains.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Project {
    /// The kinds of projects, for display: `Rust`, `Node (pnpm)`.
    pub kinds: BTreeSet<String>,
    /// Number of packages (folders with a manifest).
    pub packages: usize,
    /// Whether the folder is a git repository.
    pub git: bool,
    /// Commands that may run without approval, in the jail.
    pub allow: Vec<FittingRule>,
    /// Commands that need approval whatever else is allowed.
    pub ask: Vec<FittingRule>,
}

impl Project {
    /// Scans the folder and the folders below it. What cannot be read is ignored.
    pub fn scan(root: &Path) -> Self {
        let mut scan = Scan::default();
        scan.walk(root);
        scan.finish(root)
    }
}

/// A scan in progress.
#[derive(Debug, Default)]
struct Scan {
    project: Project,
    /// The reason for each rule; the first one found is kept.
    rules: BTreeMap<String, String>,
    folders: BTreeSet<PathBuf>,
    manifests: usize,
    node: NodeTool,
}

/// The package manager of Node packages here.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum NodeTool {
    #[default]
    Npm,
    Pnpm,
    Yarn,
    Bun,
}

impl NodeTool {
    fn name(self) -> &'static str {
        match self {
            Self::Npm => "npm",
            Self::Pnpm => "pnpm",
            Self::Yarn => "yarn",
            Self::Bun => "bun",
        }
    }

    /// Determines it from the lock file at the root.
    fn of(root: &Path) -> Self {
        let has = |name: &str| root.join(name).is_file();
        if has("pnpm-lock.yaml") || has("pnpm-workspace.yaml") {
            Self::Pnpm
        } else if has("yarn.lock") {
            Self::Yarn
        } else if has("bun.lock") || has("bun.lockb") {
            Self::Bun
        } else {
            Self::Npm
        }
    }
}

impl Scan {
    /// Walks breadth first, so that the bound leaves out the deepest entries.
    fn walk(&mut self, root: &Path) {
        self.node = NodeTool::of(root);
        self.project.git = root.join(".git").exists();
        let mut todo = VecDeque::from([(root.to_owned(), 0)]);
        let mut entries = 0;
        while let Some((folder, depth)) = todo.pop_front() {
            let Ok(read) = std::fs::read_dir(&folder) else {
                continue;
            };
            for entry in read.flatten() {
                entries += 1;
                if entries > MAX_ENTRIES {
                    return;
                }
                let (Ok(kind), Ok(name)) = (entry.file_type(), entry.file_name().into_string())
                else {
                    continue;
                };
                if kind.is_file() {
                    self.file(&folder, &name, depth);
                } else if kind.is_dir() && depth < MAX_DEPTH && is_walked(&name) {
                    todo.push_back((folder.join(name), depth + 1));
                }
            }
        }
    }

    fn file(&mut self, folder: &Path, name: &str, depth: usize) {
        let read = |scan: &mut Self| {
            scan.manifests += 1;
            let within = scan.manifests <= MAX_MANIFESTS;
            let text = within.then(|| plain_file::read(&folder.join(name), MAX_BYTES).ok());
            text.flatten().unwrap_or_default()
        };
        match name {
            "package.json" => {
                let text = read(self);
                self.package(folder, &text);
            }
            "pyproject.toml" | "setup.py" | "setup.cfg" | "requirements.txt" => {
                let text = read(self);
                self.python(folder, &text);
            }
            "Cargo.toml" => {
                self.note(folder, "Rust");
                for command in CARGO {
                    self.allow(command, "Cargo.toml: a Rust package");
                }
            }
            "go.mod" => {
                self.note(folder, "Go");
                for command in GO {
                    self.allow(command, "go.mod: a Go module");
                }
            }
            "Makefile" | "makefile" | "GNUmakefile" if depth == 0 => {
                let text = read(self);
                self.make(&text);
            }
            _ => {}
        }
    }

    fn note(&mut self, folder: &Path, kind: &str) {
        self.project.kinds.insert(kind.to_owned());
        self.folders.insert(folder.to_owned());
    }

    fn allow(&mut self, command: &str, why: &str) {
        self.rules
            .entry(format!("Bash({command})"))
            .or_insert_with(|| why.to_owned());
    }

    fn ask(&mut self, commands: &[&str], why: &str) {
        let rules = commands.iter().map(|command| FittingRule {
            rule: format!("Bash({command})"),
            why: why.to_owned(),
        });
        self.project.ask.extend(rules);
    }

    fn package(&mut self, folder: &Path, text: &str) {
        let tool = self.node.name();
        self.note(folder, &format!("Node ({tool})"));
        let package: Value = serde_json::from_str(text).unwrap_or_default();
        for script in SCRIPTS {
            if package["scripts"][script].is_string() {
                let why = format!("package.json has the script `{script}`");
                if script == "test" && self.node != NodeTool::Bun {
                    self.allow(&format!("{tool} test"), &why);
                }
                self.allow(&format!("{tool} run {script}"), &why);
            }
        }
    }

    fn python(&mut self, folder: &Path, text: &str) {
        let before = ["uv.lock", "poetry.lock"].map(|name| folder.join(name).is_file());
        let (tool, run) = match before {
            [true, _] => ("Python (uv)", "uv run "),
            [_, true] => ("Python (poetry)", "poetry run "),
            _ => ("Python", ""),
        };
        self.note(folder, tool);
        let why = "a Python project";
        for command in ["pytest", "pytest -q", "python -m pytest"] {
            self.allow(&format!("{run}{command}"), why);
        }
        for (word, plain, here) in [
            ("ruff", "ruff check", "ruff check ."),
            ("mypy", "mypy", "mypy ."),
        ] {
            if text.contains(word) {
                let why = format!("the project uses {word}");
                self.allow(&format!("{run}{plain}"), &why);
                self.allow(&format!("{run}{here}"), &why);
            }
        }
    }

    fn make(&mut self, text: &str) {
        for target in TARGETS {
            let has = text.lines().any(|line| {
                let rest = line.strip_prefix(target);
                rest.is_some_and(|rest| rest.trim_start().starts_with(':') && !rest.contains(":="))
            });
            if has {
                self.project.kinds.insert("Make".to_owned());
                self.allow(
                    &format!("make {target}"),
                    &format!("the Makefile has the target `{target}`"),
                );
            }
        }
    }

    fn finish(mut self, root: &Path) -> Project {
        self.project.packages = self.folders.len();
        let rules = std::mem::take(&mut self.rules).into_iter();
        self.project.allow = rules.map(|(rule, why)| FittingRule { rule, why }).collect();
        if self.project.git || root.join(".git").exists() {
            self.ask(&PUBLISHING, "publishes commits");
        }
        if self.project.kinds.contains("Rust") {
            self.ask(&CARGO_OPTIONS, "makes cargo start other programs");
        }
        self.project
    }
}

fn is_walked(name: &str) -> bool {
    !name.starts_with('.') && !SKIPPED.contains(&name)
}

#[cfg(test)]
mod tests;
