//! `ListedConnections`: lets a command connect to the hosts of a list unless what the run has read requires more, and notes that the run
//! reads what they answer.

use std::net::IpAddr;
use std::sync::Arc;

use haft::context::CurrentRules;

use crate::command::connections::Connections;
use crate::proxy::logins::LoginUse;
use crate::proxy::{AllowList, ConnectionAccess, ConnectionJudge, ConnectionRefusal};
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
    ) -> BoxFuture<'a, Result<ConnectionAccess, ConnectionRefusal>> {
        Box::pin(async move {
            let granted = self.list.judge(target, leads_to).await?;
            self.connections.decide_listed(target).await?;
            Ok(granted)
        })
    }

    fn judge_login<'a>(
        &'a self,
        target: &'a WebUrl,
        leads_to: &'a [IpAddr],
        login: &'a LoginUse,
    ) -> BoxFuture<'a, Result<ConnectionAccess, ConnectionRefusal>> {
        Box::pin(async move {
            let granted = self.judge(target, leads_to).await?;
            let signed = self.connections.sign(login).await;
            signed.map_err(|(why, operator)| ConnectionRefusal::Judged {
                place: format!("{} with your login", target.host()),
                why,
                operator,
            })?;
            Ok(granted)
        })
    }

    fn note_connected(&self, target: &WebUrl, _: &ConnectionAccess) {
        self.rules.note_command_connected(target.host());
        self.connections.note_place(target);
    }
}
