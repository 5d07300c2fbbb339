//! `ConnectionJudge`: what decides whether a command may connect to a host; the list of settings is one.

use std::fmt;
use std::future::ready;

use crate::proxy::allow::AllowList;
use crate::proxy::bare;
use crate::proxy::refusal::Refusal;
use crate::web::network::BoxFuture;
use crate::web::target::Target;

/// Decides about the connections of one command. What is decided may take as long as a person thinks.
pub(crate) trait ConnectionJudge: Send + Sync + fmt::Debug {
    /// Whether this host and port may be connected to.
    fn judge<'a>(&'a self, target: &'a Target) -> BoxFuture<'a, Result<(), Refusal>>;
}

impl ConnectionJudge for AllowList {
    fn judge<'a>(&'a self, target: &'a Target) -> BoxFuture<'a, Result<(), Refusal>> {
        let allowed = self.allows(target);
        let refused = || Refusal::not_listed(bare(target.host()), target.port());
        Box::pin(ready(if allowed { Ok(()) } else { Err(refused()) }))
    }
}
