//! `Redirects`: the rules for the hosts and ports that redirects lead to, checked before each hop of a tool's fetch.

use std::fmt;
use std::sync::Arc;

use haft::permission::Verdict;
use haft::spec::ToolSpec;
use tokio::time::Instant;

use crate::web::http::{Gate, HttpError};
use crate::web::network::BoxFuture;
use crate::web::target::Target;

/// Rules for a redirect to a host other than the one that the call was cleared for.
pub trait RedirectRule: Send + Sync + fmt::Debug {
    /// Returns the verdict on this tool's connection to the host of this URL.
    fn verdict(&self, tool: &ToolSpec, url: &str, host: &str) -> Verdict;
}

/// The rules for one tool's connections. Without rules, redirects to every public host are followed.
#[derive(Debug, Clone)]
pub(crate) struct Redirects {
    rule: Option<Arc<dyn RedirectRule>>,
    tool: Option<ToolSpec>,
}

impl Redirects {
    /// Applies these rules to the connections of this tool.
    pub(crate) fn of(rule: Option<Arc<dyn RedirectRule>>, tool: Option<ToolSpec>) -> Self {
        Self { rule, tool }
    }

    /// Returns the gate for a fetch that begins at a target that the call was cleared for.
    pub(crate) fn from(&self, cleared: Target) -> Follow<'_> {
        Follow {
            redirects: self,
            cleared,
        }
    }
}

/// Allows hops to the cleared host, and to hosts that a rule allows.
pub(crate) struct Follow<'a> {
    redirects: &'a Redirects,
    cleared: Target,
}

impl Follow<'_> {
    /// Checks a hop. A call is cleared for one host and port; any other needs its own permission.
    pub(crate) fn follows(&self, target: &Target) -> Result<(), HttpError> {
        let host = host_without_dot(target);
        let (url, cleared) = (target.url(), self.cleared.url());
        let same_port = url.port() == cleared.port();
        if host == host_without_dot(&self.cleared) && url.scheme() == cleared.scheme() && same_port
        {
            return Ok(());
        }
        let (Some(rule), Some(tool)) = (&self.redirects.rule, &self.redirects.tool) else {
            return Ok(());
        };
        let verdict = rule.verdict(tool, target.url().as_str(), host);
        // Another port of the same host may be another server.
        let same =
            same_site(host, host_without_dot(&self.cleared)) && (same_port || url.port().is_none());
        if verdict == Verdict::Allow || (verdict == Verdict::Ask && same) {
            return Ok(());
        }
        Err(HttpError::NotFollowed {
            url: self.cleared.url().to_string(),
            location: target.url().to_string(),
        })
    }
}

impl Gate for Follow<'_> {
    fn pass<'a>(&'a self, target: &'a Target, _: Instant) -> BoxFuture<'a, Result<(), HttpError>> {
        Box::pin(std::future::ready(self.follows(target)))
    }
}

fn host_without_dot(target: &Target) -> &str {
    target.host().trim_end_matches('.')
}

/// Returns true for the same host, with or without a `www.` prefix.
fn same_site(one: &str, other: &str) -> bool {
    let root = |host: &str| host.strip_prefix("www.").unwrap_or(host).to_owned();
    root(one) == root(other)
}
