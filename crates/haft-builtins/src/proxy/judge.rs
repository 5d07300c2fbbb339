//! `ConnectionJudge`: what decides whether a command may connect to a host; the list of settings is one.

use std::fmt;
use std::future::ready;

use crate::proxy::allow::AllowList;
use crate::proxy::bare;
use crate::proxy::refusal::Refusal;
use crate::web::network::BoxFuture;
use crate::web::target::Target;

/// A connection that may be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Granted {
    /// A rule names host and port: the address may be a private one.
    pub(crate) names_place: bool,
}

/// Decides about the connections of one command. What is decided may take as long as a person thinks.
pub(crate) trait ConnectionJudge: Send + Sync + fmt::Debug {
    /// Whether this host and port may be connected to.
    fn judge<'a>(&'a self, target: &'a Target) -> BoxFuture<'a, Result<Granted, Refusal>>;
}

impl ConnectionJudge for AllowList {
    fn judge<'a>(&'a self, target: &'a Target) -> BoxFuture<'a, Result<Granted, Refusal>> {
        let allowed = self.allows(target);
        let granted = Granted { names_place: false };
        let refused = || Refusal::not_listed(bare(target.host()), target.port());
        Box::pin(ready(if allowed { Ok(granted) } else { Err(refused()) }))
    }
}
