//! `ClientMarks`: what the runs of a client have read lately, for its next run: a reconnection, or a restart of haft, makes a conversation
//! forget nothing.

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io::{self, ErrorKind, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

use haft::clock;
use haft::file_lock::FileLock;
use haft::text::hex;
use haft::untrusted::UntrustedSource;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::FOLDER;
use crate::plain_file;

/// Maximum size of a client's marks, in bytes. What does not fit counts as read.
const MAX_BYTES: u64 = 64 << 10;
/// How long a source that is read again is not noted again.
const SAME: Duration = Duration::from_mins(1);
/// The source that stands for all that could not be noted.
const TOO_MANY: &str = "many: more than haft keeps for a client";
/// The ending of the files.
const ENDING: &str = "client";
/// Maximum number of files that are listed.
const MAX_FILES: usize = 10_000;

/// Whose marks they are.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MarkOwner {
    /// The principal, as `tenant/subject`.
    pub principal: String,
    /// The client's name for itself, without its version.
    pub client: Option<String>,
    /// The workspace.
    pub workspace: String,
}

/// A line of the file.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum MarkLine {
    /// The first line.
    Owner(MarkOwner),
    /// A source, and when it was read, in seconds since 1970.
    Read(u64, String),
}

/// The marks of one client.
#[derive(Debug)]
pub(crate) struct ClientMarks {
    path: PathBuf,
    owner: MarkOwner,
    keep: Duration,
    /// When each origin was noted last.
    noted: Mutex<BTreeMap<String, u64>>,
}

/// The marks of a client, for the operator.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct KeptMarks {
    /// Whose they are.
    #[serde(flatten)]
    pub owner: MarkOwner,
    /// What was read: the origin and the label.
    pub sources: Vec<String>,
    /// When something was read last, in seconds since 1970.
    pub last: u64,
    #[serde(skip)]
    path: PathBuf,
}

fn now() -> u64 {
    let since = clock::wall().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_secs())
}

impl ClientMarks {
    pub(crate) fn of(home: &Path, owner: MarkOwner, keep: Duration) -> Self {
        let key = serde_json::to_vec(&owner).unwrap_or_default();
        let name = hex(&Sha256::digest(&key)[..16]);
        Self {
            path: home.join(FOLDER).join(format!("{name}.{ENDING}")),
            owner,
            keep,
            noted: Mutex::default(),
        }
    }

    /// Returns what the client's runs have read within the time that marks are kept.
    pub(crate) fn sources(&self) -> io::Result<Vec<UntrustedSource>> {
        let (all, is_any_old) = self.read()?;
        if is_any_old {
            self.remove_old()?;
        }
        Ok(all)
    }

    /// Returns what still counts, and whether there is anything that no longer does.
    fn read(&self) -> io::Result<(Vec<UntrustedSource>, bool)> {
        let text = match plain_file::read(&self.path, MAX_BYTES) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok((Vec::new(), false)),
            Err(error) => return Err(error),
        };
        let (mut all, mut is_any_old) = (Vec::new(), false);
        for line in text.lines() {
            match serde_json::from_str(line) {
                Ok(MarkLine::Read(at, source)) if self.counts(at) => {
                    all.push(UntrustedSource::recorded(&source));
                }
                Ok(MarkLine::Read(..)) => is_any_old = true,
                Ok(MarkLine::Owner(_)) => {}
                // A line that was cut off when the disk was full, or of another version of haft.
                Err(_) => all.push(UntrustedSource::recorded(super::UNKNOWN)),
            }
        }
        Ok((all, is_any_old))
    }

    fn counts(&self, at: u64) -> bool {
        at >= now().saturating_sub(self.keep.as_secs())
    }

    /// Removes what no longer counts, while nothing is added.
    fn remove_old(&self) -> io::Result<()> {
        let _lock = self.lock()?;
        let text = plain_file::read(&self.path, MAX_BYTES)?;
        let is_old = |line: &&str| {
            let read = serde_json::from_str(line);
            matches!(read, Ok(MarkLine::Read(at, _)) if !self.counts(at))
        };
        let kept: Vec<&str> = text.lines().filter(|line| !is_old(line)).collect();
        if kept.len() <= 1 {
            return fs::remove_file(&self.path);
        }
        plain_file::write_private(&self.path, &(kept.join("\n") + "\n"))
    }

    /// Locks all marks: what is added by one process is lost by none that removes something.
    fn lock(&self) -> io::Result<Option<FileLock>> {
        let Some(folder) = self.path.parent() else {
            return Ok(None);
        };
        plain_file::private_folder(folder)?;
        plain_file::lock_folder(folder).map(Some)
    }

    /// Notes sources that are read, before they are.
    pub(crate) fn keep(&self, sources: &[UntrustedSource]) -> io::Result<()> {
        let at = now();
        let mut noted = self.noted.lock();
        let is_new = |source: &&UntrustedSource| {
            let last = noted.get(source.origin());
            last.is_none_or(|last| at.saturating_sub(*last) >= SAME.as_secs())
        };
        let new: Vec<&UntrustedSource> = sources.iter().filter(is_new).collect();
        if new.is_empty() {
            return Ok(());
        }
        let _lock = self.lock()?;
        let length = match fs::symlink_metadata(&self.path) {
            Ok(meta) => meta.len(),
            Err(error) if error.kind() == ErrorKind::NotFound => 0,
            Err(error) => return Err(error),
        };
        let mut text = String::new();
        if length == 0 {
            add(&mut text, &MarkLine::Owner(self.owner.clone()))?;
        }
        for source in &new {
            add(&mut text, &MarkLine::Read(at, source.to_string()))?;
        }
        let full = MarkLine::Read(at, TOO_MANY.to_owned());
        if length + text.len() as u64 > MAX_BYTES - 4096 {
            // Noted once; what is read from now on counts in any case.
            text.clear();
            add(&mut text, &full)?;
        }
        if length <= MAX_BYTES - 4096 {
            append(&self.path, &text)?;
        }
        for source in new {
            noted.insert(source.origin().to_owned(), at);
        }
        Ok(())
    }
}

fn add(text: &mut String, line: &MarkLine) -> io::Result<()> {
    text.push_str(&serde_json::to_string(line)?);
    text.push('\n');
    Ok(())
}

/// Appends lines in one write: of two processes that append at the same time, neither splits the other's lines.
pub(super) fn append(path: &Path, text: &str) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        plain_file::private_folder(folder)?;
    }
    let mut options = OpenOptions::new();
    options.append(true).create(true).mode(0o600);
    options.open(path)?.write_all(text.as_bytes())
}

/// Returns the marks of all clients that are kept.
///
/// # Errors
/// They cannot be read.
pub fn list(home: &Path) -> io::Result<Vec<KeptMarks>> {
    let entries = match fs::read_dir(home.join(FOLDER)) {
        Ok(entries) => entries,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let mut all = Vec::new();
    for entry in entries.take(MAX_FILES) {
        let path = entry?.path();
        if path.extension().is_some_and(|end| end == ENDING) {
            all.extend(read_kept(path)?);
        }
    }
    all.sort_by(|a, b| b.last.cmp(&a.last).then(a.path.cmp(&b.path)));
    Ok(all)
}

fn read_kept(path: PathBuf) -> io::Result<Option<KeptMarks>> {
    let text = plain_file::read(&path, MAX_BYTES)?;
    let (mut owner, mut sources, mut last) = (None, Vec::new(), 0);
    for line in text.lines() {
        match serde_json::from_str(line) {
            Ok(MarkLine::Owner(found)) => owner = Some(found),
            Ok(MarkLine::Read(at, source)) => {
                last = last.max(at);
                if !sources.contains(&source) {
                    sources.push(source);
                }
            }
            Err(_) => sources.push(super::UNKNOWN.to_owned()),
        }
    }
    let unknown = || MarkOwner {
        principal: String::new(),
        client: None,
        workspace: String::new(),
    };
    let owner = owner.unwrap_or_else(unknown);
    Ok((!sources.is_empty()).then_some(KeptMarks {
        owner,
        sources,
        last,
        path,
    }))
}

/// Forgets marks that [`list`] returned. Runs that are open keep theirs.
///
/// # Errors
/// They cannot be removed.
pub fn clear(all: &[KeptMarks]) -> io::Result<()> {
    for kept in all {
        match fs::remove_file(&kept.path) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owner(client: &str) -> MarkOwner {
        MarkOwner {
            principal: "local/ann".to_owned(),
            client: Some(client.to_owned()),
            workspace: "/w".to_owned(),
        }
    }

    fn marks(home: &Path, client: &str) -> ClientMarks {
        ClientMarks::of(home, owner(client), Duration::from_hours(1))
    }

    #[test]
    fn mark_when_a_run_of_the_client_noted_it_is_there_for_the_next_until_it_is_cleared() {
        let home = tempfile::tempdir().unwrap();
        let source = UntrustedSource::recorded("host x: a page");
        let one = marks(home.path(), "a");
        for _ in 0..100 {
            one.keep(std::slice::from_ref(&source)).unwrap();
        }
        assert_eq!(marks(home.path(), "a").sources().unwrap(), [source]);
        assert!(marks(home.path(), "b").sources().unwrap().is_empty());
        let all = list(home.path()).unwrap();
        assert_eq!((all.len(), &all[0].owner), (1, &owner("a")));
        assert_eq!(all[0].sources, ["host x: a page"]);
        clear(&all).unwrap();
        assert!(marks(home.path(), "a").sources().unwrap().is_empty());
        assert!(list(home.path()).unwrap().is_empty());
    }

    #[test]
    fn mark_when_it_is_old_counts_no_more() {
        let home = tempfile::tempdir().unwrap();
        let one = marks(home.path(), "a");
        one.keep(&[UntrustedSource::recorded("host x: a page")])
            .unwrap();
        let text = fs::read_to_string(&one.path).unwrap();
        let owner = text.lines().next().unwrap();
        let old = format!("{owner}\n{{\"read\":[1,\"host x: a page\"]}}\n");
        fs::write(&one.path, old).unwrap();
        assert!(one.sources().unwrap().is_empty());
        assert!(!one.path.exists());
    }

    #[test]
    fn marks_when_they_are_too_many_or_damaged_count_as_read() {
        let home = tempfile::tempdir().unwrap();
        let one = marks(home.path(), "a");
        for n in 0..2_000 {
            let source = UntrustedSource::recorded(&format!("host {n}: {}", "x".repeat(200)));
            one.keep(&[source]).unwrap();
        }
        assert!(fs::metadata(&one.path).unwrap().len() <= MAX_BYTES);
        let sources = one.sources().unwrap();
        assert!(sources.iter().any(|one| one.origin() == "many"));
        fs::write(&one.path, "{\"read\":[1").unwrap();
        assert_eq!(one.sources().unwrap()[0].origin(), "many");
    }
}
