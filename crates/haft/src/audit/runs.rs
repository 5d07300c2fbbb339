//! The archives on disk: which runs exist, and what each recorded.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead as _, BufReader, Read as _, Seek as _, SeekFrom};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use crate::audit::RunStart;
use crate::audit::index::{ClosedEvent, RunEntry, RunState};
use crate::audit::layout::{self, RECORD, TOOLS};
use crate::audit::line::{self, MAX_LINE, ParsedLine, kind};
use crate::budget::EffectCounts;
use crate::call::{Principal, RunId};
use crate::file_lock;
use crate::policy::RunProperties;
use crate::result::Status;
use crate::untrusted::UntrustedSource;

pub use crate::audit::layout::Holder;
pub use haft_types::run_folder::{InvalidRunId, run_dir};

/// Why an archive could not be read.
#[derive(Debug, thiserror::Error)]
pub enum RunsError {
    /// The id is not valid as a folder name.
    #[error(transparent)]
    BadId(#[from] InvalidRunId),
    /// There is no such run.
    #[error("no run {0}")]
    NotFound(String),
    /// Reading failed.
    #[error("read {path}: {source}")]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
}

impl RunsError {
    fn at(path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io { path, source }
    }
}

/// Returns at most `limit` runs with a readable start, newest first, according to the archives, not the index.
///
/// # Errors
/// [`RunsError::Io`] if the folder of runs cannot be listed.
pub fn list(home: &Path, limit: usize) -> Result<Vec<RunEntry>, RunsError> {
    let runs = home.join("runs");
    let entries = match fs::read_dir(&runs) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        read => read.map_err(RunsError::at(&runs))?,
    };
    let mut recorded = Vec::new();
    for entry in entries {
        let dir = entry.map_err(RunsError::at(&runs))?.path();
        // If a run dies while its folder is created, there is no first line: nothing happened in it.
        if let Ok(Some((run, started, start))) = read_start(&dir) {
            recorded.push((started, run, start, dir));
        }
    }
    recorded.sort_by(|a, b| (&b.0, &b.1).cmp(&(&a.0, &a.1)));
    recorded.truncate(limit);
    let whole = |(started, run, start, dir): (String, RunId, RunStart, PathBuf)| {
        with_end(&dir, run, started, start)
    };
    Ok(recorded.into_iter().map(whole).collect())
}

/// Returns one run according to its archive; `None` without a readable start.
///
/// # Errors
/// [`RunsError::BadId`] if the id could lead elsewhere.
pub fn entry(home: &Path, run: &str) -> Result<Option<RunEntry>, RunsError> {
    let dir = run_dir(home, run)?;
    let run_start = read_start(&dir).ok().flatten();
    Ok(run_start.map(|(run, started, start)| with_end(&dir, run, started, start)))
}

/// Adds the end of a run's record to its start.
fn with_end(dir: &Path, run: RunId, started: String, start: RunStart) -> RunEntry {
    let (ended, closed) = ending(dir).ok().flatten().unzip();
    let calls = closed.as_ref().map(|closed: &ClosedEvent| closed.calls);
    RunEntry {
        run,
        start,
        state: if closed.is_some() {
            RunState::Closed
        } else {
            RunState::Open
        },
        started,
        ended,
        calls: calls.unwrap_or_else(|| count_lines(&dir.join(TOOLS)).unwrap_or(0)),
        closed,
        notes: None,
    }
}

/// Returns the lines of a run's record, one JSON text each, in order; a torn last line is omitted.
///
/// # Errors
/// [`RunsError::BadId`] if the id could lead elsewhere, [`RunsError::NotFound`] if there is no such run, [`RunsError::Io`] if its
/// record cannot be read.
pub fn events(home: &Path, run: &str) -> Result<RunEvents, RunsError> {
    let path = run_dir(home, run)?.join(RECORD);
    match open(&path) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => Err(RunsError::NotFound(run.to_owned())),
        opened => Ok(RunEvents {
            lines: LineReader::new(opened.map_err(RunsError::at(&path))?),
            path,
        }),
    }
}

/// Iterator over a run's events.
#[derive(Debug)]
pub struct RunEvents {
    lines: LineReader,
    path: PathBuf,
}

impl Iterator for RunEvents {
    type Item = Result<String, RunsError>;

    fn next(&mut self) -> Option<Self::Item> {
        match self.lines.next() {
            Ok(LineRead::Line(line)) => Some(Ok(String::from_utf8_lossy(line).into_owned())),
            Ok(LineRead::Torn | LineRead::End) => None,
            Ok(LineRead::TooLong) => {
                let long = io::Error::other("a line longer than any that is written");
                Some(Err(RunsError::at(&self.path)(long)))
            }
            Err(error) => Some(Err(RunsError::at(&self.path)(error))),
        }
    }
}

/// Finds the process that currently writes a run's record.
///
/// # Errors
/// The run has no folder here, so another machine may hold it; or its folder cannot be opened.
pub fn holder(home: &Path, run: &str) -> Result<Holder, RunsError> {
    let dir = run_dir(home, run)?;
    layout::holder(&dir).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => RunsError::NotFound(run.to_owned()),
        _ => RunsError::at(&dir)(error),
    })
}

/// Returns the process that currently writes a run's record, as far as the system tells.
pub fn holding_process(home: &Path, run: &str) -> Option<u32> {
    let folder = File::open(run_dir(home, run).ok()?).ok()?;
    file_lock::writer(&folder)
}

/// Returns the highest call number of a run, in haft's own numbering; 0 if there is none. A process that resumes the run continues
/// from there.
///
/// # Errors
/// [`RunsError::BadId`] if the id could lead elsewhere, [`RunsError::NotFound`] if there is no such run, [`RunsError::Io`] if its
/// record cannot be read.
pub fn last_call(home: &Path, run: &str) -> Result<u64, RunsError> {
    let mut last = 0;
    for line in events(home, run)? {
        let line = line?;
        let call =
            ParsedLine::parse(line.as_bytes()).and_then(|line| line.call.map(Cow::into_owned));
        let number = call.and_then(|call| call.strip_prefix("call-")?.parse().ok());
        last = last.max(number.unwrap_or_default());
    }
    Ok(last)
}

/// Returns the untrusted sources that a run has read, according to its record; a call that started counts as having read them.
///
/// # Errors
/// [`RunsError::BadId`] if the id could lead elsewhere, [`RunsError::NotFound`] if there is no such run, [`RunsError::Io`] if its
/// record cannot be read.
pub fn untrusted(home: &Path, run: &str) -> Result<Vec<UntrustedSource>, RunsError> {
    let mut all: Vec<UntrustedSource> = Vec::new();
    for line in events(home, run)? {
        let line = line?;
        let read = ParsedLine::parse(line.as_bytes());
        for text in read.iter().flat_map(|line| &line.untrusted) {
            let source = UntrustedSource::recorded(text);
            if !all.contains(&source) {
                all.push(source);
            }
        }
    }
    Ok(all)
}

/// Returns what the started calls of a run used of the effect budgets, according to its record.
///
/// # Errors
/// [`RunsError::BadId`] if the id could lead elsewhere, [`RunsError::NotFound`] if there is no such run, [`RunsError::Io`] if its
/// record cannot be read.
pub fn uses(home: &Path, run: &str) -> Result<EffectCounts, RunsError> {
    let mut all = EffectCounts::NONE;
    for line in events(home, run)? {
        let line = line?;
        let read = ParsedLine::parse(line.as_bytes());
        if let Some(line) = read.filter(|line| line.kind == kind::CALL_STARTED) {
            all = all.plus(line.uses);
        }
    }
    Ok(all)
}

/// Returns what a run holds of the Rule of Two, according to its record; a call that started counts.
///
/// # Errors
/// [`RunsError::BadId`] if the id could lead elsewhere, [`RunsError::NotFound`] if there is no such run, [`RunsError::Io`] if its
/// record cannot be read.
pub fn properties(home: &Path, run: &str) -> Result<RunProperties, RunsError> {
    let mut all = RunProperties::NONE;
    for line in events(home, run)? {
        let line = line?;
        if let Some(line) = ParsedLine::parse(line.as_bytes()) {
            all = all.or(RunProperties {
                untrusted: !line.untrusted.is_empty(),
                private: line.private,
                sends: line.sends,
            });
        }
    }
    Ok(all)
}

/// Returns the ids of the calls that started according to a run's record, except those suspended since: they continue when made
/// again.
///
/// # Errors
/// [`RunsError::BadId`] if the id could lead elsewhere, [`RunsError::NotFound`] if there is no such run, [`RunsError::Io`] if its
/// record cannot be read.
pub fn started(home: &Path, run: &str) -> Result<BTreeSet<String>, RunsError> {
    let mut all = BTreeSet::new();
    for line in events(home, run)? {
        let line = line?;
        let Some(line) = ParsedLine::parse(line.as_bytes()) else {
            continue;
        };
        let suspended = line.status.as_deref() == Some(Status::Suspended.as_str());
        match (line.call, &*line.kind) {
            (Some(call), kind::CALL_STARTED) => _ = all.insert(call.into_owned()),
            (Some(call), kind::CALL_ENDED) if suspended => _ = all.remove(&*call),
            _ => {}
        }
    }
    Ok(all)
}

/// Returns how a run's archive was closed, from its last line; `None` while it is open.
///
/// # Errors
/// The record cannot be read.
pub fn closed(dir: &Path) -> io::Result<Option<ClosedEvent>> {
    Ok(ending(dir)?.map(|(_, closed)| closed))
}

/// Returns when a run's archive was closed (RFC 3339, UTC), and how, from its last line; `None` while it is open.
///
/// # Errors
/// The record cannot be read.
pub fn ending(dir: &Path) -> io::Result<Option<(String, ClosedEvent)>> {
    let mut file = open(&dir.join(RECORD))?;
    let length = file.metadata()?.len();
    let from = length.saturating_sub(MAX_LINE as u64 + 1);
    file.seek(SeekFrom::Start(from))?;
    let mut tail = Vec::new();
    file.take(MAX_LINE as u64 + 1).read_to_end(&mut tail)?;
    if tail.pop() != Some(b'\n') {
        return Ok(None);
    }
    let start = memchr::memrchr(b'\n', &tail).map_or(0, |at| at + 1);
    let text = &tail[start..];
    let parsed = ParsedLine::parse(text).filter(|line| line.kind == kind::CLOSED);
    Ok(parsed.and_then(|line| {
        let closed = ClosedEvent {
            count: line.count?,
            head: line.head.as_deref()?.to_owned(),
            calls: line.calls?,
            seal: line::hash(text),
        };
        Some((line.ts.into_owned(), closed))
    }))
}

/// Returns the content of a run's first line.
fn read_start(dir: &Path) -> io::Result<Option<(RunId, String, RunStart)>> {
    let mut lines = LineReader::new(open(&dir.join(RECORD))?);
    let LineRead::Line(text) = lines.next()? else {
        return Ok(None);
    };
    let Some(line) = ParsedLine::parse(text).filter(|line| line.kind == kind::RUN_STARTED) else {
        return Ok(None);
    };
    let text = |member: Option<std::borrow::Cow<'_, str>>| member.unwrap_or_default().into_owned();
    let principal = text(line.principal);
    let (tenant, subject) = principal.split_once('/').unwrap_or(("", &principal));
    let start = RunStart {
        principal: Principal::new(tenant, subject),
        entry_point: text(line.door),
        workspace: line.workspace.map(std::borrow::Cow::into_owned),
        profile: text(line.profile),
    };
    Ok(Some((
        RunId::new(line.run.as_ref()),
        line.ts.into_owned(),
        start,
    )))
}

fn count_lines(path: &Path) -> io::Result<u64> {
    let mut reader = BufReader::new(open(path)?);
    let mut count = 0;
    loop {
        let read = reader.fill_buf()?;
        if read.is_empty() {
            return Ok(count);
        }
        count += memchr::memchr_iter(b'\n', read).count() as u64;
        let read = read.len();
        reader.consume(read);
    }
}

/// Opens a file of an archive, never the target of a link in its place.
fn open(path: &Path) -> io::Result<File> {
    let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
    let mut options = OpenOptions::new();
    let file = options
        .read(true)
        .custom_flags(flags.bits().cast_signed())
        .open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("not a regular file"));
    }
    Ok(file)
}

/// Reads a file line by line, with a limit on each.
#[derive(Debug)]
pub(super) struct LineReader {
    /// `None` if there is no file, which reads like an empty one.
    reader: Option<BufReader<File>>,
    line: Vec<u8>,
}

/// The next item of `LineReader`.
#[derive(Debug)]
pub(super) enum LineRead<'a> {
    /// A complete line, without its newline.
    Line(&'a [u8]),
    /// The end of the file, after an incomplete line.
    Torn,
    /// A line longer than the longest that is written.
    TooLong,
    /// The end of the file.
    End,
}

impl LineReader {
    fn new(file: File) -> Self {
        Self {
            reader: Some(BufReader::with_capacity(64 << 10, file)),
            line: Vec::new(),
        }
    }

    /// Opens a file that may be missing.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        match open(path) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(Self {
                reader: None,
                line: Vec::new(),
            }),
            opened => Ok(Self::new(opened?)),
        }
    }

    pub(super) fn next(&mut self) -> io::Result<LineRead<'_>> {
        let Some(reader) = &mut self.reader else {
            return Ok(LineRead::End);
        };
        self.line.clear();
        reader
            .take(MAX_LINE as u64 + 1)
            .read_until(b'\n', &mut self.line)?;
        Ok(match self.line.split_last() {
            Some((b'\n', line)) => LineRead::Line(line),
            Some(_) if self.line.len() > MAX_LINE => LineRead::TooLong,
            Some(_) => LineRead::Torn,
            None => LineRead::End,
        })
    }
}
