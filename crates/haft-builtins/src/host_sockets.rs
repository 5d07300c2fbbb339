//! `HostSockets`: the unix sockets of the host's services that commands may connect to, each by a socket of haft's own.
//!
//! A command never gets the host's socket. haft listens in its place, has the connection judged, and carries bytes: descriptors that are
//! sent along do not pass. Sockets that give whoever reaches them the machine, the user's session or keys are refused, by what they are.

mod peer;
mod powers;
mod serve;

use std::fs;
use std::io;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use self::serve::HostService;
pub(crate) use self::serve::SocketJudge;
use crate::own_socket::OwnSocket;

/// Maximum number of sockets that a command gets.
pub(crate) const MAX_SOCKETS: usize = 32;
/// Maximum number of entries of a folder that are looked at.
const MAX_ENTRIES: usize = 1_000;
/// Folders of the system that have two names.
const TWO_NAMES: (&str, &str) = ("/run", "/var/run");

/// The sockets and the folders of sockets that settings name.
#[derive(Debug, Clone, Default)]
pub struct HostSockets(Vec<PathBuf>);

/// A socket of the host, and where commands see it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct ListedSocket {
    path: PathBuf,
    shown: Vec<PathBuf>,
}

/// One socket for one command, in place of the host's.
#[derive(Debug)]
pub(crate) struct SocketInPlace {
    socket: OwnSocket,
    /// Where the command sees it.
    pub(crate) shown: Vec<PathBuf>,
}

impl HostSockets {
    /// Creates them from absolute paths of sockets, or of folders of sockets.
    pub fn new(paths: Vec<PathBuf>) -> Self {
        Self(paths)
    }

    /// Returns true if there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the paths as settings name them.
    pub fn paths(&self) -> &[PathBuf] {
        &self.0
    }

    /// Says why commands must not connect to the socket at a path, or to those in the folder there, as the rest of a sentence; `None` if they may.
    pub fn refusal(path: &Path) -> Option<String> {
        powers::of_path(path)
    }

    /// Opens a socket in place of each that exists now.
    ///
    /// # Errors
    /// This process lacks descriptors, or the temporary folder cannot be written.
    pub(crate) fn open(&self, judge: &Arc<dyn SocketJudge>) -> io::Result<Vec<SocketInPlace>> {
        let open = |listed: ListedSocket| {
            let service = Arc::new(HostService::new(listed.path, Arc::clone(judge)));
            let socket = OwnSocket::open(serve::MAX_CONNECTIONS, move |client| {
                Arc::clone(&service).serve(client)
            })?;
            let shown = listed.shown;
            Ok(SocketInPlace { socket, shown })
        };
        self.list().into_iter().map(open).collect()
    }

    /// Returns the sockets that exist now and are not refused.
    fn list(&self) -> Vec<ListedSocket> {
        let mut found: Vec<ListedSocket> = Vec::new();
        for named in &self.0 {
            let Ok(real) = named.canonicalize() else {
                continue;
            };
            let sockets = if is_socket(&real) {
                vec![(real, named.clone())]
            } else {
                let names = sockets_in(&real).into_iter();
                names
                    .map(|name| (real.join(&name), named.join(&name)))
                    .collect()
            };
            for (path, written) in sockets {
                let is_known = found.iter().any(|one| one.path == path);
                if !is_known && found.len() < MAX_SOCKETS && powers::of_path(&path).is_none() {
                    found.push(ListedSocket::new(path, written));
                }
            }
        }
        found
    }
}

impl ListedSocket {
    /// Creates one that is shown at its own path, at the one that settings have, and where else programs look for it.
    fn new(path: PathBuf, written: PathBuf) -> Self {
        let mut shown = vec![path.clone()];
        let second = path.strip_prefix(TWO_NAMES.0).ok();
        let second = second.map(|rest| Path::new(TWO_NAMES.1).join(rest));
        for name in second.into_iter().chain([written]) {
            if !shown.contains(&name) {
                shown.push(name);
            }
        }
        Self { path, shown }
    }
}

impl SocketInPlace {
    /// Returns the path of haft's socket on the host.
    pub(crate) fn path(&self) -> PathBuf {
        self.socket.path()
    }
}

/// Whether a path is that of a socket itself, not of a link to one.
fn is_socket(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|about| about.file_type().is_socket())
}

/// Returns the names of the sockets in a folder, ascending.
fn sockets_in(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let names = entries.take(MAX_ENTRIES).map(|entry| entry.file_name());
    let mut names: Vec<PathBuf> = names
        .map(PathBuf::from)
        .filter(|name| is_socket(&folder.join(name)))
        .collect();
    names.sort();
    names
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;
    use std::os::unix::net::UnixListener;

    use super::{HostSockets, MAX_SOCKETS};

    #[test]
    fn sockets_are_listed_by_their_own_paths_and_refused_by_any_name() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let at = |name: &str| root.join(name);
        fs::create_dir(at("db")).unwrap();
        fs::create_dir(at("podman")).unwrap();
        let names = ["db/b.sock", "db/a.sock", "docker.sock", "podman/x.sock"];
        let _open = names.map(|name| UnixListener::bind(at(name)).unwrap());
        fs::write(at("db/plain"), "").unwrap();
        symlink(at("docker.sock"), at("db/link.sock")).unwrap();
        symlink(at("docker.sock"), at("harmless.sock")).unwrap();
        fs::hard_link(at("db/a.sock"), at("second.sock")).unwrap();
        symlink(at("db"), at("other")).unwrap();
        let list = |names: &[&str]| -> Vec<String> {
            let paths = names.iter().map(|name| at(name)).collect();
            let listed = HostSockets::new(paths).list();
            let shown = listed.iter().map(|one| {
                let all = one
                    .shown
                    .iter()
                    .map(|path| path.strip_prefix(&root).unwrap());
                let all: Vec<_> = all.map(|path| path.display().to_string()).collect();
                all.join("=")
            });
            shown.collect()
        };
        for (named, expect) in [
            (&["db"][..], &["db/a.sock", "db/b.sock"][..]),
            (&["db/a.sock"], &["db/a.sock"]),
            (&["db", "db/a.sock"], &["db/a.sock", "db/b.sock"]),
            (
                &["other"],
                &["db/a.sock=other/a.sock", "db/b.sock=other/b.sock"],
            ),
            (&["docker.sock"], &[]),
            (&["harmless.sock"], &[]),
            (&["podman"], &[]),
            (&["db/plain", "absent"], &[]),
        ] {
            assert_eq!(list(named), expect, "{named:?}");
        }
        for (name, refused) in [
            ("docker.sock", true),
            ("harmless.sock", true),
            ("podman", true),
            ("db", false),
            ("second.sock", false),
        ] {
            let said = HostSockets::refusal(&at(name));
            assert_eq!(said.is_some(), refused, "{name}: {said:?}");
        }
        fs::create_dir(at("many")).unwrap();
        let many: Vec<_> = (0..MAX_SOCKETS + 5)
            .map(|n| UnixListener::bind(at(&format!("many/{n}.sock"))).unwrap())
            .collect();
        assert_eq!(list(&["many"]).len(), MAX_SOCKETS);
        drop(many);
    }
}
