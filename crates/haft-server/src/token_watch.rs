//! Ends what an access token has open once it was removed or has expired: its sessions, streams and running calls, and its requests.

use std::sync::Arc;
use std::time::Duration;

use haft::approval::ApprovalId;
use haft::approval::inbox::{RequestEnding, RequestStatus};
use haft_app::access::{LiveTokens, TokenLapse};
use haft_app::app::App;
use haft_app::requests::{visit, with_status};
use haft_mcp::http::McpService;

/// How often it is checked; a check that finds no change reads the state of one file.
const INTERVAL: Duration = Duration::from_secs(1);

/// How a request ends, by its status.
const ENDINGS: [(RequestStatus, RequestEnding); 2] = [
    (RequestStatus::Pending, RequestEnding::Withdrawn),
    (RequestStatus::Approved, RequestEnding::Void),
];

/// Watches until it is dropped.
pub(crate) async fn watch_tokens(app: App, mcp: McpService) {
    let tokens = LiveTokens::new(&app.site().home, Arc::clone(&app.principal().tenant));
    // Nothing is known of what happened while no server ran.
    let mut seen = None;
    loop {
        let counting = tokens.counting();
        // What cannot be read now admits nobody, but ends nothing either.
        if counting.is_some() && counting != seen {
            // Requests first: a call that ends withdraws its own, and says no more of why.
            end_requests(&app, &tokens).await;
            mcp.end_clients(|principal, opened| tokens.lapse(principal, opened).is_some());
            seen = counting;
        }
        tokio::time::sleep(INTERVAL).await;
    }
}

/// Ends the requests whose token no longer counts. Deciding about one checks the same, in whatever process.
async fn end_requests(app: &App, tokens: &LiveTokens) {
    for (status, ending) in ENDINGS {
        let mut lapsed: Vec<(ApprovalId, TokenLapse)> = Vec::new();
        let visited = visit(app, with_status(status), |entry| {
            let request = entry.request;
            if let Some(lapse) = tokens.lapse(&request.principal, request.created) {
                lapsed.push((request.id, lapse));
            }
        });
        if let Err(problem) = visited.await {
            tracing::warn!(%problem, "look for requests of removed access tokens");
        }
        for (id, lapse) in lapsed {
            let why = lapse.to_string();
            let ended = app.executor().inbox().end(&id, ending, &why);
            if let Err(error) = ended.await {
                tracing::warn!(%error, %id, "end the request of a removed access token");
            }
        }
    }
}
