//! haft's plugins for `OpenCode` and Amp, run by node with a script in place of haft: the plugin follows its decision, and denies the call
//! if there is none.
//!
//! Without `node` on the path the tests are skipped and say so.
#![cfg(unix)]
#![expect(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    clippy::print_stderr,
    reason = "a test starts real programs, says what it skips and stops where it cannot go on"
)]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use haft_hook::{
    Agent, CallAction, CallStatus, HookEvent, HookEventKind, HookVerdict, read, reply, rewrite_line,
};
use haft_setup::programs::registrations;
use haft_setup::registration::AgentFileContent;
use serde_json::{Value, json};

/// Loads a plugin, makes one call and prints the outcome.
const OPENCODE: &str = r#"
const { Haft } = await import(process.argv[2]);
const hooks = await Haft({ directory: process.argv[4] });
const output = { args: { command: "ls", timeout: 5 } };
const args = output.args;
let thrown = null;
try {
  await hooks["tool.execute.before"]({ tool: "bash", sessionID: "s1", callID: "c1" }, output);
} catch (error) {
  thrown = error.message;
}
console.log(JSON.stringify({ thrown, args }));
const ended = { tool: "bash", sessionID: "s1", callID: "c1" };
const after = (exit) => hooks["tool.execute.after"]({ ...ended, args }, { output: "a", metadata: { exit } });
const failed = { type: "tool", ...ended, state: { status: "error", input: args, error: "no such file" } };
const event = { type: "message.part.updated", properties: { part: failed } };
switch (process.argv[3]) {
  case "after": await after(0); break;
  case "exit": await after(3); break;
  case "error": await hooks.event({ event }); break;
  // The second says nothing new.
  case "twice": await after(0); await hooks.event({ event }); break;
}
"#;

/// The same for Amp; the third argument is the answer of its user.
const AMP: &str = r#"
const handlers = {};
let options;
const on = (name, handler) => {
  if (name === "session.start") throw new Error("no such event");
  handlers[name] = handler;
};
(await import(process.argv[2])).default({ on, system: { workspaceRoot: "file://" + process.argv[4] }, helpers: { filePathFromURI: (uri) => uri.replace("file://", "") } });
const answers = { yes: async () => true, no: async () => false, odd: async () => "yes" };
const answer = answers[process.argv[3]];
const ctx = answer ? { ui: { confirm: (asked) => answer((options = asked)) } } : {};
const event = { tool: "Bash", input: { cmd: "ls" }, toolUseID: "c1", thread: { id: "s1" } };
const result = await handlers["tool.call"](event, ctx);
if (options && options.requireHuman !== true) throw new Error("an agent may answer");
console.log(JSON.stringify(result));
if (process.argv[3] === "after") {
  await handlers["tool.result"]({ ...event, status: "error", error: { message: "exit 1" } }, ctx);
}
"#;

/// A folder with a plugin and the script in place of haft.
struct Scene {
    folder: tempfile::TempDir,
    agent: Agent,
}

impl Scene {
    /// Writes the plugin and a script that stores its input and then runs `script`.
    fn new(agent: Agent, script: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        // With a quote and a space: the path must become one JavaScript string.
        let program = folder.path().join("my \"own\" haft");
        let text = format!(
            "#!/bin/sh\necho \"$@\" > {0}/args\npwd -P > {0}/folder\ncat > {0}/event\n{script}\n",
            folder.path().display()
        );
        fs::write(&program, text).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        let setup = registrations(agent, program.to_str().unwrap());
        let AgentFileContent::Own { text, .. } = &setup.places[0].files[0].content else {
            panic!("{setup:?}");
        };
        assert!(text.contains("DECIDE_MS = 600_000"), "{text}");
        // Early versions of Amp load a plugin only with this line at the top.
        let starts = text.starts_with("// @i-know-the-amp-plugin-api-is-wip");
        assert_eq!(starts, agent == Agent::Amp, "{text}");
        let text = text.replace("DECIDE_MS = 600_000", "DECIDE_MS = 2_000");
        fs::write(folder.path().join("plugin.mjs"), text).unwrap();
        let driver = if agent == Agent::Amp { AMP } else { OPENCODE };
        fs::write(folder.path().join("driver.mjs"), driver).unwrap();
        fs::create_dir(folder.path().join("work")).unwrap();
        Self { folder, agent }
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.folder.path().join(name)
    }

    /// Runs the driver and returns what it printed.
    fn run(&self, word: &str) -> Value {
        let output = Command::new("node")
            .arg(self.path("driver.mjs"))
            .arg(self.path("plugin.mjs"))
            .arg(word)
            .arg(self.path("work"))
            .output()
            .unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{errors}");
        serde_json::from_slice(&output.stdout).unwrap()
    }

    /// Returns what the plugin sent, as this crate reads it.
    fn event(&self) -> HookEvent {
        let args = fs::read_to_string(self.path("args")).unwrap();
        assert_eq!(args.trim(), format!("hook {}", self.agent.name()));
        read(self.agent, &fs::read(self.path("event")).unwrap()).unwrap()
    }
}

fn has_node() -> bool {
    let found = Command::new("node").arg("--version").output().is_ok();
    if !found {
        eprintln!("SKIPPED: there is no `node` on the path");
    }
    found
}

/// Returns a script that prints this text.
fn prints(text: &str) -> String {
    format!("cat <<'END'\n{text}\nEND")
}

/// Returns an event before a call, as the plugin of an agent sends it.
fn sample(agent: Agent) -> HookEvent {
    let scene = Scene::new(agent, "exit 1");
    scene.run("no");
    scene.event()
}

#[test]
fn a_plugin_sends_what_is_read_here() {
    if !has_node() {
        return;
    }
    for agent in [Agent::OpenCode, Agent::Amp] {
        let scene = Scene::new(agent, "exit 1");
        scene.run("no");
        let event = scene.event();
        assert_eq!(event.session, "s1");
        // Both the event's folder and the one that haft runs in are the workspace, whichever folder the agent was started in.
        assert_eq!(event.cwd, Some(scene.path("work")));
        let ran_in = fs::read_to_string(scene.path("folder")).unwrap();
        let work = scene.path("work").canonicalize().unwrap();
        assert_eq!(Path::new(ran_in.trim_end()), work);
        let call = event.call().unwrap();
        assert_eq!(call.id.as_deref(), Some("c1"));
        let line = |action: &CallAction| matches!(action, CallAction::Command(command) if command.line.as_deref() == Some("ls"));
        assert!(
            matches!(&call.actions[..], [action] if line(action)),
            "{call:?}"
        );

        let scene = Scene::new(agent, &prints(r#"{"decision":"none"}"#));
        scene.run("after");
        let event = scene.event();
        let HookEventKind::After(report) = &event.kind else {
            panic!("{event:?}")
        };
        assert_eq!(report.id.as_deref(), Some("c1"));
        let expect = if agent == Agent::Amp { "Failed" } else { "Ok" };
        assert_eq!(format!("{:?}", report.status), expect);
    }
}

#[test]
fn the_plugin_of_opencode_says_how_a_call_ended_once() {
    if !has_node() {
        return;
    }
    for (word, status, error) in [
        ("exit", CallStatus::Failed, Some("exit code 3")),
        ("error", CallStatus::Failed, Some("no such file")),
        ("twice", CallStatus::Ok, None),
    ] {
        let scene = Scene::new(Agent::OpenCode, &prints(r#"{"decision":"allow"}"#));
        scene.run(word);
        let event = scene.event();
        let HookEventKind::After(report) = &event.kind else {
            panic!("{word}: {event:?}")
        };
        assert_eq!(report.status, status, "{word}");
        assert_eq!(report.error.as_deref(), error, "{word}");
        assert_eq!(report.id.as_deref(), Some("c1"));
    }
    // A denied call did not run, so it did not fail.
    let scene = Scene::new(
        Agent::OpenCode,
        &prints(r#"{"decision":"deny","reason":"no"}"#),
    );
    scene.run("error");
    assert!(scene.event().call().is_some());
}

#[test]
fn a_verdict_is_what_happens_in_opencode() {
    if !has_node() {
        return;
    }
    let event = sample(Agent::OpenCode);
    let unchanged = json!({"command": "ls", "timeout": 5});
    let jailed = json!({"command": "haft exec -- ls", "timeout": 5});
    let input = rewrite_line(&event, "haft exec -- ls");
    let reason = || "no <b>\"quotes\"</b>".to_owned();
    for (verdict, thrown, args) in [
        (HookVerdict::NoOpinion, None, &unchanged),
        (HookVerdict::Allow { input: None }, None, &unchanged),
        (HookVerdict::Allow { input }, None, &jailed),
        (
            HookVerdict::Deny { reason: reason() },
            Some("no <b>\"quotes\"</b>"),
            &unchanged,
        ),
        (
            HookVerdict::Ask { reason: reason() },
            Some("OpenCode cannot ask its user"),
            &unchanged,
        ),
    ] {
        let scene = Scene::new(Agent::OpenCode, &prints(&reply(&event, &verdict).stdout));
        let outcome = scene.run("no");
        let says = outcome["thrown"].as_str();
        assert_eq!(says.is_some(), thrown.is_some(), "{verdict:?}: {outcome}");
        assert!(
            says.unwrap_or_default()
                .starts_with(thrown.unwrap_or_default()),
            "{outcome}"
        );
        assert_eq!(&outcome["args"], args, "{verdict:?}");
    }
}

#[test]
fn a_verdict_is_what_happens_in_amp() {
    if !has_node() {
        return;
    }
    let event = sample(Agent::Amp);
    let allow = json!({"action": "allow"});
    let jailed = json!({"action": "modify", "input": {"cmd": "haft exec -- ls"}});
    let input = rewrite_line(&event, "haft exec -- ls");
    let ask = || HookVerdict::Ask {
        reason: "it pushes".to_owned(),
    };
    let deny = HookVerdict::Deny {
        reason: "it pushes".to_owned(),
    };
    let rejected = |message: &str| json!({"action": "reject-and-continue", "message": message});
    for (verdict, user, expect) in [
        (HookVerdict::NoOpinion, "no", allow.clone()),
        (HookVerdict::Allow { input: None }, "no", allow.clone()),
        (HookVerdict::Allow { input }, "no", jailed),
        (deny, "yes", rejected("it pushes")),
        (ask(), "yes", allow),
        (
            ask(),
            "no",
            rejected("the user did not approve this call: it pushes"),
        ),
        // Only `true` approves.
        (
            ask(),
            "odd",
            rejected("the user did not approve this call: it pushes"),
        ),
        (
            ask(),
            "absent",
            rejected(
                "Amp could not ask its user, so haft denied a call that its user must approve: it pushes",
            ),
        ),
    ] {
        let scene = Scene::new(Agent::Amp, &prints(&reply(&event, &verdict).stdout));
        assert_eq!(scene.run(user), expect, "{verdict:?}, {user}");
    }
}

#[test]
fn a_plugin_denies_when_haft_does_not_decide() {
    if !has_node() {
        return;
    }
    let scripts = [
        ("exit 3", "it ended with 3"),
        ("echo broken >&2; exit 101", "it ended with 101: broken"),
        ("kill -9 $$", "it ended with SIGKILL"),
        // A failed program that printed an answer to allow.
        ("echo '{\"decision\":\"allow\"}'; exit 1", "it ended with 1"),
        ("true", "its answer is not JSON"),
        ("echo allow", "its answer is not JSON"),
        (
            "echo '{\"decision\":\"allow\"}{}'",
            "its answer is not JSON",
        ),
        ("echo null", "its answer is not known"),
        ("echo '{}'", "its answer is not known"),
        (
            "echo '{\"decision\":\"perhaps\"}'",
            "its answer is not known",
        ),
        ("exec tail -f /dev/null", "no answer within 2 s"),
    ];
    for agent in [Agent::OpenCode, Agent::Amp] {
        for (script, expect) in scripts {
            let scene = Scene::new(agent, script);
            let outcome = scene.run("yes");
            assert!(
                denial(agent, &outcome).contains(expect),
                "{script}: {outcome}"
            );
        }
        let scene = Scene::new(agent, "true");
        fs::remove_file(scene.path("my \"own\" haft")).unwrap();
        let outcome = scene.run("yes");
        assert!(denial(agent, &outcome).contains("ENOENT"), "{outcome}");
    }
}

/// Returns the reason for which a call was denied.
fn denial(agent: Agent, outcome: &Value) -> &str {
    if agent == Agent::Amp {
        assert_eq!(outcome["action"], "reject-and-continue");
        return outcome["message"].as_str().unwrap();
    }
    outcome["thrown"].as_str().unwrap()
}
