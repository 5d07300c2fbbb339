//! Offers a command the user's ssh-agent and gpg-agent, and asks about what they sign.

use std::path::PathBuf;
use std::sync::Arc;

use haft_sandbox::CommandSpec;

use crate::command::connections::Connections;
use crate::gpg_agent::{self, GpgAgent, GpgSocket};
use crate::proxy::LoginUse;
use crate::proxy::{ConnectionRefusal, Refusals};
use crate::signatures::SignatureJudge;
use crate::ssh_agent::{AgentSocket, KNOWN_HOSTS, SOCKET, SshAgent};
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

/// The variable that names gpg's folder.
const GPG_HOME: &str = "GNUPGHOME";

/// Opens a socket of gpg's agent for a command and shows it with the public keys, unless the call names a folder of gpg's itself.
///
/// # Errors
/// Why there is none, as a sentence without its end.
pub(super) async fn offer_gpg(
    agent: &GpgAgent,
    names: &[String],
    spec: &mut CommandSpec,
    questions: AgentQuestions,
) -> Result<Option<Arc<GpgSocket>>, String> {
    if spec.env.contains_key(std::ffi::OsStr::new(GPG_HOME)) {
        return Ok(None);
    }
    let socket = agent.open(names, Arc::new(questions)).await?;
    let place = (socket.path(), gpg_agent::SOCKET.into());
    spec.mounts.sockets.push(place);
    spec.mounts.home_files.extend(socket.files.iter().cloned());
    Ok(Some(Arc::new(socket)))
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

    fn command(&self) -> String {
        self.connections.request().command.clone()
    }

    fn note_refused(&self, purpose: &str, why: String) {
        self.refusals.note(&ConnectionRefusal::Signature {
            purpose: purpose.to_owned(),
            why,
            operator: None,
        });
    }
}
