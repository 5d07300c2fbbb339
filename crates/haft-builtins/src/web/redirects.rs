//! `Redirects`: the rules on the hosts and ports that redirects lead to, asked before each hop of whatever a tool reads.

use std::fmt;
use std::sync::Arc;

use haft::permission::Verdict;
use haft::spec::ToolSpec;
use tokio::time::Instant;

use crate::web::http::{Gate, HttpError};
use crate::web::network::BoxFuture;
use crate::web::target::Target;

/// Rules on another host that a call cleared for one host is sent to.
pub trait RedirectRule: Send + Sync + fmt::Debug {
    /// The verdict on this tool's connection to the host of this URL.
    fn verdict(&self, tool: &ToolSpec, url: &str, host: &str) -> Verdict;
}

/// The rules for one tool's connections. Where there are none, every public host is followed to.
#[derive(Debug, Clone)]
pub(crate) struct Redirects {
    rule: Option<Arc<dyn RedirectRule>>,
    tool: Option<ToolSpec>,
}

impl Redirects {
    /// These rules, asked about the connections of this tool.
    pub(crate) fn of(rule: Option<Arc<dyn RedirectRule>>, tool: Option<ToolSpec>) -> Self {
        Self { rule, tool }
    }

    /// A gate for what begins at a target that the call was cleared for.
    pub(crate) fn from(&self, cleared: Target) -> Follow<'_> {
        Follow {
            redirects: self,
            cleared,
        }
    }
}

/// Lets hops pass to the host that was cleared, and to others that a rule allows by itself.
pub(crate) struct Follow<'a> {
    redirects: &'a Redirects,
    cleared: Target,
}

impl Follow<'_> {
    /// A call was cleared for one host and port: another needs an allow of its own.
    pub(crate) fn follows(&self, target: &Target) -> Result<(), HttpError> {
        let host = bare(target);
        let (url, cleared) = (target.url(), self.cleared.url());
        let same_port = url.port() == cleared.port();
        if host == bare(&self.cleared) && url.scheme() == cleared.scheme() && same_port {
            return Ok(());
        }
        let (Some(rule), Some(tool)) = (&self.redirects.rule, &self.redirects.tool) else {
            return Ok(());
        };
        let verdict = rule.verdict(tool, target.url().as_str(), host);
        // Another server of the same host is another place.
        let same = same_site(host, bare(&self.cleared)) && (same_port || url.port().is_none());
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

fn bare(target: &Target) -> &str {
    target.host().trim_end_matches('.')
}

/// The same host, or the same with `www.` before it.
fn same_site(one: &str, other: &str) -> bool {
    let root = |host: &str| host.strip_prefix("www.").unwrap_or(host).to_owned();
    root(one) == root(other)
}
