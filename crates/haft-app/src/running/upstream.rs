//! The MCP servers behind a haft that runs, asked of it with the operator's token: only it knows which of them it has started.

use std::time::Duration;

use haft_builtins::web::http::{FetchLimits, Http};

use crate::home::Home;
use crate::problem::{Place, Problem};
use crate::running::login::operator_token;
use crate::running::{Server, servers};
use crate::servers::ListedServer;

/// How long a server may take to answer.
const TAKES: Duration = Duration::from_secs(2);
/// The largest answer that is read, in bytes.
const ANSWER: usize = 4 << 20;

impl Server {
    /// The MCP servers behind it, as they are there.
    ///
    /// # Errors
    /// The operator's token cannot be read, or the server does not answer or answers something else.
    pub async fn upstream(&self, home: &Home) -> Result<Vec<ListedServer>, Problem> {
        let limits = FetchLimits {
            max_bytes: ANSWER,
            whole: TAKES,
            ..FetchLimits::default()
        };
        let http = Http::trusted().with_limits(limits);
        let url = format!("{}/api/v1/servers", self.record.url);
        let bearer = format!("Bearer {}", operator_token(home)?);
        let reply = http.get(&url, &[("authorization", &*bearer)]).await;
        let failed = |why: String| {
            let what = format!("ask the running haft for its MCP servers: {why}");
            Problem::failed(what).at(Place::named(&self.record.url))
        };
        let reply = reply.map_err(|e| failed(e.to_string()))?;
        if !reply.is_success() {
            return Err(failed(format!("status {}", reply.status)));
        }
        serde_json::from_slice(&reply.body).map_err(|e| failed(e.to_string()))
    }
}

/// The servers of `list`, as far as those have come that serve the same folder: started or in use there, or left alone after
/// a failure. A haft that does not answer says nothing of them.
pub async fn with_running(
    mut list: Vec<ListedServer>,
    home: &Home,
    workspace: &str,
) -> Vec<ListedServer> {
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
