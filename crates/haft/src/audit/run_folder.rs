//! One run's folder during writing: the record, its two views, and the folders for tools and users.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use crate::audit::AuditEvent;
use crate::audit::index::ClosedEvent;
use crate::audit::layout::{ERRORS, FOLDERS, RECORD, STARTER_FOLDER, TOOLS};
use crate::audit::line::{self, LineClass, LinePosition, LineWriter};
use crate::audit::verify::{self, RecordEnd};
use crate::call::RunId;
use crate::file_lock::{self, FileLock};

/// Maximum number of bytes written at once.
const MAX_BATCH: usize = 64 << 10;

/// A run's folder, open for writing.
pub(super) struct RunFolder {
    run: RunId,
    dir: PathBuf,
    /// Lock held while the process that started the run has the folder open.
    _begun_here: Option<FileLock>,
    /// Number of the last line.
    seq: u64,
    /// Hash of the last line.
    prev: String,
    calls: u64,
    record: LineFile,
    tools: LineFile,
    errors: LineFile,
    /// Whether the folder's own directory entries are on disk.
    entered: bool,
    /// Lock held while the record is written here: a second writer would break its hash chain.
    _lock: FileLock,
}

impl RunFolder {
    /// Creates the folder `dir` of a new run.
    pub(super) fn create(dir: PathBuf, run: RunId) -> io::Result<Self> {
        let mut private = DirBuilder::new();
        private.mode(0o700);
        if let Some(parent) = dir.parent() {
            private.recursive(true).create(parent)?;
        }
        private.recursive(false).create(&dir)?;
        for folder in FOLDERS {
            private.create(dir.join(folder))?;
        }
        Ok(Self {
            _lock: lock_folder(&dir, &run)?,
            _begun_here: Some(lock_folder(&dir.join(STARTER_FOLDER), &run)?),
            record: LineFile::create(dir.join(RECORD))?,
            tools: LineFile::create(dir.join(TOOLS))?,
            errors: LineFile::create(dir.join(ERRORS))?,
            run,
            dir,
            seq: 0,
            prev: line::GENESIS.to_owned(),
            calls: 0,
            entered: false,
        })
    }

    /// Opens the folder of a run that another process left; its record must be valid and open. Removes a line that was cut off when
    /// that process ended, and rebuilds the views from the record.
    pub(super) fn reopen(dir: PathBuf, run: RunId) -> io::Result<Self> {
        let lock = lock_folder(&dir, &run)?;
        let RecordEnd {
            seq,
            prev,
            calls,
            bytes,
        } = verify::end(&dir)?;
        let record = LineFile::existing(dir.join(RECORD), Some(bytes))?;
        for view in [TOOLS, ERRORS] {
            verify::rewrite_view(&dir, view)?;
        }
        Ok(Self {
            record,
            tools: LineFile::existing(dir.join(TOOLS), None)?,
            errors: LineFile::existing(dir.join(ERRORS), None)?,
            run,
            dir,
            seq,
            prev,
            calls,
            entered: true,
            _begun_here: None,
            _lock: lock,
        })
    }

    /// Adds an event's line; writes full batches.
    pub(super) fn append(&mut self, event: &AuditEvent, scribe: &mut LineWriter) -> io::Result<()> {
        let start = self.record.buffer.len();
        let place = LinePosition {
            run: self.run.as_str(),
            seq: self.seq + 1,
            prev: &self.prev,
        };
        let written = scribe.write(&mut self.record.buffer, place, event)?;
        self.finish_line(start);
        let line = &self.record.buffer[start..];
        if let LineClass::Ended { error } = written {
            self.calls += 1;
            self.tools.buffer.extend_from_slice(line);
            if error {
                self.errors.buffer.extend_from_slice(line);
            }
        }
        if self.record.buffer.len() >= MAX_BATCH {
            self.flush()?;
        }
        Ok(())
    }

    /// Chains the line that starts at `start` in the record's buffer.
    fn finish_line(&mut self, start: usize) {
        self.prev = line::hash(&self.record.buffer[start..]);
        self.seq += 1;
        self.record.buffer.push(b'\n');
    }

    /// Writes the buffered lines, the record first, so that a view never has more than the record.
    pub(super) fn flush(&mut self) -> io::Result<()> {
        self.record.flush()?;
        self.tools.flush()?;
        self.errors.flush()
    }

    /// Writes the buffered lines and syncs the record to disk.
    pub(super) fn sync(&mut self) -> io::Result<()> {
        self.flush()?;
        self.record.sync()?;
        if !self.entered {
            File::open(&self.dir)?.sync_all()?;
            if let Some(parent) = self.dir.parent() {
                File::open(parent)?.sync_all()?;
            }
            self.entered = true;
        }
        Ok(())
    }

    /// Ends the record with its `closed` line and syncs everything to disk.
    pub(super) fn close(mut self, at: i128) -> io::Result<ClosedEvent> {
        let (count, head) = (self.seq, self.prev.clone());
        let start = self.record.buffer.len();
        let place = LinePosition {
            run: self.run.as_str(),
            seq: self.seq + 1,
            prev: &self.prev,
        };
        line::write_closed(&mut self.record.buffer, place, at, self.calls)?;
        self.finish_line(start);
        self.sync()?;
        self.tools.sync()?;
        self.errors.sync()?;
        Ok(ClosedEvent {
            count,
            head,
            calls: self.calls,
            seal: self.prev,
        })
    }

    /// Closes the files of an idle run; the next line opens them again.
    pub(super) fn rest(&mut self) {
        for sheet in [&mut self.record, &mut self.tools, &mut self.errors] {
            sheet.file = None;
        }
    }
}

/// Locks the folder for this process until dropped.
fn lock_folder(dir: &Path, run: &RunId) -> io::Result<FileLock> {
    file_lock::lock_after_readers(File::open(dir)?)?.ok_or_else(|| {
        let busy = format!("run {run} is still active in another process");
        io::Error::new(io::ErrorKind::ResourceBusy, busy)
    })
}

/// A file of lines, with the lines not written yet.
struct LineFile {
    path: PathBuf,
    file: Option<File>,
    buffer: Vec<u8>,
    /// Number of bytes in the file.
    written: u64,
}

impl LineFile {
    fn create(path: PathBuf) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        let file = options
            .append(true)
            .create_new(true)
            .mode(0o600)
            .open(&path)?;
        Ok(Self {
            path,
            file: Some(file),
            buffer: Vec::new(),
            written: 0,
        })
    }

    /// Opens an existing file, cut to its first `bytes`.
    fn existing(path: PathBuf, bytes: Option<u64>) -> io::Result<Self> {
        let file = open_existing(&path)?;
        if let Some(bytes) = bytes {
            file.set_len(bytes)?;
        }
        Ok(Self {
            path,
            written: file.metadata()?.len(),
            file: Some(file),
            buffer: Vec::new(),
        })
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.buffer.is_empty() {
            return Ok(());
        }
        let written = self.write();
        written.map_err(|e| io::Error::new(e.kind(), format!("{}: {e}", self.path.display())))
    }

    fn write(&mut self) -> io::Result<()> {
        let file = match &mut self.file {
            Some(file) => file,
            none => none.insert(open_existing(&self.path)?),
        };
        let found = file.metadata()?;
        // A write to a removed file succeeds but is lost; one after another process's lines breaks the chain.
        if found.nlink() == 0 {
            return Err(io::Error::other("removed while the run wrote it"));
        }
        if found.len() != self.written {
            return Err(io::Error::other(
                "changed by another program while the run wrote it",
            ));
        }
        file.write_all(&self.buffer)?;
        self.written += self.buffer.len() as u64;
        self.buffer.clear();
        Ok(())
    }

    fn sync(&mut self) -> io::Result<()> {
        if self.written > 0 {
            match &self.file {
                Some(file) => file.sync_data()?,
                None => open_existing(&self.path)?.sync_data()?,
            }
        }
        Ok(())
    }
}

fn open_existing(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    // Open the file itself, never the target of a link put in its place.
    let no_follow = rustix::fs::OFlags::NOFOLLOW.bits();
    options
        .append(true)
        .custom_flags(no_follow.cast_signed())
        .open(path)
}

#[cfg(test)]
mod tests {
    //! Failures that only a broken disk causes.

    use super::*;
    use crate::audit::EventKind;
    use crate::audit::redact::Redactor;

    #[test]
    fn a_full_disk_is_an_error_that_names_the_file() {
        let home = tempfile::tempdir().unwrap();
        let run = RunId::new("r");
        let mut folder = RunFolder::create(home.path().join("runs/r"), run.clone()).unwrap();
        // Every write to it fails with ENOSPC.
        folder.record.file = Some(OpenOptions::new().append(true).open("/dev/full").unwrap());
        let start = crate::audit::RunStart {
            principal: crate::call::Principal::local("ada"),
            entry_point: "call".into(),
            workspace: None,
            profile: "workspace".into(),
        };
        let event = AuditEvent {
            run,
            at: 0,
            what: EventKind::RunStarted(start.into()),
        };
        let mut scribe = LineWriter::new(Redactor::default());
        folder.append(&event, &mut scribe).unwrap();
        let error = folder.sync().unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
        assert!(error.to_string().contains("events.jsonl"), "{error}");
    }
}
