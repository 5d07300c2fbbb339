//! `OwnSocket`: a unix socket of haft's own, for one command.

use std::fs;
use std::future::Future;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::net::{UnixListener, UnixStream};
use tokio::task::{JoinHandle, JoinSet};

/// The socket's name in its folder.
const NAME: &str = "socket";
/// How long to wait after a connection could not be accepted.
const RETRY_AFTER: Duration = Duration::from_millis(100);

/// A socket for one command; it is gone when the value is dropped.
#[derive(Debug)]
pub(crate) struct OwnSocket {
    folder: PathBuf,
    serving: JoinHandle<()>,
}

impl OwnSocket {
    /// Listens, and serves each connection by what `serve` returns for it, at most this number at the same time; more wait.
    pub(crate) fn open<S>(
        most: usize,
        serve: impl Fn(UnixStream) -> S + Send + Sync + 'static,
    ) -> io::Result<Self>
    where
        S: Future<Output = ()> + Send + 'static,
    {
        let folder = new_folder()?;
        let listener = listen(&folder).inspect_err(|_| remove(&folder))?;
        Ok(Self {
            folder,
            serving: tokio::spawn(serve_all(listener, most, serve)),
        })
    }

    /// Returns the socket's path on the host.
    pub(crate) fn path(&self) -> PathBuf {
        self.folder.join(NAME)
    }
}

impl Drop for OwnSocket {
    fn drop(&mut self) {
        self.serving.abort();
        remove(&self.folder);
    }
}

/// Makes a folder that only this user can look into.
fn new_folder() -> io::Result<PathBuf> {
    let mut name = [0; 16];
    getrandom::fill(&mut name).map_err(io::Error::other)?;
    let name = u128::from_ne_bytes(name);
    let folder = std::env::temp_dir().join(format!("haft-socket-{name:032x}"));
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

async fn serve_all<S>(listener: UnixListener, most: usize, serve: impl Fn(UnixStream) -> S)
where
    S: Future<Output = ()> + Send + 'static,
{
    let mut sessions = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept(), if sessions.len() < most => match accepted {
                Ok((client, _)) => {
                    sessions.spawn(serve(client));
                }
                // This process lacks descriptors for now; the client waits.
                Err(_) => tokio::time::sleep(RETRY_AFTER).await,
            },
            Some(_) = sessions.join_next() => {}
        }
    }
}
