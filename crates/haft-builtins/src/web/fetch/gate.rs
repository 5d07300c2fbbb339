//! What a fetch asks before each hop: the rules on the hosts that redirects lead to, and `robots.txt`.

use haft::permission::Verdict;
use tokio::time::{Instant, timeout_at};

use crate::web::fetch::Shared;
use crate::web::http::{Gate, HttpError};
use crate::web::network::BoxFuture;
use crate::web::target::Target;

/// The gate of one fetch.
pub(super) struct Hops<'a> {
    pub(super) shared: &'a Shared,
    /// The URL that the call was cleared for.
    pub(super) cleared: Target,
}

impl Gate for Hops<'_> {
    fn pass<'a>(
        &'a self,
        target: &'a Target,
        deadline: Instant,
    ) -> BoxFuture<'a, Result<(), HttpError>> {
        Box::pin(async move {
            self.follows(target)?;
            if !self.shared.web.robots {
                return Ok(());
            }
            let (http, robots) = (&self.shared.web.http, &self.shared.robots);
            let checked = timeout_at(deadline, robots.check(http, target)).await;
            checked.map_err(|_| HttpError::TooSlow {
                host: target.host().to_owned(),
                what: "send robots.txt",
                seconds: http.limits().whole.as_secs_f64(),
            })?
        })
    }
}

impl Hops<'_> {
    /// A call was cleared for one host: another needs an allow of its own.
    fn follows(&self, target: &Target) -> Result<(), HttpError> {
        let host = bare(target);
        if host == bare(&self.cleared) && target.url().scheme() == self.cleared.url().scheme() {
            return Ok(());
        }
        let (Some(rule), Some(spec)) = (&self.shared.web.redirects, &self.shared.spec) else {
            return Ok(());
        };
        let verdict = rule.verdict(spec, target.url().as_str(), host);
        let same = same_site(host, bare(&self.cleared));
        if verdict == Verdict::Allow || (verdict == Verdict::Ask && same) {
            return Ok(());
        }
        Err(HttpError::NotFollowed {
            url: self.cleared.url().to_string(),
            location: target.url().to_string(),
        })
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
