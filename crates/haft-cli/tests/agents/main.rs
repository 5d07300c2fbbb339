//! Real coding agents with haft in their hooks, started as users start them, with a scripted model and without an account: the
//! settings that an install writes are read, the hook is asked before a tool runs, and its answer holds.
//!
//! The agents are large (together a gigabyte), so `make needs` installs them only where `HAFT_AGENTS=1` is set; they are found below
//! `HAFT_NEEDS`, and what is not there is skipped and named.
#![expect(
    clippy::unwrap_used,
    clippy::print_stderr,
    clippy::disallowed_methods,
    reason = "tests start real programs, say what they skip, and stop where they cannot go on"
)]

mod codex;
mod lab;
mod settings;

use lab::{Answer, Lab, need};

/// How an agent is started without a user, and what its model does.
struct Row {
    agent: &'static str,
    /// Below `HAFT_NEEDS`.
    program: &'static str,
    args: &'static [&'static str],
    /// Variables; `URL` stands for the model server's address.
    variables: &'static [(&'static str, &'static str)],
    /// A settings file that the user has: its path in the home folder, and its text.
    settings: (&'static str, &'static str),
    tool: &'static str,
    arguments: &'static str,
    /// What the event holds.
    event: &'static [&'static str],
}

const ROWS: [Row; 3] = [
    Row {
        agent: "claude",
        program: "agents/node_modules/.bin/claude",
        args: &[
            "-p",
            "make it",
            "--allowedTools",
            "Bash",
            "--model",
            "claude-sonnet-4-5",
        ],
        variables: &[
            ("ANTHROPIC_BASE_URL", "URL"),
            ("ANTHROPIC_API_KEY", "sk-ant-test"),
            ("DISABLE_TELEMETRY", "1"),
            ("DISABLE_AUTOUPDATER", "1"),
            ("DISABLE_ERROR_REPORTING", "1"),
            ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"),
        ],
        settings: (".claude/settings.json", "{\"cleanupPeriodDays\": 3}\n"),
        tool: "Bash",
        arguments: "{ command = \"echo hi > made.txt\", description = \"Make a file\" }",
        event: &[
            "\"hook_event_name\":\"PreToolUse\"",
            "\"tool_name\":\"Bash\"",
            "echo hi > made.txt",
        ],
    },
    Row {
        agent: "gemini",
        program: "agents/node_modules/.bin/gemini",
        args: &[
            "-p",
            "make it",
            "--yolo",
            "--skip-trust",
            "-m",
            "gemini-2.5-pro",
        ],
        variables: &[
            ("GOOGLE_GEMINI_BASE_URL", "URL"),
            ("GEMINI_API_KEY", "test"),
            ("GEMINI_TELEMETRY_ENABLED", "false"),
        ],
        settings: (
            ".gemini/settings.json",
            "{\n  // no figures go out\n  \"privacy\": {\"usageStatisticsEnabled\": false},\n  \"general\": {\"enableAutoUpdate\": false},\n  \"security\": {\"auth\": {\"selectedType\": \"gemini-api-key\"}}\n}\n",
        ),
        tool: "run_shell_command",
        arguments: "{ command = \"echo hi > made.txt\", description = \"Make a file\" }",
        event: &["BeforeTool", "run_shell_command", "echo hi > made.txt"],
    },
    Row {
        agent: "copilot",
        program: "agents/node_modules/.bin/copilot",
        args: &["-p", "make it", "--allow-all-tools", "--no-auto-update"],
        variables: &[
            ("COPILOT_OFFLINE", "true"),
            ("COPILOT_PROVIDER_BASE_URL", "URL/v1"),
            ("COPILOT_PROVIDER_API_KEY", "test"),
            ("COPILOT_MODEL", "gpt-4.1"),
        ],
        settings: (
            ".copilot/hooks/mine.json",
            "{\"version\": 1, \"hooks\": {}}\n",
        ),
        tool: "bash",
        arguments: "{ command = \"echo hi > made.txt\", description = \"Make a file\" }",
        event: &["\"toolName\":\"bash\"", "echo hi > made.txt"],
    },
];

#[test]
fn a_real_agent_asks_the_hook_that_was_installed_and_does_what_it_answers() {
    for row in ROWS {
        let Some(program) = need(row.program) else {
            continue;
        };
        for answer in [Answer::Deny, Answer::Allow] {
            let lab = Lab::new(answer);
            let (name, text) = row.settings;
            lab.write(name, text);
            let installed = lab.haft(&["hook", "install", row.agent, "--yes"]);
            assert!(
                installed.status.success(),
                "{}",
                lab::text(&installed.stderr)
            );
            let model = lab.model(row.tool, row.arguments);
            let mut command = lab.command(&program, row.args);
            for (name, value) in row.variables {
                command.env(name, value.replace("URL", &model.url()));
            }
            let ran = lab::ended(command);
            let said = format!(
                "{}: {}\n{}",
                row.agent,
                lab::text(&ran.stdout),
                lab::text(&ran.stderr)
            );
            assert_eq!(model.problems(), Vec::<String>::new(), "{said}");
            let seen = lab.events();
            // The event after the call repeats what was in the one before.
            let is_before = |event: &str| !event.contains("\"toolResult\"");
            let is_it = |event: &&String| {
                is_before(event) && row.event.iter().all(|part| event.contains(part))
            };
            assert_eq!(seen.iter().filter(is_it).count(), 1, "{said}\n{seen:#?}");
            let denied = answer == Answer::Deny;
            assert_eq!(lab.made(), !denied, "{said}");
            let requests = model.requests();
            let told = requests
                .iter()
                .any(|request| lab::text(&request.body).contains(lab::REASON));
            assert_eq!(told, denied, "{said}");
            assert!(said.contains("all done"), "{said}");
        }
    }
}
