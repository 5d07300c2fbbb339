//! `Caches`: the user's caches as a command sees them in its own HOME, with the additions of earlier commands of its run, or of its agent's
//! session.
//!
//! The user's own caches never change. The commands of a run share its additions, which are never applied. A cache that the user does not
//! have consists of them alone.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use haft::file_lock::FileLock;
use haft::policy::Denials;
use haft_sandbox::{HomeFolder, OverlayFolders};

use crate::command::DeniedFolders;
use crate::command::changes::folder::{UPPER, WORK, make_folder};
use crate::command::changes::owner::ViewOwner;
use crate::command::changes::{Views, additions};

/// Folders below HOME where build tools cache downloads and builds for all projects, programs among them. None holds settings or
/// credentials.
const CACHE_FOLDERS: [&str; 30] = [
    ".bun/install/cache",
    ".bundle/cache",
    ".cache/Cypress",
    ".cache/composer",
    ".cache/coursier",
    ".cache/deno",
    ".cache/electron",
    ".cache/go-build",
    ".cache/golangci-lint",
    ".cache/ms-playwright",
    ".cache/node/corepack",
    ".cache/pip",
    ".cache/pnpm",
    ".cache/pre-commit",
    ".cache/puppeteer",
    ".cache/pypoetry",
    ".cache/uv",
    ".cache/yarn",
    ".cargo/git",
    ".cargo/registry",
    ".gradle/caches",
    ".gradle/wrapper/dists",
    ".ivy2/cache",
    ".local/share/pnpm/store",
    ".m2/repository",
    ".m2/wrapper",
    ".npm/_cacache",
    ".nuget/packages",
    ".yarn/berry/cache",
    "go/pkg/mod",
];

/// The folder that holds most of them. What is in it besides those that the user has is the commands' own.
const CACHE_HOME: &str = ".cache";

/// The caches of one command, which has them to itself until this is dropped.
#[derive(Debug, Default)]
pub(super) struct Caches {
    folders: Vec<HomeFolder>,
    /// The lock on the shared additions; `None` if another command holds it.
    _shared: Option<FileLock>,
}

impl Caches {
    /// Returns the folders for the sandbox to mount.
    pub(super) fn folders(&self) -> Vec<HomeFolder> {
        self.folders.clone()
    }
}

impl Views {
    /// Prepares the caches for a command. If another command uses the shared additions, this one starts from the user's caches and
    /// stores its own additions in `view`, the folder of its view.
    pub(super) fn caches(
        &self,
        owner: &ViewOwner,
        view: &Path,
        denials: &Denials,
    ) -> io::Result<Caches> {
        let log = &self.options.log;
        let shared = match &owner.group {
            Some(group) => log.group_caches_folder(group),
            None => log.caches_folder(&owner.run),
        };
        let shared = shared.map_err(io::Error::other)?;
        let lock = additions::take(&shared)?;
        let own = if lock.is_some() {
            shared
        } else {
            view.join("caches")
        };
        let mut folders = vec![cache_folder(&own, CACHE_HOME, None)?];
        let denied = DeniedFolders::new(denials, self.workspace.root());
        for at in CACHE_FOLDERS {
            let folder = self.cache(at, &denied);
            if folder.is_some() || !Path::new(at).starts_with(CACHE_HOME) {
                folders.push(cache_folder(&own, at, folder)?);
            }
        }
        Ok(Caches {
            folders,
            _shared: lock,
        })
    }

    /// Returns a cache that the user has and commands may see. It may be a link to another disk, but not to another place in the
    /// user's home.
    fn cache(&self, at: &str, denied: &DeniedFolders<'_>) -> Option<PathBuf> {
        let home = self.options.home.as_ref()?;
        let written = home.join(at);
        let folder = written.canonicalize().ok()?;
        let real_home = home.canonicalize().ok()?;
        let apart = |other: &Path| !folder.starts_with(other) && !other.starts_with(&folder);
        let elsewhere = folder.starts_with(&real_home) && folder != real_home.join(at);
        let own = self.options.log.home().canonicalize().ok()?;
        let apart = apart(self.workspace.root()) && apart(&own) && !elsewhere;
        // A rule may use any of these names.
        let names = [written, real_home.join(at), folder.clone()];
        let denied = || names.iter().any(|name| denied.contain(name, false));
        (folder.is_dir() && apart && !denied()).then_some(folder)
    }
}

/// Returns what a command sees of a cache, of which `folder` is the user's, with the additions in `own`.
fn cache_folder(own: &Path, at: &str, folder: Option<PathBuf>) -> io::Result<HomeFolder> {
    let own = own.join(at.replace('/', "-"));
    let view = OverlayFolders {
        upper: own.join(UPPER),
        work: own.join(WORK),
    };
    make_folder(&view.upper)?;
    if let Some(folder) = &folder {
        make_folder(&view.work)?;
        let mode = fs::metadata(folder)?.permissions().mode();
        fs::set_permissions(&view.upper, fs::Permissions::from_mode(mode & 0o777))?;
    }
    Ok(HomeFolder {
        folder,
        at: PathBuf::from(at),
        view,
    })
}
