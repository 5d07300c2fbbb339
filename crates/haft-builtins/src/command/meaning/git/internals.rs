//! The files that git keeps for itself. What is executable or steers git is none of them: it stays visible.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::Path;
use std::rc::Rc;
use std::time::Duration;

use haft::approval::meaning::{Meaning, MeaningKind};
use haft::change::EntryState;

use super::commit::list;
use super::headers::Commit;
use super::id::ObjectId;
use super::object::{id_of, loose};
use super::store::ObjectDatabase;
use crate::command::meaning::budget::Budget;
use crate::command::meaning::sides::{ChangeSides, PathChange, Side};
use crate::command::meaning::words::{count, name};

/// Files in a repository, a worktree's folder or a submodule's that hold no settings.
const OWN_FILES: [&str; 9] = [
    "AUTO_MERGE",
    "COMMIT_EDITMSG",
    "FETCH_HEAD",
    "HEAD",
    "ORIG_HEAD",
    "REBASE_HEAD",
    "TAG_EDITMSG",
    "index",
    "packed-refs",
];
/// Files that steer the next commit while they are there. That they are gone says nothing.
const STEERING: [&str; 8] = [
    "CHERRY_PICK_HEAD",
    "MERGE_HEAD",
    "MERGE_MODE",
    "MERGE_MSG",
    "MERGE_RR",
    "REVERT_HEAD",
    "SQUASH_MSG",
    "index.lock",
];
/// Maximum size of a loose object or log that is folded, in bytes.
const MAX_FOLDED: u64 = 4 << 20;

/// Maximum time for checking stored objects. Those that are not checked by then stay visible.
const MAX_TIME: Duration = Duration::from_secs(3);

/// Returns what a file is, in one word, if git keeps it for itself. `path` is relative to the repository.
fn word(path: &Path) -> Option<&'static str> {
    let mut parts = path.iter();
    let first = parts.next()?.to_str()?;
    let rest = parts.as_path();
    let is_last = rest.as_os_str().is_empty();
    match first {
        "objects" if rest == Path::new("info") || rest == Path::new("info/packs") => Some("object"),
        "objects" => is_object(rest).then_some("object"),
        // A lock is no ref: git reads nothing of it.
        "refs" => (!is_lock(path)).then_some("ref"),
        "logs" if is_last || rest == Path::new("HEAD") || rest.starts_with("refs") => Some("log"),
        "worktrees" => {
            let mut parts = rest.iter();
            parts.next();
            let inner = parts.as_path();
            if inner.as_os_str().is_empty() {
                Some("folder")
            } else {
                word(inner)
            }
        }
        file if is_last && (OWN_FILES.contains(&file) || STEERING.contains(&file)) => Some("file"),
        _ => None,
    }
}

/// Returns true for the lists from which git takes what it would else read from the objects: they may say anything.
fn is_believed(path: &Path) -> bool {
    path.starts_with("objects/info/commit-graph")
        || path.starts_with("objects/info/commit-graphs")
        || path.starts_with("objects/pack/multi-pack-index")
}

fn is_lock(path: &Path) -> bool {
    path.extension().is_some_and(|end| end == "lock")
}

/// Returns true for the names that git gives to objects, packs and their folders. `path` is relative to the folder of objects.
fn is_object(path: &Path) -> bool {
    let parts: Option<Vec<&str>> = path.iter().map(|part| part.to_str()).collect();
    let is_hex = |text: &str, length: usize| {
        text.len() == length && text.bytes().all(|byte| byte.is_ascii_hexdigit())
    };
    let is_pack = |name: &str| {
        let name = name
            .strip_prefix("pack-")
            .and_then(|name| name.split_once('.'));
        let ends = ["pack", "idx", "rev"];
        name.is_some_and(|(hash, end)| is_hex(hash, 40) && ends.contains(&end))
    };
    match parts.as_deref() {
        Some([] | ["pack"]) => true,
        Some(["pack", name]) => is_pack(name),
        Some([folder]) => is_hex(folder, 2),
        Some([folder, name]) => is_hex(folder, 2) && is_hex(name, 38),
        _ => false,
    }
}

/// Returns true if the file is what its name says, so that nothing else can be hidden in it. A link, an executable file and a stored
/// object that changes are shown.
fn is_genuine(sides: &ChangeSides<'_>, change: &PathChange<'_>, word: &str) -> bool {
    let is_new = change.before.is_none();
    match change.state(Side::After) {
        None | Some(EntryState::Folder { .. }) => true,
        Some(EntryState::File { mode, .. }) if mode.is_none_or(|mode| mode & 0o111 == 0) => {
            let name = change.path.file_name().and_then(|name| name.to_str());
            let name = name.unwrap_or_default();
            let is_loose = name.len() == 38;
            match word {
                "object" if is_loose => is_new && is_named_rightly(sides, change.path),
                "object" if name != "packs" => is_new,
                "log" => {
                    let content = sides.read(Side::After, change.path, MAX_FOLDED);
                    content.is_some_and(|content| is_log(&content))
                }
                _ => !STEERING.contains(&name),
            }
        }
        Some(_) => false,
    }
}

/// Returns true if a stored object has the content that its name says. One that is too long to be read is not folded.
fn is_named_rightly(sides: &ChangeSides<'_>, path: &Path) -> bool {
    let stored = sides.open(Side::After, path);
    let object = stored.and_then(|content| loose(&content, MAX_FOLDED));
    let id = object.and_then(|object| Some(id_of(object.kind, &object.content?)));
    let mut names = path.iter().rev().filter_map(|part| part.to_str());
    let (name, folder) = (names.next().unwrap_or_default(), names.next());
    id.is_some_and(|id| id.hex() == format!("{}{name}", folder.unwrap_or_default()))
}

/// Returns true if each line begins with two ids, as git writes them into logs.
fn is_log(content: &[u8]) -> bool {
    let is_id = |word: Option<&[u8]>| {
        word.is_some_and(|word| word.len() == 40 && word.iter().all(u8::is_ascii_hexdigit))
    };
    let lines = content.split(|byte| *byte == b'\n');
    lines.filter(|line| !line.is_empty()).all(|line| {
        let mut words = line.split(|byte| *byte == b' ');
        is_id(words.next()) && is_id(words.next())
    })
}

/// Returns true for a folder that git takes for a repository by its name: `.git`, one of its modules, `NAME.git`.
fn is_named(repository: &Path) -> bool {
    let mut parts = repository.iter().map(OsStr::as_encoded_bytes);
    parts.any(|part| part.ends_with(b".git"))
}

/// What stored objects are checked with.
struct ObjectChecker<'c, 's> {
    sides: &'c ChangeSides<'s>,
    store: ObjectDatabase<'c>,
    time: Budget,
}

/// Git's own files that change, by what they are.
#[derive(Debug, Default)]
struct InternalFileCounts {
    counts: BTreeMap<&'static str, usize>,
    covers: Vec<String>,
    /// Stored objects that are gone or changed, that are in a pack afterwards, and that are not what their names say.
    deleted: usize,
    /// The commits among these.
    commits: Vec<Rc<Commit>>,
    packed: usize,
    odd: usize,
    /// New packs that are too long to be checked.
    unchecked: usize,
    /// Lists that git believes.
    believed: usize,
}

impl InternalFileCounts {
    /// Looks at a changed file. `inside` is its path in the repository.
    fn add(&mut self, check: &ObjectChecker<'_, '_>, change: &PathChange<'_>, inside: &Path) {
        let ObjectChecker { sides, store, time } = check;
        self.believed += usize::from(is_believed(inside) && change.after.is_some());
        let word = if inside.as_os_str().is_empty() {
            Some("folder")
        } else {
            word(inside)
        };
        let Some(word) = word else {
            return;
        };
        let is_over = time.is_over();
        let is_list = inside == Path::new("objects/info/packs");
        if word == "object"
            && !is_list
            && matches!(change.state(Side::Before), Some(EntryState::File { .. }))
        {
            // One that is in a pack afterwards is as good as there.
            let is_kept = || {
                if inside.starts_with("objects/pack") {
                    store.is_repacked(change.path)
                } else {
                    store.is_packed(inside)
                }
            };
            if change.after.is_some() || is_over || !is_kept() {
                self.deleted += 1;
                self.add_commit(store, inside);
                return;
            }
            self.packed += 1;
        } else if is_over || !is_genuine(sides, change, word) {
            self.odd += usize::from(word == "object");
            return;
        } else if inside.extension().is_some_and(|end| end == "pack") && change.after.is_some() {
            match store.is_true(change.path, time) {
                Some(true) => {}
                Some(false) => {
                    self.odd += 1;
                    return;
                }
                None => self.unchecked += 1,
            }
        }
        self.covers.push(change.path.to_string_lossy().into_owned());
        let is_folder =
            |state: Option<&EntryState>| matches!(state, Some(EntryState::Folder { .. }));
        if !is_folder(change.state(Side::Before)) && !is_folder(change.state(Side::After)) {
            *self.counts.entry(word).or_default() += 1;
        }
    }

    /// Notes a commit that is stored alone and goes.
    fn add_commit(&mut self, store: &ObjectDatabase<'_>, inside: &Path) {
        let name: Vec<&str> = inside.iter().skip(1).filter_map(OsStr::to_str).collect();
        let id = ObjectId::from_hex(name.concat().as_bytes());
        let commit = id.and_then(|id| store.commit(&id).ok());
        self.commits.extend(commit);
    }

    fn title(&self, folder: &str) -> String {
        let each = self.counts.iter();
        let each: Vec<String> = each.map(|(word, number)| count(*number, word)).collect();
        if each.is_empty() {
            format!("git's own files in {folder}")
        } else {
            format!("git's own files in {folder}: {}", each.join(", "))
        }
    }

    fn lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        if self.packed > 0 {
            lines.push(format!(
                "{} moved into a pack",
                count(self.packed, "object")
            ));
        }
        if self.unchecked > 0 {
            let packs = count(self.unchecked, "new pack");
            lines.push(format!("{packs} not checked object by object"));
        }
        if self.believed > 0 {
            let why = "a list of commits or packs changes that git believes: haft reads the commits themselves";
            lines.push(why.to_owned());
        }
        lines
    }

    fn warnings(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        if self.deleted > 0 {
            let objects = count(self.deleted, "stored object");
            let commits = match &self.commits[..] {
                [] => String::new(),
                commits => format!("; commits among them: {}", list(commits)),
            };
            warnings.push(format!(
                "{objects} deleted or changed: what needs them cannot be read{commits}"
            ));
        }
        if self.odd > 0 {
            let objects = count(self.odd, "stored object");
            warnings.push(format!(
                "{objects} not what the name says, or too long to be checked"
            ));
        }
        warnings
    }
}

/// Returns the one line for git's own files in the repository in a folder, or `None` if none of them changed. It covers them if
/// what they mean is understood.
pub(super) fn internals(
    sides: &ChangeSides<'_>,
    repository: &Path,
    select: &dyn Fn(&Path) -> bool,
    not_understood: Option<&str>,
) -> Option<Meaning> {
    let check = ObjectChecker {
        sides,
        store: ObjectDatabase::new(sides, repository, None),
        time: Budget::new(MAX_TIME),
    };
    let (mut own, is_named) = (InternalFileCounts::default(), is_named(repository));
    for change in sides.below(repository) {
        let inside = change.path.strip_prefix(repository).ok()?;
        if is_named && select(change.path) {
            own.add(&check, &change, inside);
        }
    }
    let (lines, warnings) = (own.lines(), own.warnings());
    let says = !lines.is_empty() || !warnings.is_empty() || not_understood.is_some();
    if own.covers.is_empty() && !says {
        return None;
    }
    let folder = name(repository.as_os_str().as_encoded_bytes());
    let mut meaning = Meaning::new(MeaningKind::GitInternals, own.title(&folder));
    (meaning.lines, meaning.warnings) = (lines, warnings);
    match not_understood {
        Some(why) => meaning.warnings.push(format!(
            "haft does not understand what changes in {folder}: {why}"
        )),
        None => meaning.covers = own.covers,
    }
    Some(meaning)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::word;

    #[test]
    fn what_steers_git_is_never_one_of_its_own_files() {
        for path in [
            "HEAD",
            "index",
            "logs/HEAD",
            "objects/ab/cdef0123456789abcdef0123456789abcdef01",
            "objects/pack/pack-0123456789abcdef0123456789abcdef01234567.pack",
            "refs/heads/main",
            "worktrees/w/HEAD",
            "worktrees/w/logs/HEAD",
        ] {
            assert!(word(Path::new(path)).is_some(), "{path}");
        }
        for path in [
            "config",
            "config.worktree",
            "hooks/pre-commit",
            "info/attributes",
            "info/exclude",
            "info/grafts",
            "objects/info/alternates",
            "objects/info/commit-graph",
            "objects/info/commit-graphs/evil.py",
            "objects/pack/multi-pack-index",
            "refs/heads/main.lock",
            "lfs/objects/evil.js",
            "logs/HEAD/evil",
            "opcode",
            "objects/evil.sh",
            "objects/ab/evil",
            "objects/pack/pack-1.py",
            "logs/evil.sh",
            "objects/info/http-alternates",
            "shallow",
            "rebase-merge/git-rebase-todo",
            "sequencer/todo",
            "worktrees/w/gitdir",
            "worktrees/w/commondir",
            "worktrees/w/config.worktree",
            "modules/lib/config",
            "modules/lib/hooks/post-checkout",
            "description",
            "commondir",
            "gitdir",
        ] {
            assert_eq!(word(Path::new(path)), None, "{path}");
        }
    }
}
