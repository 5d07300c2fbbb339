//! `Redirects`: the policy's verdict on the hosts and ports that redirects lead to, before each hop of a call's fetch.

use haft::context::CallContext;
use haft::permission::Verdict;
use haft::spec::ToolClass;
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::web::http::{HopGate, HttpError};
use crate::web::network::BoxFuture;
use crate::web::target::WebUrl;

/// The hops of one call. A hop is judged as the call's first address was, with what the run has read by then; a policy that asks about
/// it does not let it pass, because nobody is asked within a fetch.
#[derive(Debug)]
pub(crate) struct Redirects {
    context: CallContext,
    /// The URLs and hosts that hops led to, beyond what the call was cleared for.
    reached: Mutex<Vec<(String, String)>>,
}

impl Redirects {
    /// Creates it for a call.
    pub(crate) fn of(context: &CallContext) -> Self {
        Self {
            context: context.clone(),
            reached: Mutex::default(),
        }
    }

    /// Returns the gate for a fetch that begins at a target that the call was cleared for.
    pub(crate) fn from(&self, cleared: WebUrl) -> RedirectGate<'_> {
        RedirectGate {
            redirects: self,
            cleared,
        }
    }

    /// Notes that the run has read what the hosts of the hops answered. Called when the call has all its answers: the hops of one fetch
    /// do not depend on what the run reads by it.
    pub(crate) fn note_reached(&self) {
        for (url, host) in self.reached.lock().drain(..) {
            self.context.note_connected(&url, &host);
        }
    }
}

/// Allows hops to the cleared host, and to hosts that the policy allows.
pub(crate) struct RedirectGate<'a> {
    redirects: &'a Redirects,
    cleared: WebUrl,
}

impl RedirectGate<'_> {
    /// Checks a hop. A call is cleared for one host and port; any other needs its own permission. Where rules judge the requests at the
    /// host, the call is cleared for one URL, and only what they allow is followed.
    pub(crate) fn follows(&self, target: &WebUrl) -> Result<(), HttpError> {
        let host = host_without_dot(target);
        let (url, cleared) = (target.url(), self.cleared.url());
        let same_port = url.port() == cleared.port();
        let context = &self.redirects.context;
        let rules = context.rules();
        let by_request = rules.rule_on_requests(ToolClass::WebFetch, host, target.port());
        let by_request = by_request.is_some();
        let is_cleared = if by_request {
            url == cleared
        } else {
            host == host_without_dot(&self.cleared) && url.scheme() == cleared.scheme() && same_port
        };
        if is_cleared {
            return Ok(());
        }
        let judged = context.verdict_on_connection(url.as_str(), host);
        // Another port of the same host may be another server.
        let same =
            same_site(host, host_without_dot(&self.cleared)) && (same_port || url.port().is_none());
        // Who approved this call was asked about the site; a question that came up since then was not answered.
        let answered = !judged.asks_each_time || context.judgement().decision().is_some();
        match judged.verdict {
            Verdict::Allow => {}
            Verdict::Ask if same && answered && !by_request => {}
            Verdict::Ask | Verdict::Deny => {
                return Err(HttpError::NotFollowed {
                    url: cleared.to_string(),
                    location: url.to_string(),
                    why: judged.reason,
                });
            }
        }
        let reached = (url.to_string(), host.to_owned());
        self.redirects.reached.lock().push(reached);
        Ok(())
    }
}

impl HopGate for RedirectGate<'_> {
    fn pass<'a>(&'a self, target: &'a WebUrl, _: Instant) -> BoxFuture<'a, Result<(), HttpError>> {
        Box::pin(std::future::ready(self.follows(target)))
    }
}

fn host_without_dot(target: &WebUrl) -> &str {
    target.host().trim_end_matches('.')
}

/// Returns true for the same host, with or without a `www.` prefix.
fn same_site(one: &str, other: &str) -> bool {
    let root = |host: &str| host.strip_prefix("www.").unwrap_or(host).to_owned();
    root(one) == root(other)
}
