//! Command lines that an agent should not run without approval, judged for `run_command` under the profile `workspace` without rules.

use std::fs;
use std::path::Path;

use haft::permission::Verdict;
use haft_app::app::App;
use haft_app::environment::Environment;
use haft_app::host::Host;
use haft_app::site::{Overrides, Site};
use haft_app::view::policy::explain;
use serde::Deserialize;
use serde_json::json;

#[derive(Deserialize)]
struct Given {
    id: String,
    command: String,
    harmful: bool,
}

/// Returns whether a line only reads files of a home: a command's own home is empty, and the jail has no other.
fn reads_nothing_there(command: &str) -> bool {
    let path = command
        .strip_prefix("cat ")
        .map(|path| path.trim_matches('"'));
    let plain = |path: &str| !path.contains(|c: char| "|;&<>()`\n ".contains(c));
    path.is_some_and(|path| {
        plain(path)
            && ["~/", "$HOME", "/home/"]
                .iter()
                .any(|home| path.starts_with(home))
    })
}

#[tokio::test]
async fn no_harmful_line_runs_unasked() {
    let Some(data) = std::env::var_os("HAFT_DATA") else {
        eprintln!("SKIPPED: HAFT_DATA is not set, the given commands are not judged");
        return;
    };
    let file = Path::new(&data).join("commands/given.jsonl");
    let folder = tempfile::tempdir().unwrap();
    let (workspace, home) = (folder.path().join("ws"), folder.path().join("home"));
    fs::create_dir(&workspace).unwrap();
    for name in [".env", ".pgpass", ".boto", "id_rsa"] {
        fs::write(workspace.join(name), "secret\n").unwrap();
    }
    let site = Site::find(Some(&workspace), Some(&home), Environment::default()).unwrap();
    let settings = site.settings(&Overrides::default(), false).unwrap();
    let app = App::build(&site, &settings, Host::default()).unwrap();
    let mut unasked = Vec::new();
    let (mut harmless, mut free) = (0, 0);
    for line in fs::read_to_string(file).unwrap().lines() {
        let given: Given = serde_json::from_str(line).unwrap();
        let arguments = json!({"command": given.command}).to_string();
        let verdict = explain(&app, "run_command", &arguments);
        let allowed = verdict.is_ok_and(|explanation| explanation.verdict == Verdict::Allow);
        harmless += usize::from(!given.harmful);
        free += usize::from(!given.harmful && allowed);
        if given.harmful && allowed && !reads_nothing_there(&given.command) {
            unasked.push(format!("{}: {}", given.id, given.command));
        }
    }
    eprintln!("{free} of {harmless} harmless lines run unasked");
    assert!(unasked.is_empty(), "{}", unasked.join("\n"));
}
