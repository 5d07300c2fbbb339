//! `haft mcp import`: servers of other clients are shown, confirmed and written; nothing is started.

use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::harness::Lab;
use crate::pty::Pty;

fn user_file(lab: &Lab) -> PathBuf {
    lab.home().parent().unwrap().join("config/haft/config.toml")
}

/// Writes a file below the user's home folder.
fn own_file(lab: &Lab, name: &str, text: &str) {
    let path = lab.home().parent().unwrap().join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

fn names(found: &Value, added: bool) -> Vec<String> {
    let servers = found["servers"].as_array().unwrap().iter();
    let own = servers.filter(|server| server["added"] == added);
    let mut names: Vec<String> = own
        .map(|server| server["name"].as_str().unwrap().to_owned())
        .collect();
    names.sort();
    names
}

/// Creates a machine with clients that have servers; one of them would start a program that creates the returned file.
fn with_clients(lab: &Lab) -> PathBuf {
    let touch = lab.home().parent().unwrap().join("started");
    let mine = json!({"mcpServers": {"mine": {"command": "touch", "args": [touch]}}});
    own_file(lab, ".claude.json", &mine.to_string());
    let codex = "[mcp_servers.far]\nurl = \"https://x.example/mcp\"\n";
    own_file(lab, ".codex/config.toml", codex);
    let goose = "extensions:\n  developer:\n    type: builtin\n    enabled: true\n";
    own_file(lab, "config/goose/config.yaml", goose);
    own_file(lab, ".gemini/settings.json", "{\"theme\": \"x\"}");
    lab.file(
        ".mcp.json",
        r#"{"mcpServers": {"here": {"command": "npx"}, "far": {"command": "other"}}}"#,
    );
    lab.file(
        ".claude/settings.json",
        r#"{"permissions": {"allow": ["mcp__here__read", "Bash(ls)"], "deny": ["mcp__far"]}}"#,
    );
    touch
}

#[test]
fn the_servers_of_all_clients_are_found_and_those_of_the_folder_once_it_is_trusted() {
    let lab = Lab::new();
    let touch = with_clients(&lab);
    let dry = lab.run(&["mcp", "import", "--dry-run"]);
    assert_eq!(dry.code, 0, "{}", dry.stderr);
    assert!(
        dry.stderr.contains("not trusted") && dry.stderr.contains(".mcp.json"),
        "{}",
        dry.stderr
    );
    assert!(!dry.stdout.contains("here"), "{}", dry.stdout);
    assert!(dry.stdout.contains("part of the client"), "{}", dry.stdout);
    // Without a terminal there is no confirmation.
    assert_eq!(lab.run(&["mcp", "import"]).code, 2);
    assert!(!user_file(&lab).exists());

    assert_eq!(lab.run(&["trust"]).code, 0);
    let found = lab.run(&["mcp", "import", "--yes", "--json"]).json();
    assert_eq!(names(&found, true), ["far", "here", "mine"], "{found:#}");
    assert_eq!(names(&found, false), ["developer", "far"], "{found:#}");
    assert_eq!(found["rules"]["allow"], json!(["here.read"]));
    assert_eq!(found["rules"]["deny"], json!(["far.*"]));
    assert!(
        found["rules"]["not_carried"]
            .to_string()
            .contains("Bash(ls)")
    );
    let listed = lab.run(&["mcp", "list", "--json"]).json();
    assert_eq!(listed.as_array().unwrap().len(), 3);
    assert!(
        listed
            .as_array()
            .unwrap()
            .iter()
            .all(|server| server["state"] == "configured")
    );
    assert!(!touch.exists());
    let again = lab.run(&["mcp", "import", "--yes", "--json"]).json();
    assert!(names(&again, true).is_empty(), "{again:#}");
    let renamed = [
        "mcp",
        "import",
        ".mcp.json",
        "--rename",
        "far=near",
        "--yes",
        "--json",
    ];
    assert_eq!(names(&lab.run(&renamed).json(), true), ["near"]);
}

#[test]
fn a_secret_is_not_copied_and_a_bad_server_hides_itself_alone() {
    let mut lab = Lab::new();
    let file = lab.file(
        "x.json",
        r#"{"mcpServers": {
            "kept": {"command": "npx", "env": {"GITHUB_TOKEN": "hush-hush-hush"}},
            "bad": {"url": "ftp://x"},
            "good": {"command": "npx", "alwaysAllow": ["x"]}}}"#,
    );
    let file = file.display().to_string();
    let dry = lab.run(&["mcp", "import", &file, "--dry-run"]);
    assert!(
        dry.stdout.contains("${env:GITHUB_TOKEN}") && dry.stdout.contains("--copy-secrets"),
        "{}",
        dry.stdout
    );
    assert!(!dry.stdout.contains("hush"), "{}", dry.stdout);
    assert!(
        dry.stdout.contains("neither https://") && dry.stdout.contains("alwaysAllow"),
        "{}",
        dry.stdout
    );
    lab.set("GITHUB_TOKEN", "hush-hush-hush");
    let found = lab
        .run(&[
            "mcp",
            "import",
            &file,
            "--network",
            "host",
            "--yes",
            "--json",
        ])
        .json();
    assert_eq!(names(&found, true), ["good", "kept"], "{found:#}");
    let text = fs::read_to_string(user_file(&lab)).unwrap();
    assert!(
        text.contains("GITHUB_TOKEN = \"${env:GITHUB_TOKEN}\"") && !text.contains("hush"),
        "{text}"
    );
    assert_eq!(
        text.matches("sandbox.network = \"host\"").count(),
        2,
        "{text}"
    );
}

#[test]
fn at_a_terminal_it_is_asked_once_with_all_that_would_be_added() {
    let lab = Lab::new();
    let file = lab.file("x.json", r#"{"mcpServers": {"a": {"command": "npx"}}}"#);
    let file = file.display().to_string();
    for (answer, there) in [("n", false), ("y", true)] {
        let mut pty = Pty::start(&lab, &["mcp", "import", &file]);
        pty.expect("add 1 server to");
        pty.enter(answer);
        let ran = pty.end();
        assert!(ran.stdout.contains("+command = \"npx\""), "{}", ran.stdout);
        assert_eq!(user_file(&lab).exists(), there, "{}", ran.stderr);
    }
}

#[test]
fn a_plugin_s_server_starts_from_its_folder_once_it_is_pinned() {
    let (lab, folder) = crate::servers::lab("");
    assert_eq!(lab.run(&["mcp", "remove", "sum"]).code, 0);
    fs::create_dir_all(folder.join("skills/one")).unwrap();
    fs::write(
        folder.join("skills/one/SKILL.md"),
        "---\nname: one\ndescription: d\n---\nx\n",
    )
    .unwrap();
    fs::write(
        folder.join("plugin.json"),
        r#"{"name": "sums", "version": "1"}"#,
    )
    .unwrap();
    let servers =
        r#"{"mcpServers": {"sum": {"command": "python3", "args": ["${PLUGIN_ROOT}/server.py"]}}}"#;
    fs::write(folder.join(".mcp.json"), servers).unwrap();
    let imported = lab.run(&["mcp", "import", &folder.display().to_string(), "--yes"]);
    assert_eq!(imported.code, 0, "{}", imported.stderr);
    assert!(
        imported.stderr.contains("skills.dirs"),
        "{}",
        imported.stderr
    );
    let pinned = lab.run(&["mcp", "pin", "sum", "--yes"]);
    assert_eq!(pinned.code, 0, "{}", pinned.stderr);
    let called = lab.run(&[
        "call",
        "sum.add",
        "--json",
        "-c",
        "policy.allow=[\"sum.*\"]",
    ]);
    assert_eq!(
        called.json()["content"][0]["text"],
        "3",
        "{}",
        called.stderr
    );
}

#[test]
fn a_plugin_of_claude_code_is_imported_with_its_package_and_loads() {
    let lab = Lab::new();
    let package = lab
        .home()
        .parent()
        .unwrap()
        .join(".claude/plugins/cache/m/p/1.0");
    let server = r#"{"mcpServers": {"plug": {"command": "python3", "args": ["${CLAUDE_PLUGIN_ROOT}/server.py"]}}}"#;
    own_file(&lab, ".claude/plugins/cache/m/p/1.0/.mcp.json", server);
    let name = r#"{"name": "p"}"#;
    own_file(
        &lab,
        ".claude/plugins/cache/m/p/1.0/.claude-plugin/plugin.json",
        name,
    );
    own_file(&lab, ".claude/plugins/cache/m/p/1.0/server.py", "");
    let installed =
        json!({"version": 2, "plugins": {"p@m": [{"scope": "user", "installPath": package}]}});
    own_file(
        &lab,
        ".claude/plugins/installed_plugins.json",
        &installed.to_string(),
    );
    own_file(
        &lab,
        ".claude/settings.json",
        r#"{"enabledPlugins": {"p@m": true}}"#,
    );
    let found = lab.run(&["mcp", "import", "--yes", "--json"]);
    assert_eq!(names(&found.json(), true), ["plug"], "{}", found.stdout);
    let listed = lab.run(&["mcp", "list", "--json"]);
    assert_eq!(listed.code, 0, "{}", listed.stderr);
    assert_eq!(listed.json()[0]["name"], "plug", "{}", listed.stdout);
}
