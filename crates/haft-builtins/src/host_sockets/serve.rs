//! One connection of a command to a socket of the host.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use haft::text::visible;
use tokio::io::copy_bidirectional;
use tokio::net::UnixStream;
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

/// Carries a connection, if it may be made.
pub(super) async fn serve(mut client: UnixStream, path: Arc<PathBuf>, judge: Arc<dyn SocketJudge>) {
    match reach(&path, &*judge).await {
        Ok(mut service) => {
            judge.note_connected(&path.to_string_lossy());
            // Either end may close it at any time. What is no byte, as a descriptor, is not read.
            let _ = copy_bidirectional(&mut client, &mut service).await;
        }
        Err(refusal) => judge.note_refused(&refusal),
    }
}

/// Connects once the command may. What serves the socket is looked at before anyone is asked, and again on the connection that is used.
async fn reach(path: &Path, judge: &dyn SocketJudge) -> Result<UnixStream, ConnectionRefusal> {
    drop(connect(path).await?);
    let text = path
        .to_str()
        .ok_or_else(|| refused(path, "has a name that is not text"))?;
    judge.judge(text).await?;
    connect(path).await
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
