//! `haft mcp list`, `inspect` and `pin`: lists, inspects and pins the MCP servers behind haft.

use std::fmt::Write as _;

use haft::plural::counted;
use haft_app::app::App;
use haft_app::problem::Problem;
use haft_app::running::upstream::with_running;
use haft_app::servers::{Manifest, PinnedTool, ServerReview, ServerState, ServerTransport};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::args::McpAction;
use crate::commands::{ExitResult, consent};
use crate::exit::Exit;
use crate::invocation::Invocation;
use crate::screen::list::{TextTable, Truncation};
use crate::screen::{BOLD, DIM, GREEN, RED, YELLOW, styled, visible};

mod login;

/// Maximum number of columns of a tool's first sentence.
const SENTENCE: usize = 100;

/// Lists, inspects or pins servers.
pub(crate) async fn run(at: &Invocation, app: &App, action: &McpAction) -> ExitResult {
    match action {
        McpAction::Inspect { name } => inspect(at, app, name).await,
        McpAction::Pin { name, yes } => pin(at, app, name, *yes).await,
        McpAction::Login { name } => login::login(at, app, name).await,
        McpAction::Logout { name } => login::logout(at, app, name).await,
        _ => list(at, app).await,
    }
}

async fn list(at: &Invocation, app: &App) -> ExitResult {
    let servers = app.servers().list();
    let servers = with_running(servers, &at.site.home, app.workspace()).await;
    if at.screen.json {
        at.screen.document(&servers)?;
        return Ok(Exit::Done);
    }
    if servers.is_empty() {
        at.screen
            .say("no MCP servers: haft mcp add, or haft mcp import");
        return Ok(Exit::Done);
    }
    let columns = [
        ("NAME", Truncation::Never),
        ("STATE", Truncation::Never),
        ("TOOLS", Truncation::Never),
        ("REVISION", Truncation::Never),
        ("TRANSPORT", Truncation::Never),
        ("COMMAND OR URL", Truncation::Middle),
        ("PROBLEM", Truncation::End),
    ];
    let mut list = TextTable::new(&columns);
    for server in &servers {
        let state = match server.state {
            ServerState::Disabled => "disabled",
            ServerState::Configured => "not pinned",
            ServerState::Known => "pinned",
            ServerState::Started => "started",
            ServerState::InUse => "in use",
        };
        let transport = match server.transport {
            ServerTransport::Stdio => "stdio",
            ServerTransport::Http => "http",
            ServerTransport::Sse => "sse",
        };
        list.row([
            &server.name,
            state,
            &server.tools.to_string(),
            server.revision.as_deref().unwrap_or_default(),
            transport,
            &server.place,
            server.error.as_deref().unwrap_or_default(),
        ]);
    }
    at.screen.out(&list.render())?;
    Ok(Exit::Done)
}

async fn inspect(at: &Invocation, app: &App, name: &str) -> ExitResult {
    let look = app.servers().look(name).await?;
    if at.screen.json {
        at.screen.document(&document(name, &look))?;
    } else {
        at.screen.out(&described(&look))?;
    }
    Ok(Exit::Done)
}

async fn pin(at: &Invocation, app: &App, name: &str, yes: bool) -> ExitResult {
    let servers = app.servers();
    let place = visible::line(servers.place(name)?);
    let does = if place.starts_with("http") {
        "is at"
    } else {
        "runs"
    };
    at.screen.say(&format!("{name} {does}: {place}"));
    if !yes && !consent::agree(at, "start or connect to it now?", "pinning a server")? {
        return Err(Problem::usage("not pinned").advise("nothing was started"));
    }
    let look = servers.look(name).await?;
    if !at.screen.json {
        at.screen.out(&described(&look))?;
    }
    let is_new = look.pinned.is_none();
    if !is_new && look.drift.is_none() {
        at.screen.say("nothing has changed since it was pinned");
    } else if !yes && !consent::agree(at, "pin these tools?", "pinning a server")? {
        return Err(Problem::usage("not pinned").advise("the earlier pins stay in force"));
    }
    look.pin()?;
    if at.screen.json {
        at.screen.document(&document(name, &look))?;
    } else {
        let tools = counted(look.now.tools.len(), "tool");
        at.screen.say(&format!(
            "pinned {tools} of {name}; `haft tools` lists what there is"
        ));
    }
    Ok(Exit::Done)
}

#[derive(Default, Deserialize)]
struct ToolDescriptionMember {
    #[serde(default)]
    description: String,
}

/// Returns the first sentence of a tool's own description.
fn sentence(tool: &PinnedTool) -> String {
    let words: ToolDescriptionMember = serde_json::from_str(tool.raw.get()).unwrap_or_default();
    let first = words.description.lines().next().unwrap_or_default();
    visible::clipped(&visible::line(first), SENTENCE)
}

fn described(look: &ServerReview) -> String {
    let now = &look.now;
    let mut out = format!(
        "{} {} · {} · {}\n",
        styled(BOLD, &visible::line(&now.server)),
        visible::line(&now.version),
        now.revision,
        counted(now.tools.len(), "tool")
    );
    if let Some(pinned) = &look.pinned {
        changes(&mut out, pinned, look);
    }
    for tool in &now.tools {
        let name = visible::line(&tool.name);
        let _ = writeln!(out, "  {name}  {}", styled(DIM, &sentence(tool)));
    }
    for why in &now.left_out {
        let _ = writeln!(out, "{} {}", styled(YELLOW, "left out"), visible::line(why));
    }
    if !look.findings.is_empty() {
        let _ = writeln!(
            out,
            "{}",
            styled(YELLOW, "review what these say before you pin them:")
        );
    }
    for finding in &look.findings {
        let _ = writeln!(out, "  {}", visible::line(&finding.to_string()));
    }
    out
}

/// Shows what has changed since it was pinned; the text of a changed tool, before and after.
fn changes(out: &mut String, pinned: &Manifest, look: &ServerReview) {
    let of = |manifest: &Manifest, name: &str| -> String {
        let tool = manifest.tools.iter().find(|tool| tool.name == name);
        tool.map(|tool| visible::line(tool.raw.get()))
            .unwrap_or_default()
    };
    let drift = &look.drift;
    for name in &drift.changed {
        let _ = writeln!(out, "{} {}", styled(YELLOW, "changed"), visible::line(name));
        let _ = writeln!(out, "  {}", styled(RED, &format!("-{}", of(pinned, name))));
        let _ = writeln!(
            out,
            "  {}",
            styled(GREEN, &format!("+{}", of(&look.now, name)))
        );
    }
    for (old, new) in &drift.renamed {
        let (old, new) = (visible::line(old), visible::line(new));
        let _ = writeln!(out, "{} {old} is now {new}", styled(YELLOW, "renamed"));
    }
    for (word, style, names) in [("new", GREEN, &drift.added), ("gone", RED, &drift.removed)] {
        for name in names {
            let _ = writeln!(out, "{} {}", styled(style, word), visible::line(name));
        }
    }
}

fn document(name: &str, look: &ServerReview) -> Value {
    let tools: Vec<&serde_json::value::RawValue> =
        look.now.tools.iter().map(|tool| &*tool.raw).collect();
    let findings: Vec<String> = look.findings.iter().map(ToString::to_string).collect();
    let drift = &look.drift;
    json!({
        "name": name,
        "place": look.now.place,
        "server": {"name": look.now.server, "version": look.now.version},
        "revision": look.now.revision,
        "transport": look.now.transport,
        "left_out": look.now.left_out,
        "pinned": look.pinned.is_some(),
        "drift": {
            "added": drift.added,
            "changed": drift.changed,
            "removed": drift.removed,
            "renamed": drift.renamed,
        },
        "findings": findings,
        "tools": tools,
    })
}
