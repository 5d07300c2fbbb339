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

    /// Runs a line that does not wait for a person.
    fn run_without_wait(&self, line: &str) -> Ran {
        let line = self.wrapped(line).replace("--wait 60", "--wait 0");
        ended(self.lab.program("bash", &["-c", &line]).spawn().unwrap())
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
fn the_same_line_of_another_session_is_another_call() {
    if !jailed(&Lab::new()) {
        return;
    }
    let lab = lab("");
    let [one, other] = ["one", "other"].map(|id| AgentSession { lab: &lab, id });
    let line = "echo x >> notes.txt && cat notes.txt";
    let without_session = |line: &str| lab.run(&["exec", "--wait", "0", "--", line]);
    let requests = || -> Vec<String> {
        let all = pending(&lab).into_iter();
        all.map(|one| one["id"].as_str().unwrap().to_owned())
            .collect()
    };
    let ran = one.run_without_wait(line);
    assert_eq!(ran.code, 4, "{}", ran.stderr);
    let first = requests();
    assert_eq!(first.len(), 1);
    // Made again, the line is the same call in its session alone.
    let made = [
        (one.run_without_wait(line), "the same session"),
        (other.run_without_wait(line), "another session"),
        (without_session(line), "no session"),
    ];
    for (ran, row) in &made {
        assert_eq!(ran.code, 4, "{row}: {}", ran.stderr);
    }
    assert_eq!(requests().len(), 3);
    let approved = lab.run(&["approvals", "approve", &first[0]]);
    assert_eq!(approved.code, 0, "{}", approved.stderr);
    let ran = other.run_without_wait(line);
    assert_eq!(ran.code, 4, "another session: {}", ran.stderr);
    let ran = without_session(line);
    assert_eq!(ran.code, 4, "no session: {}", ran.stderr);
    let ran = one.run_without_wait(line);
    assert_eq!((ran.code, &*ran.stdout), (0, "x\n"), "{}", ran.stderr);
    let notes = std::fs::read_to_string(lab.work().join("notes.txt"));
    assert_eq!(notes.unwrap(), "x\n");
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
    // Without a server, too, they end with the session.
    hook(&lab, &one.event("SessionEnd", &json!({"reason": "exit"})));
    assert_eq!(one.run(look).stdout, "", "after the end of the session");
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

#[test]
fn a_command_says_that_it_did_not_run_if_the_settings_do_not_load() {
    let lab = lab("[policy]\nprofile = \"trusted\"\n");
    let session = AgentSession { lab: &lab, id: "s" };
    let line = session.wrapped("touch made.txt");
    lab.user_settings("[broken\n");
    let ran = ended(lab.program("bash", &["-c", &line]).spawn().unwrap());
    assert_eq!(ran.code, 5, "{}", ran.stderr);
    assert!(
        ran.stderr.starts_with("haft: the command did not run"),
        "{}",
        ran.stderr
    );
    assert!(!lab.work().join("made.txt").exists());
}

#[test]
fn a_command_that_waits_says_where_a_person_decides_and_no_command_for_it() {
    if !jailed(&Lab::new()) {
        return;
    }
    let lab = lab("");
    let session = AgentSession { lab: &lab, id: "s" };
    let running = session.begin("echo x > made.txt; cat made.txt");
    let request = wait("the request", || pending(&lab).into_iter().next());
    lab.run(&["approvals", "deny", request["id"].as_str().unwrap()]);
    let ran = ended(running);
    // It may have been decided before it said so.
    let said = ran
        .stderr
        .contains("waits for a person's decision in haft's console");
    assert!(said || ran.code == 3, "{}", ran.stderr);
    assert!(!ran.stderr.contains("haft approvals"), "{}", ran.stderr);
}

#[test]
fn a_server_outlives_the_agents_shell_and_is_listed_and_stopped() {
    if !jailed(&Lab::new()) {
        return;
    }
    let lab = lab("[policy]\nprofile = \"trusted\"\n");
    lab.file("server.sh", "while sleep 0.1; do echo x > beat; done\n");
    let session = AgentSession { lab: &lab, id: "s" };
    let line = session.wrapped("bash server.sh >/dev/null 2>&1 &");
    let ran = ended(
        lab.program("bash", &["-c", &format!("{line}\nkill -9 $$")])
            .spawn()
            .unwrap(),
    );
    assert_ne!(ran.code, 0, "{}", ran.stderr);
    let beats = || {
        std::fs::remove_file(lab.work().join("beat"))
            .is_ok()
            .then_some(())
    };
    wait("the command goes on", beats);
    // What is noted beside the start of a run comes a moment later.
    let run = wait("the run with its client", || {
        let listed = lab.run(&["runs", "list", "--json"]).json();
        let mut runs = listed.as_array()?.iter();
        let run = runs.find(|run| run.to_string().contains("bash server.sh"))?;
        (run["client"] == "Claude Code, session s").then(|| run.clone())
    });
    let id = run["run"].as_str().unwrap();
    let shown = lab.run(&["runs", "show", id]);
    assert!(shown.stdout.contains("bash server.sh"), "{}", shown.stdout);
    let stopped = lab.run(&["runs", "stop", id]);
    assert_eq!(stopped.code, 0, "{}{}", stopped.stdout, stopped.stderr);
    wait("the end of the command", || {
        let run = lab.run(&["runs", "list", "--json"]).json();
        let run = run
            .as_array()
            .unwrap()
            .iter()
            .find(|run| run["run"] == id)
            .cloned();
        run.filter(|run| run["ended"].is_string() || run["status"] != "running")
    });
}

#[test]
fn a_workspace_of_another_user_is_named_as_the_cause_once() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("SKIPPED: only root has a workspace of another user");
        return;
    }
    let lab = lab("[policy]\nprofile = \"trusted\"\n");
    if !jailed(&lab) {
        return;
    }
    for path in [lab.file("old.txt", "1\n"), lab.work()] {
        std::os::unix::fs::chown(path, Some(12_345), Some(12_345)).unwrap();
    }
    let session = AgentSession { lab: &lab, id: "s" };
    let ran = session.run("echo x >> old.txt");
    assert_ne!(ran.code, 0, "{}", ran.stderr);
    let note = "belongs to another user (12345) than haft (0)";
    assert!(ran.stderr.contains(note), "{}", ran.stderr);
    let again = session.run("echo y >> old.txt");
    assert!(!again.stderr.contains(note), "{}", again.stderr);
}
