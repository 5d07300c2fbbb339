//! `ConnectionsJudge`: lets the connections of a command be decided by rules and the user.

use std::net::IpAddr;
use std::sync::Arc;

use super::{ConnectionVerdict, Connections, MAX_PLACES};
use crate::command::connect::ConnectionTarget;
use crate::proxy::LoginUse;
use crate::proxy::{ConnectionAccess, ConnectionJudge, ConnectionRefusal, ConnectionUse};
use crate::web::http::OpenAddresses;
use crate::web::network::BoxFuture;
use crate::web::target::WebUrl;

/// The judge of a command's connections.
#[derive(Debug)]
pub(in crate::command) struct ConnectionsJudge {
    pub(in crate::command) connections: Arc<Connections>,
    /// Whether the command takes haft for the hosts whose requests are judged: only then haft can end its TLS.
    pub(in crate::command) trusts: bool,
}

impl ConnectionJudge for ConnectionsJudge {
    fn judge<'a>(
        &'a self,
        target: &'a WebUrl,
        leads_to: &'a [IpAddr],
        used: ConnectionUse<'a>,
    ) -> BoxFuture<'a, ConnectionVerdict> {
        let place = ConnectionTarget {
            request: used.request.cloned(),
            ..ConnectionTarget::of(target, leads_to.to_vec())
        };
        let connections = Arc::clone(&self.connections);
        match used.login {
            Some(login) => Box::pin(connections.decide_login(place, login)),
            None => Box::pin(connections.decide(place, None)),
        }
    }

    fn judge_login<'a>(
        &'a self,
        target: &'a WebUrl,
        login: &'a LoginUse,
    ) -> BoxFuture<'a, Result<(), ConnectionRefusal>> {
        Box::pin(self.connections.judge_login(target.host(), login))
    }

    fn rule_on_requests(&self, target: &WebUrl) -> Option<String> {
        if target.is_secure() && !self.trusts {
            return None;
        }
        self.connections.rule_on_requests(target)
    }

    fn opens_private(&self) -> bool {
        true
    }

    fn note_connected(&self, target: &WebUrl, granted: &ConnectionAccess) {
        let leads_to = match granted {
            ConnectionAccess::Private(OpenAddresses::These(shown))
                if target.address().is_none() =>
            {
                shown.clone()
            }
            _ => Vec::new(),
        };
        self.connections.note_place(target);
        let place = ConnectionTarget::of(target, leads_to);
        let mut reached = self.connections.reached.lock();
        if reached.len() < MAX_PLACES {
            reached.insert(place.to_string());
        }
    }
}
