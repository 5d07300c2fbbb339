//! `ReadTracker`: which files each run has read, and in which state, so that writes do not overwrite unseen changes. It is kept beside the run's
//! record, so that a run continues with it in whatever process resumes it.

use std::collections::HashMap;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use haft::call::RunId;
use haft::error::ToolError;
use haft::workspace::{FileStamp, ResolvedPath, Workspace};
use parking_lot::{Mutex, MutexGuard};
use sha2::{Digest, Sha256};

use haft::text::hex;

mod kept;

pub use kept::continue_reads;
use kept::{KeptReads, ReadLine};

/// Maximum number of runs in memory; the least recently used one is forgotten first, and read from its file again if it has one.
const MAX_RUNS: usize = 256;
/// Maximum number of files remembered per run; beyond it, all of the run's files are forgotten.
const MAX_FILES: usize = 20_000;

/// The state of a file when a run last saw it.
#[derive(Debug, Clone)]
struct SeenState {
    /// `None` if another process saw it.
    stamp: Option<FileStamp>,
    sha256: String,
    /// True if the content was shown, not only the type and size.
    shown: bool,
}

impl SeenState {
    fn new(stamp: FileStamp, sha256: &str, shown: bool) -> Self {
        Self {
            stamp: Some(stamp),
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
            "{path:?} exists and was not read in this run, as far as haft knows"
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
    files: HashMap<PathBuf, SeenState>,
    /// The size of the run's file up to which this is known; another process may add to it.
    kept_bytes: u64,
}

impl SeenFiles {
    /// Returns whether a line holds nothing new.
    fn holds(&self, line: &ReadLine) -> bool {
        let known = self.files.get(&*line.path);
        match &line.sha256 {
            Some(sha256) => {
                known.is_some_and(|known| known.sha256 == *sha256 && known.shown >= line.shown)
            }
            None if line.from.is_some() => false,
            None => !self
                .files
                .keys()
                .any(|known| known.starts_with(&*line.path)),
        }
    }

    /// Follows a line of the run's file, or what has just happened in this process.
    fn follow(&mut self, line: ReadLine, stamp: Option<FileStamp>) {
        let path = line.path.0;
        match (line.sha256, line.from) {
            (Some(sha256), _) => {
                let sight = SeenState {
                    stamp,
                    sha256,
                    shown: line.shown,
                };
                self.insert(path, sight);
            }
            (None, Some(from)) => self.rename(&from, &path),
            (None, None) => self.files.retain(|known, _| !known.starts_with(&path)),
        }
    }

    fn insert(&mut self, path: PathBuf, mut sight: SeenState) {
        if self.files.len() >= MAX_FILES {
            self.files.clear();
        }
        // An image that was viewed remains shown if only its type is given later.
        let known = self.files.get(&path);
        sight.shown |= known.is_some_and(|known| known.shown && known.sha256 == sight.sha256);
        self.files.insert(path, sight);
    }

    fn rename(&mut self, from: &Path, to: &Path) {
        let below = self.files.keys().filter(|path| path.starts_with(from));
        let moved: Vec<PathBuf> = below.cloned().collect();
        for path in moved {
            let Some(sight) = self.files.remove(&path) else {
                continue;
            };
            let rest = path.strip_prefix(from).unwrap_or(Path::new(""));
            let new = if rest.as_os_str().is_empty() {
                to.to_path_buf()
            } else {
                to.join(rest)
            };
            self.files.insert(new, sight);
        }
    }
}

#[derive(Debug, Default)]
struct SeenByRun {
    clock: u64,
    runs: HashMap<RunId, SeenFiles>,
}

/// The files that every run has read. Listing or searching a folder does not count.
#[derive(Debug, Default)]
pub(crate) struct ReadTracker {
    runs: Mutex<SeenByRun>,
    /// `None` to know it only as long as this process runs.
    kept: Option<KeptReads>,
}

impl ReadTracker {
    /// Creates the record of what runs read, kept below haft's state folder if there is one.
    pub(crate) fn kept_in(home: Option<PathBuf>) -> Self {
        Self {
            runs: Mutex::default(),
            kept: home.map(KeptReads::new),
        }
    }

    fn lock(&self) -> MutexGuard<'_, SeenByRun> {
        self.runs.lock()
    }

    /// Records that a run was shown this state of a file.
    pub(crate) fn note(&self, run: &RunId, path: &Path, stamp: FileStamp, sha256: &str) {
        self.insert(run, path, SeenState::new(stamp, sha256, true));
    }

    /// Records that a run was given the type and size of this state of a file.
    pub(crate) fn note_named(&self, run: &RunId, path: &Path, stamp: FileStamp, sha256: &str) {
        self.insert(run, path, SeenState::new(stamp, sha256, false));
    }

    fn insert(&self, run: &RunId, path: &Path, sight: SeenState) {
        let line = ReadLine {
            path: path.into(),
            sha256: Some(sight.sha256),
            shown: sight.shown,
            from: None,
        };
        self.add(run, line, sight.stamp);
    }

    /// Forgets a file that was deleted or replaced.
    pub(crate) fn forget(&self, run: &RunId, path: &Path) {
        self.add(run, ReadLine::forgets(path), None);
    }

    /// Moves the record of a moved file to its new name.
    pub(crate) fn moved(&self, run: &RunId, from: &Path, to: &Path) {
        let line = ReadLine {
            from: Some(from.into()),
            ..ReadLine::forgets(to)
        };
        self.add(run, line, None);
    }

    fn add(&self, run: &RunId, line: ReadLine, stamp: Option<FileStamp>) {
        let mut runs = self.lock();
        let one = self.known(&mut runs, run);
        let is_known = one.holds(&line);
        if let Some(kept) = self.kept.as_ref().filter(|_| !is_known) {
            match kept.add(run, &line) {
                Ok(Some(bytes)) => one.kept_bytes = bytes,
                Ok(None) => (one.kept_bytes, one.files) = (0, HashMap::new()),
                // The run has no record here, or the disk is full: this process alone knows it.
                Err(error) => tracing::debug!(%run, %error, "keep which files a run has read"),
            }
        }
        one.follow(line, stamp);
    }

    /// Returns what a run has read, also in other processes.
    fn known<'r>(&self, runs: &'r mut SeenByRun, run: &RunId) -> &'r mut SeenFiles {
        let one = runs.touch(run);
        if let Some(kept) = &self.kept
            && kept.size(run) != one.kept_bytes
        {
            let (lines, bytes) = kept.lines(run);
            one.files.clear();
            one.kept_bytes = bytes;
            for line in lines {
                one.follow(line, None);
            }
        }
        one
    }

    /// Fails unless the run knows the file well enough for this purpose and the file has not changed.
    pub(crate) fn require(
        &self,
        run: &RunId,
        workspace: &Workspace,
        place: &ResolvedPath,
        purpose: Purpose,
    ) -> Result<(), ToolError> {
        let path = place.display();
        let mut runs = self.lock();
        let sight = self.known(&mut runs, run).files.get(place.real()).cloned();
        drop(runs);
        let sight = sight.ok_or_else(|| purpose.unread(&path))?;
        if !sight.shown && purpose == Purpose::Change {
            return Err(not_shown(&path));
        }
        let mut open = workspace.read(place)?;
        if sight.stamp.as_ref() == Some(&open.stamp) {
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

impl SeenByRun {
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
