//! Checks of external MCP servers: whether their tools are offered. Starts none of them.

use haft::plural::counted;

use super::{HealthCheck, check};
use crate::app::App;
use crate::servers::{ServerListItem, ServerState};

/// Returns a line for each server that is on.
pub(super) fn checks(app: &App) -> Vec<HealthCheck> {
    let servers = app.servers().list().into_iter();
    let on = servers.filter(|server| server.state != ServerState::Disabled);
    let line = |server: ServerListItem| {
        let (name, place) = (&server.name, &server.place);
        let advice = format!("`haft mcp pin {name}` shows it and pins its tools");
        match (server.state, &server.error) {
            (state, None) if state.is_offered() => {
                let now = match state {
                    ServerState::InUse => ", in use",
                    ServerState::Started => ", started",
                    _ => "",
                };
                let tools = counted(server.tools, "pinned tool");
                let detail = format!("{name}: {tools}{now}; {place}");
                check("mcp server", true, detail, "")
            }
            (state, Some(why)) if state.is_offered() => {
                let advice = format!("`haft mcp inspect {name}` tries it");
                check("mcp server", false, format!("{name}: {why}"), &advice)
            }
            (_, Some(why)) => check("mcp server", false, format!("{name}: {why}"), &advice),
            _ => {
                let detail = format!("{name} offers no tools until it is pinned; {place}");
                check("mcp server", false, detail, &advice)
            }
        }
    };
    on.map(line).collect()
}
