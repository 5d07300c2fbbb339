//! `ConnectionsJudge`: lets the connections of a command be decided by rules and the user.

use std::net::IpAddr;
use std::sync::Arc;

use super::{ConnectionVerdict, Connections, MAX_PLACES, place_of};
use crate::proxy::logins::LoginUse;
use crate::proxy::{ConnectionAccess, ConnectionJudge};
use crate::web::http::OpenAddresses;
use crate::web::network::BoxFuture;
use crate::web::target::WebUrl;

/// The judge of a command's connections.
#[derive(Debug)]
pub(in crate::command) struct ConnectionsJudge(pub(in crate::command) Arc<Connections>);

impl ConnectionJudge for ConnectionsJudge {
    fn judge<'a>(
        &'a self,
        target: &'a WebUrl,
        leads_to: &'a [IpAddr],
    ) -> BoxFuture<'a, ConnectionVerdict> {
        let place = place_of(target, leads_to.to_vec());
        Box::pin(Arc::clone(&self.0).decide(place, None))
    }

    fn judge_login<'a>(
        &'a self,
        target: &'a WebUrl,
        leads_to: &'a [IpAddr],
        login: &'a LoginUse,
    ) -> BoxFuture<'a, ConnectionVerdict> {
        let place = place_of(target, leads_to.to_vec());
        Box::pin(Arc::clone(&self.0).decide_login(place, login))
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
        self.0.note_place(target);
        let place = place_of(target, leads_to);
        let mut reached = self.0.reached.lock();
        if reached.len() < MAX_PLACES {
            reached.insert(place.to_string());
        }
    }
}
