//! `ConnectionJudge`: decides whether a command may connect to a host; the allow list is one implementation.

use std::fmt;
use std::future::ready;
use std::net::IpAddr;

use crate::proxy::allow::AllowList;
use crate::proxy::logins::LoginUse;
use crate::proxy::refusal::ConnectionRefusal;
use crate::proxy::strip_trailing_dot;
use crate::web::http::OpenAddresses;
use crate::web::network::BoxFuture;
use crate::web::target::WebUrl;

/// The access that a connection is granted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ConnectionAccess {
    /// To public addresses.
    Public,
    /// To these private addresses too.
    Private(OpenAddresses),
}

/// Decides about the connections of one command. A decision may take as long as the user needs.
pub(crate) trait ConnectionJudge: Send + Sync + fmt::Debug {
    /// Decides whether a connection to this host and port is allowed, given the private addresses that its name resolves to
    /// (`leads_to`; empty if it was not looked up).
    fn judge<'a>(
        &'a self,
        target: &'a WebUrl,
        leads_to: &'a [IpAddr],
    ) -> BoxFuture<'a, Result<ConnectionAccess, ConnectionRefusal>>;

    /// Decides the same about a connection on which this login is used, and whether it may be.
    fn judge_login<'a>(
        &'a self,
        target: &'a WebUrl,
        leads_to: &'a [IpAddr],
        login: &'a LoginUse,
    ) -> BoxFuture<'a, Result<ConnectionAccess, ConnectionRefusal>> {
        let _ = (leads_to, login);
        Box::pin(ready(Err(ConnectionRefusal::Login {
            host: strip_trailing_dot(target.host()).to_owned(),
            why: "nothing decides about it here".to_owned(),
        })))
    }

    /// Records that a connection was made.
    fn note_connected(&self, target: &WebUrl, granted: &ConnectionAccess) {
        let _ = (target, granted);
    }

    /// Returns true if the judge may grant private addresses.
    fn opens_private(&self) -> bool {
        false
    }
}

impl ConnectionJudge for AllowList {
    fn judge<'a>(
        &'a self,
        target: &'a WebUrl,
        _: &'a [IpAddr],
    ) -> BoxFuture<'a, Result<ConnectionAccess, ConnectionRefusal>> {
        let allowed = self.allows(target);
        let refused =
            || ConnectionRefusal::not_listed(strip_trailing_dot(target.host()), target.port());
        Box::pin(ready(if allowed {
            Ok(ConnectionAccess::Public)
        } else {
            Err(refused())
        }))
    }
}
