//! `SessionMarks`: what a session of an agent has read that strangers may have written, and which files it changed, kept on disk: without a
//! server each of its hooks is another process, and a command in the jail is one, too.

use std::collections::BTreeSet;
use std::fs::{self, OpenOptions};
use std::io::{self, ErrorKind, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use haft::session::Session;
use haft::untrusted::UntrustedSource;
use haft_command::definitions;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

use crate::hook::key::SessionKey;
use crate::plain_file;
use crate::problem::Problem;
use crate::session_group;

/// Maximum size of the notes of a session, in bytes. What does not fit counts as read and changed.
const MAX_BYTES: u64 = 256 << 10;
/// Maximum number of addresses that are noted of a session. Further ones count as not seen.
const MAX_LINKS: usize = 2_000;
/// The source that stands for all that could not be noted.
const TOO_MANY: &str = "many: more than haft notes of a session";
/// The file that stands for all that could not be noted.
const ANY_FILE: &str = "more files than haft notes of a session";

/// A line of the notes.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Note {
    /// Untrusted content was read from this source.
    Read(String),
    /// This file was changed.
    Changed(String),
    /// Commands that this file defines were approved as it is.
    Approved(String),
    /// This address stood in what was read, as the hash that [`SeenLinks`](haft::untrusted::SeenLinks) has of it.
    Link(u64),
    /// An outcome said this, which holds for later commands, too.
    Said(String),
}

/// The notes of a session, or the shared ones of all that cannot be told apart.
#[derive(Debug)]
pub(crate) struct SessionMarks {
    path: PathBuf,
    noted: Mutex<Noted>,
}

#[derive(Debug, Default)]
struct Noted {
    /// The length of the file up to which it was read.
    length: u64,
    read: Vec<UntrustedSource>,
    changed: BTreeSet<String>,
    said: BTreeSet<String>,
    links: BTreeSet<u64>,
    is_full: bool,
}

impl SessionMarks {
    /// The notes of this session, in whichever folders it works.
    pub(super) fn of(home: &Path, key: &SessionKey) -> Self {
        Self::named(home, &key.name())
    }

    /// The notes with this name, as [`name`](Self::name) returned it.
    pub(crate) fn named(home: &Path, name: &str) -> Self {
        Self {
            path: session_group::file(home, name, "marks"),
            noted: Mutex::default(),
        }
    }

    /// Returns the name under which another process finds them.
    pub(super) fn name(&self) -> &str {
        let name = self.path.file_stem().and_then(|name| name.to_str());
        name.unwrap_or_default()
    }

    /// Reads what processes have noted since the last time, and returns all sources.
    ///
    /// # Errors
    /// The notes cannot be read. A call must not be judged without them.
    pub(crate) fn sources(&self) -> Result<Vec<UntrustedSource>, Problem> {
        let mut noted = self.noted.lock();
        self.refresh(&mut noted)?;
        Ok(noted.read.clone())
    }

    /// Has a run judged as one that has read what the session read, whichever of its processes did.
    ///
    /// # Errors
    /// The notes cannot be read.
    pub(crate) fn recall(&self, run: &Session) -> Result<(), Problem> {
        run.note_untrusted(self.sources()?);
        let links = self.noted.lock().links.clone();
        run.links().note_hashes(links);
        Ok(())
    }

    /// Notes addresses that stood in what was read. What cannot be noted is asked about.
    pub(super) fn note_links(&self, found: impl IntoIterator<Item = u64>) {
        let mut noted = self.noted.lock();
        let room = MAX_LINKS.saturating_sub(noted.links.len());
        let found: BTreeSet<u64> = found.into_iter().collect();
        let new = found.difference(&noted.links).take(room);
        let new: Vec<Note> = new.copied().map(Note::Link).collect();
        if let Err(problem) = self.add(&mut noted, &new) {
            tracing::warn!(%problem, "note links that an agent's session has read");
        }
    }

    /// Returns the changed files that define what a line runs.
    pub(super) fn changed_definitions(&self, line: &str) -> Vec<String> {
        let noted = self.noted.lock();
        if noted.changed.is_empty() && !noted.is_full {
            return Vec::new();
        }
        let files = noted.changed.iter().map(String::as_str);
        let mut found: Vec<String> = definitions(line, files)
            .into_iter()
            .map(str::to_owned)
            .collect();
        if noted.is_full {
            found.push(ANY_FILE.to_owned());
        }
        found
    }

    /// Notes sources that were read, before they are.
    ///
    /// # Errors
    /// They cannot be written.
    pub(crate) fn note_read(&self, sources: &[UntrustedSource]) -> Result<(), Problem> {
        let mut noted = self.noted.lock();
        let is_new = |source: &&UntrustedSource| {
            let mut known = noted.read.iter();
            !known.any(|known| known.origin() == source.origin())
        };
        let new: Vec<Note> = sources
            .iter()
            .filter(is_new)
            .map(|source| Note::Read(source.to_string()))
            .collect();
        self.add(&mut noted, &new)
    }

    /// Notes files that are changed, before they are.
    ///
    /// # Errors
    /// They cannot be written.
    pub(super) fn note_changed(&self, files: &[String]) -> Result<(), Problem> {
        let mut noted = self.noted.lock();
        let new: Vec<Note> = files
            .iter()
            .filter(|file| !noted.changed.contains(*file))
            .map(|file| Note::Changed(file.clone()))
            .collect();
        self.add(&mut noted, &new)
    }

    /// Notes that a person let a command run that these files define. It may do so until they are changed again. What cannot be noted is
    /// asked about again.
    pub(super) fn note_approved(&self, files: &[String]) {
        let mut noted = self.noted.lock();
        let known = files.iter().filter(|file| noted.changed.contains(*file));
        let new: Vec<Note> = known.map(|file| Note::Approved(file.clone())).collect();
        if let Err(problem) = self.add(&mut noted, &new) {
            tracing::warn!(%problem, "note an approved command of an agent's session");
        }
    }

    /// Returns true if no outcome of the session has said this, as far as is known, and notes that one does.
    pub(super) fn is_first(&self, said: &str) -> bool {
        let mut noted = self.noted.lock();
        let known = self.refresh(&mut noted).is_ok() && noted.said.contains(said);
        if !known && let Err(problem) = self.add(&mut noted, &[Note::Said(said.to_owned())]) {
            tracing::warn!(%problem, "note what an outcome said to an agent's session");
        }
        !known
    }

    /// Keeps the notes from being removed as old ones.
    pub(super) fn keep(&self) {
        session_group::touch(&self.path);
    }

    fn add(&self, noted: &mut Noted, new: &[Note]) -> Result<(), Problem> {
        if new.is_empty() {
            return Ok(());
        }
        self.refresh(noted)?;
        if noted.is_full {
            return Ok(());
        }
        self.append(new).map_err(|error| {
            Problem::failed(format!(
                "cannot note what this session of the agent reads and changes: {error}"
            ))
            .advise("make the state folder writable; if it keeps failing, run `haft doctor`")
        })?;
        self.refresh(noted)
    }

    fn append(&self, new: &[Note]) -> io::Result<()> {
        let mut text = String::new();
        for note in new {
            text.push_str(&serde_json::to_string(note)?);
            text.push('\n');
        }
        if let Some(folder) = self.path.parent() {
            plain_file::private_folder(folder)?;
        }
        let mut options = OpenOptions::new();
        options.append(true).create(true).mode(0o600);
        // One write: of two processes that append at the same time, neither splits the other's lines.
        options.open(&self.path)?.write_all(text.as_bytes())
    }

    fn refresh(&self, noted: &mut Noted) -> Result<(), Problem> {
        let length = match fs::symlink_metadata(&self.path) {
            Ok(meta) => meta.len(),
            Err(error) if error.kind() == ErrorKind::NotFound => 0,
            Err(error) => return Err(unreadable(&error)),
        };
        if length == noted.length {
            return Ok(());
        }
        if length > MAX_BYTES {
            noted.is_full = true;
            noted.length = length;
            add_source(&mut noted.read, UntrustedSource::recorded(TOO_MANY));
            return Ok(());
        }
        let text = plain_file::read(&self.path, MAX_BYTES).map_err(|error| unreadable(&error))?;
        let mut now = Noted {
            length: text.len() as u64,
            ..Noted::default()
        };
        for line in text.lines() {
            match serde_json::from_str(line) {
                Ok(Note::Read(source)) => {
                    add_source(&mut now.read, UntrustedSource::recorded(&source));
                }
                Ok(Note::Changed(file)) => {
                    now.changed.insert(file);
                }
                Ok(Note::Approved(file)) => {
                    now.changed.remove(&file);
                }
                Ok(Note::Link(link)) => {
                    now.links.insert(link);
                }
                Ok(Note::Said(said)) => {
                    now.said.insert(said);
                }
                // A line that was cut off when the disk was full, or of another version of haft.
                Err(_) => {
                    now.is_full = true;
                    add_source(&mut now.read, UntrustedSource::recorded(TOO_MANY));
                }
            }
        }
        *noted = now;
        Ok(())
    }
}

fn add_source(all: &mut Vec<UntrustedSource>, source: UntrustedSource) {
    if !all.contains(&source) {
        all.push(source);
    }
}

fn unreadable(error: &io::Error) -> Problem {
    Problem::failed(format!(
        "cannot read what this session of the agent has read and changed: {error}"
    ))
    .advise("if it keeps failing, run `haft doctor`")
}

#[cfg(test)]
mod tests {
    use haft_hook::Agent;

    use super::*;

    fn key(session: &str) -> SessionKey {
        SessionKey {
            agent: Agent::Claude,
            session: session.to_owned(),
            process: None,
        }
    }

    #[test]
    fn notes_are_seen_by_other_processes_and_by_no_other_session() {
        let home = tempfile::tempdir().unwrap();
        let one = SessionMarks::of(home.path(), &key("a"));
        let source = UntrustedSource::recorded("host x: a page");
        one.note_read(std::slice::from_ref(&source)).unwrap();
        one.note_read(std::slice::from_ref(&source)).unwrap();
        one.note_changed(&["/w/package.json".to_owned()]).unwrap();
        let same = SessionMarks::named(home.path(), one.name());
        assert_eq!(same.sources().unwrap(), [source]);
        assert_eq!(same.changed_definitions("npm test"), ["/w/package.json"]);
        assert!(same.changed_definitions("cargo test").is_empty());
        same.note_approved(&["/w/package.json".to_owned()]);
        assert_eq!(one.sources().unwrap().len(), 1);
        assert!(one.changed_definitions("npm test").is_empty());
        assert!(one.is_first("a note") && !same.is_first("a note"));
        let other = SessionMarks::of(home.path(), &key("b"));
        assert!(other.is_first("a note"));
        assert!(other.sources().unwrap().is_empty());
        assert!(session_group::is_name(one.name()) && !session_group::is_name("../x"));
    }

    #[test]
    fn what_cannot_be_noted_counts_as_read_and_changed() {
        let home = tempfile::tempdir().unwrap();
        for text in ["{\"read\":\"ho", &"x\n".repeat(200_000)] {
            let marks = SessionMarks::of(home.path(), &key("a"));
            marks.note_changed(&["/w/a".to_owned()]).unwrap();
            fs::write(&marks.path, text).unwrap();
            let sources = marks.sources().unwrap();
            assert_eq!(sources[0].origin(), "many", "{sources:?}");
            assert_eq!(marks.changed_definitions("cargo test"), [ANY_FILE]);
        }
    }
}
