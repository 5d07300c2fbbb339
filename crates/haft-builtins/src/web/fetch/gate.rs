//! Checks before each hop of a fetch: the rules for the hosts of redirects, and `robots.txt`.

use tokio::time::{Instant, timeout_at};

use crate::web::fetch::Shared;
use crate::web::http::{Gate, HttpError};
use crate::web::network::BoxFuture;
use crate::web::redirects::{Follow, Redirects};
use crate::web::target::Target;

/// The gate of one fetch.
pub(super) struct Hops<'a> {
    pub(super) shared: &'a Shared,
    pub(super) redirects: &'a Redirects,
    pub(super) follow: Follow<'a>,
    /// True for a server of the user's own, whose `robots.txt` is not checked.
    pub(super) own: bool,
}

impl Gate for Hops<'_> {
    fn pass<'a>(
        &'a self,
        target: &'a Target,
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
