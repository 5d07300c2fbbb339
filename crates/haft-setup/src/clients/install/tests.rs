//! Installs and uninstalls that are killed between any two steps, and files that change in between.

use std::fs;
use std::path::PathBuf;

use super::execute::StepRunner;
use super::step::EditStep;
use super::trial::{read, stopping, walk};
use super::{InstallScope, InstallTarget, Launch, entry, install, target, uninstall};
use crate::clients::ClientProgram;
use crate::environment::Environment;
use crate::problem::Problem;
use crate::site::{SetupSite, StateFolder};

struct Lab {
    root: tempfile::TempDir,
    environment: Environment,
    work: PathBuf,
    state: PathBuf,
}

impl Lab {
    fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        let work = root.path().join("work");
        fs::create_dir(&work).unwrap();
        Self {
            environment: Environment::default(),
            work: work.canonicalize().unwrap(),
            state: root.path().join("home"),
            root,
        }
    }

    fn site(&self) -> SetupSite<'_> {
        SetupSite {
            environment: &self.environment,
            workspace: &self.work,
            home: StateFolder(&self.state),
        }
    }

    fn file(&self, name: &str) -> PathBuf {
        self.root.path().join("work").join(name)
    }

    fn target(&self, client: &str) -> InstallTarget {
        target(
            ClientProgram::find(client).unwrap(),
            InstallScope::Project,
            self.site(),
        )
        .unwrap()
    }

    fn install(&self, client: &str, word: &str) -> super::InstallEdit {
        let client = ClientProgram::find(client).unwrap();
        install(
            client,
            InstallScope::Project,
            self.site(),
            &launch(word),
            false,
        )
        .unwrap()
    }

    fn uninstall(&self, client: &str) {
        let client = ClientProgram::find(client).unwrap();
        uninstall(client, InstallScope::Project, self.site(), false).unwrap();
    }

    /// Returns the paths of everything in the project and in haft's folder of records.
    fn names(&self) -> Vec<PathBuf> {
        let mut found = Vec::new();
        for folder in [
            self.root.path().join("work"),
            self.site().home.join("settings"),
        ] {
            walk(&folder, &mut found);
        }
        found
    }
}

fn launch(word: &str) -> Launch {
    Launch {
        command: "/opt/haft".into(),
        args: vec!["serve".into(), word.into()],
    }
}

/// Installs haft; the test performs the steps.
fn with_steps(
    target: &InstallTarget,
    client: &str,
    launch: &Launch,
    hands: StepRunner<'_>,
) -> Result<super::InstallEdit, Problem> {
    let client = ClientProgram::find(client).unwrap();
    target.install(&|text| entry::put(client, text, launch), hands)
}

const TEXTS: [Option<&str>; 3] = [
    None,
    Some("{ \"theme\": \"dark\" // mine\n}"),
    Some("{\n  \"mcpServers\": {\"docs\": {}},\n}\n"),
];

#[test]
fn an_install_that_is_killed_at_any_step_is_repaired_by_the_next_command() {
    for text in TEXTS {
        for is_second in [false, true] {
            for stop in 0..7 {
                for repair in ["uninstall", "install"] {
                    let lab = Lab::new();
                    let file = lab.file(".cursor/mcp.json");
                    if let Some(text) = text {
                        fs::create_dir(file.parent().unwrap()).unwrap();
                        fs::write(&file, text).unwrap();
                    }
                    if is_second {
                        lab.install("cursor", "first");
                    }
                    let target = lab.target("cursor");
                    let _ = with_steps(&target, "cursor", &launch("second"), &mut stopping(stop));
                    if repair == "install" {
                        lab.install("cursor", "third");
                        assert!(read(&file).unwrap().contains("third"));
                    }
                    lab.uninstall("cursor");
                    let at = format!("{text:?}, second: {is_second}, after {stop}, {repair}");
                    assert_eq!(read(&file).as_deref(), text, "{at}");
                    assert_eq!(file.parent().unwrap().exists(), text.is_some(), "{at}");
                    let count = if text.is_some() { 2 } else { 0 };
                    let left = lab.names();
                    let kept = left
                        .iter()
                        .filter(|path| path.starts_with(&lab.state))
                        .count();
                    assert!(left.len() - kept == count && kept <= 1, "{at}: {left:?}");
                }
            }
        }
    }
}

#[test]
fn an_uninstall_that_is_killed_at_any_step_is_finished_by_the_next() {
    for text in TEXTS {
        for stop in 0..4 {
            let lab = Lab::new();
            let file = lab.file(".cursor/mcp.json");
            if let Some(text) = text {
                fs::create_dir(file.parent().unwrap()).unwrap();
                fs::write(&file, text).unwrap();
            }
            lab.install("cursor", "first");
            let _ = lab.target("cursor").uninstall(&mut stopping(stop));
            lab.uninstall("cursor");
            assert_eq!(read(&file).as_deref(), text, "after {stop}");
            assert_eq!(
                file.parent().unwrap().exists(),
                text.is_some(),
                "after {stop}"
            );
            // Nothing is recorded that a later install could mistake for its own.
            let left = lab.names();
            let count = if text.is_some() { 2 } else { 0 };
            assert_eq!(left.len(), count, "after {stop}: {left:?}");
        }
    }
}

#[test]
fn what_a_user_changes_between_two_installs_stays() {
    let rows = [
        (
            "cursor",
            ".cursor/mcp.json",
            "{\n  \"theme\": 1\n}\n",
            "\"theme\": 1",
            "\"theme\": 2, \"new\": [3] /* mine */",
        ),
        (
            "cursor",
            ".cursor/mcp.json",
            "{\n  \"mcpServers\": {\n    \"docs\": {}\n  }\n}\n",
            "\"docs\": {}",
            "\"docs\": {}, \"more\": {}",
        ),
        (
            "codex",
            ".codex/config.toml",
            "model = \"a\"\n",
            "model = \"a\"",
            "model = \"b\"\n[mcp_servers.more]\ncommand = \"x\"",
        ),
    ];
    for (client, name, text, from, to) in rows {
        let lab = Lab::new();
        let file = lab.file(name);
        fs::create_dir(file.parent().unwrap()).unwrap();
        fs::write(&file, text).unwrap();
        lab.install(client, "first");
        let with = read(&file).unwrap();
        fs::write(&file, with.replace(from, to)).unwrap();
        lab.install(client, "second");
        lab.install(client, "third");
        lab.uninstall(client);
        assert_eq!(read(&file).unwrap(), text.replace(from, to), "{client}");
    }
}

#[test]
fn a_file_that_haft_made_and_a_user_filled_stays_and_a_folder_with_more_in_it_too() {
    let lab = Lab::new();
    let file = lab.file(".vscode/mcp.json");
    lab.install("vscode", "first");
    let with = read(&file).unwrap();
    fs::write(
        &file,
        with.replace("\"servers\"", "\"inputs\": [], \"servers\""),
    )
    .unwrap();
    lab.install("vscode", "second");
    lab.uninstall("vscode");
    assert_eq!(read(&file).unwrap(), "{\n  \"inputs\": []\n}\n");
    let lab = Lab::new();
    lab.install("vscode", "first");
    fs::write(lab.file(".vscode/tasks.json"), "{}").unwrap();
    lab.uninstall("vscode");
    assert!(!lab.file(".vscode/mcp.json").exists() && lab.file(".vscode/tasks.json").exists());
}

#[test]
fn an_entry_of_haft_s_name_that_is_not_haft_s_comes_back_as_it_was_written() {
    let rows = [
        (
            "cursor",
            ".cursor/mcp.json",
            "{\n  \"mcpServers\": {\n    \"haft\": {\"command\": \"mine\"}\n  }\n}\n",
        ),
        (
            "vscode",
            ".vscode/mcp.json",
            "{ \"servers\": {\n\t\"haft\":   { // why\n\t\"command\" : \"mine\" /* c */, \"n\": 1.50e3,\n\n\t},},}",
        ),
        (
            "codex",
            ".codex/config.toml",
            "[mcp_servers.haft]\ncommand = \"mine\"\n",
        ),
        (
            "codex",
            ".codex/config.toml",
            "# mine\n[ mcp_servers . haft ] # why\n# how\ncommand = 'mine'   # what\n\nn = 1_000\n[mcp_servers.haft.env]\nX = \"1\"\n\n# of the next\n[tui]\nx = 1\n",
        ),
        (
            "codex",
            ".codex/config.toml",
            "[mcp_servers.haft]\r\ncommand = 'mine' # what\r\n[tui]\r\n",
        ),
    ];
    for (client, name, text) in rows {
        for change in ["", "\n"] {
            let lab = Lab::new();
            let file = lab.file(name);
            fs::create_dir(file.parent().unwrap()).unwrap();
            fs::write(&file, text).unwrap();
            // The entry is not haft's, so it is not removed.
            lab.uninstall(client);
            assert_eq!(read(&file).unwrap(), text);
            assert!(lab.install(client, "first").replaces, "{client}");
            assert!(!lab.install(client, "second").replaces, "{client}");
            let with = read(&file).unwrap();
            assert!(!with.contains("mine\""), "{with}");
            fs::write(&file, with + change).unwrap();
            lab.install(client, "third");
            lab.uninstall(client);
            assert_eq!(read(&file).unwrap(), format!("{text}{change}"), "{client}");
        }
    }
}

#[test]
fn what_a_user_adds_to_haft_s_entry_stays_when_haft_is_installed_again() {
    let rows = [
        (
            "cursor",
            ".cursor/mcp.json",
            "{\"mcpServers\":{\"haft\":{\"env\":{\"T\":\"1\"},\"command\":\"/old/haft\",\"args\":[\"serve\",\"old\"],\"disabled\":true}}}",
        ),
        (
            "claude-code",
            ".mcp.json",
            "{\n  \"mcpServers\": {\n    \"haft\": {\n      \"type\": \"stdio\",\n      \"command\": \"/old/haft\", // mine\n      \"args\": [\n        \"serve\",\n        \"old\"\n      ],\n      \"env\": { \"T\": \"1\" } // a token\n    }\n  }\n}\n",
        ),
        (
            "opencode",
            "opencode.json",
            "{\"mcp\": {\"haft\": {\"type\": \"local\", \"enabled\": false, \"command\": [\"/old/haft\",\"serve\",\"old\"], \"environment\": {\"T\": \"1\"}}}}",
        ),
        (
            "codex",
            ".codex/config.toml",
            "[mcp_servers.haft] # mine\nstartup_timeout_sec = 20\ncommand = \"/old/haft\"   # why\nargs = [\"serve\", \"old\"]\nenv = { T = \"1\" }\n\n[mcp_servers.haft.tools.x]\nenabled = false # c\n",
        ),
    ];
    for (client, name, text) in rows {
        let lab = Lab::new();
        let file = lab.file(name);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(&file, text).unwrap();
        assert!(!lab.install(client, "new").replaces, "{client}");
        let expected = text.replace("/old/", "/opt/").replace("\"old\"", "\"new\"");
        assert_eq!(read(&file).unwrap(), expected, "{client}");
        assert!(!lab.install(client, "new").changes(), "{client}");
    }
}

#[test]
fn members_of_haft_s_entry_that_are_missing_are_added() {
    let rows = [
        (
            "claude-code",
            ".mcp.json",
            "{\"mcpServers\": {\"haft\": {\"command\": \"haft\", \"args\": [\"serve\"], \"env\": {}}}}",
            "{\"mcpServers\": {\"haft\": {\"command\": \"/opt/haft\", \"args\": [\"serve\",\"new\"], \"env\": {}, \"type\": \"stdio\"}}}",
        ),
        (
            "opencode",
            "opencode.json",
            "{\"mcp\": {\"haft\": {\"command\": [\"haft\", \"serve\"]}}}",
            "{\"mcp\": {\"haft\": {\"command\": [\"/opt/haft\",\"serve\",\"new\"], \"type\": \"local\", \"enabled\": true}}}",
        ),
    ];
    for (client, name, text, expected) in rows {
        let lab = Lab::new();
        fs::write(lab.file(name), text).unwrap();
        lab.install(client, "new");
        let members = |text: &str| crate::edit::jsonc::read(text).unwrap();
        let now = read(&lab.file(name)).unwrap();
        assert_eq!(members(&now), members(expected), "{now}");
        assert_eq!(now.len(), expected.len(), "{now}");
    }
}

#[test]
fn an_entry_of_haft_s_name_that_is_no_object_comes_back() {
    for value in ["[1]", "-1.5", "\"mine\""] {
        let lab = Lab::new();
        let text = format!("{{\"mcpServers\": {{\"haft\": {value}}}}}");
        let file = lab.file(".mcp.json");
        fs::write(&file, &text).unwrap();
        lab.install("claude-code", "first");
        fs::write(&file, read(&file).unwrap() + "\n").unwrap();
        lab.uninstall("claude-code");
        assert_eq!(read(&file).unwrap(), format!("{text}\n"));
    }
}

#[test]
fn a_record_whose_backup_is_gone_never_removes_the_file() {
    let lab = Lab::new();
    let file = lab.file(".mcp.json");
    fs::write(&file, "{\"a\": 1}").unwrap();
    let backup = lab.install("claude-code", "first").backup.unwrap();
    fs::remove_file(backup).unwrap();
    lab.uninstall("claude-code");
    assert_eq!(read(&file).unwrap(), "{\"a\": 1}");
}

#[test]
fn what_the_client_writes_at_the_same_time_is_not_overwritten() {
    let theirs = "{\"theme\": \"light\", \"mcpServers\": {\"new\": {}}}";
    for text in TEXTS {
        for removes in [false, true] {
            let lab = Lab::new();
            let file = lab.file(".cursor/mcp.json");
            fs::create_dir(file.parent().unwrap()).unwrap();
            if let Some(text) = text {
                fs::write(&file, text).unwrap();
            }
            if removes {
                lab.install("cursor", "first");
            }
            let mut interfering = |step: EditStep<'_>| {
                if matches!(step, EditStep::Rename(..) | EditStep::Remove(..)) {
                    fs::write(&file, theirs).unwrap();
                }
                EditStep::take(step)
            };
            let target = lab.target("cursor");
            let done = if removes {
                target.uninstall(&mut interfering)
            } else {
                with_steps(&target, "cursor", &launch("first"), &mut interfering)
            };
            let refused = done.unwrap_err().to_string();
            assert!(refused.contains("at the same time"), "{refused}");
            assert_eq!(read(&file).as_deref(), Some(theirs), "{text:?} {removes}");
            // The next edits keep what the client wrote.
            lab.install("cursor", "again");
            lab.uninstall("cursor");
            assert_eq!(read(&file).as_deref(), Some(theirs), "{text:?} {removes}");
            let drafts = lab
                .names()
                .into_iter()
                .filter(|name| name.display().to_string().contains("haft."));
            assert_eq!(drafts.count(), 0);
        }
    }
}
