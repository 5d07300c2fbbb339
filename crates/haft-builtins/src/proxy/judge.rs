//! `ConnectionJudge`: decides whether a command may connect to a host; the allow list is one implementation.

use std::fmt;
use std::future::ready;
use std::net::IpAddr;

use crate::proxy::allow::AllowList;
use crate::proxy::login_use::LoginUse;
use crate::proxy::refusal::ConnectionRefusal;
use crate::proxy::request_line::RequestLine;
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

/// What a connection is used for, as far as that is judged with it.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct ConnectionUse<'a> {
    /// The login that is used.
    pub(crate) login: Option<&'a LoginUse>,
    /// The request that is sent; without one, the connection may carry anything.
    pub(crate) request: Option<&'a RequestLine>,
}

/// Decides about the connections of one command. A decision may take as long as the user needs.
pub(crate) trait ConnectionJudge: Send + Sync + fmt::Debug {
    /// Decides whether a connection to this host and port is allowed for this use, given the private addresses that its name resolves to
    /// (`leads_to`; empty if it was not looked up).
    fn judge<'a>(
        &'a self,
        target: &'a WebUrl,
        leads_to: &'a [IpAddr],
        used: ConnectionUse<'a>,
    ) -> BoxFuture<'a, Result<ConnectionAccess, ConnectionRefusal>>;

    /// Decides whether this login may be used in a request that was allowed.
    fn judge_login<'a>(
        &'a self,
        target: &'a WebUrl,
        login: &'a LoginUse,
    ) -> BoxFuture<'a, Result<(), ConnectionRefusal>> {
        let _ = login;
        Box::pin(ready(Err(no_login(target))))
    }

    /// Returns the rule because of which each request at a host is judged by itself; `None` if a connection is judged as a whole.
    fn rule_on_requests(&self, target: &WebUrl) -> Option<String> {
        let _ = target;
        None
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

/// Returns the refusal of a login about which nothing decides.
fn no_login(target: &WebUrl) -> ConnectionRefusal {
    ConnectionRefusal::Login {
        host: strip_trailing_dot(target.host()).to_owned(),
        why: "nothing decides about it here".to_owned(),
    }
}

impl ConnectionJudge for AllowList {
    fn judge<'a>(
        &'a self,
        target: &'a WebUrl,
        _: &'a [IpAddr],
        used: ConnectionUse<'a>,
    ) -> BoxFuture<'a, Result<ConnectionAccess, ConnectionRefusal>> {
        let host = strip_trailing_dot(target.host());
        Box::pin(ready(if used.login.is_some() {
            Err(no_login(target))
        } else if self.allows(target) {
            Ok(ConnectionAccess::Public)
        } else {
            Err(ConnectionRefusal::not_listed(host, target.port()))
        }))
    }
}
