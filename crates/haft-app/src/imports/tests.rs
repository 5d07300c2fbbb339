//! Imports the settings of every client that haft knows: each member is imported, reported or refused.

use std::fs;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::config::Settings;
use crate::environment::Environment;
use crate::home::Home;
use crate::imports::{ImportCandidate, ImportOptions, Imports, look};
use crate::site::Site;

mod plugins;

/// A workspace, and its variables.
struct Desk {
    root: TempDir,
    at: Site,
}

impl Desk {
    fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        for folder in ["work", "home", "user"] {
            fs::create_dir(root.path().join(folder)).unwrap();
        }
        let user = root.path().join("user").display().to_string();
        let variables = [
            ("HOME", user.as_str()),
            ("SET", "value"),
            ("GITHUB_TOKEN", "hush"),
        ];
        let environment = Environment::from(&variables[..]);
        let home = Home::locate(Some(&root.path().join("home")), &environment).unwrap();
        let at = Site::new(&root.path().join("work"), home, environment).unwrap();
        Self { root, at }
    }

    fn file(&self, name: &str, text: &str) -> PathBuf {
        let path = self.root.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        path
    }

    fn look(&self, from: &Path, wishes: &ImportOptions) -> Imports {
        look(&self.at, &Settings::default(), Some(from), wishes).unwrap()
    }

    /// Imports one file with one server.
    fn one(&self, name: &str, text: &str) -> ImportCandidate {
        let found = self.look(&self.file(name, text), &ImportOptions::default());
        assert_eq!(found.servers.len(), 1, "{name}: {found:?}");
        found.servers.into_iter().next().unwrap()
    }
}

fn text(candidate: &ImportCandidate) -> String {
    assert_eq!(candidate.refused, None, "{}", candidate.original);
    let text = candidate.server.as_ref().unwrap().text();
    text.lines().skip(1).collect::<Vec<_>>().join("\n")
}

#[test]
fn every_client_s_way_of_writing_is_read() {
    let desk = Desk::new();
    let work = desk.at.workspace.display().to_string();
    let rows = [
        (
            ".mcp.json",
            r#"{"mcpServers": {"a": {"type": "stdio", "command": "npx", "args": ["-y", "s", "${SET}", "${NONE:-d}"], "env": {"A": "${SET}"}, "timeout": 5000}}}"#,
            "command = \"npx\"\nargs = [\"-y\", \"s\", \"${env:SET}\", \"d\"]\nenv = { A = \"${env:SET}\" }\ncall_timeout_s = 5.0".to_owned(),
        ),
        (
            "claude_desktop_config.json",
            r#"{"mcpServers": {"a": {"command": "uvx", "args": ["s"]}}, "globalShortcut": ""}"#,
            "command = \"uvx\"\nargs = [\"s\"]".to_owned(),
        ),
        (
            ".cursor/mcp.json",
            r#"{"mcpServers": {"a": {"url": "https://x/mcp", "headers": {"Authorization": "Bearer ${env:SET}"}}}}"#,
            "url = \"https://x/mcp\"\nheaders = { Authorization = \"Bearer ${env:SET}\" }".to_owned(),
        ),
        (
            ".vscode/mcp.json",
            "{ // comment\n\"inputs\": [{\"id\": \"set\", \"type\": \"promptString\", \"password\": true}, {\"id\": \"b\", \"default\": \"x\"}],\n\"servers\": {\"a\": {\"type\": \"stdio\", \"command\": \"s\", \"args\": [\"${workspaceFolder}/d\", \"${input:set}\", \"${input:b}\"]},}}",
            format!("command = \"s\"\nargs = [\"{work}/d\", \"${{env:SET}}\", \"x\"]"),
        ),
    ];
    for (file, settings, expect) in rows {
        assert_eq!(text(&desk.one(file, settings)), expect, "{file}");
    }
}

#[test]
fn clients_that_write_otherwise_are_read_too() {
    let desk = Desk::new();
    let work = desk.at.workspace.display().to_string();
    let rows = [
        (
            ".codex/config.toml",
            "model = \"x\"\n[mcp_servers.a]\ncommand = \"s\"\nenv_vars = [\"SET\", \"NONE\"]\nstartup_timeout_sec = 30\ntool_timeout_sec = 90\nenabled = false\n",
            "command = \"s\"\nenv = { SET = \"${env:SET}\" }\nenabled = false\nconnect_timeout_s = 30.0\ncall_timeout_s = 90.0".to_owned(),
        ),
        (
            "two/.codex/config.toml",
            "[mcp_servers.a]\nurl = \"https://x/\"\nbearer_token_env_var = \"SET\"\nenv_http_headers = { X-K = \"SET\" }\n",
            "url = \"https://x/\"\nheaders = { Authorization = \"Bearer ${env:SET}\", X-K = \"${env:SET}\" }".to_owned(),
        ),
        (
            "goose/config.yaml",
            "GOOSE_MODE: auto\nextensions:\n  a:\n    type: stdio\n    enabled: true\n    cmd: npx\n    args:\n      - -y\n      - s\n    env_keys: [SET]\n    envs: {B: c}\n    timeout: 300\n    bundled: null\n",
            "command = \"npx\"\nargs = [\"-y\", \"s\"]\nenv = { B = \"c\", SET = \"${env:SET}\" }\ncall_timeout_s = 300.0".to_owned(),
        ),
        (
            "far/goose/config.yaml",
            "extensions:\n  a:\n    type: streamable_http\n    uri: https://x/mcp\n    enabled: false\n",
            "url = \"https://x/mcp\"\nenabled = false".to_owned(),
        ),
        (
            ".gemini/settings.json",
            r#"{"mcpServers": {"a": {"httpUrl": "https://x/mcp", "headers": {"X": "$SET"}, "timeout": 2000}}}"#,
            "url = \"https://x/mcp\"\nheaders = { X = \"${env:SET}\" }\ncall_timeout_s = 2.0".to_owned(),
        ),
        (
            "zed/settings.json",
            r#"{"theme": "x", "context_servers": {"a": {"source": "custom", "command": {"path": "s", "args": ["b"], "env": {"C": "d"}}}}}"#,
            "command = \"s\"\nargs = [\"b\"]\nenv = { C = \"d\" }".to_owned(),
        ),
        (
            "opencode.json",
            r#"{"mcp": {"a": {"type": "local", "command": ["s", "b"], "environment": {"C": "{env:SET}"}, "enabled": true}}}"#,
            "command = \"s\"\nargs = [\"b\"]\nenv = { C = \"${env:SET}\" }".to_owned(),
        ),
        (
            "bare.json",
            r#"{"a": {"command": "./bin/s", "cwd": "sub", "disabled": true}}"#,
            format!("command = \"{work}/bin/s\"\ncwd = \"{work}/sub\"\nenabled = false"),
        ),
    ];
    for (file, settings, expect) in rows {
        assert_eq!(text(&desk.one(file, settings)), expect, "{file}");
    }
}

#[test]
fn what_is_not_carried_over_is_named() {
    let desk = Desk::new();
    for (members, say) in [
        (
            r#""command": "s", "alwaysAllow": ["x"]"#,
            "alwaysAllow = [\"x\"]",
        ),
        (
            r#""command": "s", "oauth": {"a": 1}, "sandboxed": true, "headers": {}, "auth": null"#,
            "not carried over: oauth, sandboxed",
        ),
        (
            r#""command": "s", "args": ["${workspaceFolder}"]"#,
            "from now on",
        ),
        (
            r#""command": "s", "args": ["/etc"]"#,
            "does not show it /etc",
        ),
        (r#""type": "sse", "url": "https://x""#, "HTTP+SSE"),
        (
            r#""command": "s", "env": {"GITHUB_TOKEN": "ghx-plain-text"}"#,
            "uses the variable GITHUB_TOKEN",
        ),
    ] {
        let text = format!("{{\"mcpServers\": {{\"a\": {{{members}}}}}}}");
        let candidate = desk.one("x.json", &text);
        assert!(candidate.is_taken(), "{members}: {:?}", candidate.refused);
        let notes = candidate.notes.join("\n");
        assert!(notes.contains(say), "{members}: {notes}");
        let written = candidate.server.unwrap().text();
        assert!(!written.contains("plain-text"), "{written}");
    }
}

#[test]
fn what_cannot_be_carried_over_is_refused_with_what_to_do() {
    let desk = Desk::new();
    for (members, say) in [
        (
            r#""command": "s", "args": ["${NONE}"]"#,
            "needs the variable NONE",
        ),
        (
            r#""command": "s", "args": ["${env:NONE}"]"#,
            "needs the variable NONE",
        ),
        (
            r#""command": "s", "args": ["${input:key}"]"#,
            "set the variable KEY",
        ),
        (
            r#""command": "s", "args": ["${config:a.b}"]"#,
            "does not know `${config:a.b}`",
        ),
        (
            r#""command": "s", "args": ["${PLUGIN_ROOT}/x"]"#,
            "only in a plugin",
        ),
        (
            r#""command": "s", "env": {"API_KEY": "plain-text"}"#,
            "put it into the variable API_KEY",
        ),
        (
            r#""command": "s", "args": ["--token", "plain-text"]"#,
            "arguments hold a secret",
        ),
        (
            r#""url": "https://x/", "headers": {"Authorization": "Bearer plain-text-9"}"#,
            "the variable A_TOKEN and import again (haft writes Bearer ${env:A_TOKEN})",
        ),
        (
            r#""url": "https://ann:plain-text@x/""#,
            "address holds a secret",
        ),
        (r#""command": "s", "envFile": "none.env""#, "none.env"),
        (
            r#""command": "s", "url": "https://x""#,
            "a command and an address",
        ),
        (r#""type": "builtin""#, "part of the client"),
        (r#""args": []"#, "neither"),
        (r#""command": """#, "no program"),
    ] {
        let text = format!("{{\"mcpServers\": {{\"a\": {{{members}}}}}}}");
        let candidate = desk.one("x.json", &text);
        let why = candidate.refused.unwrap_or_default();
        assert!(why.contains(say), "{members}: {why}");
        assert!(!why.contains("plain-text"), "{why}");
    }
}

#[test]
fn no_reference_of_haft_s_comes_of_what_is_put_in() {
    let desk = Desk::new();
    for (member, say) in [
        // What the client would not read, haft does not read for it.
        (r#""args": ["${file:/etc/passwd}"]"#, "does not know"),
        // References formed by a default alone, or together with the text around it.
        (
            r#""args": ["${NONE:-$}{file:/etc/passwd}"]"#,
            "as a reference",
        ),
        (
            r#""args": ["${NONE:-${}env:GITHUB_TOKEN}"]"#,
            "as a reference",
        ),
        (
            r#""cwd": "/${NONE:-$}{env:GITHUB_TOKEN}""#,
            "as a reference",
        ),
    ] {
        let text = format!("{{\"mcpServers\": {{\"a\": {{\"command\": \"s\", {member}}}}}}}");
        let why = desk.one("x.json", &text).refused.unwrap_or_default();
        assert!(why.contains(say), "{member}: {why}");
    }
}

#[test]
fn a_secret_is_copied_where_that_is_wanted() {
    let desk = Desk::new();
    let file = desk.file(
        "x.json",
        r#"{"mcpServers": {"a": {"command": "s", "env": {"API_KEY": "plain-text"}}}}"#,
    );
    let wishes = ImportOptions {
        copy_secrets: true,
        ..ImportOptions::default()
    };
    let copied = desk.look(&file, &wishes).servers.remove(0);
    assert!(text(&copied).contains("plain-text"));
}

#[test]
fn a_secret_that_is_copied_is_not_shown() {
    let desk = Desk::new();
    let file = desk.file(
        "x.json",
        r#"{"mcpServers": {"a": {"command": "s", "args": ["--token", "hunter22", "--api-key=hunter22", "-v", "in"],
            "env": {"API_KEY": "plain-text", "MODE": "fast"}},
            "b": {"url": "https://example.com/mcp", "headers": {"X-Token": "plain-text"}}}}"#,
    );
    let wishes = ImportOptions {
        copy_secrets: true,
        ..ImportOptions::default()
    };
    for copied in desk.look(&file, &wishes).servers {
        let shown = copied.server.unwrap().shown_text();
        let hides = !shown.contains("plain-text") && !shown.contains("hunter22");
        assert!(hides && shown.contains("[redacted]"), "{shown}");
        assert!(
            shown.contains("fast") != shown.contains("example.com"),
            "{shown}"
        );
    }
}

#[test]
fn names_are_made_to_fit_and_haft_itself_is_left_out() {
    let desk = Desk::new();
    let file = desk.file(
        "x.json",
        r#"{"mcpServers": {"My Server": {"command": "a"}, "haft": {"command": "/x/haft", "args": ["serve", "--stdio"]},
            "My.Server": {"command": "b"}, "same": {"command": "a"}}}"#,
    );
    let found = desk.look(&file, &ImportOptions::default());
    let names = |found: &Imports| -> Vec<(String, bool)> {
        let server = |candidate: &ImportCandidate| {
            let name = candidate.server.as_ref().unwrap().name.clone();
            (name, candidate.is_taken())
        };
        found.servers.iter().map(server).collect()
    };
    let pair = |name: &str, taken| (name.to_owned(), taken);
    assert_eq!(
        names(&found),
        [
            pair("My-Server", true),
            pair("My-Server", false),
            pair("same", true)
        ]
    );
    let wishes = ImportOptions {
        rename: [
            ("My.Server".to_owned(), "other".to_owned()),
            ("gone".to_owned(), "x".to_owned()),
        ]
        .into(),
        ..ImportOptions::default()
    };
    let found = desk.look(&file, &wishes);
    assert_eq!(names(&found)[1], pair("other", true));
    assert!(
        found.notes.join("\n").contains("--rename gone"),
        "{:?}",
        found.notes
    );
    let wrong = ImportOptions {
        rename: [("same".to_owned(), "a.b".to_owned())].into(),
        ..ImportOptions::default()
    };
    assert!(look(&desk.at, &Settings::default(), Some(&file), &wrong).is_err());
}

#[test]
fn claude_code_keeps_servers_by_folder_and_turns_some_off() {
    let desk = Desk::new();
    let work = desk.at.workspace.display().to_string();
    let file = desk.file(
        ".claude.json",
        &serde_json::json!({
            "mcpServers": {"all": {"command": "a"}},
            "projects": {
                work: {"mcpServers": {"own": {"command": "b"}}, "disabledMcpServers": ["own"]},
                "/elsewhere": {"mcpServers": {"not": {"command": "c"}}},
            },
        })
        .to_string(),
    );
    let found = desk.look(&file, &ImportOptions::default());
    let names: Vec<&str> = found
        .servers
        .iter()
        .map(|one| one.original.as_str())
        .collect();
    assert_eq!(names, ["all", "own"]);
    assert!(!found.servers[1].server.as_ref().unwrap().enabled);
}

#[test]
fn what_claude_code_turns_off_in_another_file_is_off_here_too() {
    let desk = Desk::new();
    let work = desk.at.workspace.clone();
    fs::write(
        work.join(".mcp.json"),
        r#"{"mcpServers": {"a": {"command": "a"}, "b": {"command": "b"}}}"#,
    )
    .unwrap();
    fs::create_dir(work.join(".claude")).unwrap();
    fs::write(
        work.join(".claude/settings.local.json"),
        r#"{"disabledMcpjsonServers": ["b"]}"#,
    )
    .unwrap();
    let mut settings = Settings::default();
    settings.trusted = true;
    let found = look(&desk.at, &settings, None, &ImportOptions::default()).unwrap();
    let on: Vec<bool> = found
        .servers
        .iter()
        .map(|one| one.server.as_ref().unwrap().enabled)
        .collect();
    assert_eq!(on, [true, false]);
    let untrusted = look(
        &desk.at,
        &Settings::default(),
        None,
        &ImportOptions::default(),
    )
    .unwrap();
    assert!(
        untrusted.servers.is_empty() && untrusted.notes.len() == 2,
        "{untrusted:?}"
    );
}

#[test]
fn the_text_of_rules_is_text_of_haft_s_settings() {
    let desk = Desk::new();
    let file = desk.file(
        ".claude/settings.json",
        r#"{"permissions": {"allow": ["mcp__a b__c"], "ask": ["mcp__github__*"], "deny": ["mcp__x__y"]}}"#,
    );
    let text = desk.look(&file, &ImportOptions::default()).rules.text();
    assert!(text.contains("allow = [\"a-b.c\"]"), "{text}");
    assert!(crate::config::document::parse("x", &text).is_ok(), "{text}");
}

#[test]
fn files_that_are_none_of_that_are_errors_with_their_place() {
    let desk = Desk::new();
    for (name, text, say) in [
        ("a.json", "{\"mcpServers\": ", "a.json"),
        ("b.json", "[]", "object"),
        ("c.json", "{\"x\": 1}", "no MCP servers"),
        ("d.toml", "x = \n", "d.toml"),
        ("e.yaml", "a: [\n", "e.yaml"),
        ("f.yaml", "extensions: &a {b: *a}\n", "f.yaml"),
    ] {
        let file = desk.file(name, text);
        let problem = look(
            &desk.at,
            &Settings::default(),
            Some(&file),
            &ImportOptions::default(),
        )
        .unwrap_err();
        let said = format!("{problem} {:?}", problem.place());
        assert!(said.contains(say), "{name}: {said}");
    }
}

#[test]
fn variables_of_a_file_are_carried_over_as_if_they_stood_in_the_settings() {
    let desk = Desk::new();
    desk.file(
        "work/.env",
        "# of the team\nMODE=fast\nexport REGION='eu west'\nGITHUB_TOKEN=plain-text\nOWN=file\n",
    );
    let settings = r#"{"servers": {"a": {"command": "s", "env": {"OWN": "settings"}, "envFile": "${workspaceFolder}/.env"}}}"#;
    let one = desk.one(".vscode/mcp.json", settings);
    assert_eq!(
        text(&one),
        "command = \"s\"\nenv = { GITHUB_TOKEN = \"${env:GITHUB_TOKEN}\", MODE = \"fast\", OWN = \"settings\", REGION = \"eu west\" }"
    );
    // A secret without a variable is only copied if the user wants that.
    desk.file("work/.env", "API_KEY=plain-text\n");
    let one = desk.one(".vscode/mcp.json", settings);
    let why = one.refused.unwrap_or_default();
    assert!(
        why.contains("the variable API_KEY") && !why.contains("plain-text"),
        "{why}"
    );
}
