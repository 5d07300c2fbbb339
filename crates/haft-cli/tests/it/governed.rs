//! `haft init --client` and `haft hook install`: an agent's commands run in the jail where that is possible, and the last line says whether
//! the agent is governed, and what is not.

use std::fs;
use std::path::PathBuf;

use crate::harness::{Lab, Ran};

fn root(lab: &Lab) -> PathBuf {
    lab.work().parent().unwrap().to_owned()
}

fn claude(lab: &Lab) -> PathBuf {
    root(lab).join(".claude/settings.json")
}

fn config(lab: &Lab) -> PathBuf {
    root(lab).join("config/haft/config.toml")
}

/// Whether the jail is full here: without it, haft sets nothing.
#[expect(clippy::print_stderr, reason = "a test that is skipped says so")]
pub(crate) fn has_jail(lab: &Lab) -> bool {
    let doctor = lab.run(&["doctor", "--json"]).json();
    let full = doctor["sandbox"]["strength"] == "full";
    if !full {
        eprintln!("SKIPPED: the jail is not full here: {doctor}");
    }
    full
}

fn last_line(ran: &Ran) -> &str {
    ran.stderr.trim_end().lines().last().unwrap_or_default()
}

#[test]
fn init_puts_an_agent_under_its_hook_first_and_in_the_jail() {
    let lab = Lab::new();
    if !has_jail(&lab) {
        return;
    }
    let init = ["init", "--client", "claude-code"];
    let asked = lab.run(&init);
    assert_eq!(asked.code, 2, "{}", asked.stderr);
    assert!(asked.stderr.contains("--yes"), "{}", asked.stderr);
    let dry = lab.run(&[&init[..], &["--dry-run"]].concat());
    assert_eq!(dry.code, 0, "{}", dry.stderr);
    for part in ["haft hook claude", "+wrap = \"jail\"", "[policy]"] {
        assert!(dry.stdout.contains(part), "{part}: {}", dry.stdout);
    }
    for file in [lab.work().join("haft.toml"), claude(&lab), config(&lab)] {
        assert!(!file.exists(), "{}", file.display());
    }
    let done = lab.run(&[&init[..], &["--yes"]].concat());
    assert_eq!(done.code, 0, "{}", done.stderr);
    assert!(
        last_line(&done).starts_with("Claude Code is governed in all folders; not governed: "),
        "{}",
        done.stderr
    );
    assert!(
        done.stderr.contains("haft mcp install claude-code"),
        "{}",
        done.stderr
    );
    assert!(!lab.work().join(".mcp.json").exists());
    let explained = lab
        .run(&["config", "explain", "hook.wrap", "--json"])
        .json();
    assert_eq!(
        (&explained["value"], &explained["layer"]),
        (&"jail".into(), &"user".into()),
        "{explained}"
    );
    let again = lab.run(&[&init[..], &["--json"]].concat()).json();
    assert_eq!(
        (&again["governed"], &again["hook"]["jailed"]),
        (&"yes".into(), &true.into()),
        "{again}"
    );
    let both = lab.run(&[&init[..], &["--mcp"]].concat());
    assert_eq!(both.code, 0, "{}", both.stderr);
    assert!(lab.work().join(".mcp.json").exists());
    assert!(
        last_line(&both).starts_with("Claude Code is governed"),
        "{}",
        both.stderr
    );
}

#[test]
fn a_client_without_hooks_is_never_said_to_be_governed() {
    let lab = Lab::new();
    let done = lab.run(&["init", "--client", "vscode"]);
    assert_eq!(done.code, 0, "{}", done.stderr);
    assert!(lab.work().join(".vscode/mcp.json").exists());
    assert!(
        last_line(&done).starts_with("vscode is not governed: "),
        "{}",
        done.stderr
    );
    let again = lab.run(&["init", "--client", "vscode", "--json"]).json();
    assert_eq!(again["governed"], "no", "{again}");
}

#[test]
fn the_wrap_that_haft_wrote_goes_with_the_last_hook_and_no_other() {
    let lab = Lab::new();
    if !has_jail(&lab) {
        return;
    }
    for before in [
        None,
        Some("[policy]\nprofile = \"workspace\"\n"),
        Some("[hook]\nask = \"haft\"\n"),
    ] {
        let _ = fs::remove_file(config(&lab));
        if let Some(text) = before {
            lab.user_settings(text);
        }
        for agent in ["claude", "gemini"] {
            let done = lab.run(&["hook", "install", agent, "--yes"]);
            assert_eq!(done.code, 0, "{}", done.stderr);
            assert!(
                done.stderr.contains("commands run in haft's jail"),
                "{}",
                done.stderr
            );
        }
        let gone = lab.run(&["hook", "uninstall", "gemini", "--yes"]);
        assert_eq!(gone.code, 0, "{}", gone.stderr);
        assert!(
            fs::read_to_string(config(&lab))
                .unwrap()
                .contains("by haft hook install")
        );
        let gone = lab.run(&["hook", "uninstall", "claude", "--yes"]);
        assert!(gone.stderr.contains("removed hook.wrap"), "{}", gone.stderr);
        assert_eq!(fs::read_to_string(config(&lab)).ok().as_deref(), before);
    }
}

#[test]
fn where_the_jail_cannot_be_the_way_in_one_line_says_what_that_costs() {
    let settings = [
        (
            "claude",
            "[hook]\nwrap = \"none\"\n",
            "your own hook.wrap = \"none\"",
        ),
        (
            "claude",
            "[sandbox]\nbackend = \"passthrough\"\nrequire = \"none\"\n",
            "the jail is not full here",
        ),
        ("devin", "", "it lets no hook change a call"),
    ];
    for (agent, text, why) in settings {
        let lab = Lab::new();
        lab.user_settings(text);
        let done = lab.run(&["hook", "install", agent, "--yes"]);
        assert_eq!(done.code, 0, "{}", done.stderr);
        let says = done.stderr.lines().filter(|line| line.contains(why));
        let says: Vec<&str> = says.collect();
        assert_eq!(says.len(), 1, "{why}: {}", done.stderr);
        assert!(says[0].contains("nearly every second"), "{says:?}");
        assert_eq!(fs::read_to_string(config(&lab)).unwrap(), text);
        let gone = lab.run(&["hook", "uninstall", agent, "--yes"]);
        assert_eq!(gone.code, 0, "{}", gone.stderr);
        assert_eq!(fs::read_to_string(config(&lab)).unwrap(), text);
    }
}

#[test]
fn settings_that_cannot_be_edited_are_left_and_so_are_the_hooks() {
    let lab = Lab::new();
    if !has_jail(&lab) {
        return;
    }
    let text = "hook = { ask = \"haft\" }\n";
    lab.user_settings(text);
    let refused = lab.run(&["hook", "install", "claude", "--yes"]);
    assert_eq!(refused.code, 2, "{}", refused.stderr);
    assert!(
        refused.stderr.contains("hook.wrap") && refused.stderr.contains("by hand"),
        "{}",
        refused.stderr
    );
    assert_eq!(fs::read_to_string(config(&lab)).unwrap(), text);
    assert!(!claude(&lab).exists());
}
