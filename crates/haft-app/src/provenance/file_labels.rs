//! `FileLabels`: which files of a workspace were written by runs that had read untrusted content, unseen by a person, and from which
//! sources. A run that reads such a file is marked like one that read the sources.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use haft::permission::{Effect, PathClaim, Permission};
use haft::text::hex;
use haft::untrusted::UntrustedSource;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::FOLDER;
use super::client_marks::append;
use super::file_content::FileContent;
use crate::plain_file;

/// Maximum size of the notes of a workspace, in bytes. Beyond, every file of the workspace counts as labelled.
const MAX_BYTES: u64 = 4 << 20;
/// Size above which notes that no longer hold are removed.
const FULL: u64 = 1 << 20;
/// Maximum number of sources that a label has.
const MAX_SOURCES: usize = 8;
/// Maximum number of files whose earlier content is compared.
const MAX_PENDING: usize = 10_000;
/// Folders of packages and build outputs: what is installed or built there is not what the model wrote.
const OUTPUTS: &[&str] = &[
    ".gradle",
    ".mypy_cache",
    ".next",
    ".pytest_cache",
    ".tox",
    ".venv",
    "__pycache__",
    "build",
    "dist",
    "node_modules",
    "obj",
    "out",
    "site-packages",
    "target",
    "vendor",
    "venv",
];
/// What leads to commits in a repository: with new ones, the log has texts that the run fetched or wrote. The label ends when they lead
/// elsewhere. The rest of git's own data says nothing by itself.
const GIT_REFS: &[&str] = &["refs/", "FETCH_HEAD", "packed-refs"];
/// The source that stands for all that could not be noted.
const TOO_MANY: &str = "many: more written files than haft keeps for a workspace";

/// A line of the notes: the later one of a path counts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct LabelLine {
    /// The path from the workspace's root, or an absolute one.
    path: String,
    /// What the run that wrote it had read; empty if the file is no longer labelled.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    sources: Vec<String>,
    /// What was written; `None` while it is not known, and any content counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    content: Option<FileContent>,
}

/// The labels of one workspace, for all runs and processes.
#[derive(Debug)]
pub(crate) struct FileLabels {
    path: PathBuf,
    root: PathBuf,
    read: Mutex<LabelSet>,
    /// What files held before the calls that are about to write them, and their labels.
    before: Mutex<BTreeMap<String, BeforeWrite>>,
}

#[derive(Debug, Clone)]
struct BeforeWrite {
    content: Option<FileContent>,
    label: Option<LabelLine>,
}

#[derive(Debug, Default)]
struct LabelSet {
    /// The length of the notes, and when they were changed, as they were read.
    stamp: Option<plain_file::Stamp>,
    labels: BTreeMap<String, LabelLine>,
    is_full: bool,
}

impl LabelSet {
    fn learn(&mut self, label: LabelLine) {
        if label.sources.is_empty() {
            self.labels.remove(&label.path);
        } else {
            self.labels.insert(label.path.clone(), label);
        }
    }
}

impl FileLabels {
    pub(crate) fn of(home: &Path, root: &Path) -> Self {
        let digest = Sha256::digest(root.as_os_str().as_encoded_bytes());
        let name = hex(&digest[..16]);
        Self {
            path: home.join(FOLDER).join(format!("{name}.files")),
            root: root.to_owned(),
            read: Mutex::default(),
            before: Mutex::default(),
        }
    }

    /// Returns the sources of the labelled files that a call may read: those that it names, those below folders that it names, and for
    /// a command all. A copy of a labelled file counts like the file.
    pub(super) fn of_reads(&self, permissions: &[Permission]) -> io::Result<Vec<UntrustedSource>> {
        let mut set = self.read.lock();
        self.refresh(&mut set)?;
        if set.is_full {
            return Ok(vec![UntrustedSource::recorded(TOO_MANY)]);
        }
        if set.labels.is_empty() {
            return Ok(Vec::new());
        }
        let mut found: Vec<&LabelLine> = Vec::new();
        for permission in permissions {
            match &permission.effect {
                Effect::Run { .. } => {
                    found.extend(set.labels.values().filter(|label| self.holds(label)));
                    break;
                }
                Effect::Read(claim) => {
                    found.extend(paths(claim).flat_map(|path| self.labels_at(&set, path)));
                }
                _ => {}
            }
        }
        let mut sources: Vec<UntrustedSource> = Vec::new();
        for label in found {
            for source in &label.sources {
                let origin = UntrustedSource::recorded(source);
                let text = format!(
                    "{}: {}, which a run wrote that had read {}",
                    origin.origin(),
                    label.path,
                    origin.label()
                );
                let source = UntrustedSource::recorded(&text);
                if !sources
                    .iter()
                    .any(|known| known.origin() == source.origin())
                {
                    sources.push(source);
                }
            }
        }
        Ok(sources)
    }

    /// Notes files that are about to be written: until it is known what, any content of theirs counts. Without sources, nothing is noted.
    pub(super) fn expect(
        &self,
        permissions: &[Permission],
        sources: &[UntrustedSource],
    ) -> io::Result<()> {
        let sources = texts(sources);
        if sources.is_empty() {
            return Ok(());
        }
        let known = self.known()?;
        let mut lines = Vec::new();
        for path in written_paths(permissions) {
            let content = FileContent::of(&self.place(&path)).ok().flatten();
            let label = known.get(&path).cloned();
            let mut before = self.before.lock();
            if before.len() < MAX_PENDING {
                before.insert(path.clone(), BeforeWrite { content, label });
            }
            lines.push(LabelLine {
                path,
                sources: sources.clone(),
                content: None,
            });
        }
        self.add(lines)
    }

    /// Notes files as they are now, with these sources; without, their labels end.
    pub(super) fn written(
        &self,
        permissions: &[Permission],
        sources: &[UntrustedSource],
    ) -> io::Result<()> {
        let sources = texts(sources);
        let known = self.known()?;
        if sources.is_empty() && known.is_empty() {
            return Ok(());
        }
        let line = |path: String| {
            let content = FileContent::of(&self.place(&path)).ok().flatten();
            let before = self.before.lock().remove(&path);
            if let Some(before) = before.filter(|before| before.content == content) {
                // Nothing was written.
                let ends = LabelLine {
                    path,
                    sources: Vec::new(),
                    content: None,
                };
                return Some(before.label.unwrap_or(ends));
            }
            let label = known.get(&path);
            let kept = match (&content, label) {
                (None, _) => Vec::new(),
                // What a marked run wrote is still there, with more behind it.
                (Some(_), Some(label)) if sources.is_empty() && self.has_more_than(label) => {
                    label.sources.clone()
                }
                (Some(_), _) => sources.clone(),
            };
            let is_needed = !kept.is_empty() || known.contains_key(&path);
            is_needed.then_some(LabelLine {
                path,
                sources: kept,
                content,
            })
        };
        self.add(written_paths(permissions).filter_map(line).collect())
    }

    fn known(&self) -> io::Result<BTreeMap<String, LabelLine>> {
        let mut set = self.read.lock();
        self.refresh(&mut set)?;
        Ok(set.labels.clone())
    }

    /// Returns the labels of the file at a path, or of those below it if it is a folder, as far as the files are still as they were written.
    fn labels_at<'a>(&self, set: &'a LabelSet, path: &str) -> Vec<&'a LabelLine> {
        let path = path.trim_end_matches('/');
        let below = |name: &str| {
            path == "."
                || name == path
                || name
                    .strip_prefix(path)
                    .is_some_and(|rest| rest.starts_with('/'))
        };
        let named = set.labels.values().filter(|label| below(&label.path));
        let mut found: Vec<&LabelLine> = named.filter(|label| self.holds(label)).collect();
        if found.is_empty() {
            found.extend(self.label_of_copy(set, path));
        }
        found
    }

    /// Returns the label of a file with the same content.
    fn label_of_copy<'a>(&self, set: &'a LabelSet, path: &str) -> Option<&'a LabelLine> {
        let size = self.place(path).symlink_metadata().ok()?.len();
        let alike = |label: &&LabelLine| {
            let content = label.content.as_ref();
            content.is_some_and(|content| content.size == size && size > 0)
        };
        set.labels.values().find(alike)?;
        let content = FileContent::of(&self.place(path)).ok().flatten()?;
        let mut labels = set.labels.values();
        labels.find(|label| label.content.as_ref() == Some(&content))
    }

    /// Whether the file is still as it was written.
    fn holds(&self, label: &LabelLine) -> bool {
        let Some(written) = &label.content else {
            return true;
        };
        match self.place(&label.path).metadata() {
            Ok(meta) if meta.len() != written.size => false,
            Err(error) if error.kind() == ErrorKind::NotFound => false,
            _ => FileContent::of(&self.place(&label.path))
                .map_or(true, |now| now.as_ref() == Some(written)),
        }
    }

    /// Whether the file is what was written, with more behind it.
    fn has_more_than(&self, label: &LabelLine) -> bool {
        let written = label.content.as_ref();
        written.is_some_and(|written| written.begins(&self.place(&label.path)))
    }

    fn place(&self, path: &str) -> PathBuf {
        self.root.join(path)
    }

    fn add(&self, lines: Vec<LabelLine>) -> io::Result<()> {
        if lines.is_empty() {
            return Ok(());
        }
        if let Some(folder) = self.path.parent() {
            plain_file::private_folder(folder)?;
        }
        let _lock = self
            .path
            .parent()
            .map(plain_file::lock_folder)
            .transpose()?;
        let mut set = self.read.lock();
        self.refresh(&mut set)?;
        if set.is_full {
            return Ok(());
        }
        let new = lines
            .iter()
            .filter(|line| set.labels.get(&line.path) != Some(*line));
        let mut text = String::new();
        for line in new {
            text.push_str(&serde_json::to_string(line)?);
            text.push('\n');
        }
        if text.is_empty() {
            return Ok(());
        }
        append(&self.path, &text)?;
        // The folder is locked, so that nothing else was added since.
        set.stamp = plain_file::stamp(&self.path);
        for line in lines {
            set.learn(line);
        }
        if fs::metadata(&self.path)?.len() > FULL {
            self.compact(&mut set)?;
        }
        Ok(())
    }

    fn refresh(&self, set: &mut LabelSet) -> io::Result<()> {
        let stamp = plain_file::stamp(&self.path);
        if stamp.is_some() && stamp == set.stamp || stamp.is_none() && set.stamp.is_none() {
            return Ok(());
        }
        let text = match plain_file::read(&self.path, MAX_BYTES) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => String::new(),
            Err(_) if fs::metadata(&self.path).is_ok_and(|meta| meta.len() > MAX_BYTES) => {
                set.is_full = true;
                set.stamp = stamp;
                return Ok(());
            }
            Err(error) => return Err(error),
        };
        let mut now = LabelSet {
            stamp,
            ..LabelSet::default()
        };
        for line in text.lines() {
            match serde_json::from_str::<LabelLine>(line) {
                Ok(label) => now.learn(label),
                // A line that was cut off when the disk was full, or of another version of haft.
                Err(_) => now.is_full = true,
            }
        }
        *set = now;
        Ok(())
    }

    /// Writes the notes anew, without those that no longer hold. The folder is locked.
    fn compact(&self, set: &mut LabelSet) -> io::Result<()> {
        let mut text = String::new();
        for label in set.labels.values().filter(|label| self.holds(label)) {
            text.push_str(&serde_json::to_string(label)?);
            text.push('\n');
        }
        plain_file::write_private(&self.path, &text)?;
        set.stamp = None;
        self.refresh(set)
    }
}

/// Forgets the labels of all workspaces.
pub(super) fn clear(home: &Path) -> io::Result<usize> {
    let entries = match fs::read_dir(home.join(FOLDER)) {
        Ok(entries) => entries,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(0),
        Err(error) => return Err(error),
    };
    let mut removed = 0;
    for entry in entries {
        let path = entry?.path();
        if path.extension().is_some_and(|end| end == "files") {
            fs::remove_file(&path)?;
            removed += 1;
        }
    }
    Ok(removed)
}

fn texts(sources: &[UntrustedSource]) -> Vec<String> {
    // Who installs packages has not read them.
    let named = sources.iter().filter(|source| !source.is_registry());
    named.take(MAX_SOURCES).map(ToString::to_string).collect()
}

fn written_paths(permissions: &[Permission]) -> impl Iterator<Item = String> {
    let claims = permissions
        .iter()
        .filter_map(|one| one.effect.changed_path());
    let all = claims.flat_map(|claim| paths(claim).map(str::to_owned).collect::<Vec<_>>());
    // What a command builds or installs there is not what the model wrote; what a file tool writes is.
    let by_command = permissions
        .iter()
        .any(|one| matches!(one.effect, Effect::Run { .. } | Effect::Apply { .. }));
    let is_output = |part: &str| OUTPUTS.contains(&part);
    all.filter(move |path| match path.split_once(".git/") {
        Some((before, of_git)) if before.is_empty() || before.ends_with('/') => {
            GIT_REFS.iter().any(|name| of_git.starts_with(name))
        }
        _ => !by_command || !path.split('/').any(is_output),
    })
}

fn paths(claim: &PathClaim) -> impl Iterator<Item = &str> {
    std::iter::once(claim.path.as_str()).chain(claim.target.as_deref())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source() -> [UntrustedSource; 1] {
        [UntrustedSource::recorded("host evil.example: a page")]
    }

    struct Place {
        home: tempfile::TempDir,
        work: tempfile::TempDir,
    }

    impl Place {
        fn new() -> Self {
            Self {
                home: tempfile::tempdir().unwrap(),
                work: tempfile::tempdir().unwrap(),
            }
        }

        fn labels(&self) -> FileLabels {
            FileLabels::of(self.home.path(), self.work.path())
        }

        fn write(&self, path: &str, text: &str, sources: &[UntrustedSource]) {
            let permissions = [Permission::write(PathClaim::plain(path))];
            self.labels().expect(&permissions, sources).unwrap();
            self.user_writes(path, text);
            self.labels().written(&permissions, sources).unwrap();
        }

        fn user_writes(&self, path: &str, text: &str) {
            let place = self.work.path().join(path);
            fs::create_dir_all(place.parent().unwrap()).unwrap();
            fs::write(place, text).unwrap();
        }

        fn is_marked(&self, permission: Permission) -> bool {
            !self.labels().of_reads(&[permission]).unwrap().is_empty()
        }

        fn reads(&self, path: &str) -> bool {
            self.is_marked(Permission::read(PathClaim::plain(path)))
        }
    }

    fn command() -> Permission {
        Permission {
            effect: Effect::Run {
                command: "make".to_owned(),
                argv: None,
                jailed: true,
                on_copy: true,
            },
            risk: haft::spec::Risk::High,
        }
    }

    #[test]
    fn file_when_a_marked_run_wrote_it_marks_who_reads_it_in_any_process() {
        let place = Place::new();
        assert!(!place.reads("notes.md") && !place.is_marked(command()));
        place.write("sub/notes.md", "send all", &source());
        assert!(place.reads("sub/notes.md") && place.reads("sub") && place.reads("."));
        assert!(place.is_marked(command()));
        assert!(!place.reads("other.md") && !place.reads("sub/notes.md.old"));
        // A copy and a rename that no run made.
        fs::copy(
            place.work.path().join("sub/notes.md"),
            place.work.path().join("copy.md"),
        )
        .unwrap();
        assert!(place.reads("copy.md"));
        fs::hard_link(
            place.work.path().join("sub/notes.md"),
            place.work.path().join("link.md"),
        )
        .unwrap();
        assert!(place.reads("link.md"));
        let read = [Permission::read(PathClaim::plain("sub/notes.md"))];
        let found = place.labels().of_reads(&read).unwrap();
        assert_eq!(found[0].origin(), "host evil.example");
        assert_eq!(
            found[0].label(),
            "sub/notes.md, which a run wrote that had read a page"
        );
    }

    #[test]
    fn label_when_the_content_is_another_ends() {
        let place = Place::new();
        place.write("a", "one", &source());
        place.user_writes("a", "the user's");
        assert!(!place.reads("a") && !place.is_marked(command()));
        place.write("a", "two", &source());
        assert!(place.reads("a"));
        place.write("a", "two", &[]);
        assert!(!place.reads("a"));
        place.write("a", "two", &source());
        place.write("a", "another", &[]);
        assert!(!place.reads("a"));
        place.write("a", "three", &source());
        fs::remove_file(place.work.path().join("a")).unwrap();
        assert!(!place.reads("a") && !place.is_marked(command()));
    }

    #[test]
    fn ref_of_git_when_a_marked_run_moved_it_marks_commands_until_it_is_moved_again() {
        let place = Place::new();
        for path in [".git/index", ".git/objects/ab/cd"] {
            place.write(path, "one", &source());
            assert!(!place.is_marked(command()), "{path}");
        }
        place.write("sub/.git/refs/heads/main", "one", &source());
        assert!(place.is_marked(command()));
        place.user_writes("sub/.git/refs/heads/main", "two");
        assert!(!place.is_marked(command()));
    }

    #[test]
    fn label_when_an_unmarked_run_appends_to_the_file_stays() {
        let place = Place::new();
        place.write("a", "one", &source());
        place.write("a", "one and more", &[]);
        assert!(place.reads("a") && place.is_marked(command()));
        place.user_writes("a", "one and the user's");
        assert!(!place.reads("a"));
    }

    #[test]
    fn file_in_a_folder_of_outputs_when_a_file_tool_wrote_it_is_labelled_and_a_command_s_is_not() {
        let place = Place::new();
        place.write("build/notes.md", "one", &source());
        assert!(place.reads("build/notes.md"));
        let built = [
            Permission::apply("make"),
            Permission::write(PathClaim::plain("build/out")),
        ];
        place.labels().expect(&built, &source()).unwrap();
        place.user_writes("build/out", "two");
        place.labels().written(&built, &source()).unwrap();
        assert!(!place.reads("build/out"));
    }

    #[test]
    fn label_when_haft_was_killed_while_the_file_was_written_holds_for_any_content() {
        let place = Place::new();
        let permissions = [Permission::write(PathClaim::plain("a"))];
        place.labels().expect(&permissions, &source()).unwrap();
        place.user_writes("a", "half of what");
        assert!(place.reads("a") && place.is_marked(command()));
    }

    #[test]
    fn labels_when_they_are_damaged_or_too_many_cover_every_file() {
        let place = Place::new();
        place.write("a", "one", &source());
        fs::write(&place.labels().path, "{\"path\":\"a\",\"sour").unwrap();
        assert!(place.reads("b") && place.is_marked(command()));
        fs::write(&place.labels().path, "x".repeat(5 << 20)).unwrap();
        assert!(place.reads("b"));
        // Nothing is added, and nothing fails.
        place.write("c", "one", &source());
    }

    #[test]
    fn notes_when_files_are_written_over_and_over_stay_small() {
        let place = Place::new();
        let labels = place.labels();
        place.user_writes("a", "x");
        let permissions = [Permission::write(PathClaim::plain("a"))];
        for n in 0..9_000 {
            let source = [UntrustedSource::recorded(&format!(
                "host {n}: {}",
                "x".repeat(120)
            ))];
            labels.expect(&permissions, &source).unwrap();
        }
        assert!(fs::metadata(&labels.path).unwrap().len() <= FULL + 4096);
        assert!(place.reads("a"));
    }
}
