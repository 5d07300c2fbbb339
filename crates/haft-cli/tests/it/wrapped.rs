//! Commands of an agent that run by `haft exec` (`hook.wrap = "jail"`): how the agent's shell handles them, and what is asked first.

use serde_json::{Value, json};

use crate::approvals::wait;
use crate::harness::{Lab, Ran, ended};
use crate::hook::{bash, before, decision, hook};
use crate::serve::Server;

pub(crate) fn lab(settings: &str) -> Lab {
    let mut lab = Lab::new();
    lab.set("CI", "1");
    lab.user_settings(&format!("[hook]\nwrap = \"jail\"\nwait_s = 20\n{settings}"));
    lab
}

/// Returns the line that the agent should run instead.
pub(crate) fn wrapped(lab: &Lab, line: &str) -> String {
    let ran = hook(lab, &before(lab, "t-1", "Bash", &bash(line)));
    assert_eq!(decision(&ran).0, "allow", "{line}: {}", ran.stdout);
    let input = &ran.json()["hookSpecificOutput"]["updatedInput"];
    input["command"].as_str().unwrap().to_owned()
}

pub(crate) fn in_shell(lab: &Lab, line: &str) -> Ran {
    ended(lab.program("bash", &["-c", line]).spawn().unwrap())
}

#[test]
fn a_wrapped_line_does_what_the_line_does() {
    let lab = lab("[policy]\nprofile = \"trusted\"\n");
    lab.file("sub/name.txt", "in sub\n");
    lab.file("Makefile", "all:\n\t@echo built; exit 2\n");
    // line, stdout, exit code
    let rows = [
        ("printf 'a\\nb\\n' | grep b | tr b c", "c\n", 0),
        (
            "echo \"it's \\\"quoted\\\"\" 'and $HOME'",
            "it's \"quoted\" and $HOME\n",
            0,
        ),
        ("echo one\necho two\n", "one\ntwo\n", 0),
        ("cat <<'END'\nhere $x\n  doc\nEND", "here $x\n  doc\n", 0),
        ("echo grüße 漢字 🦀", "grüße 漢字 🦀\n", 0),
        ("echo out; echo err >&2; exit 3", "out\n", 3),
        ("echo kept > new.txt && cat < new.txt", "kept\n", 0),
        ("false || echo rescued", "rescued\n", 0),
        ("echo $(( 6 * 7 )) `echo sub`", "42 sub\n", 0),
        ("(sleep 600; echo late) & echo now", "now\n", 0),
        ("for n in 1 2 3; do echo $n; done | tail -1", "3\n", 0),
        ("make", "built\n", 2),
        ("cd sub && cat name.txt", "in sub\n", 0),
        ("cd sub; cd .. ; cat sub/name.txt", "in sub\n", 0),
        ("cat sub/name.txt # a comment's quote", "in sub\n", 0),
        ("yes | head -1", "y\n", 0),
        ("read line; echo \"<$line>\"", "<>\n", 0),
    ];
    for (line, stdout, code) in rows {
        let ran = in_shell(&lab, &wrapped(&lab, line));
        assert_eq!(
            (&*ran.stdout, ran.code),
            (stdout, code),
            "{line}: {}",
            ran.stderr
        );
    }
    assert_eq!(
        std::fs::read_to_string(lab.work().join("new.txt")).unwrap(),
        "kept\n"
    );
}

#[test]
fn the_agents_shell_keeps_the_folder_that_a_line_changes_to() {
    let lab = lab("[policy]\nprofile = \"trusted\"\n");
    for folder in ["sub", "sub/deep", "with space"] {
        lab.file(&format!("{folder}/here.txt"), folder);
    }
    let work = lab.work();
    let work = work.to_str().unwrap();
    // line, what runs in the jail prints, the folder of the shell afterwards
    let rows = [
        ("cd sub && cat here.txt", "sub", "/sub"),
        ("cd sub && cd deep && cat here.txt", "sub/deep", "/sub/deep"),
        (
            "cd 'with space' && cat here.txt",
            "with space",
            "/with space",
        ),
        ("cd sub\ncat here.txt", "sub", "/sub"),
        ("cat sub/here.txt && cd sub", "sub", "/sub"),
        ("cd sub && cat here.txt && cd deep && cd ..", "sub", "/sub"),
        (
            "mkdir made && cd made && cat ../sub/here.txt",
            "sub",
            "/made",
        ),
        ("cd sub; cat here.txt; cd ..", "sub", ""),
        ("cd sub\ncat here.txt\ncd deep", "sub", "/sub/deep"),
        ("true && cd sub && false", "", ""),
        // The agent stays where it was, and not in between.
        ("cd sub && cat here.txt; cd ..", "sub", ""),
        // For these it is not certain that the shell itself changes.
        ("cd sub | cat; cat sub/here.txt", "sub", ""),
        ("(cd sub && cat here.txt)", "sub", ""),
        ("cd / && cat /etc/hostname >/dev/null; true", "", ""),
    ];
    for (line, prints, folder) in rows {
        let wrapped = wrapped(&lab, line);
        let ran = in_shell(&lab, &format!("{wrapped}\npwd"));
        let expected = format!("{prints}{work}{folder}\n");
        assert_eq!(ran.stdout, expected, "{line}: {}", ran.stderr);
    }
}

#[test]
fn a_line_that_only_changes_the_folder_stays_the_agents() {
    for ask in ["ask = \"agent\"\n", ""] {
        let lab = lab(&format!("{ask}[policy]\nprofile = \"trusted\"\n"));
        lab.file("sub/here.txt", "x");
        let mut lines = vec!["cd sub", "cd sub;", "cd sub && cd .."];
        // Judged outside of the jail, a way up is asked about.
        lines.extend(if ask.is_empty() {
            &[][..]
        } else {
            &["cd ..", "cd sub && cd /etc", "cd sub && cd ../.."]
        });
        for line in lines {
            let ran = hook(&lab, &before(&lab, "t-1", "Bash", &bash(line)));
            let input = &ran.json()["hookSpecificOutput"]["updatedInput"];
            assert!(input.is_null(), "{line}: {}", ran.stdout);
            assert_ne!(decision(&ran).0, "deny", "{line}: {}", ran.stdout);
        }
    }
}

#[test]
fn what_is_wrapped_already_is_not_wrapped_again() {
    let lab = lab("[policy]\nprofile = \"trusted\"\n");
    let once = wrapped(&lab, "echo once");
    let ran = hook(&lab, &before(&lab, "t-2", "Bash", &bash(&once)));
    assert_eq!(decision(&ran).0, "allow", "{}", ran.stdout);
    assert!(
        ran.json()["hookSpecificOutput"]["updatedInput"].is_null(),
        "{}",
        ran.stdout
    );
    // Another line with haft's own program does not count.
    for other in [
        once.replace("--workspace", "--trust --workspace"),
        format!("{once}; true"),
    ] {
        let ran = hook(&lab, &before(&lab, "t-3", "Bash", &bash(&other)));
        let input = &ran.json()["hookSpecificOutput"]["updatedInput"];
        assert!(
            input.is_object() || decision(&ran).0 != "allow",
            "{other}: {}",
            ran.stdout
        );
    }
}

#[test]
fn what_the_policy_denies_is_denied_at_the_hook_and_recorded() {
    let lab = lab("[policy]\nprofile = \"trusted\"\ndeny = [\"Bash(git push *)\"]\n");
    for line in ["git push origin main", "cd . && git push origin main"] {
        let ran = hook(&lab, &before(&lab, "t-1", "Bash", &bash(line)));
        let (verdict, why) = decision(&ran);
        assert_eq!(verdict, "deny", "{line}");
        assert!(why.contains("Bash(git push *)"), "{why}");
    }
    let all = lab
        .run(&["runs", "list", "--json", "--status", "denied"])
        .json();
    let all = all.as_array().unwrap();
    assert_eq!(all.len(), 2, "{all:?}");
    assert!(
        all.iter()
            .all(|run| run["client"] == "Claude Code, session s-1"),
        "{all:?}"
    );
}

/// Decides the next request; returns the answer of the hook that waited for it.
pub(crate) fn decided(lab: &Lab, line: &str, word: &str) -> (String, String) {
    let line = line.to_owned();
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| hook(lab, &before(lab, "t-9", "Bash", &bash(&line))));
        let request = wait("the request", || {
            let all = lab.run(&["approvals", "list", "--json"]).json();
            let all: Vec<Value> = all.as_array().unwrap().clone();
            all.into_iter().find(|one| one["status"] == "pending")
        });
        assert_eq!(request["tool"], "run_command", "{request}");
        let ran = lab.run(&["approvals", word, request["id"].as_str().unwrap()]);
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        let ran = waiting.join().unwrap();
        let (verdict, why) = decision(&ran);
        let input = &ran.json()["hookSpecificOutput"]["updatedInput"];
        let run = input["command"].as_str().map(str::to_owned);
        (verdict, run.unwrap_or(why))
    })
}

#[test]
fn what_is_asked_about_is_decided_at_the_hook_and_runs_once() {
    let lab = lab("[policy]\nprofile = \"trusted\"\nask = [\"Bash(touch *)\"]\n");
    let _server = Server::start(&lab, &[]);
    let line = "touch made.txt; echo made";
    let (verdict, run) = decided(&lab, line, "approve");
    assert_eq!(verdict, "allow", "{run}");
    // Neither the follower of decisions nor the hook has run it.
    assert!(!lab.work().join("made.txt").exists());
    let other = run
        .replace("made.txt", "other.txt")
        .replace("--wait 60", "--wait 1");
    let ran = in_shell(&lab, &other);
    assert_eq!((ran.code, &*ran.stdout), (4, ""), "{}", ran.stderr);
    assert!(!lab.work().join("other.txt").exists());
    let ran = in_shell(&lab, &run);
    assert_eq!((ran.code, &*ran.stdout), (0, "made\n"), "{}", ran.stderr);
    assert!(lab.work().join("made.txt").exists());
    // The same line again is another call.
    let ran = in_shell(&lab, &run.replace("--wait 60", "--wait 1"));
    assert_eq!((ran.code, &*ran.stdout), (4, ""), "{}", ran.stderr);
}

#[test]
fn a_person_who_says_no_is_heard_at_the_hook() {
    let lab = lab("[policy]\nprofile = \"trusted\"\nask = [\"Bash(touch *)\"]\n");
    let _server = Server::start(&lab, &[]);
    for round in ["first", "second"] {
        let (verdict, why) = decided(&lab, "touch made.txt", "deny");
        assert_eq!(verdict, "deny", "{round}");
        assert!(why.contains("said no"), "{round}: {why}");
    }
    assert!(!lab.work().join("made.txt").exists());
}

/// Returns the answer to Gemini CLI about a command that it would start in a folder of its choice.
fn in_folder(lab: &Lab, command: &str, folder: &str) -> Value {
    let event = json!({
        "session_id": "g-1", "transcript_path": "/tmp/t.json", "cwd": lab.work(), "timestamp": "2026-11-01T00:00:00.000Z",
        "hook_event_name": "BeforeTool", "tool_name": "run_shell_command",
        "tool_input": {"command": command, "dir_path": folder},
    });
    lab.run_with(&["hook", "gemini"], &event.to_string()).json()
}

#[test]
fn a_command_that_names_its_folder_is_judged_for_that_folder() {
    let policy = "[policy]\nprofile = \"trusted\"\nask = [\"Bash(echo asked)\"]\n";
    let lab = lab(&format!("ask = \"agent\"\n{policy}"));
    lab.file("sub/file.txt", "x");
    let elsewhere = tempfile::tempdir().unwrap();
    for folder in [elsewhere.path().to_str().unwrap(), "~", "~/sub", "../ws2"] {
        let said = in_folder(&lab, "rm -rf build", folder);
        assert_eq!(said["decision"], "ask", "{folder}: {said}");
        assert!(said["hookSpecificOutput"].is_null(), "{folder}: {said}");
    }
    let said = in_folder(&lab, "rm -rf build", "sub");
    let line = said["hookSpecificOutput"]["tool_input"]["command"].as_str();
    assert!(line.is_some_and(|line| line.contains(" exec ")), "{said}");
    // What is approved in advance is what runs there, and nothing that runs elsewhere.
    let asked = std::thread::scope(|scope| {
        let waiting = scope.spawn(|| in_folder(&lab, "echo asked", "sub"));
        let request = wait("the request", || {
            let all = lab.run(&["approvals", "list", "--json"]).json();
            let all = all.as_array().unwrap().clone();
            all.into_iter().find(|one| one["status"] == "pending")
        });
        lab.run(&["approvals", "approve", request["id"].as_str().unwrap()]);
        waiting.join().unwrap()
    });
    let line = asked["hookSpecificOutput"]["tool_input"]["command"].as_str();
    let line = line
        .unwrap_or_else(|| panic!("{asked}"))
        .replace("--wait 60", "--wait 1");
    let at_root = in_shell(&lab, &line);
    assert_eq!(
        (at_root.code, &*at_root.stdout),
        (4, ""),
        "{}",
        at_root.stderr
    );
    let below = in_shell(&lab, &format!("cd sub && {line}"));
    assert_eq!(
        (below.code, &*below.stdout),
        (0, "asked\n"),
        "{}",
        below.stderr
    );
}

#[test]
fn outside_the_workspace_a_wrapped_line_does_nothing_to_it() {
    let lab = lab("[policy]\nprofile = \"trusted\"\n");
    lab.file("build/kept.txt", "x");
    let line = wrapped(&lab, "rm -rf build");
    let elsewhere = tempfile::tempdir().unwrap();
    let ran = in_shell(
        &lab,
        &format!("cd {} && {line}", elsewhere.path().display()),
    );
    assert_eq!(ran.code, 2, "{}", ran.stdout);
    assert!(
        ran.stderr.contains("works only in the workspace"),
        "{}",
        ran.stderr
    );
    assert!(lab.work().join("build/kept.txt").exists());
}

#[test]
fn rules_that_name_the_agents_tool_hold_for_what_is_wrapped() {
    for (rule, verdict) in [
        ("deny = [\"claude.Bash\"]", "deny"),
        ("deny = [\"claude.Bash(command:*prod*)\"]", "deny"),
        ("ask = [\"claude.*\"]", "deny"),
    ] {
        let lab = lab(&format!("[policy]\nprofile = \"trusted\"\n{rule}\n"));
        let ran = hook(&lab, &before(&lab, "t-1", "Bash", &bash("echo prod")));
        let (said, why) = decision(&ran);
        assert_eq!(said, verdict, "{rule}: {why}");
        let expected = if rule.starts_with("deny") {
            "claude."
        } else {
            "a person has not yet decided"
        };
        assert!(why.contains(expected), "{rule}: {why}");
    }
}

#[test]
fn a_command_in_the_background_works_in_the_workspace_until_it_is_stopped() {
    let lab = lab("[policy]\nprofile = \"trusted\"\n");
    lab.file(
        "server.sh",
        "echo up\necho $$ > pid\nwhile [ ! -e stop ]; do sleep 0.05; done\necho down\nexit 3\n",
    );
    let input = json!({"command": "bash server.sh", "run_in_background": true});
    let ran = hook(&lab, &before(&lab, "t-1", "Bash", &input));
    assert_eq!(decision(&ran).0, "allow", "{}", ran.stdout);
    let amended = &ran.json()["hookSpecificOutput"]["updatedInput"];
    assert_eq!(amended["run_in_background"], true);
    let line = amended["command"].as_str().unwrap().to_owned();
    // As the agent's shell leaves it in the background, and stops it.
    for stops in [true, false] {
        let child = lab
            .program("bash", &["-c", &format!("exec {line}")])
            .spawn()
            .unwrap();
        wait("the command to write into the workspace", || {
            lab.work().join("pid").exists().then_some(())
        });
        let listed = lab.run(&["runs", "list", "--json"]).json();
        assert!(listed.to_string().contains("bash server.sh"), "{listed}");
        if stops {
            let pid = rustix::process::Pid::from_child(&child);
            rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
            let ran = ended(child);
            assert_eq!((ran.code, &*ran.stdout), (130, "up\n"), "{}", ran.stderr);
        } else {
            lab.file("stop", "");
            let ran = ended(child);
            assert_eq!(
                (ran.code, &*ran.stdout),
                (3, "up\ndown\n"),
                "{}",
                ran.stderr
            );
        }
        std::fs::remove_file(lab.work().join("pid")).unwrap();
    }
}

#[test]
fn a_line_whose_command_the_shell_leaves_in_the_background_returns_at_once() {
    let lab = lab("[policy]\nprofile = \"trusted\"\n");
    let wait_for = "while [ ! -e stop ]; do sleep 0.05; done";
    lab.file("server.sh", &format!("{wait_for}\necho done > end\n"));
    let line = wrapped(&lab, "bash server.sh > log.txt 2>&1 &");
    assert!(
        line.contains("--background") && line.ends_with('&'),
        "{line}"
    );
    let ran = in_shell(&lab, &format!("{line}\necho next"));
    assert_eq!((ran.code, &*ran.stdout), (0, "next\n"), "{}", ran.stderr);
    lab.file("stop", "");
    wait("the command in the background", || {
        lab.work().join("end").exists().then_some(())
    });
    for line in [
        "sleep 1 & echo a",
        "echo a; sleep 1 &",
        "echo 'a' \\&",
        "echo a &&",
    ] {
        let ran = hook(&lab, &before(&lab, "t-9", "Bash", &bash(line)));
        assert!(
            !ran.stdout.contains("--background"),
            "{line}: {}",
            ran.stdout
        );
    }
}

#[test]
fn what_a_session_read_counts_for_its_commands_in_the_jail_and_back() {
    let lab = lab("[policy]\nprofile = \"trusted\"\n");
    let line = wrapped(&lab, "true");
    let words = line.split(' ').collect::<Vec<_>>();
    let at = words.iter().position(|word| *word == "--session").unwrap();
    let notes = lab
        .home()
        .join("hooks")
        .join(format!("{}.marks", words[at + 1]));
    std::fs::create_dir_all(notes.parent().unwrap()).unwrap();
    std::fs::write(&notes, "{\"read\":\"host evil.example: a page\"}\n").unwrap();
    let ran = in_shell(&lab, &line);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let recorded = lab.run(&["runs", "list", "--json"]).json();
    let run = recorded[0]["run"].as_str().unwrap();
    let file = lab.home().join("runs").join(run).join("events.jsonl");
    let record = std::fs::read_to_string(file).unwrap();
    assert!(record.contains("host evil.example: a page"), "{record}");
    let wrong = line.replace(words[at + 1], "../x");
    let ran = in_shell(&lab, &wrong);
    assert_eq!(ran.code, 2, "{}", ran.stderr);
}
