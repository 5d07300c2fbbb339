//! Checks before each hop of a fetch: the rules for the hosts of redirects, and `robots.txt`.

use tokio::time::{Instant, timeout_at};

use crate::web::fetch::FetchState;
use crate::web::http::{HopGate, HttpError};
use crate::web::network::BoxFuture;
use crate::web::redirects::{RedirectGate, Redirects};
use crate::web::target::WebUrl;

/// The gate of one fetch.
pub(super) struct FetchGate<'a> {
    pub(super) shared: &'a FetchState,
    pub(super) redirects: &'a Redirects,
    pub(super) follow: RedirectGate<'a>,
    /// True for a server of the user's own, whose `robots.txt` is not checked.
    pub(super) own: bool,
}

impl HopGate for FetchGate<'_> {
    fn pass<'a>(
        &'a self,
        target: &'a WebUrl,
        deadline: Instant,
    ) -> BoxFuture<'a, Result<(), HttpError>> {
        Box::pin(async move {
            self.follow.follows(target)?;
            if self.own || !self.shared.web.robots {
                return Ok(());
            }
            let (http, robots) = (&self.shared.web.http, &self.shared.robots);
            let check = robots.check(http, self.redirects, target);
            let checked = timeout_at(deadline, check).await;
            checked.map_err(|_| HttpError::TooSlow {
                host: target.host().to_owned(),
                what: "send robots.txt",
                seconds: http.limits().whole.as_secs_f64(),
            })?
        })
    }
}
