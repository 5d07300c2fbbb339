//! `GpgAgent`: the host's gpg-agent as commands reach it: a socket of haft's own that has the agent sign once the use was allowed.
//!
//! haft speaks the agent's protocol (Assuan) with both ends, and passes on nothing but which key signs which hash. The host's agent is asked
//! at its restricted socket, and its user reads there what haft says. Commands get the public keys alone.

mod keys;
mod line;
mod session;
mod upstream;

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::time::Duration;

use haft_sandbox::Places;

use self::keys::{GpgKeys, KeyCache};
use self::session::GpgSession;
use crate::own_socket::OwnSocket;
use crate::signatures::{MAX_SESSIONS, SignatureJudge};

/// Where a command sees the socket.
pub(crate) const SOCKET: &str = "/run/haft/gpg-agent";
/// Maximum time that the host's agent takes: its user may have to type a passphrase.
const PATIENCE: Duration = Duration::from_secs(120);

/// The user's gpg, and its agent. Clones share what is known of the keys.
#[derive(Clone)]
pub struct GpgAgent {
    gpg: PathBuf,
    gpgconf: PathBuf,
    variables: Vec<(String, String)>,
    /// What the programs do not find: what tools may change.
    places: Places,
    patience: Duration,
    known: Arc<KeyCache>,
}

impl fmt::Debug for GpgAgent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GpgAgent")
            .field("gpg", &self.gpg)
            .finish_non_exhaustive()
    }
}

/// What all connections of one command share.
#[derive(Debug)]
struct CommandGpg {
    keys: Arc<GpgKeys>,
    judge: Arc<dyn SignatureJudge>,
    signatures: AtomicUsize,
    /// What tells the host's agent where to show its windows.
    options: Vec<String>,
    patience: Duration,
}

/// The agent's socket for one command, and the files by which its gpg finds that and the keys.
#[derive(Debug)]
pub(crate) struct GpgSocket {
    socket: OwnSocket,
    /// The files, relative to the command's home.
    pub(crate) files: Vec<(PathBuf, Vec<u8>)>,
}

impl GpgAgent {
    /// Creates it from the programs, the variables that they get, and what they do not find.
    pub fn new(
        gpg: PathBuf,
        gpgconf: PathBuf,
        variables: Vec<(String, String)>,
        places: Places,
    ) -> Self {
        Self {
            gpg,
            gpgconf,
            variables,
            places,
            patience: PATIENCE,
            known: Arc::default(),
        }
    }

    /// Sets the time that the agent may take for one signature.
    pub fn with_patience(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    /// Opens a socket for one command, which signs with the user's keys of these names.
    ///
    /// # Errors
    /// Why there is none, as a sentence without its end.
    pub(crate) async fn open(
        &self,
        names: &[String],
        judge: Arc<dyn SignatureJudge>,
    ) -> Result<GpgSocket, String> {
        let keys = self.keys(names).await?;
        let files = vec![
            (".gnupg/pubring.gpg".into(), keys.public.clone()),
            (
                ".gnupg/S.gpg-agent".into(),
                format!("%Assuan%\nsocket={SOCKET}\n").into_bytes(),
            ),
        ];
        let agent = Arc::new(CommandGpg {
            keys,
            judge,
            signatures: AtomicUsize::new(0),
            options: upstream::options(&self.variables),
            patience: self.patience,
        });
        let socket = OwnSocket::open(MAX_SESSIONS, move |client| {
            GpgSession::new(Arc::clone(&agent)).serve(client)
        });
        let socket = socket.map_err(|error: io::Error| format!("no socket for it: {error}"))?;
        Ok(GpgSocket { socket, files })
    }
}

impl GpgSocket {
    /// Returns the socket's path on the host.
    pub(crate) fn path(&self) -> PathBuf {
        self.socket.path()
    }
}
