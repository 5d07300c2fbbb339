//! Offers a command the user's ssh-agent, and asks about what it signs.

use std::path::PathBuf;
use std::sync::Arc;

use haft_sandbox::CommandSpec;

use crate::command::connections::Connections;
use crate::proxy::logins::LoginUse;
use crate::proxy::{ConnectionRefusal, Refusals};
use crate::ssh_agent::{AgentSocket, KNOWN_HOSTS, SOCKET, SignatureJudge, SshAgent};
use crate::web::network::BoxFuture;

/// The variable that names an agent's socket.
const VARIABLE: &str = "SSH_AUTH_SOCK";

/// Opens a socket of the agent for a command and shows it, unless the call names one itself. Without a socket, ssh finds no agent.
pub(super) fn offer(
    agent: &SshAgent,
    spec: &mut CommandSpec,
    questions: AgentQuestions,
) -> Option<Arc<AgentSocket>> {
    if spec.env.contains_key(std::ffi::OsStr::new(VARIABLE)) {
        return None;
    }
    let socket = agent.open(Arc::new(questions)).ok()?;
    spec.mounts.sockets.push((socket.path(), SOCKET.into()));
    spec.mounts
        .etc
        .push((PathBuf::from(KNOWN_HOSTS), socket.known_hosts.clone()));
    spec.env.insert(VARIABLE.into(), SOCKET.into());
    Some(Arc::new(socket))
}

/// What an agent asks about its signatures for one command.
#[derive(Debug)]
pub(super) struct AgentQuestions {
    pub(super) connections: Arc<Connections>,
    pub(super) refusals: Arc<Refusals>,
}

impl SignatureJudge for AgentQuestions {
    fn judge<'a>(&'a self, login: &'a LoginUse) -> BoxFuture<'a, Result<(), ()>> {
        Box::pin(async move {
            let decided = self.connections.sign(login).await;
            decided.map_err(|(why, operator)| {
                self.refusals.note(&ConnectionRefusal::Signature {
                    purpose: login.purpose.clone(),
                    why,
                    operator,
                });
            })
        })
    }

    fn places(&self) -> Vec<(String, u16)> {
        self.connections.ssh_places()
    }

    fn note_refused(&self, purpose: &str, why: String) {
        self.refusals.note(&ConnectionRefusal::Signature {
            purpose: purpose.to_owned(),
            why,
            operator: None,
        });
    }
}
