//! The times of files that a command only touches are set unasked, but over no rule, and not if something else is not applied.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, symlink};

use haft_builtins::command::changes::ChangeMode;
use haft_sandbox::Sandbox;

use crate::git::host;
use crate::scene::{Scene, Settings, data};

/// The time of all files before the command.
const BEFORE: i64 = 1_000_000;

struct Row {
    name: &'static str,
    line: &'static str,
    settings: Settings,
    /// Number of approval requests.
    questions: usize,
    /// The paths that get their time.
    set: &'static [&'static str],
    /// Part of a note of the result.
    note: Option<&'static str>,
}

fn row(name: &'static str, line: &'static str) -> Row {
    Row {
        name,
        line,
        settings: Settings::default(),
        questions: 0,
        set: &[],
        note: None,
    }
}

#[expect(clippy::too_many_lines, reason = "a table")]
fn rows() -> Vec<Row> {
    vec![
        Row {
            set: &["out/stamp"],
            ..row("a stamp of a build", "touch out/stamp")
        },
        Row {
            set: &["out/stamp"],
            ..row(
                "an output that is written again as it was",
                "echo stamp > out/stamp",
            )
        },
        Row {
            set: &["tracked"],
            ..row("a tracked file", "touch tracked")
        },
        Row {
            set: &["tracked"],
            ..row("a time in the past", "touch -d 1999-01-01 tracked")
        },
        Row {
            set: &["node_modules", "node_modules/a"],
            ..row(
                "a folder and a file of a dependency",
                "touch node_modules node_modules/a",
            )
        },
        Row {
            settings: Settings {
                deny: &["Edit(/tracked)"],
                ..Settings::default()
            },
            set: &["out/stamp"],
            note: Some("tracked: only touched, and a rule"),
            ..row("a file of a deny rule", "touch tracked out/stamp")
        },
        Row {
            settings: Settings {
                deny: &["Edit(/alias)"],
                ..Settings::default()
            },
            note: Some("tracked: only touched, and a rule"),
            ..row("a file that a link names as denied", "touch tracked")
        },
        // The line itself is asked about, too.
        Row {
            questions: 1,
            note: Some(".envrc: only touched, and a rule"),
            ..row("a protected file", "touch .envrc")
        },
        Row {
            questions: 1,
            set: &["out/stamp"],
            ..row(
                "what is approved is applied, and the times with it",
                "touch out/stamp; echo after > other",
            )
        },
        Row {
            settings: Settings {
                says_no: true,
                ..Settings::default()
            },
            questions: 1,
            note: Some("not everything that the command changed"),
            ..row(
                "what is denied is not done, and no time says so",
                "touch out/stamp; echo after > other",
            )
        },
        Row {
            settings: Settings {
                mode: ChangeMode::Review,
                ..Settings::default()
            },
            note: Some("need an approval"),
            ..row("settings that ask about everything", "touch out/stamp")
        },
        Row {
            settings: Settings {
                acts: Some(|root| fs::write(root.join("out/stamp"), "mine\n").unwrap()),
                ..Settings::default()
            },
            questions: 1,
            ..row(
                "a file that was changed meanwhile",
                "touch out/stamp; echo after > other",
            )
        },
    ]
}

pub(crate) async fn all(sandbox: &Sandbox) {
    let rows = rows();
    for row in &rows {
        one(sandbox, row).await;
    }
    eprintln!("changes: {} rows of times: ok", rows.len());
}

async fn one(sandbox: &Sandbox, row: &Row) {
    let scene = Scene::with(sandbox, &row.settings);
    for (path, text) in [
        (".gitignore", "/out/\n/node_modules/\n"),
        ("out/stamp", "stamp\n"),
        ("node_modules/a", "a\n"),
        ("tracked", "before\n"),
        ("other", "before\n"),
        (".envrc", "export A=1\n"),
    ] {
        scene.put(path, text);
    }
    symlink("tracked", scene.at("alias")).unwrap();
    host(
        &scene.at(""),
        "git init -q -b main .; find . -exec touch -d @1000000 {} +",
    );
    let outcome = scene.run(row.line).await;
    let shown = format!("{}: {}", row.name, serde_json::to_string(&outcome).unwrap());
    assert_eq!(scene.questions().len(), row.questions, "{shown}");
    for path in [
        "out/stamp",
        "tracked",
        ".envrc",
        "node_modules",
        "node_modules/a",
    ] {
        let text = fs::read(scene.at(path)).unwrap_or_default();
        let is_set = fs::metadata(scene.at(path)).unwrap().mtime() != BEFORE;
        assert_eq!(
            is_set,
            row.set.contains(&path) || text == b"mine\n",
            "{path}: {shown}"
        );
    }
    let count = data(&outcome)["touched"].as_u64().unwrap_or_default();
    assert_eq!(count, row.set.len() as u64, "{shown}");
    let notes = outcome.notes.join("\n");
    assert_eq!(row.note.is_some(), !notes.is_empty(), "{shown}");
    assert!(notes.contains(row.note.unwrap_or_default()), "{shown}");
    assert_eq!(scene.views_left(), 0, "{shown}");
}
