//! What a folder holds: languages, build tools and their commands, found by a walk that is bounded; and the settings that fit.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::plain_file;

pub mod starter;

/// Most folder entries that a scan looks at: enough for the roots of a large monorepo.
const MAX_ENTRIES: usize = 20_000;

/// How deep below the root packages are looked for.
const MAX_DEPTH: usize = 3;

/// Most manifests that are read.
const MAX_MANIFESTS: usize = 200;

/// Largest manifest read.
const MAX_BYTES: u64 = 512 * 1024;

/// Folders that hold what was installed or built.
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

/// Scripts of a package.json that a developer's day consists of. Those that publish or start servers are not among them.
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

/// Targets of a Makefile, likewise.
const TARGETS: [&str; 5] = ["test", "build", "check", "lint", "all"];

/// Commands of cargo. What an allow rule covers is applied unasked, and an argument can make most of these tools start any program
/// (`--config`, `-exec`, `--script-shell`, `-p PLUGIN`): so a rule says the whole command, and where arguments are let in, the options
/// that start programs are asked about.
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

/// Options of cargo with which it starts what the line names, or reads a package from elsewhere.
const CARGO_OPTIONS: [&str; 4] = [
    "cargo * --config*",
    "cargo * --manifest-path*",
    "cargo * -C*",
    "cargo * -Z*",
];

/// Commands of go.
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

/// What publishes commits, also behind git's own options (`git -C DIR push`).
const PUBLISHING: [&str; 4] = [
    "git push *",
    "git -* push *",
    "git send-pack *",
    "git -* send-pack *",
];

/// A rule that fits a folder, and why.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct FittingRule {
    /// As haft.toml has it.
    pub rule: String,
    /// The reason, in a few words.
    pub why: String,
}

/// What a folder holds.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Project {
    /// What was found, for people: `Rust`, `Node (pnpm)`.
    pub kinds: BTreeSet<String>,
    /// How many packages (folders with a manifest) were found.
    pub packages: usize,
    /// Whether it is a git repository.
    pub git: bool,
    /// Commands that may run without approval, in the jail.
    pub allow: Vec<FittingRule>,
    /// Commands that need approval whatever else is allowed.
    pub ask: Vec<FittingRule>,
}

impl Project {
    /// Looks at the folder and the folders below it. What cannot be read counts as not there.
    pub fn scan(root: &Path) -> Self {
        let mut scan = Scan::default();
        scan.walk(root);
        scan.finish(root)
    }
}

/// A scan under way.
#[derive(Debug, Default)]
struct Scan {
    project: Project,
    /// Why each rule fits; the first reason counts.
    rules: BTreeMap<String, String>,
    folders: BTreeSet<PathBuf>,
    manifests: usize,
    node: NodeTool,
}

/// What installs Node packages here.
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

    /// By the lock file at the root.
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
    /// Breadth first, so that the bound leaves out what lies deepest.
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
