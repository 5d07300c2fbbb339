//! `haft mcp snippet CLIENT`: the settings that connect a client, ready to paste.

use serde_json::{Value, json};

use crate::args::McpAction;
use crate::commands::Done;
use crate::exit::Exit;
use crate::invocation::Invocation;
use haft_app::nearest::nearest;
use haft_app::problem::Problem;

/// A client and how its settings look.
struct Client {
    name: &'static str,
    /// Where the text goes.
    file: &'static str,
    render: fn(&Launch) -> String,
}

/// How a client starts haft.
struct Launch {
    command: String,
    args: Vec<String>,
}

const CLIENTS: [Client; 8] = [
    Client {
        name: "claude-code",
        file: ".mcp.json in the project",
        render: |launch| servers("mcpServers", &with_type(launch)),
    },
    Client {
        name: "claude-desktop",
        file: "claude_desktop_config.json",
        render: |launch| servers("mcpServers", &plain(launch)),
    },
    Client {
        name: "cursor",
        file: ".cursor/mcp.json in the project, or ~/.cursor/mcp.json",
        render: |launch| servers("mcpServers", &plain(launch)),
    },
    Client {
        name: "vscode",
        file: ".vscode/mcp.json in the project",
        render: |launch| servers("servers", &with_type(launch)),
    },
    Client {
        name: "codex",
        file: "~/.codex/config.toml",
        render: codex,
    },
    Client {
        name: "zed",
        file: "~/.config/zed/settings.json",
        render: |launch| servers("context_servers", &zed(launch)),
    },
    Client {
        name: "goose",
        file: "~/.config/goose/config.yaml",
        render: goose,
    },
    Client {
        name: "gemini-cli",
        file: ".gemini/settings.json in the project, or ~/.gemini/settings.json",
        render: |launch| servers("mcpServers", &plain(launch)),
    },
];

/// Prints one client's settings.
pub(crate) fn run(at: &Invocation, action: &McpAction) -> Done {
    let McpAction::Snippet { client: name } = action else {
        return Err(Problem::usage("there is `haft mcp snippet CLIENT`"));
    };
    let client = CLIENTS
        .iter()
        .find(|client| client.name == name)
        .ok_or_else(|| unknown(name))?;
    let text = (client.render)(&launch(at)?);
    if at.screen.json {
        at.screen
            .document(&json!({"client": client.name, "file": client.file, "text": text}))?;
    } else {
        at.screen.say(&format!("put this in {}", client.file));
        at.screen.raw(text.as_bytes())?;
    }
    Ok(Exit::Done)
}

fn unknown(name: &str) -> Problem {
    let names: Vec<&str> = CLIENTS.iter().map(|client| client.name).collect();
    let near = nearest(name, &names).map(|near| format!("did you mean `{near}`? "));
    Problem::usage(format!("unknown client `{name}`")).advise(format!(
        "{}there are {}",
        near.unwrap_or_default(),
        names.join(", ")
    ))
}

/// This very binary on this very workspace: a client starts with another folder and another PATH.
fn launch(at: &Invocation) -> Result<Launch, Problem> {
    let text = |path: &std::path::Path| {
        path.to_str().map(str::to_owned).ok_or_else(|| {
            Problem::failed(format!(
                "{} is not UTF-8; no client's settings could hold it",
                path.display()
            ))
        })
    };
    let binary = std::env::current_exe()
        .map_err(|e| Problem::failed(format!("find the haft binary: {e}")))?;
    let mut args = vec!["serve".to_owned(), "--stdio".to_owned()];
    args.extend(["--workspace".to_owned(), text(&at.site.workspace)?]);
    if at.options.home.is_some() {
        args.extend(["--home".to_owned(), text(at.site.home.path())?]);
    }
    if let Some(profile) = &at.options.profile {
        args.extend(["--profile".to_owned(), profile.clone()]);
    }
    Ok(Launch {
        command: text(&binary)?,
        args,
    })
}

fn plain(launch: &Launch) -> Value {
    json!({"command": launch.command, "args": launch.args})
}

fn with_type(launch: &Launch) -> Value {
    json!({"type": "stdio", "command": launch.command, "args": launch.args})
}

fn zed(launch: &Launch) -> Value {
    json!({"command": launch.command, "args": launch.args, "env": {}})
}

fn servers(top: &str, server: &Value) -> String {
    format!("{:#}\n", json!({ top: { "haft": server } }))
}

fn codex(launch: &Launch) -> String {
    let text = |text: &str| toml::Value::String(text.to_owned()).to_string();
    let args: Vec<String> = launch.args.iter().map(|arg| text(arg)).collect();
    format!(
        "[mcp_servers.haft]\ncommand = {}\nargs = [{}]\n",
        text(&launch.command),
        args.join(", ")
    )
}

/// A JSON string is a YAML string.
fn goose(launch: &Launch) -> String {
    let args: Vec<String> = launch
        .args
        .iter()
        .map(|arg| format!("      - {}\n", json!(arg)))
        .collect();
    format!(
        "extensions:\n  haft:\n    type: stdio\n    name: haft\n    enabled: true\n    timeout: 600\n    cmd: {}\n    args:\n{}",
        json!(launch.command),
        args.concat()
    )
}
