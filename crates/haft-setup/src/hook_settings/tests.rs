//! The settings files of every agent as users have them: before an install, after it, and after an uninstall.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use haft_hook::Agent;

use super::{HookEditOptions, HookLauncher, InstallEdit, install, target, uninstall};
use crate::clients::install::step::EditStep;
use crate::clients::install::trial::{read, stopping, walk};
use crate::clients::{ClientProgram, InstallScope, Launch, install as client};
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
        let real = root.path().canonicalize().unwrap();
        for folder in ["work", "user"] {
            fs::create_dir(real.join(folder)).unwrap();
        }
        let user = real.join("user").display().to_string();
        let environment = Environment::from(&[("HOME", user.as_str())][..]);
        Self {
            root,
            environment,
            work: real.join("work"),
            state: real.join("state"),
        }
    }

    fn site(&self) -> SetupSite<'_> {
        SetupSite {
            environment: &self.environment,
            workspace: &self.work,
            home: StateFolder(&self.state),
        }
    }

    fn order(&self, agent: Agent, level: InstallScope) -> HookEditOptions<'_> {
        HookEditOptions {
            agent,
            level,
            site: self.site(),
            dry_run: false,
        }
    }

    fn user(&self) -> PathBuf {
        self.root.path().canonicalize().unwrap().join("user")
    }

    fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.user().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        path
    }

    fn install(&self, agent: Agent) -> Result<Vec<InstallEdit>, Problem> {
        install(self.order(agent, InstallScope::User), &program())
    }

    fn uninstall(&self, agent: Agent) -> Result<Vec<InstallEdit>, Problem> {
        uninstall(self.order(agent, InstallScope::User))
    }

    /// Everything below a folder.
    fn names(&self, folder: &str) -> Vec<PathBuf> {
        let mut found = Vec::new();
        walk(
            &self.root.path().canonicalize().unwrap().join(folder),
            &mut found,
        );
        found
    }
}

fn program() -> HookLauncher {
    HookLauncher {
        name: "/opt/haft".into(),
        path: "/opt/haft".into(),
        options: Vec::new(),
    }
}

/// For each agent its hooks file, the text of one with hooks of the user, and what an uninstall leaves of it if it was changed since.
const FILES: [(Agent, &str, &str); 12] = [
    (
        Agent::Claude,
        ".claude/settings.json",
        "{\n  // mine\n  \"model\": \"opus\",\n  \"hooks\": {\n    \"PreToolUse\": [\n      {\"matcher\": \"Bash\", \"hooks\": [{\"type\": \"command\", \"command\": \"lint\"}]}, // keep\n    ],\n  },\n}\n",
    ),
    (
        Agent::Claude,
        ".claude/settings.json",
        "{\"model\":\"opus\"}",
    ),
    (
        Agent::Codex,
        ".codex/hooks.json",
        "{\"hooks\": {\"Stop\": [{\"hooks\": [{\"type\": \"command\", \"command\": \"bell\"}]}]}}\n",
    ),
    (
        Agent::Codex,
        ".codex/config.toml",
        "model = \"o\" # why\n\n[[hooks.PreToolUse]]\nhooks = [{ type = \"command\", command = \"lint\" }]\n",
    ),
    (
        Agent::Cursor,
        ".cursor/hooks.json",
        "{\r\n\t\"version\": 1,\r\n\t\"hooks\": {\r\n\t\t\"stop\": [ { \"command\": \"./audit.sh\" } ]\r\n\t}\r\n}\r\n",
    ),
    (
        Agent::Gemini,
        ".gemini/settings.json",
        "{\n    \"theme\": \"Dark\", /* nice */\n    \"hooks\": {}\n}\n",
    ),
    (
        Agent::Copilot,
        ".copilot/hooks/haft.json",
        "{\n  \"version\": 1,\n  \"hooks\": {\n    \"preToolUse\": [\n      { \"type\": \"command\", \"bash\": \"mine\" }\n    ]\n  }\n}\n",
    ),
    (
        Agent::Windsurf,
        ".codeium/windsurf/hooks.json",
        "{\"hooks\": {\"pre_run_command\": [{\"command\": \"check\"}], \"later\": 3}}",
    ),
    (
        Agent::Devin,
        ".config/devin/config.json",
        "{\"a\": [1, 2]}\n",
    ),
    (
        Agent::Droid,
        ".factory/hooks.json",
        "{\n  \"Stop\": [{\"hooks\": [{\"type\": \"command\", \"command\": \"bell\"}]}]\n}\n",
    ),
    (
        Agent::Droid,
        ".factory/settings.json",
        "{\n  \"model\": \"x\"\n}\n",
    ),
    (
        Agent::Goose,
        ".agents/plugins/haft/hooks/hooks.json",
        "{\n  \"hooks\": {\n    \"Stop\": [\n      {\"hooks\": [{\"command\": \"bell\"}]}\n    ]\n  }\n}\n",
    ),
];

#[test]
fn every_agent_s_file_gets_haft_and_its_own_bytes_back() {
    for (agent, name, text) in FILES {
        let lab = Lab::new();
        let path = lab.write(name, text);
        let before = lab.names("user");
        let edits = lab.install(agent).unwrap();
        let with = read(&path).unwrap();
        assert!(edits.iter().any(|edit| edit.file == path), "{agent}");
        assert!(
            with.contains(&format!("/opt/haft hook {}", agent.name())),
            "{with}"
        );
        // A second install, from another place, leaves the entries alone.
        let moved = HookLauncher {
            name: "haft".into(),
            path: "/elsewhere/haft".into(),
            options: vec!["--home".into(), "/x".into()],
        };
        let again = install(lab.order(agent, InstallScope::User), &moved).unwrap();
        let of_file = again.iter().find(|edit| edit.file == path).unwrap();
        assert!(!of_file.changes(), "{agent}");
        assert_eq!(read(&path).unwrap(), with, "{agent}");
        lab.uninstall(agent).unwrap();
        assert_eq!(read(&path).as_deref(), Some(text), "{agent}");
        assert_eq!(lab.names("user"), before, "{agent}");
        assert!(lab.names("state/settings").is_empty(), "{agent}");
    }
}

#[test]
fn what_a_user_changes_in_between_stays_and_haft_alone_goes() {
    for (agent, name, text) in FILES {
        let lab = Lab::new();
        let path = lab.write(name, text);
        lab.install(agent).unwrap();
        // A change that no editor of hooks would notice.
        let changed = format!("{}\n", read(&path).unwrap());
        fs::write(&path, &changed).unwrap();
        lab.uninstall(agent).unwrap();
        let left = read(&path).unwrap();
        assert!(!left.contains("haft"), "{agent}: {left}");
        let plain = |text: &str| {
            text.replace([' ', '\n', '\r', '\t'], "")
                .replace(",]", "]")
                .replace(",}", "}")
        };
        assert_eq!(plain(&left), plain(text), "{agent}: {left}");
    }
}

#[test]
fn an_agent_without_files_gets_them_and_loses_them_again() {
    for agent in Agent::ALL {
        for level in [InstallScope::User, InstallScope::Project] {
            let lab = Lab::new();
            let order = lab.order(agent, level);
            let shown = install(
                HookEditOptions {
                    dry_run: true,
                    ..order
                },
                &program(),
            );
            assert!(shown.unwrap().iter().all(InstallEdit::changes), "{agent}");
            assert!(lab.names("user").is_empty() && lab.names("work").is_empty());
            let edits = install(order, &program()).unwrap();
            let root = if level == InstallScope::User {
                "user"
            } else {
                "work"
            };
            for edit in &edits {
                let folder = lab.root.path().canonicalize().unwrap().join(root);
                assert!(edit.file.starts_with(folder), "{}", edit.file.display());
                assert_eq!(read(&edit.file), edit.after);
                let mode = fs::metadata(&edit.file).unwrap().permissions().mode();
                assert_eq!(mode & 0o100 != 0, agent == Agent::Cline, "{agent}");
            }
            assert!(
                install(order, &program())
                    .unwrap()
                    .iter()
                    .all(|edit| !edit.changes()),
                "{agent}"
            );
            uninstall(order).unwrap();
            assert_eq!(lab.names(root), Vec::<PathBuf>::new(), "{agent}");
        }
    }
}

#[test]
fn a_file_of_haft_s_own_from_elsewhere_is_replaced_and_then_removed() {
    for agent in [Agent::Cline, Agent::OpenCode, Agent::Amp, Agent::Goose] {
        let lab = Lab::new();
        let order = lab.order(agent, InstallScope::Project);
        let edits = install(order, &program()).unwrap();
        // As a repository brings it: with the program of another machine, and no record here.
        for edit in &edits {
            let text = edit
                .after
                .clone()
                .unwrap()
                .replace("/opt/haft", "/usr/bin/haft");
            fs::write(&edit.file, text).unwrap();
        }
        fs::remove_dir_all(&lab.state).unwrap();
        install(order, &program()).unwrap();
        uninstall(order).unwrap();
        for edit in &edits {
            assert!(!edit.file.exists(), "{agent}: {}", edit.file.display());
        }
        assert!(lab.names("state/settings").is_empty(), "{agent}");
    }
}

/// Files that haft does not understand, and what it says about each.
const ODD: [(Agent, &str, &str, &str); 11] = [
    (Agent::Claude, ".claude/settings.json", "[]", "JSON object"),
    (
        Agent::Claude,
        ".claude/settings.json",
        "{\"hooks\": []}",
        "`hooks` is not an object",
    ),
    (
        Agent::Claude,
        ".claude/settings.json",
        "{\"hooks\": {\"PreToolUse\": {}}}",
        "`PreToolUse` is not a list",
    ),
    (
        Agent::Claude,
        ".claude/settings.json",
        "{\"hooks\": {}, \"hooks\": {}}",
        "appears twice",
    ),
    (
        Agent::Claude,
        ".claude/settings.json",
        "{\"hooks\": {",
        "does not end",
    ),
    (
        Agent::Cursor,
        ".cursor/hooks.json",
        "{\"version\": 2, \"hooks\": {}}",
        "its version is 2",
    ),
    (
        Agent::Copilot,
        ".copilot/hooks/haft.json",
        "{\"version\": \"1\"}",
        "its version is",
    ),
    (
        Agent::Codex,
        ".codex/config.toml",
        "[hooks]\nPreToolUse = [{ hooks = [] }]\n",
        "cannot be edited|can be edited|not written",
    ),
    (
        Agent::Cline,
        "Documents/Cline/Hooks/PreToolUse",
        "#!/bin/sh\nmine\n",
        "haft did not make it",
    ),
    (
        Agent::OpenCode,
        ".config/opencode/plugins/haft.js",
        "// mine\n",
        "haft did not make it",
    ),
    (
        Agent::Goose,
        ".agents/plugins/haft/plugin.json",
        "{\"name\": \"haft\"}",
        "haft did not make it",
    ),
];

#[test]
fn what_is_not_understood_is_refused_and_left_alone() {
    for (agent, name, text, why) in ODD {
        let lab = Lab::new();
        let path = lab.write(name, text);
        let before = lab.names("user");
        let refused = lab.install(agent).unwrap_err();
        let what = refused.to_string();
        assert!(
            why.split('|').any(|why| what.contains(why)),
            "{agent}: {what}"
        );
        assert!(
            what.contains(path.file_name().unwrap().to_str().unwrap()),
            "{what}"
        );
        assert!(
            refused
                .advice()
                .is_some_and(|advice| advice.contains("by hand"))
        );
        // A program or plugin of the user's is wrong as a whole.
        let is_whole = why.contains("haft did not make it");
        let place = refused.place().unwrap();
        assert_eq!(place.spot.is_none(), is_whole, "{agent}: {place}");
        assert_eq!(read(&path).as_deref(), Some(text), "{agent}");
        // No other file of the agent was made either.
        assert_eq!(lab.names("user"), before, "{agent}");
    }
}

#[test]
fn entries_of_others_in_a_group_of_ours_stay() {
    let lab = Lab::new();
    let text = "{\"hooks\": {\"PreToolUse\": [{\"matcher\": \"Bash\", \"hooks\": [{\"command\": \"a\"}, {\"command\": \"/x/haft\", \"args\": [\"hook\", \"claude\"]}, {\"command\": \"b\"}]}, {\"hooks\": [{\"command\": \"haft hook claude\"}]}, {\"hooks\": [{\"command\": \"haft hook codex\"}]}]}}";
    let path = lab.write(".claude/settings.json", text);
    lab.uninstall(Agent::Claude).unwrap();
    assert_eq!(
        read(&path).unwrap(),
        "{\"hooks\": {\"PreToolUse\": [{\"matcher\": \"Bash\", \"hooks\": [{\"command\": \"a\"}, {\"command\": \"b\"}]}, {\"hooks\": [{\"command\": \"haft hook codex\"}]}]}}"
    );
}

#[test]
fn an_install_that_is_killed_at_any_step_is_repaired_by_the_next_command() {
    let new = [
        (Agent::Codex, ".codex/hooks.json"),
        (Agent::Copilot, ".copilot/hooks/haft.json"),
        (Agent::Amp, ".config/amp/plugins/haft.ts"),
    ];
    let rows = FILES
        .map(|(agent, name, text)| (agent, name, Some(text)))
        .into_iter();
    let rows = rows.chain(new.map(|(agent, name)| (agent, name, None)));
    for (agent, name, text) in rows.filter(|(agent, ..)| *agent != Agent::Goose) {
        for stop in 0..7 {
            for repair in ["uninstall", "install"] {
                let lab = Lab::new();
                let path = lab.user().join(name);
                if let Some(text) = text {
                    lab.write(name, text);
                }
                let order = lab.order(agent, InstallScope::User);
                let places =
                    super::places::places(agent, InstallScope::User, lab.site(), &program());
                let places = places.unwrap();
                let place = places.iter().find(|place| place.path == path).unwrap();
                let put = |text: &str| super::put(agent, place, text);
                lab.site().home.create().unwrap();
                let target = target(order, place).unwrap();
                let _ = target.install(&put, &mut stopping(stop));
                if repair == "install" {
                    lab.install(agent).unwrap();
                    assert!(read(&path).unwrap().contains("haft"), "{agent} {stop}");
                }
                lab.uninstall(agent).unwrap();
                let at = format!("{agent}, after {stop}, {repair}");
                assert_eq!(read(&path).as_deref(), text, "{at}");
                assert_eq!(path.parent().unwrap().exists(), text.is_some(), "{at}");
            }
        }
    }
}

#[test]
fn hooks_that_are_killed_beside_a_server_leave_nothing_once_both_are_removed() {
    let gemini = ClientProgram::find("gemini").unwrap();
    let launch = Launch {
        command: "/opt/haft".into(),
        args: vec!["serve".into()],
    };
    let level = InstallScope::User;
    for text in [None, Some("{}"), Some("{ \"a\": 1 // c\n}")] {
        for (stop, removes) in (0..8).flat_map(|stop| [(stop, false), (stop, true)]) {
            for server_first in [false, true] {
                let lab = Lab::new();
                let path = lab.user().join(".gemini/settings.json");
                if let Some(text) = text {
                    lab.write(".gemini/settings.json", text);
                }
                client::install(gemini, level, lab.site(), &launch, false).unwrap();
                let order = lab.order(Agent::Gemini, level);
                let places = super::places::places(Agent::Gemini, level, lab.site(), &program());
                let places = places.unwrap();
                let target = target(order, &places[0]).unwrap();
                if removes {
                    lab.install(Agent::Gemini).unwrap();
                    let _ = target.uninstall(&mut stopping(stop));
                } else {
                    let put = |text: &str| super::put(Agent::Gemini, &places[0], text);
                    let _ = target.install(&put, &mut stopping(stop));
                }
                for is_server in [server_first, !server_first] {
                    if is_server {
                        client::uninstall(gemini, level, lab.site(), false).unwrap();
                    } else {
                        lab.uninstall(Agent::Gemini).unwrap();
                    }
                }
                let at = format!("{text:?} {stop} {removes} {server_first}");
                assert_eq!(read(&path).as_deref(), text, "{at}");
                assert_eq!(path.parent().unwrap().exists(), text.is_some(), "{at}");
                assert!(lab.names("state/settings").is_empty(), "{at}");
            }
        }
    }
}

#[test]
fn what_the_agent_writes_at_the_same_time_is_not_overwritten() {
    let theirs = "{\"theme\": \"light\", \"hooks\": {}}";
    let lab = Lab::new();
    let path = lab.write(".gemini/settings.json", "{}");
    let places = super::places::places(Agent::Gemini, InstallScope::User, lab.site(), &program());
    let places = places.unwrap();
    let order = lab.order(Agent::Gemini, InstallScope::User);
    lab.site().home.create().unwrap();
    let put = |text: &str| super::put(Agent::Gemini, &places[0], text);
    let mut interfering = |step: EditStep<'_>| {
        if matches!(step, EditStep::Rename(..)) {
            fs::write(&path, theirs).unwrap();
        }
        EditStep::take(step)
    };
    let done = target(order, &places[0])
        .unwrap()
        .install(&put, &mut interfering);
    let refused = done.unwrap_err().to_string();
    assert!(refused.contains("at the same time"), "{refused}");
    assert_eq!(read(&path).as_deref(), Some(theirs));
    lab.install(Agent::Gemini).unwrap();
    lab.uninstall(Agent::Gemini).unwrap();
    assert_eq!(read(&path).as_deref(), Some(theirs));
}

#[test]
fn codex_s_hooks_stay_in_the_file_where_they_are() {
    let lab = Lab::new();
    let toml = lab.write(".codex/config.toml", "[[hooks.Stop]]\nhooks = []\n");
    lab.install(Agent::Codex).unwrap();
    // The user starts a second file: haft is still in the first.
    let json = lab.write(".codex/hooks.json", "{}");
    let with = read(&toml).unwrap();
    assert!(
        lab.install(Agent::Codex)
            .unwrap()
            .iter()
            .all(|edit| !edit.changes())
    );
    assert_eq!(
        (read(&toml).unwrap(), read(&json).unwrap()),
        (with, "{}".into())
    );
    lab.uninstall(Agent::Codex).unwrap();
    assert!(!read(&toml).unwrap().contains("haft"));
    // Codex's list of reviews is not a hook.
    let lab = Lab::new();
    lab.write(
        ".codex/config.toml",
        "[hooks.state.\"x\"]\ntrusted_hash = \"y\"\n",
    );
    let edits = lab.install(Agent::Codex).unwrap();
    assert!(edits[0].file.ends_with(".codex/hooks.json"));
}

#[test]
fn links_are_followed_but_not_out_of_a_project() {
    let lab = Lab::new();
    let real = lab.write("dotfiles/claude.json", "{}");
    fs::create_dir(lab.user().join(".claude")).unwrap();
    let link = lab.user().join(".claude/settings.json");
    std::os::unix::fs::symlink(&real, &link).unwrap();
    lab.install(Agent::Claude).unwrap();
    assert!(link.is_symlink() && read(&real).unwrap().contains("haft"));
    lab.uninstall(Agent::Claude).unwrap();
    assert_eq!(read(&real).as_deref(), Some("{}"));
    std::os::unix::fs::symlink(lab.user(), lab.site().workspace.join(".claude")).unwrap();
    let order = lab.order(Agent::Claude, InstallScope::Project);
    let refused = install(order, &program()).unwrap_err().to_string();
    assert!(refused.contains("lead out of the project"), "{refused}");
}
