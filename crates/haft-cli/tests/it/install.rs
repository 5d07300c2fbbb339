//! `haft mcp install` and `uninstall`: the client is connected, and the rest of its settings is unchanged.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::harness::{Lab, ended};

/// Each client with its file, and the path of haft's entry in it.
const CLIENTS: [(&str, &str, &[&str]); 13] = [
    ("claude-code", "work/.mcp.json", &["mcpServers", "haft"]),
    (
        "claude-code --user",
        ".claude.json",
        &["mcpServers", "haft"],
    ),
    (
        "claude-desktop",
        "config/Claude/claude_desktop_config.json",
        &["mcpServers", "haft"],
    ),
    ("cursor", "work/.cursor/mcp.json", &["mcpServers", "haft"]),
    ("cursor --user", ".cursor/mcp.json", &["mcpServers", "haft"]),
    ("vscode", "work/.vscode/mcp.json", &["servers", "haft"]),
    (
        "vscode --user",
        "config/Code/User/mcp.json",
        &["servers", "haft"],
    ),
    ("codex", ".codex/config.toml", &["mcp_servers", "haft"]),
    (
        "codex --project",
        "work/.codex/config.toml",
        &["mcp_servers", "haft"],
    ),
    (
        "gemini",
        "work/.gemini/settings.json",
        &["mcpServers", "haft"],
    ),
    (
        "zed",
        "config/zed/settings.json",
        &["context_servers", "haft"],
    ),
    ("opencode", "work/opencode.json", &["mcp", "haft"]),
    (
        "opencode --user",
        "config/opencode/opencode.json",
        &["mcp", "haft"],
    ),
];

fn root(lab: &Lab) -> PathBuf {
    lab.work().parent().unwrap().to_owned()
}

/// Returns the command line in the entry, for any format.
fn words(text: &str, file: &str, path: &[&str]) -> Vec<String> {
    let value: Value = if file.contains(".codex") {
        serde_json::to_value(toml::from_str::<toml::Table>(text).unwrap()).unwrap()
    } else {
        serde_json::from_str(text).unwrap()
    };
    let entry = path.iter().fold(&value, |at, name| &at[name]);
    let list = |value: &Value| -> Vec<String> {
        let all = value.as_array().into_iter().flatten();
        all.map(|word| word.as_str().unwrap().to_owned()).collect()
    };
    match &entry["command"] {
        Value::String(command) => {
            let mut all = vec![command.clone()];
            all.extend(list(&entry["args"]));
            all
        }
        command => list(command),
    }
}

#[test]
fn every_client_is_connected_and_disconnected() {
    for (client, file, path) in CLIENTS {
        let lab = Lab::new();
        let target = root(&lab).join(file);
        let mut args = vec!["mcp", "install"];
        args.extend(client.split(' '));
        args.extend(["--profile", "trusted", "-c", "limits.max_calls=7"]);
        let ran = lab.run(&args);
        assert_eq!(
            (ran.code, ran.stdout.as_str()),
            (0, ""),
            "{client}: {}",
            ran.stderr
        );
        let words = words(&fs::read_to_string(&target).unwrap(), file, path);
        assert_eq!(words[0], env!("CARGO_BIN_EXE_haft"), "{client}");
        assert_eq!(words[1..3], ["serve", "--stdio"], "{client}");
        for pair in [
            ["--home", lab.home().to_str().unwrap()],
            ["--profile", "trusted"],
            ["-c", "limits.max_calls=7"],
        ] {
            assert!(
                words.windows(2).any(|two| two == pair),
                "{client}: {words:?}"
            );
        }
        let again = lab.run(&args);
        assert!(
            again.stderr.contains("already has haft"),
            "{client}: {}",
            again.stderr
        );
        // What the client will do: start this command line and speak MCP.
        let start: Vec<&str> = words[1..].iter().map(String::as_str).collect();
        let hello = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}});
        let served = lab.run_with(&start, &format!("{hello}\n"));
        assert!(
            served.stdout.contains("serverInfo"),
            "{client}: {}",
            served.stderr
        );
        let gone = lab.run(&["mcp", "uninstall", client.split(' ').next().unwrap()]);
        assert_eq!(gone.code, 0, "{client}: {}", gone.stderr);
        assert!(!target.exists(), "{client}: haft had made the file");
        let made = target.parent().unwrap();
        let is_kept =
            ["work", "config"].iter().any(|kept| made.ends_with(kept)) || made == root(&lab);
        assert_eq!(made.exists(), is_kept, "{client}: and its folder");
    }
}

/// Realistic files, with details that rewriting the whole file would lose.
const FILES: [(&str, &str, &str); 5] = [
    (
        "vscode",
        "work/.vscode/mcp.json",
        "// mine\n{\n\t\"inputs\": [], // none\n\t\"servers\": {\n\t\t\"a\": {\"command\": \"x\",}, /* b */\n\t},\n}\n",
    ),
    (
        "claude-code --user",
        ".claude.json",
        "{\"numStartups\":3,\"projects\":{\"/x\":{\"mcpServers\":{}}}}",
    ),
    (
        "zed",
        "config/zed/settings.json",
        "// Zed settings\n{\r\n  \"theme\": \"One\",\r\n  \"context_servers\": {},\r\n}\r\n",
    ),
    (
        "codex",
        ".codex/config.toml",
        "model = \"o\" # which\n\n[mcp_servers.docs]\ncommand = 'x'\n\n[tui]\n# none",
    ),
    (
        "opencode --user",
        "config/opencode/opencode.jsonc",
        "{\n  // mine\n  \"mcp\": {\"other\": {\"type\": \"local\", \"command\": [\"x\"]}},\n}\n",
    ),
];

#[test]
fn the_rest_of_a_file_stays_to_the_byte() {
    for (client, file, text) in FILES {
        let lab = Lab::new();
        let target = root(&lab).join(file);
        fs::create_dir_all(target.parent().unwrap()).unwrap();
        fs::write(&target, text).unwrap();
        fs::set_permissions(&target, fs::Permissions::from_mode(0o640)).unwrap();
        let mut args = vec!["mcp", "install"];
        args.extend(client.split(' '));
        let dry = [&args[..], &["--dry-run"]].concat();
        let shown = lab.run(&dry);
        assert!(
            shown.stdout.contains('+') && shown.stdout.contains("--stdio"),
            "{}",
            shown.stdout
        );
        assert_eq!(
            fs::read_to_string(&target).unwrap(),
            text,
            "{client}: a dry run writes nothing"
        );
        assert_eq!(lab.run(&args).code, 0);
        let with = fs::read_to_string(&target).unwrap();
        let mode = fs::metadata(&target).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode, 0o640, "{client}");
        // Every earlier line is still there, except for a comma.
        for line in text.lines() {
            let line = line.trim_end().trim_end_matches(['}', ',']);
            assert!(with.contains(line), "{client}: {line:?} in {with}");
        }
        // The user's changes between install and uninstall are kept; otherwise the file is as before.
        let name = client.split(' ').next().unwrap();
        let edited = format!("{with}\n");
        fs::write(&target, &edited).unwrap();
        assert_eq!(lab.run(&["mcp", "uninstall", name]).code, 0);
        let without = fs::read_to_string(&target).unwrap();
        assert_eq!(without.trim_end(), text.trim_end(), "{client}");
        fs::write(&target, text).unwrap();
        assert_eq!(lab.run(&args).code, 0);
        assert_eq!(lab.run(&["mcp", "uninstall", name]).code, 0);
        assert_eq!(fs::read_to_string(&target).unwrap(), text, "{client}");
    }
}

#[test]
fn a_file_that_cannot_be_edited_is_left_alone_and_named() {
    let lab = Lab::new();
    let broken = lab.file(".mcp.json", "{\"mcpServers\": {,}}");
    let ran = lab.run(&["mcp", "install", "claude-code"]);
    assert_eq!(ran.code, 2, "{}", ran.stderr);
    assert!(
        ran.stderr.contains(".mcp.json:1:17") && ran.stderr.contains("nothing was changed"),
        "{}",
        ran.stderr
    );
    assert_eq!(
        fs::read_to_string(&broken).unwrap(),
        "{\"mcpServers\": {,}}"
    );
    // A folder in which no user can create anything.
    let mut command = lab.command(&["mcp", "install", "cursor", "--user"]);
    command.env("HOME", "/proc/self");
    let ran = ended(command.spawn().unwrap());
    assert_eq!(ran.code, 1, "{}", ran.stderr);
    assert!(
        ran.stderr.contains(".cursor/mcp.json") && ran.stderr.contains("haft mcp snippet cursor"),
        "{}",
        ran.stderr
    );
    // A project's file that leads elsewhere.
    let outside = root(&lab).join("outside.json");
    fs::write(&outside, "{}").unwrap();
    fs::create_dir(lab.work().join(".vscode")).unwrap();
    std::os::unix::fs::symlink(&outside, lab.work().join(".vscode/mcp.json")).unwrap();
    let ran = lab.run(&["mcp", "install", "vscode"]);
    assert!(
        ran.code == 2 && ran.stderr.contains("lead out of the project"),
        "{}",
        ran.stderr
    );
    assert_eq!(fs::read_to_string(&outside).unwrap(), "{}");
    // The user's own file may be a link: dotfiles are managed that way.
    let linked = root(&lab).join(".claude.json");
    std::os::unix::fs::symlink(&outside, &linked).unwrap();
    assert_eq!(
        lab.run(&["mcp", "install", "claude-code", "--user"]).code,
        0
    );
    assert!(fs::symlink_metadata(&linked).unwrap().is_symlink());
    assert!(fs::read_to_string(&outside).unwrap().contains("--stdio"));
    for (args, says) in [
        (["mcp", "install", "goose"], "haft mcp snippet goose"),
        (["mcp", "install", "curser"], "did you mean `cursor`?"),
        (
            ["mcp", "uninstall", "gemini"],
            "haft is not in the settings",
        ),
    ] {
        assert!(lab.run(&args).stderr.contains(says), "{args:?}");
    }
}

#[test]
fn an_uninstall_that_cannot_reach_a_file_says_so_and_does_the_rest() {
    let lab = Lab::new();
    let install = ["mcp", "install", "claude-code", "--user"];
    assert_eq!(lab.run(&install).code, 0);
    let user = root(&lab).join(".claude.json");
    let broken = lab.file(".mcp.json", "{\"mcpServers\": {\"haft\": {},,}}");
    for _ in 0..2 {
        let ran = lab.run(&["mcp", "uninstall", "claude-code"]);
        assert_eq!(ran.code, 2, "{}", ran.stderr);
        assert!(
            ran.stderr.contains(".mcp.json:1:") && ran.stderr.contains("correct the file"),
            "{}",
            ran.stderr
        );
        assert!(!ran.stderr.contains("haft is not in"), "{}", ran.stderr);
        assert!(!user.exists(), "what could be done was done");
    }
    fs::remove_file(&broken).unwrap();
    fs::create_dir(&broken).unwrap();
    let ran = lab.run(&["mcp", "uninstall", "claude-code", "--json"]);
    assert!(
        ran.code != 0 && ran.stderr.contains(".mcp.json"),
        "{}",
        ran.stderr
    );
    // A client without project settings has no unreachable ones.
    assert_eq!(lab.run(&["mcp", "uninstall", "zed"]).code, 0);
    assert_eq!(lab.run(&["mcp", "uninstall", "goose"]).code, 2);
}

#[test]
fn an_entry_named_haft_that_is_not_haft_s_is_said_and_comes_back() {
    let lab = Lab::new();
    let text = "{\n  \"mcpServers\": {\n    \"haft\": {\"command\": \"mine\"}\n  }\n}\n";
    let file = lab.file(".mcp.json", text);
    let ran = lab.run(&["mcp", "install", "claude-code"]);
    assert!(
        ran.code == 0 && ran.stderr.contains("replaces an entry named haft"),
        "{}",
        ran.stderr
    );
    assert_eq!(lab.run(&["mcp", "uninstall", "claude-code"]).code, 0);
    assert_eq!(fs::read_to_string(file).unwrap(), text);
}

#[test]
fn two_installs_at_once_lose_nothing() {
    let lab = Lab::new();
    fs::create_dir(lab.work().join("sub")).unwrap();
    // Two clients whose settings are in one folder, and one of them ten times.
    let file = root(&lab).join(".claude.json");
    fs::write(&file, "{\n  \"numStartups\": 1\n}\n").unwrap();
    let mut children = Vec::new();
    for nth in 0..10 {
        let set = format!("limits.max_calls={}", nth + 1);
        let args = ["mcp", "install", "claude-code", "--user", "-c", &set];
        children.push(lab.command(&args).spawn().unwrap());
        children.push(lab.command(&["mcp", "install", "codex"]).spawn().unwrap());
    }
    for child in children {
        let ran = ended(child);
        assert_eq!(ran.code, 0, "{}", ran.stderr);
    }
    let text = fs::read_to_string(&file).unwrap();
    let value: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(value["numStartups"], 1);
    assert!(
        value["mcpServers"]["haft"]["args"]
            .to_string()
            .contains("limits.max_calls=")
    );
    assert_eq!(lab.run(&["mcp", "uninstall", "claude-code"]).code, 0);
    assert_eq!(
        fs::read_to_string(&file).unwrap(),
        "{\n  \"numStartups\": 1\n}\n"
    );
    let codex = fs::read_to_string(root(&lab).join(".codex/config.toml")).unwrap();
    assert_eq!(codex.matches("[mcp_servers.haft]").count(), 1);
}

#[test]
fn hooks_in_a_file_that_cannot_be_read_are_not_said_to_be_removed() {
    let rows: [(&str, &[u8], i32, &str); 4] = [
        ("folder", b"", 1, "not a regular file"),
        ("bytes", b"{\"a\": \"\xff\"}", 1, "not UTF-8 at byte 7"),
        (
            "comma",
            b"{\n  \"hooks\": {,}\n}\n",
            2,
            "settings.json:2:13",
        ),
        ("link", b"", 1, "leads back to itself"),
    ];
    for (name, text, code, says) in rows {
        let lab = Lab::new();
        let other = lab.run(&["hook", "install", "cursor", "--yes"]);
        assert_eq!(other.code, 0, "{}", other.stderr);
        let hooks = root(&lab).join(".cursor/hooks.json");
        let before = fs::read(&hooks).unwrap();
        let file = root(&lab).join(".claude/settings.json");
        fs::create_dir(file.parent().unwrap()).unwrap();
        match name {
            "folder" => fs::create_dir(&file).unwrap(),
            "link" => std::os::unix::fs::symlink("settings.json", &file).unwrap(),
            _ => fs::write(&file, text).unwrap(),
        }
        // By name and without one; of several files none is edited then.
        for agent in [&["claude"][..], &[]] {
            let ran = lab.run(&[&["hook", "uninstall"], agent, &["--yes"]].concat());
            assert_eq!(ran.code, code, "{name} {agent:?}: {}", ran.stderr);
            for part in [says, "settings.json", "Claude Code"] {
                assert!(
                    ran.stderr.contains(part),
                    "{name} {agent:?}: {}",
                    ran.stderr
                );
            }
            assert!(!ran.stderr.contains("is not in"), "{}", ran.stderr);
        }
        assert_eq!(fs::read(&hooks).unwrap(), before, "{name}");
        if let Ok(now) = fs::read(&file) {
            assert_eq!(now, text, "{name}");
        }
        let status = lab.run(&["hook", "status", "claude", "--json"]).json();
        assert!(status.to_string().contains("\"unreadable\""), "{status}");
    }
}

#[test]
fn two_kinds_of_edits_of_one_file_are_undone_in_any_order() {
    let server = ["mcp", "uninstall", "gemini"];
    let hooks = ["hook", "uninstall", "gemini", "--project", "--yes"];
    for (first, second) in [(&server[..], &hooks[..]), (&hooks, &server)] {
        for text in [None, Some("{}"), Some("{ \"theme\": \"dark\" // mine\n}")] {
            let lab = Lab::new();
            let file = lab.work().join(".gemini/settings.json");
            if let Some(text) = text {
                lab.file(".gemini/settings.json", text);
            }
            let install = ["hook", "install", "gemini", "--project", "--yes"];
            for args in [&["mcp", "install", "gemini"][..], &install, first, second] {
                let ran = lab.run(args);
                assert_eq!(ran.code, 0, "{args:?}: {}", ran.stderr);
            }
            assert_eq!(fs::read_to_string(&file).ok().as_deref(), text);
            assert_eq!(file.parent().unwrap().exists(), text.is_some());
        }
    }
}
