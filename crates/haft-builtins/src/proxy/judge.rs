//! `ConnectionJudge`: what decides whether a command may connect to a host; the list of settings is one.

use std::fmt;
use std::future::ready;
use std::net::IpAddr;

use crate::proxy::allow::AllowList;
use crate::proxy::bare;
use crate::proxy::refusal::Refusal;
use crate::web::http::OpenAddresses;
use crate::web::network::BoxFuture;
use crate::web::target::Target;

/// A connection that may be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Granted {
    /// To an address of the public network.
    Public,
    /// To these private addresses, too.
    Private(OpenAddresses),
}

/// Decides about the connections of one command. What is decided may take as long as a person thinks.
pub(crate) trait ConnectionJudge: Send + Sync + fmt::Debug {
    /// Whether this host and port may be connected to, where its name `leads_to` these private addresses; none where it was
    /// not looked up.
    fn judge<'a>(
        &'a self,
        target: &'a Target,
        leads_to: &'a [IpAddr],
    ) -> BoxFuture<'a, Result<Granted, Refusal>>;

    /// Notes that a connection was made.
    fn note_connected(&self, target: &Target, granted: &Granted) {
        let _ = (target, granted);
    }

    /// Whether it ever opens a private address.
    fn opens_private(&self) -> bool {
        false
    }
}

impl ConnectionJudge for AllowList {
    fn judge<'a>(
        &'a self,
        target: &'a Target,
        _: &'a [IpAddr],
    ) -> BoxFuture<'a, Result<Granted, Refusal>> {
        let allowed = self.allows(target);
        let refused = || Refusal::not_listed(bare(target.host()), target.port());
        Box::pin(ready(if allowed {
            Ok(Granted::Public)
        } else {
            Err(refused())
        }))
    }
}
