//! Approval requests per day: 200 commands in a Node, a Python and a Rust project, judged before they run and by their changes.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use haft_sandbox::{Config, Sandbox};

use crate::scene::{Scene, Settings};

/// A project: its files, and the commands of the day.
struct Project {
    name: &'static str,
    files: &'static [(&'static str, &'static str)],
    day: &'static str,
}

const PROJECTS: [Project; 3] = [
    Project {
        name: "node",
        files: &[
            (".gitignore", "/dist/\n/coverage/\n/node_modules/\n"),
            (
                "package.json",
                "{\"name\": \"cart\", \"version\": \"1.0.0\"}\n",
            ),
            (
                "lib/cart.js",
                "exports.total = (prices) => {\n  let sum = 0;\n  for (const price of prices) sum += price;\n  return sum;\n};\n",
            ),
            (
                "test/cart.test.js",
                "const { test } = require('node:test');\nconst assert = require('node:assert');\nconst { total } = require('../lib/cart');\ntest('adds', () => assert.equal(total([1, 2]), 3));\n",
            ),
        ],
        day: include_str!("day/node.txt"),
    },
    Project {
        name: "python",
        files: &[
            (".gitignore", "__pycache__/\n/build/\n"),
            ("pyproject.toml", "[project]\nname = \"words\"\n"),
            (
                "src/words.py",
                "def count(text):\n    return len(text.split())\n",
            ),
            (
                "tests/test_words.py",
                "import unittest\nfrom src.words import count\n\n\nclass Words(unittest.TestCase):\n    def test_counts(self):\n        self.assertEqual(count('a b'), 2)\n",
            ),
            ("tests/__init__.py", ""),
        ],
        day: include_str!("day/python.txt"),
    },
    Project {
        name: "rust",
        files: &[
            (".gitignore", "/target/\n"),
            (
                "Cargo.toml",
                "[package]\nname = \"sums\"\nversion = \"0.1.0\"\nedition = \"2021\"\n",
            ),
            (
                "Cargo.lock",
                "version = 3\n\n[[package]]\nname = \"sums\"\nversion = \"0.1.0\"\n",
            ),
            (
                "src/lib.rs",
                "pub fn add(a: i64, b: i64) -> i64 {\n    a + b\n}\n\n#[test]\nfn adds() {\n    assert_eq!(add(1, 2), 3);\n}\n",
            ),
        ],
        day: include_str!("day/rust.txt"),
    },
];

pub(crate) async fn all() {
    let Some(sandbox) = with_toolchain() else {
        eprintln!("SKIPPED: there is no Rust toolchain for the day in a Rust project");
        return;
    };
    let (mut before, mut after, mut commands) = (0, 0, 0);
    for project in &PROJECTS {
        let of_all = day(&sandbox, project, true).await;
        let of_changes = day(&sandbox, project, false).await;
        let lines = project.day.lines().count();
        eprintln!(
            "prompts: {lines} commands in a {} project: {of_all} asked before they run, {of_changes} by what they changed",
            project.name
        );
        before += of_all;
        after += of_changes;
        commands += lines;
    }
    eprintln!("prompts: {commands} commands: {before} before, {after} after");
    assert_eq!(commands, 200);
    assert!(after * 3 <= before, "{after} of {before}");
}

/// Returns the number of approval requests of one day.
async fn day(sandbox: &Sandbox, project: &Project, asks_before: bool) -> usize {
    let settings = Settings {
        asks_before,
        ..Settings::default()
    };
    let scene = Scene::with(sandbox, &settings);
    for (path, text) in project.files {
        scene.put(path, text);
    }
    git(&scene.at(""));
    let mut questions = 0;
    for line in project.day.lines() {
        let before = not_ignored(&scene);
        let outcome = scene.run(line).await;
        let ran = outcome
            .data
            .as_ref()
            .is_some_and(|data| data.get().contains("exit_code"));
        assert!(ran, "{line}: {}", serde_json::to_string(&outcome).unwrap());
        let asked = scene.questions().len();
        questions += asked;
        // Without approval, only files that git ignores change.
        let same = before == not_ignored(&scene);
        assert!(
            asked > 0 || same,
            "{}: {line} changed something unasked",
            project.name
        );
    }
    questions
}

/// Returns the files that git does not ignore, including those of its own folder.
fn not_ignored(scene: &Scene) -> BTreeMap<PathBuf, String> {
    const IGNORED: [&str; 6] = [
        "dist",
        "coverage",
        "node_modules",
        "__pycache__",
        "build",
        "target",
    ];
    let ignored = |path: &Path| {
        let mut names = path.components();
        names.any(|name| IGNORED.iter().any(|ignored| name.as_os_str() == *ignored))
    };
    let mut tree = scene.tree();
    tree.retain(|path, _| !ignored(path));
    tree
}

/// Returns a sandbox that shows the toolchain that built this test.
fn with_toolchain() -> Option<Sandbox> {
    #[expect(clippy::disallowed_methods, reason = "asks where the toolchain is")]
    let asked = Command::new("rustc")
        .args(["--print", "sysroot"])
        .output()
        .ok()?;
    let folder = PathBuf::from(String::from_utf8(asked.stdout).ok()?.trim());
    folder.join("bin/cargo").is_file().then(|| {
        Sandbox::new(Config {
            extra_read_only: vec![folder],
            detect_interpreters: false,
            ..Config::default()
        })
    })
}

fn git(folder: &Path) {
    let line = "git init --quiet -b main && git config user.name Ada && git config user.email ada@example.com && \
        git add -A && git commit --quiet -m first";
    #[expect(clippy::disallowed_methods, reason = "sets the scene")]
    let done = Command::new("sh")
        .args(["-c", line])
        .current_dir(folder)
        .status();
    assert!(done.unwrap().success());
}
