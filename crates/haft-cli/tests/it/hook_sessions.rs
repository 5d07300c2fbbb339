//! Sessions of agents: which calls are one, whose decision is found again, how a call ended, and what a hook's exit says.

use std::fs;
use std::process::{Child, Stdio};

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::approvals::wait;
use crate::harness::{Lab, Ran, ended};
use crate::hook::{after, bash, before, call_lines, decision, event, hook, hooked, lab, runs};
use crate::serve::Server;

fn pending(lab: &Lab) -> Vec<String> {
    let all = lab.run(&["approvals", "list", "--json"]).json();
    let all = all.as_array().unwrap().iter();
    let pending = all.filter(|one| one["status"] == "pending");
    pending
        .map(|one| one["id"].as_str().unwrap().to_owned())
        .collect()
}

/// The lines with which calls of the only run ended.
fn ends(lab: &Lab) -> Vec<Value> {
    let lines = call_lines(lab).into_iter();
    lines.filter(|line| line["status"].is_string()).collect()
}

/// The records of all runs as their files hold them at this moment.
fn record_files(lab: &Lab) -> String {
    let runs = fs::read_dir(lab.home().join("runs")).unwrap();
    let files = runs.map(|run| run.unwrap().path().join("events.jsonl"));
    files
        .filter_map(|file| fs::read_to_string(file).ok())
        .collect()
}

#[test]
fn what_was_decided_about_alike_calls_without_a_server_is_found_again_each() {
    let lab = lab("hook.ask = \"haft\"\n");
    let push = bash("git push");
    let mut hooks: Vec<Child> = ["t-1", "t-2", "t-3"]
        .map(|id| hooked(&lab, &before(&lab, id, "Bash", &push)))
        .into();
    let ids = wait("the requests", || {
        let ids = pending(&lab);
        (ids.len() == 3).then_some(ids)
    });
    for gone in &mut hooks {
        gone.kill().unwrap();
        gone.wait().unwrap();
    }
    for (id, word) in ids.iter().zip(["approve", "deny", "approve"]) {
        assert_eq!(lab.run(&["approvals", word, id]).code, 0);
    }
    let again = |id: &str| decision(&hook(&lab, &before(&lab, id, "Bash", &push))).0;
    let mut all = ["t-4", "t-5", "t-6"].map(again);
    all.sort();
    assert_eq!(all, ["allow", "allow", "deny"]);
}

#[test]
fn settings_of_hooks_count_from_the_next_event_after_they_change() {
    let lab = lab("hook.ask = \"agent\"\n");
    let _server = Server::start(&lab, &[]);
    let mut n = 0;
    let mut said = || {
        n += 1;
        let made = before(
            &lab,
            &format!("t-{n}"),
            "Bash",
            &bash(&format!("git push o {n}")),
        );
        decision(&hook(&lab, &made))
    };
    assert_eq!(said().0, "ask");
    lab.user_settings("[hook]\nask = \"haft\"\nwait_s = 1\n");
    wait("the inbox", || (said().0 == "deny").then_some(()));
    lab.user_settings("[hook]\nask = \"agent\"\n");
    wait("the prompt", || (said().0 == "ask").then_some(()));
    // Settings that do not load leave the old ones in force, and the user hears of it.
    lab.user_settings("[hook]\nask = \"nobody\"\n");
    let why = wait("the fault", || {
        let (verdict, why) = said();
        assert_eq!(verdict, "ask", "{why}");
        why.contains("do not load").then_some(why)
    });
    assert!(why.contains("hook.ask"), "{why}");
    lab.user_settings("[hook]\nask = \"agent\"\n");
    wait("the end of the fault", || {
        (!said().1.contains("do not load")).then_some(())
    });
}

#[test]
fn what_came_of_a_call_at_the_agents_prompt_is_recorded_as_far_as_the_agent_says_it() {
    let lab = lab("hook.ask = \"agent\"\n");
    let _server = Server::start(&lab, &[]);
    let failed = |id: &str, error: &str| {
        let more = json!({"tool_name": "Bash", "tool_input": bash(&format!("git push {id}")), "tool_use_id": id, "error": error});
        event(&lab, "PostToolUseFailure", &more)
    };
    let denied = |id: &str| {
        let more = json!({"tool_name": "Bash", "tool_input": bash(&format!("git push {id}")), "tool_use_id": id, "reason": "not now"});
        event(&lab, "PermissionDenied", &more)
    };
    let rejection =
        "The user doesn't want to proceed with this tool use. The tool use was rejected";
    let rows = [
        (
            "t-1",
            Some(failed("t-1", rejection)),
            "denied",
            "says that it did not run: its user refused it, or a rule of its own: The user",
        ),
        (
            "t-2",
            Some(denied("t-2")),
            "denied",
            "says that it did not run: its user refused it, or a rule of its own: not now",
        ),
        (
            "t-3",
            Some(failed("t-3", "exit 1")),
            "error",
            "not whether its user refused it: exit 1",
        ),
        (
            "t-4",
            None,
            "error",
            "its user may have refused it, or it may have run",
        ),
    ];
    for (id, ..) in &rows {
        let made = before(&lab, id, "Bash", &bash(&format!("git push {id}")));
        assert_eq!(decision(&hook(&lab, &made)).0, "ask");
    }
    for said in rows.iter().filter_map(|row| row.1.as_ref()) {
        assert_eq!(hook(&lab, said).code, 0);
    }
    let end = event(&lab, "SessionEnd", &json!({"reason": "exit"}));
    assert_eq!(hook(&lab, &end).code, 0);
    let lines = wait("the ends of the calls", || {
        let ends = ends(&lab);
        (ends.len() == rows.len()).then_some(ends)
    });
    for (id, _, status, message) in rows {
        let line = lines.iter().find(|line| line.to_string().contains(message));
        let line = line.unwrap_or_else(|| panic!("{id}: {message} in {lines:#?}"));
        assert_eq!(line["status"], status, "{line:#}");
        assert_eq!(line["decided_by"], "the prompt of Claude Code");
    }
}

/// A hook of this event whose output goes where a shell sends it.
fn with_output(lab: &Lab, event: &str, shell: &str) -> Ran {
    use std::io::Write as _;
    let script = format!(
        "{shell} exec {} hook claude > \"$OUT\"",
        env!("CARGO_BIN_EXE_haft")
    );
    let script = match shell {
        "closed" => format!("exec {} hook claude >&-", env!("CARGO_BIN_EXE_haft")),
        _ => script,
    };
    let out = match shell {
        "" => "/dev/full".into(),
        _ => lab.work().join("out"),
    };
    let mut command = lab.program("sh", &["-c", &script]);
    let mut child = command
        .env("OUT", out)
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut pipe = child.stdin.take().unwrap();
    let _ = pipe.write_all(event.as_bytes());
    drop(pipe);
    ended(child)
}

#[test]
fn a_hook_whose_answer_cannot_be_written_ends_as_a_denial() {
    let lab = lab("hook.ask = \"agent\"\n");
    let allowed = before(&lab, "t-1", "Bash", &bash("ls"));
    let asked = before(&lab, "t-2", "Bash", &bash("git push"));
    let ended = after(&lab, "t-1", "Bash", &bash("ls"), &json!({"stdout": ""}));
    for (shell, what) in [
        ("closed", "closed"),
        ("", "full"),
        ("ulimit -f 0;", "a file that may not grow"),
    ] {
        for event in [&allowed, &asked] {
            let ran = with_output(&lab, event, shell);
            assert_eq!(ran.code, 2, "{what}: {}", ran.stderr);
            assert!(!ran.stderr.is_empty(), "{what}");
        }
        let ran = with_output(&lab, &ended, shell);
        assert_eq!(ran.code, 0, "{what}: {}", ran.stderr);
    }
    let ran = hook(&lab, &allowed);
    assert_eq!((ran.code, &*decision(&ran).0), (0, "allow"));
    let _ = fs::remove_file(lab.work().join("out"));
}

#[test]
fn sessions_without_a_name_are_kept_apart_by_the_process_of_their_agent() {
    let lab = lab("hook.ask = \"agent\"\n");
    let _server = Server::start(&lab, &[]);
    let script = format!(
        "for n in 1 2; do \"{}\" hook claude < \"$EVENT\" || exit $?; done",
        env!("CARGO_BIN_EXE_haft")
    );
    let agent = lab.program_folder("an-agent", &script).join("an-agent");
    let nameless = json!({
        "cwd": lab.work(), "permission_mode": "default", "hook_event_name": "PreToolUse", "tool_name": "Bash",
        "tool_input": bash("ls"),
    });
    let file = lab.file("event.json", &nameless.to_string());
    for expected in [1, 2] {
        let child = lab
            .program(agent.to_str().unwrap(), &[])
            .env("EVENT", &file)
            .spawn();
        let ran = ended(child.unwrap());
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        assert_eq!(ran.stdout.matches("\"allow\"").count(), 2, "{}", ran.stdout);
        assert_eq!(runs(&lab).len(), expected, "{:?}", runs(&lab));
    }
}

#[test]
fn a_name_that_may_be_that_of_several_tools_is_judged_as_the_strictest_of_them() {
    let lab = lab(
        "[hook]\nask = \"agent\"\nwait_s = 1\n[policy]\nallow = [\"a.*\", \"git.*\"]\ndeny = [\"x__y.z\", \"github.delete_repo\"]\n",
    );
    let input = json!({"name": "n"});
    let rows = [
        ("mcp__a__b", "allow"),
        // `a__b.c` is no tool of a.
        ("mcp__a__b__c", "ask"),
        ("mcp__x__y__z", "deny"),
        ("mcp__x__y__w", "ask"),
        ("mcp__github__delete_repo", "deny"),
        // No tool of git.
        ("mcp__github__x", "ask"),
    ];
    for (tool, expected) in rows {
        let ran = hook(&lab, &before(&lab, "t-1", tool, &input));
        let (verdict, why) = decision(&ran);
        assert_eq!(verdict, expected, "{tool}: {why}");
    }
    let cursor = json!({
        "conversation_id": "c", "cursor_version": "3.21.16", "hook_event_name": "preToolUse", "workspace_roots": [lab.work()],
        "cwd": "", "tool_name": "MCP:delete_repo", "tool_input": {}, "tool_use_id": "t",
    });
    let opencode = json!({
        "hook_event_name": "PreToolUse", "session_id": "s", "cwd": lab.work(), "tool_name": "github_delete_repo",
        "tool_input": {}, "tool_use_id": "c",
    });
    for (agent, event) in [("cursor", cursor), ("opencode", opencode)] {
        let ran = lab.run_with(&["hook", agent], &event.to_string());
        let said = format!("{}{}", ran.stdout, ran.stderr);
        assert!(said.contains("github.delete_repo"), "{agent}: {said}");
    }
}

#[test]
fn alike_calls_at_the_same_moment_have_a_decision_each() {
    let lab = lab("hook.ask = \"haft\"\n");
    let _server = Server::start(&lab, &[]);
    let pairs = ["git push a", "git push b"];
    let asked: Vec<(&str, Child)> = pairs
        .iter()
        .flat_map(|line| [(*line, 1), (*line, 2)])
        .map(|(line, n)| {
            let made = before(&lab, &format!("{line} {n}"), "Bash", &bash(line));
            (line, hooked(&lab, &made))
        })
        .collect();
    let free: Vec<Child> = (0..36)
        .map(|n| hooked(&lab, &before(&lab, &format!("t-{n}"), "Bash", &bash("ls"))))
        .collect();
    for waiting in free {
        assert_eq!(decision(&ended(waiting)).0, "allow");
    }
    let requests = wait("the requests", || {
        let all = lab.run(&["approvals", "list", "--json"]).json();
        let all = all.as_array().unwrap().clone();
        (all.len() == 4).then_some(all)
    });
    for line in pairs {
        let of_pair = requests.iter().filter(|one| one.to_string().contains(line));
        for (request, word) in of_pair.zip(["approve", "deny"]) {
            let id = request["id"].as_str().unwrap();
            let ran = lab.run(&["approvals", word, id]);
            assert_eq!(ran.code, 0, "{}", ran.stderr);
        }
    }
    let mut said: Vec<(&str, String)> = asked
        .into_iter()
        .map(|(line, waiting)| (line, decision(&ended(waiting)).0))
        .collect();
    said.sort();
    let expected = pairs.map(|line| [(line, "allow".to_owned()), (line, "deny".to_owned())]);
    assert_eq!(said, expected.concat());
}

#[test]
fn a_hook_whose_server_is_killed_goes_on_waiting_for_the_same_request() {
    let lab = lab("hook.ask = \"haft\"\n");
    let server = Server::start(&lab, &[]);
    let waiting = hooked(&lab, &before(&lab, "t-1", "Bash", &bash("git push")));
    let ids = wait("the request", || {
        let ids = pending(&lab);
        (!ids.is_empty()).then_some(ids)
    });
    server.end(Signal::KILL);
    assert_eq!(lab.run(&["approvals", "approve", &ids[0]]).code, 0);
    let ran = ended(waiting);
    assert_eq!(decision(&ran).0, "allow", "{}{}", ran.stdout, ran.stderr);
    assert!(pending(&lab).is_empty());
}

#[test]
fn a_call_is_in_the_record_before_the_agent_may_run_it() {
    let lab = lab("hook.ask = \"agent\"\n");
    let _server = Server::start(&lab, &[]);
    let ids: Vec<String> = (0..20).map(|n| format!("t-{n}")).collect();
    for id in &ids {
        let line = bash(&format!("echo {id}"));
        let ran = hook(&lab, &before(&lab, id, "Bash", &line));
        assert_eq!(decision(&ran).0, "allow", "{}{}", ran.stdout, ran.stderr);
        // What the files hold now outlives the server, however it ends.
        let text = record_files(&lab);
        assert!(
            text.contains(&format!("echo {id}\\")),
            "{id} was allowed and is not in the record: {text}"
        );
    }
}

#[test]
fn a_call_that_ran_when_its_server_was_killed_is_asked_about_anew_when_it_is_made_again() {
    let lab = lab("hook.ask = \"haft\"\n");
    let push = bash("git push");
    let approved = |id: &str| {
        let waiting = hooked(&lab, &before(&lab, id, "Bash", &push));
        let ids = wait("the request", || {
            let ids = pending(&lab);
            (!ids.is_empty()).then_some(ids)
        });
        assert_eq!(lab.run(&["approvals", "approve", &ids[0]]).code, 0);
        let ran = ended(waiting);
        assert_eq!(decision(&ran).0, "allow", "{}{}", ran.stdout, ran.stderr);
        ids[0].clone()
    };
    let server = Server::start(&lab, &[]);
    let first = approved("t-1");
    server.end(Signal::KILL);
    let _server = Server::start(&lab, &[]);
    assert_ne!(approved("t-2"), first);
}

#[test]
fn hooks_that_name_one_call_id_share_a_decision_until_the_agent_reports_the_end() {
    let lab = lab("hook.ask = \"haft\"\n");
    let _server = Server::start(&lab, &[]);
    let push = bash("git push");
    let made = before(&lab, "t-1", "Bash", &push);
    // The user's settings and the project's each start haft.
    let approved = |hooks: usize| {
        let hooks: Vec<Child> = (0..hooks).map(|_| hooked(&lab, &made)).collect();
        let ids = wait("the request", || {
            let ids = pending(&lab);
            (!ids.is_empty()).then_some(ids)
        });
        assert_eq!(lab.run(&["approvals", "approve", &ids[0]]).code, 0);
        for waiting in hooks {
            let ran = ended(waiting);
            assert_eq!(decision(&ran).0, "allow", "{}{}", ran.stdout, ran.stderr);
        }
        assert_eq!(pending(&lab), Vec::<String>::new());
        ids[0].clone()
    };
    let first = approved(2);
    // Another agent's settings start it, too.
    assert_eq!(decision(&hook(&lab, &made)).0, "allow");
    let end = after(&lab, "t-1", "Bash", &push, &json!({"stdout": ""}));
    assert_eq!(hook(&lab, &end).code, 0);
    assert_ne!(approved(1), first);
}

#[test]
fn a_call_ends_by_its_id_whatever_the_agent_calls_its_tool_then() {
    let lab = lab("hook.ask = \"agent\"\n");
    let _server = Server::start(&lab, &[]);
    let read = bash("ls");
    assert_eq!(
        decision(&hook(&lab, &before(&lab, "t-1", "Bash", &read))).0,
        "allow"
    );
    let other = json!({"stdout": "other"});
    // Another call of another tool ends nothing of this one.
    assert_eq!(
        hook(&lab, &after(&lab, "t-2", "Shell", &read, &other)).code,
        0
    );
    let own = json!({"stdout": "own"});
    assert_eq!(
        hook(&lab, &after(&lab, "t-1", "Shell", &read, &own)).code,
        0
    );
    let ends = wait("the end", || {
        let ends = ends(&lab);
        (!ends.is_empty()).then_some(ends)
    });
    assert_eq!(ends[0]["tool"], "claude.Bash");
    assert!(ends[0].to_string().contains("own"), "{:#}", ends[0]);
}

#[test]
fn a_question_about_secrets_says_how_many_and_what_an_approval_opens() {
    let lab = lab("hook.ask = \"agent\"\n");
    lab.file(".env", "A=1\n");
    lab.file("id_rsa", "key\n");
    for (line, words) in [
        (
            "cat .env",
            "may hold secrets, judging by its name; an approval lets only this call read it",
        ),
        (
            "cat .env id_rsa",
            "and 1 other file may hold secrets, judging by their names; an approval lets only this call read them",
        ),
    ] {
        let (verdict, why) = decision(&hook(&lab, &before(&lab, "t-1", "Bash", &bash(line))));
        assert_eq!(verdict, "ask", "{why}");
        assert!(why.contains(words), "{why}");
    }
}

#[test]
fn a_session_without_a_server_knows_only_the_runs_in_which_a_decision_waits() {
    let lab = lab("hook.ask = \"haft\"\nhook.wait_s = 1\n");
    let known = || {
        let sessions = fs::read_dir(lab.home().join("hooks")).unwrap();
        let folders = sessions.map(|session| session.unwrap().path());
        let folders = folders.filter(|folder| folder.is_dir());
        let notes = folders.map(|folder| fs::read_dir(folder).unwrap().count());
        notes.sum::<usize>()
    };
    for id in ["t-1", "t-2", "t-3"] {
        let ran = hook(&lab, &before(&lab, id, "Bash", &bash("ls")));
        assert_eq!(decision(&ran).0, "allow", "{}", ran.stdout);
    }
    assert_eq!((runs(&lab).len(), known()), (3, 0));
    let push = before(&lab, "t-4", "Bash", &bash("git push"));
    assert_eq!(decision(&hook(&lab, &push)).0, "deny");
    assert_eq!(known(), 1);
    let ids = pending(&lab);
    assert_eq!(lab.run(&["approvals", "approve", &ids[0]]).code, 0);
    assert_eq!(decision(&hook(&lab, &push)).0, "allow");
    assert_eq!(known(), 0);
}

#[test]
fn rules_for_a_parameter_hold_in_every_form_of_the_call() {
    let lab = lab(
        "hook.ask = \"agent\"\n[policy]\nallow = [\"github.*\"]\ndeny = [\"github.create_issue(title:*secret*)\"]\n",
    );
    let claude = |input: Value| {
        let made = before(
            &lab,
            &input.to_string(),
            "mcp__github__create_issue",
            &input,
        );
        decision(&hook(&lab, &made)).0
    };
    assert_eq!(claude(json!({"title": "fine", "cwd": "x"})), "allow");
    for input in [
        json!({"title": "my secret"}),
        json!({"title": "my secret", "cwd": "x"}),
        json!({"title": "my secret", "doubts": [], "input": 1}),
    ] {
        assert_eq!(claude(input.clone()), "deny", "{input}");
    }
    // An agent that calls the tools of servers through one of its own.
    let event = |title: &str| {
        let event = json!({
            "trajectory_id": "s", "agent_action_name": "pre_mcp_tool_use",
            "tool_info": {"mcp_server_name": "github", "mcp_tool_name": "create_issue", "mcp_tool_arguments": {"title": title}},
        });
        lab.run_with(&["hook", "windsurf"], &event.to_string()).code
    };
    assert_eq!((event("fine"), event("my secret")), (0, 2));
}
