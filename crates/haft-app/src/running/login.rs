//! Links that log a browser in, asked of a running server with the operator's token.

use std::time::Duration;

use haft_builtins::web::http::{FetchLimits, Http};
use serde::Deserialize;

use crate::home::Home;
use crate::plain_file;
use crate::problem::{Place, Problem};
use crate::running::Server;

/// How long a server may take to answer.
const TAKES: Duration = Duration::from_secs(10);
/// The largest answer that is read, in bytes.
const ANSWER: usize = 64 << 10;
/// The largest token, in bytes.
const TOKEN: u64 = 4096;

#[derive(Deserialize)]
struct Link {
    url: String,
}

/// The operator's token of the servers over a state folder.
pub(super) fn operator_token(home: &Home) -> Result<String, Problem> {
    let path = home.join("operator-token");
    let token = plain_file::read(&path, TOKEN).map_err(|e| {
        Problem::failed(format!("read the operator's token: {e}"))
            .at(Place::file(&path))
            .advise("start the server again: it makes the file")
    })?;
    Ok(token.trim().to_owned())
}

impl Server {
    /// A link to its console that logs in, once, within 5 minutes. `opens` is whether it opens a browser of this user on this
    /// machine: other users may read it in the list of processes then, and it is of no use to them.
    ///
    /// # Errors
    /// The operator's token cannot be read, or the server does not answer or gives no link.
    pub async fn login_link(&self, home: &Home, opens: bool) -> Result<String, Problem> {
        let token = operator_token(home)?;
        let limits = FetchLimits {
            max_bytes: ANSWER,
            whole: TAKES,
            ..FetchLimits::default()
        };
        let http = Http::trusted().with_limits(limits);
        let url = format!("{}/api/v1/login-link", self.record.url);
        let bearer = format!("Bearer {token}");
        let headers = [("authorization", &*bearer)];
        // Where a proxy encrypts, the connection that the server sees is the proxy's.
        let same_user = opens && self.record.url.starts_with("http://");
        let body = format!("{{\"same_user\":{same_user}}}");
        let reply = http.post_json(&url, &headers, body).await;
        let reply = reply.map_err(|e| self.silent(&e.to_string()))?;
        let link = serde_json::from_slice::<Link>(&reply.body).ok();
        let link = link.filter(|link| reply.is_success() && link.url.starts_with("http"));
        let link = link.ok_or_else(|| self.silent(&format!("status {}", reply.status)))?;
        Ok(link.url)
    }

    fn silent(&self, why: &str) -> Problem {
        let Self { record, .. } = self;
        let advice = if self.is_background() {
            "end it with `haft console --stop`, then try again".to_owned()
        } else {
            format!(
                "it is haft {} (process {}): take the link that `haft serve` printed, or start it again",
                record.version, record.pid
            )
        };
        Problem::failed(format!("ask the running server for a login link: {why}"))
            .at(Place::named(&record.url))
            .advise(advice)
    }
}
