//! The repository outside of the workspace on a command's view: its folders, its index, and how its changes join those of the workspace.
//!
//! A command sees the repository at its own path, as an overlay of its own. When the command has ended, what it changed there moves to
//! `.git` among its other changes. From then on there is one change set: judged, shown, applied and undone as a whole.

use std::fs::{self, File, Metadata};
use std::io::{self, Read as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use haft::call::RunId;
use haft::git_index::{self, MAX_INDEX};
use haft::text::hex;
use haft::workspace::{OutsideRepository, Workspace};
use sha2::{Digest as _, Sha256};

use crate::command::changes::Views;
use crate::command::changes::data::UnappliedChange;
use crate::command::changes::folder::{GIT_UPPER, GIT_WORK, UPPER, make_folder, remove};
use crate::command::changes::view::OpenView;

/// The name of the repository in the workspace.
const GIT: &str = ".git";
const INDEX: &str = "index";
/// The beginning of the names of folders with an index.
const LAYER: &str = "git-index-";
/// Numbers the drafts of this process.
static DRAFTS: AtomicU64 = AtomicU64::new(0);
/// How long such a folder is kept: longer than a command may run that works on a view.
const MAX_AGE: Duration = Duration::from_secs(24 * 60 * 60);

impl Views {
    /// Creates the folders for changes to the repository outside of the workspace. Returns whether there is one that can be shown.
    pub(super) fn add_repository(&self, view: &Path) -> io::Result<bool> {
        let Some(repository) = self.workspace.repository() else {
            return Ok(false);
        };
        let upper = view.join(GIT_UPPER);
        make_folder(&upper)?;
        make_folder(&view.join(GIT_WORK))?;
        let like = fs::metadata(repository.folder())?.permissions();
        fs::set_permissions(&upper, like)?;
        Ok(true)
    }
}

impl OpenView {
    /// Moves what the command changed in the repository to its other changes, below `.git`. Returns what is not applied.
    ///
    /// # Errors
    /// A folder of the view cannot be changed.
    pub(super) fn join_repository(
        &self,
        workspace: &Workspace,
    ) -> io::Result<Vec<UnappliedChange>> {
        let Some(repository) = workspace.repository().filter(|_| self.has_repository) else {
            return Ok(Vec::new());
        };
        let (own, joined) = (
            self.folder.join(GIT_UPPER),
            self.folder.join(UPPER).join(GIT),
        );
        let mut dropped = Vec::new();
        if joined.symlink_metadata().is_ok() {
            let folder = repository.folder().display();
            drop_entry(&joined)?;
            dropped.push(unapplied(format!(
                "it leads to the repository {folder}, and no command changes where it leads"
            )));
        }
        if own.read_dir()?.next().is_none() {
            return Ok(dropped);
        }
        let fits = workspace.check_repository();
        let fits = fits.and_then(|()| restore_index(&own, repository));
        match fits {
            Ok(()) => fs::rename(&own, &joined)?,
            Err(why) => {
                remove(&own);
                dropped.push(unapplied(format!(
                    "nothing that git changed in the repository was applied: {why}"
                )));
            }
        }
        Ok(dropped)
    }
}

fn unapplied(why: String) -> UnappliedChange {
    UnappliedChange {
        path: GIT.to_owned(),
        why,
        kept: None,
    }
}

fn drop_entry(path: &Path) -> io::Result<()> {
    if path.symlink_metadata()?.is_dir() {
        remove(path);
        return match path.symlink_metadata() {
            Ok(_) => Err(io::ErrorKind::DirectoryNotEmpty.into()),
            Err(_) => Ok(()),
        };
    }
    fs::remove_file(path)
}

/// Returns the path of the work tree's index within the repository.
fn index_of(repository: &OutsideRepository) -> PathBuf {
    let own = repository.own_part();
    let own = own.strip_prefix(GIT).unwrap_or(Path::new(""));
    own.join(INDEX)
}

/// Takes away the marks of files outside of a package from the index that git left.
///
/// # Errors
/// Git recorded something else for a file outside of the workspace, or the index cannot be read.
fn restore_index(upper: &Path, repository: &OutsideRepository) -> Result<(), String> {
    let at = upper.join(index_of(repository));
    if repository.prefix() == Path::new("") || !at.is_file() {
        return Ok(());
    }
    let failed = |error: io::Error| format!("its index: {error}");
    let left = read(&at).map_err(failed)?;
    if left.is_empty() {
        // What overlayfs leaves of a deleted file.
        return Ok(());
    }
    let before = match read(&repository.folder().join(index_of(repository))) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
        before => before.map_err(failed)?,
    };
    let (hash, prefix) = (repository.object_hash(), repository.prefix());
    let restored = git_index::with_others(&left, &before, hash, prefix)?;
    fs::write(&at, restored).map_err(failed)
}

impl Views {
    /// Returns the folder that lies over the repository for a command: empty, or with the index in which git leaves alone what lies
    /// outside of the package. Commands of a run share it while the index stays the same.
    ///
    /// # Errors
    /// Why the repository cannot be shown.
    pub(crate) fn repository_layer(
        &self,
        repository: &OutsideRepository,
        run: &RunId,
    ) -> Result<PathBuf, String> {
        let all = self.options.log.caches_folder(run);
        let all = all.map_err(unreadable)?;
        let within = index_of(repository);
        let index = repository.folder().join(&within);
        let meta = index.symlink_metadata();
        let meta = match meta {
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            meta => Some(meta.map_err(unreadable)?),
        };
        let meta = meta.filter(|_| repository.prefix() != Path::new(""));
        let Some(meta) = meta else {
            let empty = all.join(format!("{LAYER}none"));
            make_folder(&empty).map_err(unreadable)?;
            let like = fs::metadata(repository.folder()).map_err(unreadable)?;
            fs::set_permissions(&empty, like.permissions()).map_err(unreadable)?;
            return Ok(empty);
        };
        let layer = all.join(layer_name(&index, &meta));
        if layer.join(&within).is_file() {
            return Ok(layer);
        }
        let (hash, prefix) = (repository.object_hash(), repository.prefix());
        let marked = git_index::without_others(&read(&index).map_err(unreadable)?, hash, prefix);
        let marked = marked.ok_or(
            "its index is split or damaged: `git update-index --no-split-index` in the repository",
        )?;
        make_folder(&all).map_err(unreadable)?;
        remove_old(&all);
        let nth = DRAFTS.fetch_add(1, Ordering::Relaxed);
        let draft = all.join(format!("{LAYER}draft-{}-{nth}", std::process::id()));
        write_layer(repository, &draft, &marked).map_err(unreadable)?;
        if let Err(error) = fs::rename(&draft, &layer) {
            remove(&draft);
            // Another command of the run may have been faster.
            if !layer.join(&within).is_file() {
                return Err(unreadable(error));
            }
        }
        Ok(layer)
    }
}

fn unreadable(error: impl std::fmt::Display) -> String {
    format!("its index: {error}")
}

/// Returns the name of the folder for an index in this state.
fn layer_name(index: &Path, meta: &Metadata) -> String {
    let mut hasher = Sha256::new();
    hasher.update(index.as_os_str().as_encoded_bytes());
    for number in [
        meta.dev().cast_signed(),
        meta.ino().cast_signed(),
        meta.len().cast_signed(),
        meta.mtime(),
        meta.mtime_nsec(),
        meta.ctime(),
        meta.ctime_nsec(),
    ] {
        hasher.update(number.to_le_bytes());
    }
    let hash = hasher.finalize();
    let (head, _) = hash.split_at(8);
    format!("{LAYER}{}", hex(head))
}

fn write_layer(repository: &OutsideRepository, layer: &Path, index: &[u8]) -> io::Result<()> {
    let within = index_of(repository);
    let at = layer.join(&within);
    make_folder(at.parent().unwrap_or(layer))?;
    fs::write(&at, index)?;
    // A merged folder has the mode of its uppermost layer.
    for folder in within.ancestors().skip(1) {
        let like = fs::metadata(repository.folder().join(folder))?;
        fs::set_permissions(layer.join(folder), like.permissions())?;
    }
    Ok(())
}

/// Removes layers that no command can still use.
fn remove_old(all: &Path) {
    for entry in all.read_dir().into_iter().flatten().flatten() {
        let is_layer = entry
            .file_name()
            .as_encoded_bytes()
            .starts_with(LAYER.as_bytes());
        let modified = entry.metadata().and_then(|meta| meta.modified());
        let age = modified.ok().and_then(|modified| modified.elapsed().ok());
        if is_layer && age.is_some_and(|age| age > MAX_AGE) {
            remove(&entry.path());
        }
    }
}

/// Reads a regular file of at most [`MAX_INDEX`] bytes.
fn read(path: &Path) -> io::Result<Vec<u8>> {
    let file = File::open(path)?;
    let meta = file.metadata()?;
    if !meta.is_file() || meta.len() > MAX_INDEX {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    let mut bytes = Vec::new();
    file.take(MAX_INDEX).read_to_end(&mut bytes)?;
    Ok(bytes)
}
