//! Help, version, completions and man page, as printed.

use crate::harness::Lab;

#[test]
fn help_of_every_command() {
    let lab = Lab::new();
    let commands: [&[&str]; 26] = [
        &[],
        &["serve"],
        &["console"],
        &["tools"],
        &["call"],
        &["chain"],
        &["run"],
        &["policy"],
        &["policy", "explain"],
        &["runs"],
        &["artifacts"],
        &["artifacts", "get"],
        &["skills"],
        &["skills", "check"],
        &["config"],
        &["trust"],
        &["token"],
        &["token", "add"],
        &["doctor"],
        &["mcp"],
        &["mcp", "install"],
        &["mcp", "add"],
        &["mcp", "import"],
        &["init"],
        &["approvals"],
        &["completions"],
    ];
    for command in commands {
        let mut args = command.to_vec();
        args.push("--help");
        let ran = lab.run(&args);
        assert_eq!((ran.code, ran.stderr.as_str()), (0, ""), "{command:?}");
        let own = ran
            .stdout
            .split("Common options")
            .next()
            .unwrap_or_default()
            .to_owned();
        // The common options are the same everywhere: shown once.
        let shown = if command.is_empty() {
            &ran.stdout
        } else {
            &own
        };
        insta::assert_snapshot!(
            ["help"]
                .iter()
                .chain(command)
                .copied()
                .collect::<Vec<_>>()
                .join("-"),
            shown
        );
    }
}

#[test]
fn version_is_one_line() {
    let ran = Lab::new().run(&["--version"]);
    assert_eq!(ran.stdout, format!("haft {}\n", env!("CARGO_PKG_VERSION")));
}

#[test]
fn completions_and_man_page_name_every_command() {
    let lab = Lab::new();
    for args in [
        ["completions", "bash"],
        ["completions", "zsh"],
        ["completions", "fish"],
    ] {
        let ran = lab.run(&args);
        assert_eq!(ran.code, 0);
        for command in ["serve", "policy", "artifacts", "doctor"] {
            assert!(ran.stdout.contains(command), "{args:?} {command}");
        }
    }
    let man = lab.run(&["man"]);
    assert!(man.stdout.contains(".TH haft 1") && man.stdout.contains("haft policy explain"));
    assert!(man.stdout.contains("haft runs resume") && man.stdout.contains("haft chain"));
}

#[test]
fn a_snippet_for_every_client() {
    let lab = Lab::new();
    for client in [
        "claude-code",
        "claude-desktop",
        "cursor",
        "vscode",
        "codex",
        "zed",
        "goose",
        "gemini",
        "opencode",
    ] {
        let ran = lab.run(&["mcp", "snippet", client]);
        let text = ran
            .stdout
            .replace(env!("CARGO_BIN_EXE_haft"), "BINARY")
            .replace(lab.work().to_str().unwrap(), "WORKSPACE")
            .replace(lab.home().to_str().unwrap(), "STATE");
        insta::assert_snapshot!(
            format!("snippet-{client}"),
            format!("# {}{text}", ran.stderr)
        );
    }
}
