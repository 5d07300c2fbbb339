//! `Caches`: the user's caches as a command sees them in its own HOME, with the additions of earlier commands of its run.
//!
//! The user's own caches never change. The commands of a run share its additions, which are never applied.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use haft::call::RunId;
use haft::file_lock::FileLock;
use haft::policy::Denials;
use haft_sandbox::{HomeFolder, OverlayFolders};
use rustix::fs::{Timespec, Timestamps, UTIME_NOW, futimens};

use crate::command::changes::Views;
use crate::command::changes::folder::{UPPER, WORK, lock, make_folder};

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

const NOW: Timestamps = Timestamps {
    last_access: NOW_TIME,
    last_modification: NOW_TIME,
};
const NOW_TIME: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: UTIME_NOW,
};

/// The caches of one command, which has them to itself until this is dropped.
#[derive(Debug, Default)]
pub(super) struct Caches {
    folders: Vec<HomeFolder>,
    /// The lock on the run's additions; `None` if another command holds it.
    shared: Option<FileLock>,
}

impl Caches {
    /// Returns the folders for the sandbox to mount.
    pub(super) fn folders(&self) -> Vec<HomeFolder> {
        self.folders.clone()
    }
}

impl Views {
    /// Prepares the caches for a command. If another command uses the run's additions, this one starts from the user's caches and
    /// stores its own additions in `view`, the folder of its view.
    pub(super) fn caches(&self, run: &RunId, view: &Path, denials: &Denials) -> io::Result<Caches> {
        let log = &self.options.log;
        let shared = log.caches_folder(run).map_err(io::Error::other)?;
        let mut caches = Caches::default();
        for at in CACHE_FOLDERS {
            let Some(folder) = self.cache(at, denials) else {
                continue;
            };
            if caches.folders.is_empty() {
                make_folder(&shared)?;
                caches.shared = lock(&shared).ok();
            }
            let own = if caches.shared.is_some() {
                shared.clone()
            } else {
                view.join("caches")
            };
            let own = own.join(at.replace('/', "-"));
            let view = OverlayFolders {
                upper: own.join(UPPER),
                work: own.join(WORK),
            };
            make_folder(&view.upper)?;
            make_folder(&view.work)?;
            let mode = fs::metadata(&folder)?.permissions().mode();
            fs::set_permissions(&view.upper, fs::Permissions::from_mode(mode & 0o777))?;
            let at = PathBuf::from(at);
            caches.folders.push(HomeFolder { folder, at, view });
        }
        if let Some(shared) = &caches.shared {
            // The sweep checks this time.
            futimens(&**shared, &NOW)?;
        }
        Ok(caches)
    }

    /// Returns a cache that the user has and commands may see. It may be a link to another disk, but not to another place in the
    /// user's home.
    fn cache(&self, at: &str, denials: &Denials) -> Option<PathBuf> {
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
        let denied = names.iter().any(|name| {
            let name = name.to_string_lossy();
            denials.denies_reading(&name) || denials.may_name_below(&name)
        });
        (folder.is_dir() && apart && !denied).then_some(folder)
    }
}
