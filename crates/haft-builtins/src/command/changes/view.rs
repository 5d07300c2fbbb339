//! `OpenView`: the folders of a copy-on-write view, from before a command starts until its changes are decided.

use std::fmt::Write as _;
use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use haft::call::{CallId, RunId};
use haft::change::collect::Since;
use haft::error::ToolError;
use haft_sandbox::{CommandSpec, Mounts, View};
use rustix::fs::{FlockOperation, flock};
use sha2::{Digest as _, Sha256};

use crate::command::changes::{Views, failed, kept};

/// Where the command's changes are.
pub(super) const UPPER: &str = "upper";
/// What the overlay needs for itself.
const WORK: &str = "work";
/// Where this process sees what is mounted.
const MOUNTS: &str = "/proc/self/mountinfo";

/// A view that this process has to itself, until it is dropped; then it is removed, unless it is to be kept.
#[derive(Debug)]
pub(crate) struct OpenView {
    /// The name of its folder.
    pub(super) name: String,
    pub(super) folder: PathBuf,
    /// From before the command started.
    pub(super) since: Since,
    kept: AtomicBool,
    /// It stays when all is decided: it holds what is nowhere else.
    left: AtomicBool,
    _lock: File,
}

impl OpenView {
    /// What the sandbox mounts.
    pub(crate) fn layers(&self) -> View {
        View {
            upper: self.folder.join(UPPER),
            work: self.folder.join(WORK),
        }
    }

    /// Whether it stays for a decision.
    pub(super) fn keep(&self, kept: bool) {
        self.kept.store(kept, Ordering::Release);
    }

    /// Has it stay until its run is deleted.
    pub(super) fn leave(&self) {
        self.left.store(true, Ordering::Release);
    }

    /// Where the command's changes stay, if they do.
    pub(super) fn left(&self) -> Option<PathBuf> {
        let left = self.left.load(Ordering::Acquire);
        left.then(|| self.folder.join(UPPER))
    }
}

impl Drop for OpenView {
    fn drop(&mut self) {
        if !self.kept.load(Ordering::Acquire) && self.left().is_none() {
            remove(&self.folder);
        }
    }
}

impl Views {
    /// Makes the view of a call. `input` is what the call is known by when it is made again.
    pub(crate) fn open(
        &self,
        run: &RunId,
        call: &CallId,
        input: &str,
    ) -> Result<OpenView, ToolError> {
        let make = || {
            let all = self
                .options
                .log
                .views_folder(run)
                .map_err(io::Error::other)?;
            let name = format!("{}-{}", short_hash(call.as_str()), short_hash(input));
            let folder = all.join(&name);
            make_folder(&all)?;
            if folder.symlink_metadata().is_ok() {
                // Left by a call of this id that was killed; one that waits for a decision is not made again.
                let _lock = lock(&folder)?;
                remove(&folder);
            }
            make_folder(&folder)?;
            // Removed with what was made so far, if the rest cannot be made.
            let mut view = OpenView {
                since: Since::of(&folder)?,
                name,
                _lock: lock(&folder)?,
                folder,
                kept: AtomicBool::new(false),
                left: AtomicBool::new(false),
            };
            let upper = view.folder.join(UPPER);
            make_folder(&upper)?;
            make_folder(&view.folder.join(WORK))?;
            let like = fs::metadata(self.workspace.root())?.permissions();
            fs::set_permissions(&upper, like)?;
            view.since = Since::of(&upper)?;
            Ok(view)
        };
        make().map_err(|error: io::Error| failed("make", error))
    }

    /// The view of an earlier call with this input that waits for a decision, if no process has it locked.
    pub(crate) fn waiting(&self, run: &RunId, input: &str) -> Option<OpenView> {
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

    /// The folder of a view.
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

    /// A view that waits for a decision, by the name of its folder.
    pub(super) fn reopen(&self, run: &RunId, name: &str) -> io::Result<OpenView> {
        let folder = self.folder(run, name)?;
        let lock = lock(&folder)?;
        let since = kept::since(&folder)?;
        Ok(OpenView {
            name: name.to_owned(),
            folder,
            since,
            kept: AtomicBool::new(true),
            left: AtomicBool::new(false),
            _lock: lock,
        })
    }
}

fn make_folder(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}

/// Locks a folder for this process until the file is closed.
fn lock(folder: &Path) -> io::Result<File> {
    let file = File::open(folder)?;
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(file),
        Err(rustix::io::Errno::WOULDBLOCK) => {
            Err(io::Error::other("another process decides about it"))
        }
        Err(error) => Err(error.into()),
    }
}

/// Removes a view's folder.
fn remove(folder: &Path) {
    // The overlay closes its own folder to everybody.
    let _ = fs::set_permissions(
        folder.join(WORK).join("work"),
        fs::Permissions::from_mode(0o700),
    );
    let removed = fs::remove_dir_all(folder).or_else(|_| {
        // A command may have closed folders to their owner.
        open_folders(folder);
        fs::remove_dir_all(folder)
    });
    if let Err(error) = removed
        && error.kind() != io::ErrorKind::NotFound
    {
        tracing::warn!(%error, folder = %folder.display(), "remove the view of a command");
    }
}

/// Lets the owner into each folder that is closed to them.
fn open_folders(folder: &Path) {
    let mut left = vec![folder.to_path_buf()];
    while let Some(folder) = left.pop() {
        let Ok(entries) = fs::read_dir(&folder) else {
            continue;
        };
        for entry in entries.flatten() {
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                let path = entry.path();
                let closed = entry.metadata().map(|meta| meta.permissions());
                if let Ok(mut mode) = closed
                    && mode.mode() & 0o700 != 0o700
                {
                    mode.set_mode(0o700);
                    let _ = fs::set_permissions(&path, mode);
                }
                left.push(path);
            }
        }
    }
}

/// Enough of a SHA-256 to name a folder by.
fn short_hash(text: &str) -> String {
    let hash = Sha256::digest(text.as_bytes());
    let (head, _) = hash.split_at(8);
    head.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// Fails where something is mounted below the root, which an overlay would not show.
pub(super) fn check_mounts(root: &Path) -> Result<(), String> {
    let table = fs::read(MOUNTS).map_err(|error| format!("{MOUNTS}: {error}"))?;
    let below = table
        .split(|byte| *byte == b'\n')
        .filter_map(|line| line.split(|byte| *byte == b' ').nth(4))
        .map(unescaped)
        .find(|point| point.starts_with(root) && point != root);
    match below {
        Some(point) => Err(format!("{} is a mount point", point.display())),
        None => Ok(()),
    }
}

/// A path of the mount table, where three octal digits stand for blanks and the like.
fn unescaped(written: &[u8]) -> PathBuf {
    let (mut path, mut at) = (Vec::with_capacity(written.len()), 0);
    while let Some(byte) = written.get(at) {
        let digits = (*byte == b'\\')
            .then(|| written.get(at + 1..at + 4))
            .flatten();
        let number = digits
            .and_then(|digits| std::str::from_utf8(digits).ok())
            .and_then(|digits| u8::from_str_radix(digits, 8).ok());
        path.push(number.unwrap_or(*byte));
        at += if number.is_some() { 4 } else { 1 };
    }
    PathBuf::from(std::ffi::OsStr::from_bytes(&path))
}

/// Runs a command that does nothing on a view: only mounting says whether there can be one.
pub(super) fn probe(views: &Views) -> Result<(), String> {
    let (run, call) = (RunId::generate(), CallId::new("probe"));
    let folder = views
        .options
        .log
        .views_folder(&run)
        .map_err(|e| e.to_string())?;
    // The folder of a run that never was.
    let made = folder.ancestors().nth(2).map(Path::to_path_buf);
    let tried = views
        .open(&run, &call, "")
        .map_err(|error| error.to_string())
        .and_then(|view| start(views, &view));
    if let Some(made) = made {
        remove(&made);
    }
    tried
}

fn start(views: &Views, view: &OpenView) -> Result<(), String> {
    let root = views.workspace.root();
    let mut mounts = Mounts::workspace(root);
    mounts.view = Some(view.layers());
    let spec = CommandSpec::argv(["true"], root).with_mounts(mounts);
    let sandbox = views.sandbox.for_other_runtime();
    // On a thread of its own: this may be called from one that must not wait.
    let tried = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| error.to_string())?;
        runtime.block_on(async {
            let running = sandbox.start(spec).await;
            let exit = running.map_err(|error| error.to_string())?.wait().await;
            let code = exit.code.unwrap_or(-1);
            if exit.success() {
                Ok(())
            } else {
                Err(format!("a command on a view ended with {code}"))
            }
        })
    });
    tried
        .join()
        .unwrap_or_else(|_| Err("the try failed".to_owned()))
}
