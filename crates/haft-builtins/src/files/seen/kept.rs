//! `KeptReads`: what each run has read, kept beside its record, so that the process that resumes the run knows it, too.
//!
//! A line holds what is known of a file from then on: its hash, that it was moved, or, without either, that it is forgotten with
//! everything below it. The file only saves a run from reading again: a change is still refused where the content has another hash.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use haft::audit::runs;
use haft::call::RunId;
use haft::change::PathText;
use rustix::fs::OFlags;
use serde::{Deserialize, Serialize};

/// The file in the run's folder.
const FILE_NAME: &str = "files-read.jsonl";
/// Maximum size of the file, in bytes; beyond it, all files are forgotten.
const MAX_BYTES: u64 = 16 << 20;

/// What a run knows of a path from this line on.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct ReadLine {
    pub(super) path: PathText,
    /// The SHA-256 of the content that the run has read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) sha256: Option<String>,
    /// True if the content was shown, not only the type and size.
    #[serde(default)]
    pub(super) shown: bool,
    /// The path from which this one was moved, with everything below it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) from: Option<PathText>,
}

impl ReadLine {
    /// Returns the line that forgets a path.
    pub(super) fn forgets(path: &Path) -> Self {
        Self {
            path: path.into(),
            sha256: None,
            shown: false,
            from: None,
        }
    }
}

/// The files of all runs, below haft's state folder.
#[derive(Debug)]
pub(super) struct KeptReads {
    home: PathBuf,
}

impl KeptReads {
    pub(super) fn new(home: PathBuf) -> Self {
        Self { home }
    }

    /// Returns the size of a run's file; 0 if there is none.
    pub(super) fn size(&self, run: &RunId) -> u64 {
        let file = path(&self.home, run).and_then(std::fs::metadata);
        file.map_or(0, |file| file.len())
    }

    /// Returns a run's lines and their size. What cannot be read counts as not there: the run reads its files again.
    pub(super) fn lines(&self, run: &RunId) -> (Vec<ReadLine>, u64) {
        let mut text = Vec::new();
        let file =
            path(&self.home, run).and_then(|path| open(&path, OpenOptions::new().read(true)));
        let read = file.and_then(|file| file.take(MAX_BYTES).read_to_end(&mut text));
        if read.is_err() {
            return (Vec::new(), 0);
        }
        let lines = text.split(|byte| *byte == b'\n');
        let lines = lines.filter_map(|line| serde_json::from_slice(line).ok());
        (lines.collect(), text.len() as u64)
    }

    /// Adds a line; returns the file's size afterwards, or `None` if it is full and was emptied.
    pub(super) fn add(&self, run: &RunId, line: &ReadLine) -> io::Result<Option<u64>> {
        let mut text = serde_json::to_vec(line)?;
        text.push(b'\n');
        let path = path(&self.home, run)?;
        let mut file = open(
            &path,
            OpenOptions::new().append(true).create(true).mode(0o600),
        )?;
        if file.metadata()?.len() + text.len() as u64 > MAX_BYTES {
            file.set_len(0)?;
            return Ok(None);
        }
        file.write_all(&text)?;
        Ok(Some(file.metadata()?.len()))
    }
}

/// Lets a run that continues a finished one know what that one has read: it has its conversation.
///
/// # Errors
/// The file cannot be copied. The later run then reads its files again.
pub fn continue_reads(home: &Path, earlier: &RunId, later: &RunId) -> io::Result<()> {
    let earlier = match open(&path(home, earlier)?, OpenOptions::new().read(true)) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    let mut options = OpenOptions::new();
    let mut later = open(
        &path(home, later)?,
        options.write(true).create_new(true).mode(0o600),
    )?;
    io::copy(&mut earlier.take(MAX_BYTES), &mut later).map(drop)
}

fn path(home: &Path, run: &RunId) -> io::Result<PathBuf> {
    let folder = runs::run_dir(home, run.as_str()).map_err(io::Error::other)?;
    Ok(folder.join(FILE_NAME))
}

/// Opens a regular file, never through a link or as a pipe.
fn open(path: &Path, options: &mut OpenOptions) -> io::Result<File> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let file = options
        .custom_flags(flags.bits().cast_signed())
        .open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("not a regular file"));
    }
    Ok(file)
}
