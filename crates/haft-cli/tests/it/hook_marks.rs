//! What a session of an agent has read and changed counts for its later calls, with a server and without, whether or not the agent reports
//! the end of a call.

use serde_json::{Value, json};

use crate::harness::Lab;
use crate::hook::{bash, decision, hook, lab};
use crate::serve::Server;

/// Rules under which each of the calls below runs without asking.
const RULES: &str = "[hook]\nask = \"agent\"\n[policy]\nallow = [\"WebFetch(domain:docs.example.com)\", \"Bash(gh *)\", \"Bash(curl *)\", \
    \"WebFetch(domain:a.example.com)\", \"Bash(git fetch *)\", \"claude.WebSearch\", \"tracker.read\", \"Bash(npm *)\", \"Bash(make *)\", \
    \"Bash(pytest)\", \"Bash(cargo *)\", \"Bash(sed *)\", \"Bash(./run.sh)\", \"Edit(/**)\", \"Read\"]\n";

/// A call of an agent: its tool and input.
struct Made {
    tool: &'static str,
    input: Value,
}

fn line(command: &str) -> Made {
    Made {
        tool: "Bash",
        input: bash(command),
    }
}

fn edit(lab: &Lab, file: &str) -> Made {
    Made {
        tool: "Edit",
        input: json!({"file_path": lab.work().join(file), "old_string": "a", "new_string": "b"}),
    }
}

/// What the hook answers about a call of this session.
fn answer(lab: &Lab, session: &str, made: &Made) -> (String, String) {
    let event = json!({
        "session_id": session,
        "cwd": lab.work(),
        "hook_event_name": "PreToolUse",
        "tool_name": made.tool,
        "tool_input": made.input,
        "tool_use_id": format!("t-{}", made.input.to_string().len()),
    });
    decision(&hook(lab, &event.to_string()))
}

/// Makes two calls in a session of their own and returns the answer about the second.
fn second(lab: &Lab, session: &str, first: &Made, second: &Made) -> (String, String) {
    let (verdict, why) = answer(lab, session, first);
    assert_eq!(verdict, "allow", "{}: {why}", first.input);
    answer(lab, session, second)
}

fn each_way(check: impl Fn(&Lab, &str)) {
    for with_server in [false, true] {
        let lab = lab(RULES);
        for name in [
            "package.json",
            "Makefile",
            "run.sh",
            "src/a.js",
            "conftest.py",
        ] {
            lab.file(name, "a\n");
        }
        let server = with_server.then(|| Server::start(&lab, &[]));
        check(
            &lab,
            if with_server {
                "with a server"
            } else {
                "without"
            },
        );
        drop(server);
    }
}

#[test]
fn what_a_session_read_counts_before_the_agent_reports_that_it_has() {
    let fetch = |host: &str| Made {
        tool: "WebFetch",
        input: json!({"url": format!("https://{host}/a"), "prompt": "x"}),
    };
    each_way(|lab, how| {
        let rows = [
            (fetch("docs.example.com"), line("npm run send"), "ask"),
            (
                fetch("docs.example.com"),
                fetch("docs.example.com"),
                "allow",
            ),
            (fetch("docs.example.com"), fetch("a.example.com"), "ask"),
            (
                fetch("docs.example.com"),
                Made {
                    tool: "WebFetch",
                    input: json!({"url": "https://docs.example.com/?secret", "prompt": "x"}),
                },
                "ask",
            ),
            (line("gh issue view 12"), line("npm run send"), "ask"),
            (line("gh issue view 12"), fetch("docs.example.com"), "ask"),
            (line("git fetch origin"), line("make send"), "ask"),
            (
                line("curl https://a.example.com/"),
                line("gh gist create x"),
                "ask",
            ),
            (
                Made {
                    tool: "WebSearch",
                    input: json!({"query": "x"}),
                },
                line("npm run send"),
                "ask",
            ),
            (
                Made {
                    tool: "mcp__tracker__read",
                    input: json!({"id": 1}),
                },
                line("npm run send"),
                "ask",
            ),
            (line("gh issue view 12"), line("cat src/a.js"), "allow"),
            (line("npm test"), line("npm run send"), "allow"),
        ];
        for (n, (first, then, expect)) in rows.iter().enumerate() {
            let (verdict, why) = second(lab, &format!("read-{n}"), first, then);
            assert_eq!(
                &verdict, expect,
                "{how}: {} after {}: {why}",
                then.input, first.input
            );
            let (other, why) = answer(lab, &format!("fresh-{n}"), then);
            assert_eq!(other, "allow", "{how}: another session: {why}");
        }
    });
}

#[test]
fn what_a_session_changed_is_asked_about_before_a_command_runs_it() {
    each_way(|lab, how| {
        let rows = [
            (edit(lab, "package.json"), line("npm test"), "ask"),
            (edit(lab, "package.json"), line("cd src && npm test"), "ask"),
            (edit(lab, "package.json"), line("make all"), "allow"),
            (edit(lab, "src/a.js"), line("npm test"), "allow"),
            (edit(lab, "Makefile"), line("make all"), "ask"),
            (edit(lab, "conftest.py"), line("pytest"), "ask"),
            (edit(lab, "x/build.rs"), line("cargo test -p x"), "ask"),
            (edit(lab, "run.sh"), line("./run.sh"), "ask"),
            (line("sed -i s/a/b/ package.json"), line("npm test"), "ask"),
            (edit(lab, "package.json"), line("cat package.json"), "allow"),
        ];
        for (n, (first, then, expect)) in rows.iter().enumerate() {
            let (verdict, why) = second(lab, &format!("changed-{n}"), first, then);
            assert_eq!(
                &verdict, expect,
                "{how}: {} after {}: {why}",
                then.input, first.input
            );
            assert!(
                verdict == "allow" || why.contains("this session changed"),
                "{why}"
            );
        }
    });
}

#[test]
fn notes_of_a_session_that_cannot_be_kept_deny_the_call() {
    let lab = lab(RULES);
    assert_eq!(answer(&lab, "s", &line("gh issue view 1")).0, "allow");
    let folder = lab.home().join("hooks");
    for entry in std::fs::read_dir(&folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|end| end == "marks") {
            std::fs::remove_file(&path).unwrap();
            std::fs::create_dir(&path).unwrap();
        }
    }
    let (verdict, why) = answer(&lab, "s", &line("cat src/a.js"));
    assert_eq!(verdict, "deny", "{why}");
    assert!(
        why.contains("what this session of the agent has read"),
        "{why}"
    );
}
