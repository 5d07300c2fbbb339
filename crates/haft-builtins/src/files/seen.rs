//! `Seen`: which files each run has read, and in which state, so that writes do not overwrite unseen changes.

use std::collections::HashMap;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use haft::call::RunId;
use haft::error::ToolError;
use haft::workspace::{FileStamp, Place, Workspace};
use parking_lot::{Mutex, MutexGuard};
use sha2::{Digest, Sha256};

use haft::text::hex;

/// Maximum number of runs remembered; the least recently used one is forgotten first, and must read its files again.
const MAX_RUNS: usize = 256;
/// Maximum number of files remembered per run; beyond it, all of the run's files are forgotten.
const MAX_FILES: usize = 20_000;

/// The state of a file when a run last saw it.
#[derive(Debug, Clone)]
struct LastSeen {
    stamp: FileStamp,
    sha256: String,
    /// True if the content was shown, not only the type and size.
    shown: bool,
}

impl LastSeen {
    fn new(stamp: FileStamp, sha256: &str, shown: bool) -> Self {
        Self {
            stamp,
            sha256: sha256.to_owned(),
            shown,
        }
    }
}

/// The purpose for which a run must know a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// To change or replace its content, which must have been shown.
    Change,
    /// To rename it. For a file that is not text, the type and size are enough.
    Move,
}

impl Purpose {
    /// Returns the error for a file that the run does not know.
    fn unread(self, path: &str) -> ToolError {
        let error = ToolError::conflict(format!(
            "{path:?} exists and was not read in this run, or not since it was resumed"
        ));
        error.with_advice(match self {
            Self::Change => {
                "read it with read_file (a picture: view_image), then change it; file tools do not overwrite what neither can show: write to another path"
            }
            Self::Move => {
                "read it with read_file, then move it; of a file that is not text, the type and size that \
                 read_file gives are enough"
            }
        })
    }

    /// Returns the error for a file that has changed since the run read it.
    fn changed(self, path: &str) -> ToolError {
        let error = ToolError::conflict(format!("{path:?} changed since it was read in this run"));
        error.with_advice(match self {
            Self::Change => "read it again with read_file, then repeat the change on the new text",
            Self::Move => "read it again with read_file, then move it",
        })
    }
}

/// Returns the error for changing a file of which the run knows only the type and size.
fn not_shown(path: &str) -> ToolError {
    ToolError::conflict(format!(
        "{path:?} is not a text file: its content was not shown in this run"
    ))
    .with_advice(
        "view_image shows a picture; file tools do not overwrite what was not shown: write to another path, or move it away first",
    )
}

#[derive(Debug, Default)]
struct SeenFiles {
    used: u64,
    files: HashMap<PathBuf, LastSeen>,
}

#[derive(Debug, Default)]
struct Runs {
    clock: u64,
    runs: HashMap<RunId, SeenFiles>,
}

/// The files that every run has read. Listing or searching a folder does not count.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    runs: Mutex<Runs>,
}

impl Seen {
    fn lock(&self) -> MutexGuard<'_, Runs> {
        self.runs.lock()
    }

    /// Records that a run was shown this state of a file.
    pub(crate) fn note(&self, run: &RunId, path: &Path, stamp: FileStamp, sha256: &str) {
        self.insert(run, path, LastSeen::new(stamp, sha256, true));
    }

    /// Records that a run was given the type and size of this state of a file.
    pub(crate) fn note_named(&self, run: &RunId, path: &Path, stamp: FileStamp, sha256: &str) {
        self.insert(run, path, LastSeen::new(stamp, sha256, false));
    }

    fn insert(&self, run: &RunId, path: &Path, mut sight: LastSeen) {
        let mut runs = self.lock();
        let one = runs.touch(run);
        if one.files.len() >= MAX_FILES {
            one.files.clear();
        }
        // An image that was viewed remains shown if only its type is given later.
        let known = one.files.get(path);
        sight.shown |= known.is_some_and(|known| known.shown && known.sha256 == sight.sha256);
        one.files.insert(path.to_path_buf(), sight);
    }

    /// Forgets a file that was deleted or replaced.
    pub(crate) fn forget(&self, run: &RunId, path: &Path) {
        let mut runs = self.lock();
        let files = &mut runs.touch(run).files;
        files.retain(|known, _| !known.starts_with(path));
    }

    /// Moves the record of a moved file to its new name.
    pub(crate) fn moved(&self, run: &RunId, from: &Path, to: &Path) {
        let mut runs = self.lock();
        let files = &mut runs.touch(run).files;
        let moved: Vec<PathBuf> = files
            .keys()
            .filter(|path| path.starts_with(from))
            .cloned()
            .collect();
        for path in moved {
            let Some(sight) = files.remove(&path) else {
                continue;
            };
            let rest = path.strip_prefix(from).unwrap_or(Path::new(""));
            let new = if rest.as_os_str().is_empty() {
                to.to_path_buf()
            } else {
                to.join(rest)
            };
            files.insert(new, sight);
        }
    }

    /// Fails unless the run knows the file well enough for this purpose and the file has not changed.
    pub(crate) fn require(
        &self,
        run: &RunId,
        workspace: &Workspace,
        place: &Place,
        purpose: Purpose,
    ) -> Result<(), ToolError> {
        let path = place.display();
        let sight = self.lock().touch(run).files.get(place.real()).cloned();
        let sight = sight.ok_or_else(|| purpose.unread(&path))?;
        if !sight.shown && purpose == Purpose::Change {
            return Err(not_shown(&path));
        }
        let mut open = workspace.read(place)?;
        if open.stamp == sight.stamp {
            return Ok(());
        }
        let now = digest(&mut open.file)
            .map_err(|e| ToolError::failed(format!("read {path:?}: {e}")).with_source(e))?;
        if now == sight.sha256 {
            return Ok(());
        }
        Err(purpose.changed(&path))
    }
}

impl Runs {
    fn touch(&mut self, run: &RunId) -> &mut SeenFiles {
        self.clock += 1;
        let now = self.clock;
        if !self.runs.contains_key(run) && self.runs.len() >= MAX_RUNS {
            let oldest = self.runs.iter().min_by_key(|(_, one)| one.used);
            if let Some(oldest) = oldest.map(|(run, _)| run.clone()) {
                self.runs.remove(&oldest);
            }
        }
        let one = self.runs.entry(run.clone()).or_default();
        one.used = now;
        one
    }
}

fn digest(from: &mut impl Read) -> io::Result<String> {
    let mut hasher = Sha256::new();
    io::copy(from, &mut hasher)?;
    Ok(hex(&hasher.finalize()))
}
