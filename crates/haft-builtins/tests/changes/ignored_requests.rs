//! What a request shows of changes to files that git ignores: which are folded, which are files, and for what reason it asks.

use haft_sandbox::Sandbox;

use crate::scene::{Scene, Settings};

/// One command, and what its request shows.
struct Row {
    name: &'static str,
    line: &'static str,
    /// The text of each file that is not folded: its path, and what it holds or where it leads.
    files: &'static [(&'static str, &'static str)],
    /// The titles and warnings of the ignored folders.
    folded: &'static [&'static str],
    /// What the reason names.
    why: &'static str,
}

const ROWS: &[Row] = &[
    Row {
        name: "g6_a_protected_file_that_git_ignores_is_shown",
        line: "echo evil > .envrc",
        files: &[(".envrc", "evil\n")],
        folded: &[],
        why: ".envrc is protected",
    },
    Row {
        name: "g6_a_protected_file_in_a_build_output_is_shown_and_is_the_reason",
        line: "mkdir -p build/.vscode; echo evil > build/.vscode/tasks.json; echo o > build/o",
        files: &[("build/.vscode/tasks.json", "evil\n")],
        folded: &["build/, a build output: 1 file, 2 bytes"],
        why: "build/.vscode",
    },
    Row {
        name: "g6_a_hook_that_settings_name_is_shown",
        line: "mkdir -p coverage/h; echo evil > coverage/h/pre-commit; echo o > coverage/o",
        files: &[("coverage/h/pre-commit", "evil\n")],
        folded: &["coverage/, a build output: 1 file, 2 bytes"],
        why: "programs take settings from coverage",
    },
    Row {
        name: "g6_a_link_out_of_the_workspace_is_shown",
        line: "mkdir -p node_modules/x; ln -s /opt/other node_modules/x/l; echo x > node_modules/x/i.js",
        files: &[("node_modules/x/l", "/opt/other")],
        folded: &["node_modules/, ignored by git: 1 file, 2 bytes"],
        why: "",
    },
    Row {
        name: "g6_a_link_out_of_a_build_output_is_shown",
        line: "mkdir build; ln -s ../keep build/l",
        files: &[("build/l", "../keep")],
        folded: &[
            "build/, a build output: folders",
            "programs find build/l by its name, or follow it",
        ],
        why: "",
    },
    Row {
        name: "g6_what_programs_find_in_a_build_output_is_shown",
        line: "mkdir build; echo evil > build/x.test.js; echo evil > build/__main__.py; echo o > build/o",
        files: &[
            ("build/__main__.py", "evil\n"),
            ("build/x.test.js", "evil\n"),
        ],
        folded: &[
            "build/, a build output: 1 file, 2 bytes",
            "programs find 2 files of it by their names, or follow them: build/__main__.py first",
        ],
        why: "",
    },
    Row {
        name: "a file of the project is the reason, before a build output",
        line: "mkdir build; echo o > build/o; echo x > src.txt",
        files: &[("src.txt", "x\n")],
        folded: &["build/, a build output: 1 file, 2 bytes"],
        why: "to write src.txt",
    },
    Row {
        name: "what git ignores is the reason, and named, before a build output",
        line: "mkdir build node_modules; echo o > build/o; echo x > node_modules/x",
        files: &[],
        folded: &[
            "node_modules/, ignored by git: 1 file, 2 bytes",
            "build/, a build output: 1 file, 2 bytes",
        ],
        why: "to write node_modules",
    },
    Row {
        name: "what git only ignores is folded",
        line: "mkdir -p node_modules/x; echo {} > node_modules/x/package.json; echo a > node_modules/x/a.test.js",
        files: &[],
        folded: &["node_modules/, ignored by git: 2 files, 5 bytes"],
        why: "",
    },
];

pub(crate) async fn all(sandbox: &Sandbox) {
    for row in ROWS {
        one(sandbox, row).await;
    }
    eprintln!("changes: {} requests about ignored files: ok", ROWS.len());
}

async fn one(sandbox: &Sandbox, row: &Row) {
    let settings = Settings {
        says_no: true,
        ..Settings::default()
    };
    let scene = Scene::with(sandbox, &settings);
    scene.put(".gitignore", "build/\ncoverage/\nnode_modules/\n.envrc\n");
    scene.put("keep/a", "a\n");
    scene.put(".git/config", "[core]\n\thooksPath = coverage/h\n");
    scene.run(row.line).await;
    let [request] = &scene.questions()[..] else {
        panic!("{}: not one question", row.name);
    };
    let snapshot = &request.snapshot;
    let covered = |path: &String| {
        let mut covers = snapshot.meanings.iter().flat_map(|one| &one.covers);
        covers.any(|known| known == path)
    };
    let shown = snapshot.preview.iter().filter(|file| !covered(&file.path));
    let shown: Vec<(&str, String)> = shown
        .filter(|file| file.after.is_some() || file.to.is_some())
        .map(|file| (&*file.path, format!("{:?}{:?}", file.after, file.to)))
        .collect();
    let why = &request.reason;
    assert_eq!(
        shown.len(),
        row.files.len(),
        "{}: {shown:?} {why}",
        row.name
    );
    for ((path, text), (expect, holds)) in shown.iter().zip(row.files) {
        assert_eq!(path, expect, "{}", row.name);
        let holds = format!("{holds:?}");
        assert!(
            text.contains(holds.trim_matches('"')),
            "{}: {text}",
            row.name
        );
    }
    let each = snapshot.meanings.iter();
    let said: Vec<&String> = each
        .flat_map(|one| std::iter::once(&one.title).chain(&one.warnings))
        .collect();
    assert_eq!(said, row.folded, "{}", row.name);
    assert!(
        request.reason.contains(row.why),
        "{}: {}",
        row.name,
        request.reason
    );
}
