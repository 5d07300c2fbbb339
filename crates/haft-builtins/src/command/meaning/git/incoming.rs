//! The files that a change set brings into a repository: in the trees of new commits and stashes, and in indexes. Git writes them to a
//! work tree later, or sends them away, and then nobody judges them any more.

mod commits;
mod graph;
mod index;
mod known;
mod merge_base;
mod pointer_file;
mod pointers;
mod stored;
mod submodules;
mod trees;

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use haft::change::EntryState;

use super::entries::MODE_LINK;
use super::repository::{RepositoryLayout, SHARED_INDEX, find_repositories_up_to, head_folders};
use super::store::ObjectDatabase;
use super::tree::TreeFile;
use crate::command::meaning::budget::Budget;
use crate::command::meaning::sides::{ChangeSides, PathChange, Side};
use crate::command::meaning::words::name;

use known::KnownFiles;
use pointers::Pointers;

/// Maximum time for reading what a change set brings into all repositories.
const MAX_TIME: Duration = Duration::from_secs(3);
/// Why there may be more when that time is over.
const TOO_SLOW: &str = "what git stores could not all be read within 3 seconds";
/// Maximum number of repositories that are read.
const MAX_REPOSITORIES: usize = 1_000;
/// Maximum number of files that are judged for one repository.
const MAX_FILES: usize = 100_000;
/// Maximum number of reasons for which one repository is asked about.
const MAX_DOUBTS: usize = 20;
/// Maximum length of a link's text, in bytes.
const MAX_LINK: u64 = 4 << 10;

/// A file that a repository gets, or loses.
#[derive(Debug)]
pub(in crate::command) struct IncomingFile {
    /// Its path in the workspace, wherever a work tree of the repository would have it; empty if none would.
    pub(in crate::command) paths: Vec<PathBuf>,
    /// The changed path that brings it.
    pub(in crate::command) carrier: PathBuf,
    /// True if the repository loses it.
    pub(in crate::command) is_removed: bool,
    /// True if only what mirrors another repository has it.
    pub(in crate::command) is_fetched: bool,
    /// Where it leads, if it is a link.
    pub(in crate::command) link: Option<PathBuf>,
    /// Its path in the tree.
    inner: Vec<u8>,
    file: Option<TreeFile>,
}

impl IncomingFile {
    /// Returns its path in the repository, as a message names it.
    pub(in crate::command) fn name_in_git(&self) -> String {
        name(&self.inner)
    }
}

/// A reason why not all that a repository gets can be judged.
#[derive(Debug)]
pub(in crate::command) struct IncomingDoubt {
    /// The changed path that is asked about.
    pub(in crate::command) carrier: PathBuf,
    /// The reason, as a clause.
    pub(in crate::command) why: String,
}

/// What a change set brings into one repository.
pub(in crate::command) struct Incoming<'s> {
    /// The files that it gets or loses.
    pub(in crate::command) files: Vec<IncomingFile>,
    /// Why there may be more.
    pub(in crate::command) doubts: Vec<IncomingDoubt>,
    known: Option<KnownFiles<'s>>,
}

impl Incoming<'_> {
    /// Returns true if the user has the file already: at this path of a work tree, in an index, or at the end of a branch.
    pub(in crate::command) fn is_known(&self, file: &IncomingFile, place: Option<&Path>) -> bool {
        let known = self.known.as_ref();
        known.is_some_and(|known| known.has(&file.inner, file.file, place))
    }
}

/// Calls `judge` with what a change set brings into each repository that it touches.
pub(in crate::command) fn incoming(sides: &ChangeSides<'_>, judge: &mut dyn FnMut(&Incoming<'_>)) {
    let budget = Budget::new(MAX_TIME);
    let repositories = find_repositories_up_to(sides, MAX_REPOSITORIES);
    let is_cut = repositories.len() >= MAX_REPOSITORIES;
    for repository in &repositories {
        let mut reader = IncomingReader::new(sides, repository, &budget);
        if is_cut {
            reader.doubt(repository, "too many repositories change at once");
        }
        reader.read();
        judge(&reader.into_incoming());
    }
}

/// What a changed path of a repository is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PathRole {
    /// It names objects: a ref, a log, a HEAD.
    Pointer,
    Index,
    Object,
    /// A file that git-lfs keeps by its hash.
    Large,
    /// Git takes files from it that no object has.
    Opaque,
    /// It holds no files, or is asked about for what it is.
    Other,
}

impl PathRole {
    fn of(inner: &Path) -> Self {
        let parts: Vec<&str> = inner
            .iter()
            .map(|part| part.to_str().unwrap_or(""))
            .collect();
        match parts.as_slice() {
            ["objects", ..] => Self::Object,
            ["lfs", "objects", ..] => Self::Large,
            ["rr-cache", _, file] if file.starts_with("postimage") => Self::Opaque,
            [file] if file.starts_with(SHARED_INDEX) => Self::Opaque,
            ["worktrees", _, rest @ ..] | rest => Self::of_part(rest),
        }
    }

    /// Returns the role of a path in what belongs to one worktree.
    fn of_part(parts: &[&str]) -> Self {
        let is_pseudo = |file: &str| {
            file.bytes()
                .all(|byte| byte.is_ascii_uppercase() || byte == b'_')
                && !file.ends_with("MSG")
        };
        match parts {
            ["refs" | "logs", _, ..] | ["packed-refs"] => Self::Pointer,
            ["index"] => Self::Index,
            [file] if is_pseudo(file) => Self::Pointer,
            _ => Self::Other,
        }
    }
}

/// Reads what a change set brings into a repository.
struct IncomingReader<'s> {
    sides: &'s ChangeSides<'s>,
    repository: &'s Path,
    budget: &'s Budget,
    /// The folders of work trees, below the root, and the workspace's path within them.
    trees: Vec<PathBuf>,
    found: Incoming<'s>,
}

impl<'s> IncomingReader<'s> {
    fn new(sides: &'s ChangeSides<'s>, repository: &'s Path, budget: &'s Budget) -> Self {
        Self {
            sides,
            repository,
            budget,
            trees: Vec::new(),
            found: Incoming {
                files: Vec::new(),
                doubts: Vec::new(),
                known: None,
            },
        }
    }

    fn into_incoming(self) -> Incoming<'s> {
        self.found
    }

    fn doubt(&mut self, carrier: &Path, why: impl Into<String>) {
        let why = why.into();
        let doubts = &mut self.found.doubts;
        if doubts.len() < MAX_DOUBTS && !doubts.iter().any(|doubt| doubt.why == why) {
            let carrier = carrier.to_owned();
            doubts.push(IncomingDoubt { carrier, why });
        }
    }

    /// Adds a doubt if the time is over; then nothing more is read.
    fn is_over(&mut self, carrier: &Path) -> bool {
        let is_over = self.budget.is_over();
        if is_over {
            self.doubt(carrier, TOO_SLOW);
        }
        is_over
    }

    fn read(&mut self) {
        let changes = self.changes();
        let first = changes.iter().find(|(role, _)| *role != PathRole::Other);
        let Some(first) = first.map(|(_, change)| change.path.to_owned()) else {
            return;
        };
        let layout = match RepositoryLayout::read(self.sides, self.repository) {
            Ok(layout) => layout,
            Err(why) => return self.read_unsupported(&changes, why),
        };
        let store = ObjectDatabase::new(self.sides, self.repository, layout.incomplete);
        let folders = head_folders(self.sides, self.repository);
        self.trees = self.work_trees(layout.worktree, &folders);
        self.check_objects(&store, &changes);
        let pointers = match Pointers::read(self.sides, self.repository, &changes) {
            Ok(pointers) => pointers,
            Err((path, why)) => return self.doubt(&path, why),
        };
        if self.is_over(&first) {
            return;
        }
        self.read_commits(&store, &pointers);
        self.read_indexes(&store, &pointers, &changes);
        self.found.known = Some(KnownFiles::new(self.sides, store, pointers));
        self.read_submodules();
    }

    /// Returns the changed paths with what they are, without those of repositories below.
    fn changes(&mut self) -> Vec<(PathRole, PathChange<'s>)> {
        let mut all = Vec::new();
        for change in self.sides.below(self.repository) {
            let Ok(inner) = change.path.strip_prefix(self.repository) else {
                continue;
            };
            let role = PathRole::of(inner);
            match change.state(Side::After) {
                None if role != PathRole::Index => continue,
                Some(EntryState::Link { .. } | EntryState::Other) if role != PathRole::Other => {
                    let shown = name(change.path.as_os_str().as_bytes());
                    self.doubt(change.path, format!("{shown} is a link or no file"));
                    continue;
                }
                Some(EntryState::Folder { .. }) => continue,
                _ => {}
            }
            if role == PathRole::Opaque {
                let shown = name(change.path.as_os_str().as_bytes());
                let why = format!("git takes files from {shown}, which haft does not read");
                self.doubt(change.path, why);
            }
            all.push((role, change));
        }
        all
    }

    /// Reads as much as can be told of a repository in whose form objects and refs are not understood.
    fn read_unsupported(&mut self, changes: &[(PathRole, PathChange<'s>)], why: &str) {
        for (role, change) in changes {
            let is_same = || index::is_same(self.sides, change.path);
            match role {
                PathRole::Other | PathRole::Opaque | PathRole::Large => {}
                PathRole::Index if is_same() => {}
                _ => return self.doubt(change.path, why),
            }
        }
    }

    /// Returns the folders in which the repository's files lie, or would lie: the root if there is none in the workspace.
    fn work_trees(
        &self,
        own: Option<PathBuf>,
        linked: &[(PathBuf, Option<PathBuf>)],
    ) -> Vec<PathBuf> {
        let linked = linked.iter().filter_map(|(_, tree)| tree.clone());
        let mut trees: Vec<PathBuf> = own.into_iter().chain(linked).collect();
        if trees.is_empty() || self.repository == Path::new(".git") {
            trees.push(PathBuf::new());
        }
        trees.sort();
        trees.dedup();
        trees
    }

    /// Adds a file at a path of a tree.
    fn add(&mut self, store: &ObjectDatabase<'_>, carrier: &Carrier<'_>, entry: trees::NewEntry) {
        if self.found.files.len() >= MAX_FILES {
            return self.doubt(
                carrier.path,
                "too many files change at once in what git stores",
            );
        }
        let trees::NewEntry { path: inner, file } = entry;
        if let Some(why) = unusable(&inner) {
            let shown = name(&inner);
            return self.doubt(carrier.path, format!("git stores the file {shown}, {why}"));
        }
        let link = match file {
            Some((MODE_LINK, id)) => {
                let read = store.object(&id, MAX_LINK).map(|object| object.content);
                let Ok(Some(text)) = read else {
                    let shown = name(&inner);
                    let why =
                        format!("where the link {shown} leads that git stores cannot be read");
                    return self.doubt(carrier.path, why);
                };
                Some(PathBuf::from(OsStr::from_bytes(&text)))
            }
            _ => None,
        };
        self.found.files.push(IncomingFile {
            paths: self.paths(&inner),
            carrier: carrier.path.to_owned(),
            is_removed: file.is_none(),
            is_fetched: carrier.is_fetched,
            link,
            inner,
            file,
        });
    }

    /// Returns the paths in the workspace of a file in a tree; none if it lies outside.
    fn paths(&self, inner: &[u8]) -> Vec<PathBuf> {
        let inner = Path::new(OsStr::from_bytes(inner));
        let place = |tree: &Path| {
            if tree == Path::new("") && self.repository == Path::new(".git") {
                let prefix = self.sides.prefix();
                return Some(inner.strip_prefix(prefix).ok()?.to_owned());
            }
            Some(tree.join(inner))
        };
        self.trees.iter().filter_map(|tree| place(tree)).collect()
    }
}

/// What brings files into a repository.
#[derive(Debug, Clone, Copy)]
struct Carrier<'c> {
    path: &'c Path,
    is_fetched: bool,
}

/// Returns why a path of a tree cannot be judged, as a clause.
fn unusable(path: &[u8]) -> Option<&'static str> {
    if std::str::from_utf8(path).is_err() {
        return Some("whose name is not UTF-8");
    }
    let mut parts = path.split(|byte| *byte == b'/');
    let is_wrong = |part: &[u8]| part.is_empty() || part == b"." || part == b"..";
    if parts.clone().any(is_wrong) {
        return Some("whose name leads elsewhere");
    }
    parts
        .any(is_git)
        .then_some("which some file systems take for a repository's own folder")
}

/// Whether a name is `.git`, also to file systems that fold cases, leave out marks, or end names at blanks and dots; compare git's
/// `is_ntfs_dotgit` and `is_hfs_dotgit`.
fn is_git(part: &[u8]) -> bool {
    // U+200C to U+200F, U+202A to U+202E, U+206A to U+206F and U+FEFF are nothing in a name on HFS+.
    let is_ignored = |letter: &char| matches!(*letter, '\u{200c}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{206a}'..='\u{206f}' | '\u{feff}');
    let text = String::from_utf8_lossy(part);
    let text: String = text.chars().filter(|letter| !is_ignored(letter)).collect();
    let lower = text.to_ascii_lowercase();
    let lower = lower.split([':', '\\']).next().unwrap_or_default();
    let lower = lower.trim_end_matches(['.', ' ']);
    lower == ".git" || lower == "git~1"
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{PathRole, unusable};

    #[test]
    fn paths_of_a_repository_have_the_role_that_git_gives_them() {
        for (path, role) in [
            ("HEAD", PathRole::Pointer),
            ("MERGE_HEAD", PathRole::Pointer),
            ("AUTO_MERGE", PathRole::Pointer),
            ("COMMIT_EDITMSG", PathRole::Other),
            ("packed-refs", PathRole::Pointer),
            ("refs/heads/a/b", PathRole::Pointer),
            ("refs/replace/x", PathRole::Pointer),
            ("refs/stash", PathRole::Pointer),
            ("logs/refs/stash", PathRole::Pointer),
            ("worktrees/w/HEAD", PathRole::Pointer),
            ("worktrees/w/refs/bisect/bad", PathRole::Pointer),
            ("worktrees/w/index", PathRole::Index),
            ("index", PathRole::Index),
            ("sharedindex.x", PathRole::Opaque),
            ("rr-cache/x/postimage.1", PathRole::Opaque),
            ("rr-cache/x/preimage", PathRole::Other),
            ("objects/ab/c", PathRole::Object),
            ("lfs/objects/ab/cd/abcd", PathRole::Large),
            ("config", PathRole::Other),
            ("modules/x/HEAD", PathRole::Other),
        ] {
            assert_eq!(PathRole::of(Path::new(path)), role, "{path}");
        }
    }

    #[test]
    fn names_that_cannot_be_judged_are_found() {
        for path in [
            &b"../x"[..],
            b"a//b",
            b"./a",
            b"a/.git/config",
            b"a/.GIT/config",
            b".git. ",
            b"GIT~1",
            b".git::$INDEX_ALLOCATION/config",
            ".g\u{200c}it/hooks/x".as_bytes(),
            b"a\xff",
        ] {
            assert!(unusable(path).is_some(), "{}", path.escape_ascii());
        }
        for path in [&b"a/b"[..], b".gitignore", b"git", b".github/x", b"a/..b"] {
            assert_eq!(unusable(path), None, "{}", path.escape_ascii());
        }
    }
}
