//! The packages of plugins.

use super::*;

#[test]
fn a_package_of_a_plugin_is_read_with_what_haft_has_no_use_for() {
    let desk = Desk::new();
    let root = desk.root.path().canonicalize().unwrap().join("plug");
    desk.file(
        "plug/.claude-plugin/plugin.json",
        r#"{"name": "plug", "mcpServers": "./more.json", "skills": "./extra"}"#,
    );
    desk.file("plug/.mcp.json", r#"{"mcpServers": {"a": {"command": "${CLAUDE_PLUGIN_ROOT}/bin/a", "args": ["${PLUGIN_ROOT}/d"]}}}"#);
    desk.file("plug/more.json", r#"{"b": {"command": "./bin/b"}}"#);
    desk.file("plug/skills/one/SKILL.md", "x");
    desk.file("plug/extra/two/SKILL.md", "x");
    desk.file("plug/hooks/hooks.json", "{}");
    desk.file("plug/commands/c.md", "x");
    let found = desk.look(&desk.root.path().join("plug"), &ImportOptions::default());
    let shown = root.display();
    let texts: Vec<String> = found.servers.iter().map(text).collect();
    assert_eq!(
        texts,
        [
            format!(
                "command = \"{shown}/bin/a\"\nargs = [\"{shown}/d\"]\nsandbox.read = [\"{shown}\"]"
            ),
            format!("command = \"{shown}/bin/b\"\nsandbox.read = [\"{shown}\"]"),
        ]
    );
    let notes = found.notes.join("\n");
    for say in [
        "plug/skills\"]",
        "plug/extra\"]",
        "hooks of the plugin",
        "commands of the plugin",
    ] {
        assert!(notes.contains(say), "{say}: {notes}");
    }
    // A path that leads out of the package is not read.
    desk.file(
        "plug/.claude-plugin/plugin.json",
        r#"{"name": "plug", "mcpServers": ["../x.json"]}"#,
    );
    desk.file("x.json", r#"{"c": {"command": "c"}}"#);
    let found = desk.look(&desk.root.path().join("plug"), &ImportOptions::default());
    assert_eq!(found.servers.len(), 1);
    assert!(
        found.notes.join("\n").contains("leads out"),
        "{:?}",
        found.notes
    );
    // A folder that is not a package is an error.
    let none = desk.root.path().join("user");
    assert!(
        look(
            &desk.at,
            &Settings::default(),
            Some(&none),
            &ImportOptions::default()
        )
        .is_err()
    );
}

#[test]
fn no_link_leads_out_of_a_package() {
    let desk = Desk::new();
    let from = desk.root.path().join("plug");
    let servers = r#"{"mcpServers": {"out": {"command": "out"}}}"#;
    desk.file("outside/servers.json", servers);
    desk.file("outside/three/SKILL.md", "x");
    for (name, target) in [
        (".mcp.json", "outside/servers.json"),
        ("skills", "outside"),
        ("plugin.json", "outside/servers.json"),
    ] {
        let _ = fs::remove_dir_all(&from);
        desk.file("plug/mcp.json", r#"{"mcpServers": {}}"#);
        let target = desk.root.path().join(target);
        std::os::unix::fs::symlink(target, from.join(name)).unwrap();
        let found = look(
            &desk.at,
            &Settings::default(),
            Some(&from),
            &ImportOptions::default(),
        );
        let said = match found {
            Ok(found) => {
                assert!(found.servers.is_empty(), "{name}: {found:?}");
                found.notes.join("\n")
            }
            Err(problem) => problem.to_string(),
        };
        assert!(said.contains("leads out of the plugin"), "{name}: {said}");
    }
}

#[test]
fn plugins_that_claude_code_has_on_are_read_from_where_it_installed_them() {
    let desk = Desk::new();
    let work = desk.at.workspace.display().to_string();
    for (folder, server) in [
        ("one", "everywhere"),
        ("two", "elsewhere"),
        ("three", "here"),
        ("four", "off"),
    ] {
        let text = format!("{{\"mcpServers\": {{\"{server}\": {{\"command\": \"s\"}}}}}}");
        desk.file(
            &format!("user/.claude/plugins/cache/m/{folder}/.mcp.json"),
            &text,
        );
    }
    let at = |folder: &str| {
        desk.root
            .path()
            .join(format!("user/.claude/plugins/cache/m/{folder}"))
    };
    let installed = serde_json::json!({"version": 2, "plugins": {
        "a@m": [{"scope": "project", "projectPath": "/other", "installPath": at("two")}, {"scope": "user", "installPath": at("one")}],
        "b@m": [{"scope": "user", "installPath": at("two")}, {"scope": "local", "projectPath": work, "installPath": at("three")}],
        "c@m": [{"scope": "user", "installPath": at("four")}],
        "d@m": [{"scope": "user", "installPath": at("gone")}],
        "e@m": [{"scope": "project", "projectPath": "/other", "installPath": at("four")}],
    }});
    desk.file(
        "user/.claude/plugins/installed_plugins.json",
        &installed.to_string(),
    );
    desk.file(
        "user/.claude/settings.json",
        r#"{"enabledPlugins": {"a@m": true, "b@m": true, "c@m": false, "d@m": true, "e@m": true}}"#,
    );
    let found = look(
        &desk.at,
        &Settings::default(),
        None,
        &ImportOptions::default(),
    )
    .unwrap();
    let names = found.servers.iter().map(|server| &*server.original);
    assert_eq!(names.collect::<Vec<_>>(), ["everywhere", "here"]);
    let read = &found.servers[0].server.as_ref().unwrap().read;
    assert_eq!(read.len(), 1, "its package is shown to it");
    let notes = found.notes.join("\n");
    assert!(
        notes.contains("the plugin c@m") && notes.contains("gone"),
        "{notes}"
    );
    desk.file("user/.claude/plugins/installed_plugins.json", "[");
    let found = look(
        &desk.at,
        &Settings::default(),
        None,
        &ImportOptions::default(),
    )
    .unwrap();
    assert!(found.servers.is_empty() && found.notes.join("\n").contains("installed_plugins"));
}
