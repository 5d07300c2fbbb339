//! `ListedConnections`: lets a command connect to the hosts of a list unless what the run has read requires more, and notes that the run
//! reads what they answer.

use std::net::IpAddr;
use std::sync::Arc;

use haft::context::CurrentRules;

use crate::command::connections::Connections;
use crate::proxy::LoginUse;
use crate::proxy::{
    AllowList, ConnectionAccess, ConnectionJudge, ConnectionRefusal, ConnectionUse,
};
use crate::web::network::BoxFuture;
use crate::web::target::WebUrl;

/// The judge of a command's connections where a list decides. The list is the most that they reach: a guard can ask or deny.
#[derive(Debug)]
pub(super) struct ListedConnections {
    pub(super) list: Arc<AllowList>,
    pub(super) connections: Arc<Connections>,
    pub(super) rules: CurrentRules,
}

impl ConnectionJudge for ListedConnections {
    fn judge<'a>(
        &'a self,
        target: &'a WebUrl,
        leads_to: &'a [IpAddr],
        used: ConnectionUse<'a>,
    ) -> BoxFuture<'a, Result<ConnectionAccess, ConnectionRefusal>> {
        Box::pin(async move {
            let granted = self
                .list
                .judge(target, leads_to, ConnectionUse::default())
                .await?;
            self.connections.decide_listed(target).await?;
            if let Some(login) = used.login {
                self.judge_login(target, login).await?;
            }
            Ok(granted)
        })
    }

    fn judge_login<'a>(
        &'a self,
        target: &'a WebUrl,
        login: &'a LoginUse,
    ) -> BoxFuture<'a, Result<(), ConnectionRefusal>> {
        Box::pin(self.connections.judge_login(target.host(), login))
    }

    fn note_connected(&self, target: &WebUrl, _: &ConnectionAccess) {
        self.rules.note_command_connected(target.host());
        self.connections.note_place(target);
    }
}
