//! The external MCP servers of a running haft, requested with the operator's token: only that haft knows which of them it has started.

use std::time::Duration;

use haft_builtins::web::http::{FetchLimits, Http};

use crate::home::Home;
use crate::problem::{Problem, SourceLocation};
use crate::running::login::operator_token;
use crate::running::{RunningServer, servers};
use crate::servers::ServerListItem;

/// How long a server may take to respond.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(2);
/// Maximum size of the response, in bytes.
const MAX_RESPONSE: usize = 4 << 20;

impl RunningServer {
    /// Returns its external MCP servers, with their state there.
    ///
    /// # Errors
    /// The operator's token cannot be read, or the server does not respond or its response is invalid.
    pub async fn upstream(&self, home: &Home) -> Result<Vec<ServerListItem>, Problem> {
        let limits = FetchLimits {
            max_bytes: MAX_RESPONSE,
            whole: RESPONSE_TIMEOUT,
            ..FetchLimits::default()
        };
        let http = Http::trusted().with_limits(limits);
        let url = format!("{}/api/v1/servers", self.record.url);
        let bearer = format!("Bearer {}", operator_token(home)?);
        let reply = http.get(&url, &[("authorization", &*bearer)]).await;
        let failed = |why: String| {
            let what = format!("ask the running haft for its MCP servers: {why}");
            Problem::failed(what).at(SourceLocation::named(&self.record.url))
        };
        let reply = reply.map_err(|e| failed(e.to_string()))?;
        if !reply.is_success() {
            return Err(failed(format!("status {}", reply.status)));
        }
        serde_json::from_slice(&reply.body).map_err(|e| failed(e.to_string()))
    }
}

/// Updates the servers in `list` with their state in the running hafts of the same folder: started, in use, or given up after a failure. A
/// haft that does not respond is ignored.
pub async fn with_running(
    mut list: Vec<ServerListItem>,
    home: &Home,
    workspace: &str,
) -> Vec<ServerListItem> {
    if list.is_empty() {
        return list;
    }
    let running = servers(home).unwrap_or_default().into_iter();
    for server in running.filter(|server| server.record.workspace.as_deref() == Some(workspace)) {
        let there = match server.upstream(home).await {
            Ok(there) => there,
            Err(problem) => {
                tracing::debug!(%problem, "list the servers of a running haft");
                continue;
            }
        };
        for known in &mut list {
            let same = there
                .iter()
                .find(|other| (&other.name, &other.place) == (&known.name, &known.place));
            if let Some(other) =
                same.filter(|other| known.state.is_offered() && other.state.is_offered())
            {
                known.state = known.state.max(other.state);
                known.error = known.error.take().or_else(|| other.error.clone());
            }
        }
    }
    list
}
