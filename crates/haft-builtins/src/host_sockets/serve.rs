//! One connection of a command to a socket of the host.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use haft::text::visible;
use tokio::io::copy_bidirectional;
use tokio::net::UnixStream;
use tokio::sync::OnceCell;
use tokio::time::timeout;

use super::{is_socket, peer, powers};
use crate::proxy::ConnectionRefusal;
use crate::web::network::BoxFuture;

/// Maximum number of a command's connections to one socket at the same time; more wait.
pub(super) const MAX_CONNECTIONS: usize = 64;
/// Maximum time for a service to accept a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Decides about the sockets of one command.
pub(crate) trait SocketJudge: Send + Sync + fmt::Debug {
    /// Decides whether the command may connect to the socket at this path of the host.
    fn judge<'a>(&'a self, path: &'a str) -> BoxFuture<'a, Result<(), ConnectionRefusal>>;

    /// Notes that it did.
    fn note_connected(&self, path: &str);

    /// Notes that it did not.
    fn note_refused(&self, refusal: &ConnectionRefusal);
}

/// A socket of the host as one command reaches it.
#[derive(Debug)]
pub(super) struct HostService {
    path: PathBuf,
    judge: Arc<dyn SocketJudge>,
    /// Set once it is known that what serves it may be asked about: nobody connects a second time for that.
    checked: OnceCell<()>,
}

impl HostService {
    pub(super) fn new(path: PathBuf, judge: Arc<dyn SocketJudge>) -> Self {
        Self {
            path,
            judge,
            checked: OnceCell::new(),
        }
    }

    /// Carries a connection, if it may be made.
    pub(super) async fn serve(self: Arc<Self>, mut client: UnixStream) {
        match self.reach().await {
            Ok(mut service) => {
                self.judge.note_connected(&self.path.to_string_lossy());
                // Either end may close it at any time. What is no byte, as a descriptor, is not read.
                let _ = copy_bidirectional(&mut client, &mut service).await;
            }
            Err(refusal) => self.judge.note_refused(&refusal),
        }
    }

    /// Connects once the command may. What serves the socket is looked at before anyone is asked, and again on the connection that is used.
    async fn reach(&self) -> Result<UnixStream, ConnectionRefusal> {
        let check = || async { connect(&self.path).await.map(drop) };
        self.checked.get_or_try_init(check).await?;
        let text = self.path.to_str();
        let text = text.ok_or_else(|| refused(&self.path, "has a name that is not text"))?;
        self.judge.judge(text).await?;
        connect(&self.path).await
    }
}

async fn connect(path: &Path) -> Result<UnixStream, ConnectionRefusal> {
    let is_itself = path.canonicalize().is_ok_and(|real| real == path) && is_socket(path);
    if !is_itself {
        return Err(refused(path, "is no longer a socket"));
    }
    if let Some(why) = powers::of_path(path) {
        return Err(refused(path, &why));
    }
    let connected = timeout(CONNECT_TIMEOUT, UnixStream::connect(path)).await;
    let failed = |why: &str| ConnectionRefusal::Service {
        socket: visible::path(&path.to_string_lossy()),
        why: why.to_owned(),
    };
    let stream = match connected {
        Ok(Ok(stream)) => stream,
        Ok(Err(error)) => return Err(failed(&format!("did not accept the connection: {error}"))),
        Err(_) => return Err(failed("did not accept the connection in time")),
    };
    peer::check(&stream).map_err(|why| refused(path, &why))?;
    Ok(stream)
}

fn refused(path: &Path, why: &str) -> ConnectionRefusal {
    ConnectionRefusal::Powerful {
        socket: visible::path(&path.to_string_lossy()),
        why: why.to_owned(),
    }
}
