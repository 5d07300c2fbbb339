//! `ListedConnections`: lets a command connect to the hosts of a list, and notes that the run reads what they answer.

use std::net::IpAddr;
use std::sync::Arc;

use haft::context::CurrentRules;

use crate::proxy::{AllowList, ConnectionJudge, Granted, Refusal};
use crate::web::network::BoxFuture;
use crate::web::target::Target;

/// The judge of a command's connections where a list decides.
#[derive(Debug)]
pub(super) struct ListedConnections {
    pub(super) list: Arc<AllowList>,
    pub(super) rules: CurrentRules,
}

impl ConnectionJudge for ListedConnections {
    fn judge<'a>(
        &'a self,
        target: &'a Target,
        leads_to: &'a [IpAddr],
    ) -> BoxFuture<'a, Result<Granted, Refusal>> {
        self.list.judge(target, leads_to)
    }

    fn note_connected(&self, target: &Target, _: &Granted) {
        self.rules.note_command_connected(target.host());
    }
}
