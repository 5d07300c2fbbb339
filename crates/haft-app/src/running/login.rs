//! Links that log a browser in, requested from a running server with the operator's token.

use std::time::Duration;

use haft_builtins::web::http::{FetchLimits, Http};
use serde::Deserialize;

use crate::home::Home;
use crate::plain_file;
use crate::problem::{Problem, SourceLocation};
use crate::running::RunningServer;

/// How long a server may take to respond.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum size of the response, in bytes.
const MAX_RESPONSE: usize = 64 << 10;
/// Maximum size of the token, in bytes.
const MAX_TOKEN: u64 = 4096;

#[derive(Deserialize)]
struct LoginLink {
    url: String,
}

/// Reads the operator's token of the servers of a state folder.
pub(super) fn operator_token(home: &Home) -> Result<String, Problem> {
    let path = home.join("operator-token");
    let token = plain_file::read(&path, MAX_TOKEN).map_err(|e| {
        Problem::failed(format!("cannot read the operator's token: {e}"))
            .at(SourceLocation::file(&path))
            .advise("start the server again: it makes the file")
    })?;
    Ok(token.trim().to_owned())
}

impl RunningServer {
    /// Returns a link to its console that logs in once, within 5 minutes. `opens` says whether it opens a browser of this user on this
    /// machine: then other users may see it in the process list, and cannot use it.
    ///
    /// # Errors
    /// The operator's token cannot be read, or the server does not respond or returns no link.
    pub async fn login_link(&self, home: &Home, opens: bool) -> Result<String, Problem> {
        let token = operator_token(home)?;
        let limits = FetchLimits {
            max_bytes: MAX_RESPONSE,
            whole: RESPONSE_TIMEOUT,
            ..FetchLimits::default()
        };
        let http = Http::trusted().with_limits(limits);
        let url = format!("{}/api/v1/login-link", self.record.url);
        let bearer = format!("Bearer {token}");
        let headers = [("authorization", &*bearer)];
        // Behind a TLS proxy, the server sees the proxy's connection, not the user's.
        let same_user = opens && self.record.url.starts_with("http://");
        let body = format!("{{\"same_user\":{same_user}}}");
        let reply = http.post_json(&url, &headers, body).await;
        let reply = reply.map_err(|e| self.no_response(&e.to_string()))?;
        let link = serde_json::from_slice::<LoginLink>(&reply.body).ok();
        let link = link.filter(|link| reply.is_success() && link.url.starts_with("http"));
        let link = link.ok_or_else(|| self.no_response(&format!("status {}", reply.status)))?;
        Ok(link.url)
    }

    fn no_response(&self, why: &str) -> Problem {
        let Self { record, .. } = self;
        let advice = if self.is_background() {
            "end it with `haft console --stop`, then try again".to_owned()
        } else {
            format!(
                "it is haft {} (process {}): take the link that `haft serve` printed, or start it again",
                record.version, record.pid
            )
        };
        Problem::failed(format!(
            "cannot ask the running server for a login link: {why}"
        ))
        .at(SourceLocation::named(&record.url))
        .advise(advice)
    }
}
