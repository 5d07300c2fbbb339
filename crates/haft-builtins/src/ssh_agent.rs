//! `SshAgent`: the host's ssh-agent as commands reach it: a socket of haft's own that lists keys, and signs once the use was allowed.
//!
//! Nothing else of the agent's protocol (draft-ietf-sshm-ssh-agent) passes. Which server a login is for follows from the server's own
//! signature of the session, which OpenSSH 8.9 and later hand to the agent; what a command says about it counts for nothing.

mod host_key;
mod known_hosts;
mod session;
mod signed;
mod wire;

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use self::known_hosts::KnownHosts;
use self::session::AgentSession;
use crate::own_socket::OwnSocket;
use crate::signatures::{MAX_SESSIONS, SignatureJudge};

/// Where a command sees the socket.
pub(crate) const SOCKET: &str = "/run/haft/ssh-agent";
/// Where a command sees the keys of the servers that the user knows.
pub(crate) const KNOWN_HOSTS: &str = "/etc/ssh/ssh_known_hosts";

/// The user's agent, and the files with the keys of servers that the user has accepted.
#[derive(Debug, Clone)]
pub struct SshAgent {
    /// Its socket on the host.
    pub socket: PathBuf,
    /// The files, such as `~/.ssh/known_hosts`.
    pub known_hosts: Vec<PathBuf>,
}

/// What all connections of one command to its agent share.
#[derive(Debug)]
struct CommandAgent {
    socket: PathBuf,
    known: KnownHosts,
    judge: Arc<dyn SignatureJudge>,
    signatures: AtomicUsize,
}

/// The agent's socket for one command.
#[derive(Debug)]
pub(crate) struct AgentSocket {
    socket: OwnSocket,
    /// The file of known servers, as the command gets it.
    pub(crate) known_hosts: Vec<u8>,
}

impl SshAgent {
    /// Opens a socket for one command.
    pub(crate) fn open(&self, judge: Arc<dyn SignatureJudge>) -> io::Result<AgentSocket> {
        let known = KnownHosts::read(&self.known_hosts);
        let known_hosts = known.to_hashed();
        let agent = Arc::new(CommandAgent {
            socket: self.socket.clone(),
            known,
            judge,
            signatures: AtomicUsize::new(0),
        });
        let socket = OwnSocket::open(MAX_SESSIONS, move |client| {
            AgentSession::new(Arc::clone(&agent)).serve(client)
        })?;
        Ok(AgentSocket {
            socket,
            known_hosts,
        })
    }
}

impl AgentSocket {
    /// Returns the socket's path on the host.
    pub(crate) fn path(&self) -> PathBuf {
        self.socket.path()
    }
}
