//! Variables and functions of an agent's session (`hook.shell_state`): what a command in the jail sets, the agent's next one finds, and it
//! is judged with it.

use serde_json::{Value, json};

use crate::harness::{Lab, Ran, ended};
use crate::hook::{bash, before, decision, hook};
use crate::signals::jailed;

fn lab(settings: &str) -> Lab {
    let mut lab = Lab::new();
    lab.set("CI", "1");
    lab.user_settings(settings);
    lab
}

/// An agent's session.
struct AgentSession<'a> {
    lab: &'a Lab,
    name: &'a str,
}

impl AgentSession<'_> {
    /// Runs a line as Cursor does; what is not allowed is not run.
    fn run(&self, line: &str) -> Result<Ran, String> {
        let event = json!({
            "hook_event_name": "preToolUse", "conversation_id": self.name, "generation_id": "g", "workspace_roots": [self.lab.work()],
            "cwd": self.lab.work(), "tool_name": "Shell", "tool_input": {"command": line}, "tool_use_id": "t",
        });
        let answer = self
            .lab
            .run_with(&["hook", "cursor"], &event.to_string())
            .json();
        let Some(line) = answer["updated_input"]["command"].as_str() else {
            return Err(answer["agent_message"].to_string());
        };
        Ok(ended(
            self.lab.program("bash", &["-c", line]).spawn().unwrap(),
        ))
    }

    fn prints(&self, line: &str) -> String {
        let ran = self.run(line).unwrap_or_else(|why| panic!("{line}: {why}"));
        assert_eq!(ran.code, 0, "{line}: {}{}", ran.stdout, ran.stderr);
        ran.stdout
    }
}

#[test]
fn what_a_line_sets_holds_for_the_sessions_next_lines() {
    let lab = lab("[hook]\nwrap = \"jail\"\nwait_s = 1\n[policy]\nallow = [\"Edit(/**)\"]\n");
    if !jailed(&lab) {
        return;
    }
    lab.file("env.sh", "export FROM_FILE=here\nown=1\n");
    lab.file("tools/mine", "#!/bin/sh\necho my tool\n");
    lab.file(
        "venv/activate",
        "leave() { PATH=$_OLD_PATH; export PATH; unset _OLD_PATH; unset -f leave; }\n_OLD_PATH=$PATH\nPATH=$PWD/tools:$PATH\nexport PATH\n",
    );
    let one = AgentSession {
        lab: &lab,
        name: "one",
    };
    let two = AgentSession {
        lab: &lab,
        name: "two",
    };
    // session, line, what it prints
    let rows = [
        (&one, "export A='a b'; c=\"x'y\"; . ./env.sh", ""),
        (&one, "echo \"$A|$c|$FROM_FILE|$own\"", "a b|x'y|here|1\n"),
        (
            &one,
            "printenv A FROM_FILE; printenv own || true",
            "a b\nhere\n",
        ),
        (&two, "echo \"$A|$c|$FROM_FILE|$own\"", "|||\n"),
        (
            &one,
            "A=$(printf '1\\n$(touch pwned)`touch pwned`\"'); export A; unset c",
            "",
        ),
        (
            &one,
            "printf '%s' \"$A\"; echo \"|${c-none}\"; ls",
            "1\n$(touch pwned)`touch pwned`\"|none\nenv.sh\ntools\nvenv\n",
        ),
        (
            &one,
            "greet() { echo \"hello $1 $own\"; }\nalias shout='echo LOUD'",
            "",
        ),
        (&one, "greet you", "hello you 1\n"),
        (&one, "shout it", "LOUD it\n"),
        (
            &one,
            "chmod +x tools/mine; . venv/activate; mine",
            "my tool\n",
        ),
        (&one, "mine", "my tool\n"),
        (&one, "leave", ""),
        (
            &one,
            "mine 2>/dev/null || echo left; leave 2>/dev/null || echo none",
            "left\nnone\n",
        ),
        (
            &one,
            "read x; echo \"<$x>\"; ls /proc/self/fd | wc -l",
            "<>\n4\n",
        ),
    ];
    for (session, line, expected) in rows {
        assert_eq!(session.prints(line), expected, "{line}");
    }
    for (line, lost) in [
        (
            "declare -a list; list=; set -o pipefail; trap 'echo bye' EXIT",
            "the array list, options of the shell, traps",
        ),
        (
            "export LONG=$(head -c 60000 /dev/zero | tr '\\0' x)",
            "$LONG, which is too long",
        ),
        (
            "own=$(head -c 600000 /dev/zero | tr '\\0' x)",
            "too long or could not be read",
        ),
        ("export RAW=$(printf '\\377')", "$RAW, which is not text"),
        (
            "readonly RO=1; declare -i I=5",
            "the attributes of $I, the attributes of $RO",
        ),
    ] {
        let ran = one.run(line).unwrap();
        assert!(
            ran.stderr.contains("not kept for the next command: "),
            "{line}: {}",
            ran.stderr
        );
        assert!(ran.stderr.contains(lost), "{line}: {}", ran.stderr);
    }
    assert_eq!(
        one.prints("echo \"$own ${LONG-none} ${RAW-none}\""),
        "1 none none\n"
    );
}

#[test]
fn a_line_is_judged_with_what_earlier_ones_set() {
    let settings =
        "[hook]\nwrap = \"jail\"\nask = \"haft\"\nwait_s = 1\n[policy]\nallow = [\"Edit(/**)\"]\n";
    let lab = lab(settings);
    if !jailed(&lab) {
        return;
    }
    let session = AgentSession {
        lab: &lab,
        name: "s",
    };
    lab.file("build/x", "x");
    for line in [
        "d=/; e=build",
        "ls() { git push; }; g() { git \"$@\"; }",
        "alias p='git push'",
    ] {
        session.prints(line);
    }
    // A removal is as critical as the line would be that sets the variable itself.
    session.prints("rm -rf $e");
    let why = session.run("rm -rf $d").unwrap_err();
    assert!(why.contains("has not yet decided"), "{why}");
    // What a name stands for now is what rules see.
    lab.user_settings(&format!("{settings}deny = [\"Bash(git push:*)\"]\n"));
    for (line, denies) in [
        ("ls", true),
        ("p origin", true),
        ("g push", false),
        ("git status", false),
    ] {
        let ran = session.run(line);
        match (denies, ran) {
            (true, Err(why)) => assert!(why.contains("Bash(git push:*)"), "{line}: {why}"),
            // Which words `g` passes on is known only when it runs.
            (false, Err(why)) => assert!(
                line == "g push" && why.contains("not yet decided"),
                "{line}: {why}"
            ),
            (denies, Ok(_)) => assert!(!denies && line != "g push", "{line} ran"),
        }
    }
    // A state that cannot be read denies the next line, and says what to do.
    let hooks = std::fs::read_dir(lab.home().join("hooks"))
        .unwrap()
        .flatten();
    let file = hooks
        .map(|entry| entry.path())
        .find(|path| path.extension().is_some_and(|end| end == "shell"));
    std::fs::write(file.unwrap(), "{").unwrap();
    let why = session.run("true").unwrap_err();
    assert!(why.contains("remove that file"), "{why}");
}

#[test]
fn commands_at_the_same_time_each_keep_what_they_set() {
    let lab = lab("[hook]\nwrap = \"jail\"\nwait_s = 1\n[policy]\nallow = [\"Edit(/**)\"]\n");
    if !jailed(&lab) {
        return;
    }
    let session = AgentSession {
        lab: &lab,
        name: "s",
    };
    std::thread::scope(|scope| {
        for n in 0..4 {
            let session = &session;
            scope.spawn(move || session.prints(&format!("export N{n}={n}")));
        }
    });
    assert_eq!(session.prints("echo $N0$N1$N2$N3"), "0123\n");
}

#[test]
fn the_state_is_kept_where_the_agents_own_shell_keeps_it_or_as_the_setting_says() {
    let settings = "[policy]\nprofile = \"trusted\"\n[hook]\nwrap = \"jail\"\nwait_s = 1\n";
    let lab = lab(settings);
    if !jailed(&lab) {
        return;
    }
    let claude = |line: &str| {
        let ran = hook(&lab, &before(&lab, "t-1", "Bash", &bash(line)));
        assert_eq!(decision(&ran).0, "allow", "{line}: {}", ran.stdout);
        let input: &Value = &ran.json()["hookSpecificOutput"]["updatedInput"];
        let line = input["command"].as_str().unwrap().to_owned();
        ended(lab.program("bash", &["-c", &line]).spawn().unwrap()).stdout
    };
    let cursor = AgentSession {
        lab: &lab,
        name: "s",
    };
    for (setting, of_claude, of_cursor) in [
        ("auto", "\n", "1\n"),
        ("none", "\n", "\n"),
        ("keep", "1\n", "1\n"),
    ] {
        lab.user_settings(&format!("{settings}shell_state = \"{setting}\"\n"));
        claude("export KEPT=1");
        assert_eq!(claude("echo $KEPT"), of_claude, "{setting}");
        cursor.prints("export KEPT=1");
        assert_eq!(cursor.prints("echo $KEPT"), of_cursor, "{setting}");
    }
}
