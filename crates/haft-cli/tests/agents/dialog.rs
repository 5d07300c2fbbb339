//! Agents at a terminal: what haft's rules ask about is asked in the agent's own dialog, with haft's reason, even if the agent was
//! told not to ask; a no prevents the command from running.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use crate::lab::{self, Answer, Lab, need};
use crate::rows::{ROWS, Row};

/// Longer than any agent takes to start on a busy machine.
const PATIENCE: Duration = Duration::from_secs(180);

/// The dialog's text about the rule.
const REASON: &str = "Profile `workspace` requires approval";

/// How to start an agent at a terminal.
struct Terminal {
    agent: &'static str,
    args: &'static [&'static str],
    /// A file that keeps it from asking its own questions: its path in the home folder, and its text; `@WORK@` is replaced by the folder.
    file: Option<(&'static str, &'static str)>,
    /// The question in its dialog.
    prompt: &'static str,
}

const TERMINALS: [Terminal; 3] = [
    Terminal {
        agent: "claude",
        args: &[
            "make it",
            "--allowedTools",
            "Bash",
            "--model",
            "claude-sonnet-4-5",
        ],
        file: Some((
            ".claude.json",
            "{\"hasCompletedOnboarding\": true, \"theme\": \"dark\", \"customApiKeyResponses\": {\"approved\": [\"sk-ant-test\"]}, \"projects\": {\"@WORK@\": {\"hasTrustDialogAccepted\": true}}}",
        )),
        prompt: "Do you want to proceed?",
    },
    Terminal {
        agent: "gemini",
        args: &[
            "-i",
            "make it",
            "--yolo",
            "--skip-trust",
            "-m",
            "gemini-2.5-pro",
        ],
        file: None,
        prompt: "Allow execution of",
    },
    Terminal {
        agent: "copilot",
        args: &["-i", "make it", "--allow-all-tools", "--no-auto-update"],
        file: Some((
            ".copilot/config.json",
            "{\"trustedFolders\": [\"@WORK@\"], \"trusted_folders\": [\"@WORK@\"]}",
        )),
        prompt: "Do you want to allow this tool call?",
    },
];

#[test]
fn an_agent_at_a_terminal_asks_in_its_own_dialog_with_the_reason_of_haft() {
    if Command::new("tmux").arg("-V").output().is_err() {
        eprintln!(
            "SKIPPED: there is no `tmux` on the path; `HAFT_AGENTS=1 make needs` installs it"
        );
        return;
    }
    for terminal in &TERMINALS {
        let row = ROWS.iter().find(|row| row.agent == terminal.agent).unwrap();
        let Some(program) = need(row.program) else {
            continue;
        };
        for approves in [false, true] {
            dialog(terminal, row, &program, approves);
        }
    }
}

/// Starts an agent, answers its dialog, and checks the result.
fn dialog(terminal: &Terminal, row: &Row, program: &Path, approves: bool) {
    let lab = Lab::new(Answer::Ask);
    let model = lab.model(row.tool, row.arguments);
    lab.write(
        row.settings.0,
        &row.settings.1.replace("@URL@", &model.url()),
    );
    if let Some((name, text)) = terminal.file {
        let work = lab.path("work").display().to_string();
        lab.write(name, &text.replace("@WORK@", &work));
    }
    let installed = lab.haft(&["hook", "install", row.agent, "--yes"]);
    assert!(
        installed.status.success(),
        "{}",
        lab::text(&installed.stderr)
    );
    let mut command = lab.command(program, terminal.args);
    for (name, value) in row.variables {
        command.env(name, value.replace("@URL@", &model.url()));
    }
    let screen = Screen::open(&lab, &mut command);
    let asked = screen.wait(|text| text.contains(terminal.prompt));
    assert!(asked.contains(REASON), "{}: {asked}", row.agent);
    assert!(!lab.made());
    screen.press(if approves { "Enter" } else { "Escape" });
    let ended = screen.wait(|text| {
        let is_open = text.contains(terminal.prompt);
        !is_open && (!approves || text.contains("all done"))
    });
    assert_eq!(lab.made(), approves, "{}: {ended}", row.agent);
}

/// A terminal with a program running in it.
struct Screen {
    socket: String,
}

impl Screen {
    fn open(lab: &Lab, command: &mut Command) -> Self {
        // With `CI`, the agents assume that there is no terminal.
        command.env_remove("CI").env("TERM", "screen-256color");
        let screen = Self {
            socket: lab.path("tmux").display().to_string(),
        };
        let folder = lab.path("work").display().to_string();
        let variables = command
            .get_envs()
            .filter_map(|(name, value)| Some(format!("{}={}", name.display(), value?.display())));
        let mut line: Vec<String> = vec!["env".into(), "-i".into()];
        line.extend(variables);
        line.push(command.get_program().display().to_string());
        line.extend(command.get_args().map(|word| word.display().to_string()));
        let mut words = vec![
            "-f",
            "/dev/null",
            "new-session",
            "-d",
            "-x",
            "200",
            "-y",
            "60",
            "-c",
            &folder,
            "--",
        ];
        words.extend(line.iter().map(String::as_str));
        screen.tmux(&words);
        screen
    }

    fn tmux(&self, words: &[&str]) -> String {
        let output = Command::new("tmux")
            .arg("-S")
            .arg(&self.socket)
            .args(words)
            .output()
            .unwrap();
        lab::text(&output.stdout)
    }

    /// Waits until the screen is as expected and returns it.
    fn wait(&self, is_as_expected: impl Fn(&str) -> bool) -> String {
        let begin = Instant::now();
        loop {
            let text = self.tmux(&["capture-pane", "-p"]);
            if is_as_expected(&text) {
                return text;
            }
            assert!(begin.elapsed() < PATIENCE, "{text}");
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    fn press(&self, key: &str) {
        self.tmux(&["send-keys", key]);
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        self.tmux(&["kill-server"]);
    }
}
