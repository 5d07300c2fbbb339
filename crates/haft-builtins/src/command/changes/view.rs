//! `OpenView`: the folders of a copy-on-write view, from before a command starts until its changes are decided.

use std::fs::{self, File};
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

use haft::call::{CallId, RunId};
use haft::change::collect::ViewCreation;
use haft::error::ToolError;
use haft::file_lock::FileLock;
use haft::policy::Denials;
use haft_sandbox::{HomeFolder, OverlayFolders};
use sha2::{Digest as _, Sha256};

use crate::command::changes::caches::Caches;
use crate::command::changes::folder::{
    GIT_UPPER, GIT_WORK, STARTED_MARK, UPPER, WORK, lock, make_folder, remove,
};
use crate::command::changes::note;
use crate::command::changes::owner::ViewOwner;
use crate::command::changes::{Views, failed};
use haft::text::hex;

/// A view that this process has locked. Dropping it removes the view unless it is to be kept.
#[derive(Debug)]
pub(crate) struct OpenView {
    /// The name of the view's folder.
    pub(super) name: String,
    pub(super) folder: PathBuf,
    /// The time before the command started.
    pub(super) since: ViewCreation,
    caches: Caches,
    /// True if it has folders for the changes to a repository outside of the workspace.
    pub(super) has_repository: bool,
    keep: AtomicBool,
    /// True if the view stays after the decision, because it holds files that exist nowhere else.
    left: AtomicBool,
    _lock: FileLock,
}

impl OpenView {
    /// Returns the layers for the sandbox to mount.
    pub(crate) fn layers(&self) -> OverlayFolders {
        OverlayFolders {
            upper: self.folder.join(UPPER),
            work: self.folder.join(WORK),
        }
    }

    /// Returns the user's caches for the sandbox to mount.
    pub(crate) fn home(&self) -> Vec<HomeFolder> {
        self.caches.folders()
    }

    /// Returns the layers for the repository outside of the workspace, if there is one.
    pub(crate) fn repository(&self) -> Option<OverlayFolders> {
        self.has_repository.then(|| OverlayFolders {
            upper: self.folder.join(GIT_UPPER),
            work: self.folder.join(GIT_WORK),
        })
    }

    /// Releases the caches to other commands, since this view's command has ended.
    pub(crate) fn leave_caches(&mut self) {
        self.caches = Caches::default();
    }

    /// Sets whether the view stays for a decision.
    pub(super) fn keep(&self, kept: bool) {
        self.keep.store(kept, Ordering::Release);
    }

    /// Records in the folder that applying begins. If the process is killed after that, the view may hold the only copy of files.
    pub(super) fn begin(&self) -> io::Result<()> {
        File::create(self.folder.join(STARTED_MARK)).map(drop)
    }

    /// Keeps the view until its run is deleted.
    pub(super) fn keep_until_run_ends(&self) {
        self.left.store(true, Ordering::Release);
    }

    /// Returns the folder with the command's changes if the view stays.
    pub(super) fn left(&self) -> Option<PathBuf> {
        let left = self.left.load(Ordering::Acquire);
        left.then(|| self.folder.join(UPPER))
    }
}

impl Drop for OpenView {
    fn drop(&mut self) {
        if !self.keep.load(Ordering::Acquire) && self.left().is_none() {
            remove(&self.folder);
        }
    }
}

impl Views {
    /// Creates the view of a call, with the user's caches if they can be shown and no rule denies it. `input` identifies the call
    /// when it is repeated.
    pub(crate) fn open(
        &self,
        owner: &ViewOwner,
        input: &str,
        denials: &Denials,
    ) -> Result<OpenView, ToolError> {
        let with_caches = |mut view: OpenView| {
            if self.shows_caches() {
                // The command runs without them if this fails.
                let caches = self.caches(owner, &view.folder, denials);
                view.caches = caches.unwrap_or_else(|error| {
                    tracing::warn!(%error, "a command does not see the user's caches");
                    Caches::default()
                });
            }
            view
        };
        let made = self.make(&owner.run, &owner.call, input).map(with_caches);
        made.map_err(|error| failed("make", error))
    }

    pub(super) fn make(&self, run: &RunId, call: &CallId, input: &str) -> io::Result<OpenView> {
        let all = self
            .options
            .log
            .views_folder(run)
            .map_err(io::Error::other)?;
        let name = format!("{}-{}", short_hash(call.as_str()), short_hash(input));
        let folder = all.join(&name);
        make_folder(&all)?;
        // The command's git would find them on its copy, and stop.
        self.workspace.remove_abandoned_locks();
        if folder.symlink_metadata().is_ok() {
            // Left by a killed call with this id. A view with a pending decision is not created again.
            let _lock = lock(&folder)?;
            remove(&folder);
        }
        make_folder(&folder)?;
        // Dropping this removes what was created so far if the rest fails.
        let mut view = OpenView {
            since: ViewCreation::of(&folder)?,
            name,
            _lock: lock(&folder)?,
            folder,
            caches: Caches::default(),
            has_repository: false,
            keep: AtomicBool::new(false),
            left: AtomicBool::new(false),
        };
        let upper = view.folder.join(UPPER);
        make_folder(&upper)?;
        make_folder(&view.folder.join(WORK))?;
        let like = fs::metadata(self.workspace.root())?.permissions();
        fs::set_permissions(&upper, like)?;
        view.has_repository = self.add_repository(&view.folder)?;
        view.since = ViewCreation::of(&upper)?;
        Ok(view)
    }

    /// Returns the view of an earlier call with this input that has a pending decision, unless another process has it locked.
    pub(crate) fn find_pending(&self, run: &RunId, input: &str) -> Option<OpenView> {
        let all = self.options.log.views_folder(run).ok()?;
        let ending = format!("-{}", short_hash(input));
        let mut names: Vec<_> = fs::read_dir(all).ok()?.flatten().collect();
        names.sort_by_key(|entry| entry.metadata().and_then(|meta| meta.modified()).ok());
        let mut names = names
            .into_iter()
            .filter_map(|entry| entry.file_name().into_string().ok());
        names.find_map(|name| {
            let ours = name.ends_with(&ending);
            ours.then(|| self.reopen(run, &name).ok()).flatten()
        })
    }

    /// Returns the folder of a view.
    pub(super) fn folder(&self, run: &RunId, name: &str) -> io::Result<PathBuf> {
        let plain = |byte: u8| byte.is_ascii_hexdigit() || byte == b'-';
        if name.is_empty() || name.len() > 64 || !name.bytes().all(plain) {
            return Err(io::Error::other(format!(
                "{name:?} is not the name of a view"
            )));
        }
        let all = self
            .options
            .log
            .views_folder(run)
            .map_err(io::Error::other)?;
        Ok(all.join(name))
    }

    /// Opens a view with a pending decision, by the name of its folder.
    pub(super) fn reopen(&self, run: &RunId, name: &str) -> io::Result<OpenView> {
        let folder = self.folder(run, name)?;
        let lock = lock(&folder)?;
        let since = note::read_since(&folder)?;
        Ok(OpenView {
            name: name.to_owned(),
            folder,
            since,
            caches: Caches::default(),
            has_repository: false,
            keep: AtomicBool::new(true),
            left: AtomicBool::new(false),
            _lock: lock,
        })
    }
}

/// Returns enough of a SHA-256 to name a folder.
fn short_hash(text: &str) -> String {
    let hash = Sha256::digest(text.as_bytes());
    let (head, _) = hash.split_at(8);
    hex(head)
}
