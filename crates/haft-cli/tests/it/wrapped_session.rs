//! The commands of one agent's session in the jail: what a person allows for the session, what is said once, and what the commands add to
//! caches holds for the next of them, and for no other session.

use std::process::Child;

use serde_json::{Value, json};

use crate::approvals::wait;
use crate::harness::{Lab, Ran, ended};
use crate::hook::hook;
use crate::signals::jailed;

const SETTINGS: &str = "[hook]\nwrap = \"jail\"\nwait_s = 20\n";

fn lab(settings: &str) -> Lab {
    let mut lab = Lab::new();
    lab.set("CI", "1");
    lab.user_settings(&format!("{SETTINGS}{settings}"));
    lab
}

/// A session of Claude Code in the lab's folder.
#[derive(Clone, Copy)]
struct AgentSession<'a> {
    lab: &'a Lab,
    id: &'a str,
}

impl AgentSession<'_> {
    fn event(&self, name: &str, more: &Value) -> String {
        let mut event = json!({
            "session_id": self.id, "transcript_path": "/tmp/t.jsonl", "cwd": self.lab.work(),
            "permission_mode": "default", "hook_event_name": name,
        });
        let members = event.as_object_mut().unwrap();
        members.extend(more.as_object().unwrap().clone());
        event.to_string()
    }

    /// Returns the line that the agent runs instead of this one.
    fn wrapped(&self, line: &str) -> String {
        let more =
            json!({"tool_name": "Bash", "tool_input": {"command": line}, "tool_use_id": "t"});
        let ran = hook(self.lab, &self.event("PreToolUse", &more));
        let input = &ran.json()["hookSpecificOutput"]["updatedInput"];
        let line = input["command"].as_str();
        line.unwrap_or_else(|| panic!("{}", ran.stdout)).to_owned()
    }

    fn begin(&self, line: &str) -> Child {
        let line = self.wrapped(line);
        self.lab.program("bash", &["-c", &line]).spawn().unwrap()
    }

    fn run(&self, line: &str) -> Ran {
        ended(self.begin(line))
    }

    /// Runs a line that a person is asked about, and approves it. Returns the request.
    fn approved(&self, line: &str, scope: &str) -> Value {
        let running = self.begin(line);
        let request = wait("the request", || pending(self.lab).into_iter().next());
        let id = request["id"].as_str().unwrap();
        let ran = self
            .lab
            .run(&["approvals", "approve", id, "--scope", scope]);
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        let ran = ended(running);
        assert_eq!(ran.code, 0, "{line}: {}", ran.stderr);
        request
    }

    /// Whether a person is asked about a line; denies the request.
    fn is_asked(&self, line: &str) -> bool {
        let mut running = self.begin(line);
        let asked = wait("a request or the end", || {
            let request = pending(self.lab).into_iter().next();
            let over = running.try_wait().unwrap().is_some();
            (request.is_some() || over).then_some(request)
        });
        if let Some(request) = &asked {
            self.lab
                .run(&["approvals", "deny", request["id"].as_str().unwrap()]);
        }
        ended(running);
        asked.is_some()
    }
}

fn pending(lab: &Lab) -> Vec<Value> {
    let all = lab.run(&["approvals", "list", "--json"]).json();
    let mut all = all.as_array().unwrap().clone();
    all.retain(|one| one["status"] == "pending");
    all
}

#[test]
fn what_is_allowed_for_the_session_holds_in_its_next_commands_alone() {
    if !jailed(&Lab::new()) {
        return;
    }
    let lab = lab("");
    let (one, other) = (
        AgentSession {
            lab: &lab,
            id: "one",
        },
        AgentSession {
            lab: &lab,
            id: "other",
        },
    );
    let line = "echo x >> notes.txt && cat notes.txt";
    let request = one.approved(line, "session");
    assert_eq!(request["client"], "Claude Code, session one", "{request}");
    assert!(!one.is_asked(line), "the same line of the session");
    assert!(other.is_asked(line), "the same line of another session");
    assert!(one.is_asked("echo x >> other.txt"), "another file");
    // In another folder, the same path is another file.
    let elsewhere = Lab::new();
    let wrapped = one.wrapped(line);
    let moved = wrapped.replace(
        lab.work().to_str().unwrap(),
        elsewhere.work().to_str().unwrap(),
    );
    let moved = format!(
        "cd {} && {}",
        elsewhere.work().display(),
        moved.replace("--wait 60", "--wait 1")
    );
    let ran = ended(lab.program("bash", &["-c", &moved]).spawn().unwrap());
    assert_eq!(ran.code, 4, "{}", ran.stderr);
    // It ends with the session.
    hook(&lab, &one.event("SessionEnd", &json!({"reason": "exit"})));
    assert!(one.is_asked(line), "after the end of the session");
}

#[test]
fn what_is_allowed_once_holds_once() {
    if !jailed(&Lab::new()) {
        return;
    }
    let lab = lab("");
    let session = AgentSession { lab: &lab, id: "s" };
    let line = "echo x >> notes.txt && cat notes.txt";
    session.approved(line, "once");
    assert!(session.is_asked(line));
}

#[test]
fn a_session_that_no_hook_named_is_refused() {
    let lab = lab("");
    let name = "ab".repeat(32);
    for name in [&*name, "../x", ""] {
        let ran = lab.run(&["exec", "--session", name, "--", "true"]);
        assert_eq!(ran.code, 2, "{name}: {}", ran.stderr);
        assert!(ran.stderr.contains("session"), "{name}: {}", ran.stderr);
    }
}

#[test]
fn what_commands_add_to_caches_holds_for_the_sessions_next_ones() {
    if !jailed(&Lab::new()) {
        return;
    }
    let lab = lab("[policy]\nprofile = \"trusted\"\n");
    let (one, other) = (
        AgentSession {
            lab: &lab,
            id: "one",
        },
        AgentSession {
            lab: &lab,
            id: "other",
        },
    );
    let made = "for f in .cache/deno .m2/repository .npm/_cacache; do echo kept > ~/$f/x; done";
    let made = one.run(&format!("mkdir -p ~/.cache/deno && {made}"));
    assert_eq!(made.code, 0, "{}", made.stderr);
    let look = "cat ~/.cache/deno/x ~/.m2/repository/x ~/.npm/_cacache/x; true; : > /tmp/y";
    assert_eq!(one.run(look).stdout, "kept\nkept\nkept\n");
    assert_eq!(other.run(look).stdout, "");
}

#[test]
fn what_ends_with_a_command_is_said_once_in_a_session() {
    if !jailed(&Lab::new()) {
        return;
    }
    let lab = lab("[policy]\nprofile = \"trusted\"\n");
    let session = AgentSession { lab: &lab, id: "s" };
    for (line, part) in [
        (
            "mkdir -p ~/.local/bin && touch ~/.local/bin/x ~/.toolrc",
            "`~/.local`, `~/.toolrc`",
        ),
        (
            "sleep 600 >/dev/null 2>&1 & disown",
            "left them running: `sleep`",
        ),
    ] {
        // A line of one command and `&` would run in the background.
        let line = format!("{line}; echo made");
        let first = session.run(&line);
        assert_eq!((first.code, &*first.stdout), (0, "made\n"), "{line}");
        assert!(first.stderr.contains(part), "{line}: {}", first.stderr);
        let second = session.run(&line);
        assert_eq!(second.stderr, "", "{line}");
    }
    let none = session.run("echo x > ~/plain; ls ~ | cat > /dev/null; yes | head -1");
    assert_eq!((&*none.stdout, &*none.stderr), ("y\n", ""));
}
