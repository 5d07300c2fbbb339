//! `SshAgent`: the host's ssh-agent as commands reach it: a socket of haft's own that lists keys, and signs once the use was allowed.
//!
//! Nothing else of the agent's protocol (draft-ietf-sshm-ssh-agent) passes. Which server a login is for follows from the server's own
//! signature of the session, which OpenSSH 8.9 and later hand to the agent; what a command says about it counts for nothing.

mod host_key;
mod known_hosts;
mod session;
mod signed;
mod wire;

use std::fmt;
use std::fs;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use tokio::net::UnixListener;
use tokio::task::{JoinHandle, JoinSet};

use self::known_hosts::KnownHosts;
use self::session::AgentSession;
use crate::proxy::logins::LoginUse;
use crate::web::network::BoxFuture;

/// Where a command sees the socket.
pub(crate) const SOCKET: &str = "/run/haft/ssh-agent";
/// Where a command sees the keys of the servers that the user knows.
pub(crate) const KNOWN_HOSTS: &str = "/etc/ssh/ssh_known_hosts";
/// Maximum number of a command's connections that are served at the same time; more wait.
const MAX_SESSIONS: usize = 16;

/// The user's agent, and the files with the keys of servers that the user has accepted.
#[derive(Debug, Clone)]
pub struct SshAgent {
    /// Its socket on the host.
    pub socket: PathBuf,
    /// The files, such as `~/.ssh/known_hosts`.
    pub known_hosts: Vec<PathBuf>,
}

/// Decides what an agent signs for one command.
pub(crate) trait SignatureJudge: Send + Sync + fmt::Debug {
    /// Decides whether a key may be used, and notes it if not.
    fn judge<'a>(&'a self, login: &'a LoginUse) -> BoxFuture<'a, Result<(), ()>>;

    /// Returns the hosts and ports that the command has connected to.
    fn places(&self) -> Vec<(String, u16)>;

    /// Notes that something was not signed.
    fn note_refused(&self, purpose: &str, why: String);
}

/// What all connections of one command to its agent share.
#[derive(Debug)]
struct CommandAgent {
    socket: PathBuf,
    known: KnownHosts,
    judge: Arc<dyn SignatureJudge>,
    signatures: AtomicUsize,
}

/// A socket for one command; it is gone when the value is dropped.
#[derive(Debug)]
pub(crate) struct AgentSocket {
    folder: PathBuf,
    serving: JoinHandle<()>,
    /// The file of known servers, as the command gets it.
    pub(crate) known_hosts: Vec<u8>,
}

impl SshAgent {
    /// Opens a socket for one command.
    pub(crate) fn open(&self, judge: Arc<dyn SignatureJudge>) -> io::Result<AgentSocket> {
        let folder = new_folder()?;
        let listener = listen(&folder).inspect_err(|_| remove(&folder))?;
        let known = KnownHosts::read(&self.known_hosts);
        let known_hosts = known.to_hashed();
        let agent = Arc::new(CommandAgent {
            socket: self.socket.clone(),
            known,
            judge,
            signatures: AtomicUsize::new(0),
        });
        Ok(AgentSocket {
            folder,
            serving: tokio::spawn(serve(listener, agent)),
            known_hosts,
        })
    }
}

impl AgentSocket {
    /// Returns the socket's path on the host.
    pub(crate) fn path(&self) -> PathBuf {
        self.folder.join(NAME)
    }
}

impl Drop for AgentSocket {
    fn drop(&mut self) {
        self.serving.abort();
        remove(&self.folder);
    }
}

const NAME: &str = "agent";

/// Makes a folder that only this user can look into.
fn new_folder() -> io::Result<PathBuf> {
    let mut name = [0; 16];
    getrandom::fill(&mut name).map_err(io::Error::other)?;
    let name = u128::from_ne_bytes(name);
    let folder = std::env::temp_dir().join(format!("haft-agent-{name:032x}"));
    fs::DirBuilder::new().mode(0o700).create(&folder)?;
    Ok(folder)
}

/// Listens in the folder, over its descriptor: a socket's path is short.
fn listen(folder: &Path) -> io::Result<UnixListener> {
    let open = fs::File::open(folder)?;
    let at = format!("/proc/self/fd/{}/{NAME}", open.as_raw_fd());
    let listener = UnixListener::bind(at)?;
    fs::set_permissions(folder.join(NAME), fs::Permissions::from_mode(0o600))?;
    Ok(listener)
}

fn remove(folder: &Path) {
    // What is left over is empty, and nothing listens there.
    let _ = fs::remove_file(folder.join(NAME));
    let _ = fs::remove_dir(folder);
}

async fn serve(listener: UnixListener, agent: Arc<CommandAgent>) {
    let mut sessions = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept(), if sessions.len() < MAX_SESSIONS => match accepted {
                Ok((client, _)) => {
                    let session = AgentSession::new(Arc::clone(&agent));
                    sessions.spawn(session.serve(client));
                }
                // This process lacks descriptors.
                Err(_) => return,
            },
            Some(_) = sessions.join_next() => {}
        }
    }
}
