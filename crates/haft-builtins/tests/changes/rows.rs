//! What happens to a command's changes, row by row.

mod ignored;

use haft::policy::Profile;
use haft::{ErrorKind, Outcome};
use haft_builtins::command::changes::{ChangeMode, OnPartial};
use haft_sandbox::Sandbox;
use serde_json::Value;

use crate::scene::{Scene, Settings};

/// One command and the expected result.
struct Row {
    name: &'static str,
    settings: Settings,
    line: &'static str,
    /// How it fails, if it does.
    fails: Option<ErrorKind>,
    /// Number of approval requests.
    questions: usize,
    /// `path=content` for each changed or new file of the workspace, `path=` for each deleted one.
    changed: &'static [&'static str],
    /// The paths of `data.not_applied`.
    left: &'static [&'static str],
}

fn row(name: &'static str, line: &'static str) -> Row {
    Row {
        name,
        settings: Settings::default(),
        line,
        fails: None,
        questions: 0,
        changed: &[],
        left: &[],
    }
}

fn under(profile: Profile) -> Settings {
    Settings {
        profile,
        ..Settings::default()
    }
}

fn ordinary() -> Vec<Row> {
    vec![
        Row {
            ..row(
                "a command that changes nothing asks nothing",
                "sort tracked | uniq > /dev/null; true",
            )
        },
        Row {
            questions: 1,
            changed: &["tracked=after\n"],
            ..row(
                "a tracked file is asked about once",
                "echo after > tracked; true",
            )
        },
        Row {
            settings: Settings {
                says_no: true,
                ..Settings::default()
            },
            questions: 1,
            fails: Some(ErrorKind::Denied),
            left: &["tracked"],
            ..row(
                "what a person denies is not applied",
                "echo after > tracked; true",
            )
        },
        Row {
            changed: &["out/x=built\n"],
            ..row(
                "a build output that git ignores is applied unasked",
                "mkdir -p out; echo built > out/x",
            )
        },
    ]
}

#[expect(clippy::too_many_lines, reason = "one table")]
fn refused() -> Vec<Row> {
    vec![
        Row {
            questions: 1,
            changed: &["out/x=built\n", "tracked=after\n"],
            ..row(
                "only the rest is asked about",
                "mkdir -p out; echo built > out/x; echo after > tracked",
            )
        },
        Row {
            settings: Settings {
                says_no: true,
                ..Settings::default()
            },
            questions: 1,
            fails: Some(ErrorKind::Denied),
            left: &["out/x", "tracked"],
            ..row(
                "what git ignores is denied with the rest",
                "mkdir -p out; echo built > out/x; echo after > tracked",
            )
        },
        // A move is one change: until its new place is applied, what it moved stays.
        Row {
            settings: Settings {
                says_no: true,
                ..under(Profile::Trusted)
            },
            questions: 1,
            fails: Some(ErrorKind::Denied),
            left: &[".tool-versions", "tracked"],
            ..row(
                "what was moved to a denied place stays where it was",
                "mv tracked .tool-versions",
            )
        },
        Row {
            settings: Settings {
                says_no: true,
                ..under(Profile::Trusted)
            },
            questions: 1,
            fails: Some(ErrorKind::Denied),
            left: &[".tool-versions", "tracked"],
            ..row(
                "what was overwritten after its copy was denied stays",
                "cp tracked .tool-versions; echo other > tracked",
            )
        },
        Row {
            settings: Settings {
                says_no: true,
                on_partial: OnPartial::Discard,
                ..Settings::default()
            },
            questions: 1,
            fails: Some(ErrorKind::Denied),
            left: &["out/x", "tracked"],
            ..row(
                "nothing is applied in part where settings say so",
                "mkdir -p out; echo built > out/x; echo after > tracked",
            )
        },
        Row {
            settings: under(Profile::Trusted),
            changed: &["tracked=after\n", "keep/a="],
            ..row(
                "the profile trusted applies ordinary changes",
                "echo after > tracked; rm keep/a",
            )
        },
    ]
}

/// Findings of an attack on the first version.
fn attacks() -> Vec<Row> {
    vec![
        Row {
            questions: 1,
            changed: &["out/repo/file=after\n"],
            ..row(
                "f7_a_repository_in_an_ignored_folder_is_not_ignored",
                "echo after > out/repo/file",
            )
        },
        Row {
            questions: 1,
            changed: &["data="],
            ..row(
                "f9_a_file_that_a_pattern_for_folders_does_not_name_is_not_ignored",
                "rm data; mkdir data",
            )
        },
        Row {
            questions: 1,
            changed: &["out/b=../keep", "out/l=b/../tracked"],
            ..row(
                "f12_a_link_that_climbs_through_another_is_asked_about",
                "ln -s ../keep out/b; ln -s b/../tracked out/l",
            )
        },
        Row {
            settings: under(Profile::Trusted),
            questions: 1,
            changed: &[".git/remotes=", ".git/remotes/origin=x\n"],
            ..row(
                "f5_what_is_not_known_in_git_is_asked_about",
                "mkdir .git/remotes; echo x > .git/remotes/origin",
            )
        },
        Row {
            settings: under(Profile::Trusted),
            questions: 1,
            changed: &["hooks/pre-commit=x\n", "hooks="],
            ..row(
                "f4_what_the_settings_of_git_name_is_asked_about",
                "mkdir hooks; echo x > hooks/pre-commit",
            )
        },
    ]
}

fn with_rules() -> Vec<Row> {
    vec![
        Row {
            settings: Settings {
                allow: &["Bash(echo *)"],
                ..Settings::default()
            },
            questions: 1,
            changed: &["tracked=after\n"],
            ..row(
                "a rule for a command does not speak of what its line writes",
                "echo after > tracked",
            )
        },
        Row {
            settings: Settings {
                allow: &["Bash(echo *)", "Edit(/tracked)"],
                ..Settings::default()
            },
            changed: &["tracked=after\n"],
            ..row("a rule for the file does", "echo after > tracked")
        },
        Row {
            settings: Settings {
                profile: Profile::ReadOnly,
                ..Settings::default()
            },
            fails: Some(ErrorKind::Denied),
            ..row(
                "the profile read-only runs no line that writes",
                "echo after > tracked",
            )
        },
        Row {
            settings: Settings {
                allow: &["Bash"],
                deny: &["Edit(/config/**)"],
                ..Settings::default()
            },
            fails: Some(ErrorKind::Denied),
            changed: &["tracked=after\n"],
            left: &["config/app"],
            ..row(
                "a deny rule holds for every program",
                "sed -i s/before/after/ tracked; python3 -c 'open(\"config/app\", \"w\").write(\"x\")'",
            )
        },
        Row {
            settings: Settings {
                allow: &["Bash"],
                ask: &["Edit(/config/**)"],
                ..Settings::default()
            },
            questions: 1,
            changed: &["tracked=after\n", "config/app=x"],
            ..row(
                "a command that a rule allowed is asked about what a rule asks about",
                "sed -i s/before/after/ tracked; printf x | tee config/app",
            )
        },
        Row {
            settings: Settings {
                deny: &["Bash(sed:*)"],
                ..Settings::default()
            },
            fails: Some(ErrorKind::Denied),
            ..row(
                "rules for command lines decide before",
                "sed -i s/before/after/ tracked",
            )
        },
        Row {
            settings: Settings {
                ask: &["Bash(sed:*)"],
                ..Settings::default()
            },
            questions: 1,
            changed: &["tracked=after\n"],
            ..row(
                "what was approved before is not asked about again",
                "sed -i s/before/after/ tracked",
            )
        },
    ]
}

fn whatever_rules_allow() -> Vec<Row> {
    vec![
        Row {
            settings: Settings {
                mode: ChangeMode::Review,
                ..under(Profile::Trusted)
            },
            questions: 1,
            changed: &["tracked=after\n"],
            ..row(
                "the mode review asks about everything",
                "echo after > tracked; true",
            )
        },
        Row {
            settings: Settings {
                mode: ChangeMode::Review,
                allow: &["*", "Edit"],
                ..under(Profile::Trusted)
            },
            questions: 1,
            changed: &["out/made="],
            ..row(
                "the mode review asks whatever rules allow",
                "mkdir -p out; touch out/made",
            )
        },
        Row {
            settings: Settings {
                allow: &["*", "Edit"],
                ..Settings::default()
            },
            questions: 1,
            changed: &["hooks/pre-commit=x\n", "tracked=after\n"],
            ..row(
                "a hook that git's settings name is asked about whatever rules allow",
                "echo after > tracked; mkdir hooks; echo x > hooks/pre-commit",
            )
        },
    ]
}

fn others() -> Vec<Row> {
    vec![
        Row {
            questions: 1,
            fails: Some(ErrorKind::Failed),
            changed: &["tracked=after\n"],
            ..row(
                "the changes of a command that fails are applied, too",
                "echo after > tracked; exit 3",
            )
        },
        Row {
            left: &["pipe"],
            ..row("a pipe is named and not applied", "mkfifo pipe")
        },
        Row {
            questions: 1,
            changed: &["keep/a=", "moved/a=a\n"],
            ..row("a moved folder is asked about", "mv keep moved")
        },
        Row {
            questions: 1,
            changed: &["out/link=/etc/passwd"],
            ..row(
                "a link that leads outside is asked about",
                "mkdir -p out; ln -s /etc/passwd out/link",
            )
        },
        Row {
            changed: &["out/env=/usr/bin/env"],
            ..row(
                "a link to a program of the system is not",
                "mkdir -p out; ln -s /usr/bin/env out/env",
            )
        },
        Row {
            questions: 1,
            changed: &[".git/config=[core]\n\thooksPath = hooks\n[user]\n\tname = x\n"],
            ..row(
                "settings of git are asked about",
                "git config -f .git/config user.name x",
            )
        },
    ]
}

pub(crate) async fn all(sandbox: &Sandbox) {
    let rows: Vec<Row> = [
        ordinary(),
        refused(),
        attacks(),
        with_rules(),
        whatever_rules_allow(),
        ignored::need_approval(),
        ignored::unasked(),
        ignored::attacks(),
        others(),
    ]
    .into_iter()
    .flatten()
    .collect();
    for row in &rows {
        one(sandbox, row).await;
    }
    eprintln!("changes: {} rows: ok", rows.len());
}

async fn one(sandbox: &Sandbox, row: &Row) {
    let scene = Scene::with(sandbox, &row.settings);
    scene.put("tracked", "before\n");
    scene.put("keep/a", "a\n");
    scene.put("config/app", "app\n");
    scene.put(
        ".gitignore",
        "/out/\n/data/\n/ign/\n/node_modules/\n__pycache__/\ndist\n.turbo\n.pnpm-store\n.gradle\n",
    );
    scene.put("out/old.test.js", "old\n");
    scene.put("tab/.gitignore", "out\t\n");
    scene.put(".pytest_cache/.gitignore", "*\n");
    scene.put("node_modules/a", "a\n");
    scene.put("data", "own\n");
    scene.put("out/repo/.git/HEAD", "ref: refs/heads/main\n");
    scene.put("out/repo/file", "before\n");
    scene.put(".git/config", "[core]\n\thooksPath = hooks\n");
    let before = scene.tree();
    let outcome = scene.run(row.line).await;
    let shown = format!("{}: {}", row.name, serde_json::to_string(&outcome).unwrap());
    assert_eq!(
        outcome.error.as_ref().map(|error| error.kind),
        row.fails,
        "{shown}"
    );
    let questions = scene.questions();
    assert_eq!(questions.len(), row.questions, "{shown} {questions:?}");
    let mut after = scene.tree();
    for change in row.changed {
        let (path, content) = change.split_once('=').unwrap();
        let is = after.remove(std::path::Path::new(path));
        let is = is.map(|text| text.split_once(' ').map_or("", |(_, text)| text).to_owned());
        assert_eq!(is.unwrap_or_default(), content, "{shown}");
    }
    let named = |path: &std::path::Path| {
        let text = path.to_string_lossy();
        row.changed.iter().any(|change| change.starts_with(&*text))
    };
    let left = |tree: std::collections::BTreeMap<std::path::PathBuf, String>| {
        tree.into_iter()
            .filter(|(path, _)| !named(path))
            .collect::<Vec<_>>()
    };
    assert_eq!(left(after), left(before), "{shown}");
    assert_eq!(not_applied(&outcome), row.left, "{shown}");
    assert_eq!(scene.views_left(), 0, "{shown}");
}

fn not_applied(outcome: &Outcome) -> Vec<String> {
    let Some(data) = &outcome.data else {
        return Vec::new();
    };
    let data: Value = serde_json::from_str(data.get()).unwrap();
    let list = data["not_applied"].as_array().cloned().unwrap_or_default();
    let mut paths: Vec<_> = list
        .iter()
        .map(|one| one["path"].as_str().unwrap().to_owned())
        .collect();
    paths.sort();
    paths
}
