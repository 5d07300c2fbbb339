//! Searches a workspace for paths to guard against a command: those that deny rules name, other names of the same files, and
//! repositories.

use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};
use std::ffi::OsString;
use std::fs::{self, FileType};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use haft::policy::{Denials, NameProgress, protected_from_commands};
use haft::workspace::{Workspace, has_repository_shape};
use haft_sandbox::{GuardKind, PathGuard};

use crate::command::git_folders;

/// Maximum length of a path, in bytes. A folder with a longer path is guarded as a whole; the kernel's limit includes the path of
/// the workspace.
const MAX_PATH: usize = 3_000;
/// Maximum length of the name of a file with a slash, in bytes.
const MAX_NAME: usize = 256;
/// Maximum number of repositories that get guards for their settings alone. The walk finds the upper ones first; further ones become
/// read-only as a whole.
const MAX_REPOSITORIES: usize = 100;

/// The guards found.
#[derive(Debug, Default)]
pub(super) struct GuardSets {
    /// Guards for denied paths.
    pub(super) denied: Vec<PathGuard>,
    /// Guards for settings of repositories.
    pub(super) git: Vec<PathGuard>,
}

/// The reason why a search ended early.
#[derive(Debug)]
pub(super) enum WalkStop {
    /// There are more entries than the limit.
    TooMany,
    /// The workspace itself cannot be listed.
    Unlistable(io::Error),
    /// Links may give files more names than those that were found, for this reason.
    UnknownNames(String),
}

struct FolderEntry {
    name: OsString,
    kind: FileType,
}

/// A folder to search.
struct FolderTask {
    folder: PathBuf,
    /// The path that rules see. It differs if a link led to the folder.
    shown: PathBuf,
    /// True within a read-only folder, where only hidden paths matter.
    read_only: bool,
}

impl FolderTask {
    /// Returns true if a link led to the folder.
    fn is_linked(&self) -> bool {
        self.folder != self.shown
    }
}

/// A search of a workspace.
#[derive(Debug)]
pub(super) struct GuardWalk<'a> {
    workspace: &'a Workspace,
    denials: &'a Denials,
    on_view: bool,
    left: usize,
    found: GuardSets,
    /// Denied files with several names, by device and inode.
    linked: HashMap<(u64, u64), GuardKind>,
    /// Denied paths.
    covered: HashSet<PathBuf>,
    repositories: HashSet<PathBuf>,
    /// What the names match by which links reached a folder.
    reached: HashMap<PathBuf, NameProgress>,
    /// `.git` files and `commondir` files.
    pointers: Vec<PathBuf>,
}

impl<'a> GuardWalk<'a> {
    /// Creates a search of at most `most` entries. On a view it looks only for paths that rules make unreadable.
    pub(super) fn new(
        workspace: &'a Workspace,
        denials: &'a Denials,
        on_view: bool,
        most: usize,
    ) -> Self {
        Self {
            workspace,
            denials,
            on_view,
            left: most,
            found: GuardSets::default(),
            linked: HashMap::new(),
            covered: HashSet::new(),
            repositories: HashSet::new(),
            reached: HashMap::new(),
            pointers: Vec::new(),
        }
    }

    pub(super) fn run(mut self) -> Result<GuardSets, WalkStop> {
        let mut todo = VecDeque::from([FolderTask {
            folder: PathBuf::new(),
            shown: PathBuf::new(),
            read_only: false,
        }]);
        while let Some(next) = todo.pop_front() {
            self.visit(&next, &mut todo)?;
        }
        self.follow_pointers()?;
        if !self.linked.is_empty() {
            self.find_other_names()?;
        }
        Ok(self.found)
    }

    fn visit(
        &mut self,
        next: &FolderTask,
        todo: &mut VecDeque<FolderTask>,
    ) -> Result<(), WalkStop> {
        let entries = self.list(&next.folder, &next.shown)?;
        let live = !self.on_view && !next.read_only && !next.is_linked();
        let repository = live && self.is_repository(&next.folder, &entries);
        if live && !repository && self.is_among_modules(&next.folder) {
            self.close_to_modules(&next.folder, &entries);
        }
        let within_read_only = next.read_only || self.covered.contains(&next.folder);
        for FolderEntry { name, kind } in entries {
            let (at, shown) = (next.folder.join(&name), next.shown.join(&name));
            if live && name == ".git" && !kind.is_dir() {
                self.found.git.push(PathGuard::protect_file(&at));
                self.pointers.extend(kind.is_file().then(|| at.clone()));
            }
            let path = shown.to_string_lossy();
            let denied = self.denied(&path, kind.is_dir(), within_read_only);
            if let Some(guard) = denied {
                self.add_guard(&at, kind, guard)?;
            } else if live && kind.is_file() && self.is_protected_by_name(&at) {
                // The jail finds it by its name, and its other names here.
                self.note_names(&at, GuardKind::ReadOnly);
            }
            let read_only = within_read_only || denied == Some(GuardKind::ReadOnly);
            // Git objects are numerous, and git finds no repository among them.
            let objects = repository && name == "objects";
            let relevant = self.may_find_below(&path, live && !read_only && !objects);
            if !relevant || denied == Some(GuardKind::Hidden) {
                continue;
            }
            let followed = kind
                .is_symlink()
                .then(|| self.linked_folder(&at, &path))
                .flatten();
            let folder = if kind.is_dir() { Some(at) } else { followed };
            let Some(folder) = folder else { continue };
            if shown.as_os_str().len() > MAX_PATH || folder.as_os_str().len() > MAX_PATH {
                self.close(&folder, &shown);
            } else {
                todo.push_back(FolderTask {
                    folder,
                    shown,
                    read_only,
                });
            }
        }
        Ok(())
    }

    /// Returns true if there may be paths to guard below this folder; `repositories` is true if it may hold repositories.
    fn may_find_below(&self, path: &str, repositories: bool) -> bool {
        repositories
            || self.denials.may_deny_reading_below(path)
            || (!self.on_view && self.denials.may_deny_changing_below(path))
    }

    /// Returns the workspace folder that a link leads to, if rules may name its contents by the link's path and do not do so by a
    /// path that led to it before.
    fn linked_folder(&mut self, at: &Path, path: &str) -> Option<PathBuf> {
        if !self.denials.may_name_below(path) {
            return None;
        }
        let root = self.workspace.root();
        let end = root.join(at).canonicalize().ok()?;
        let inside = end.strip_prefix(root).ok().filter(|_| end.is_dir())?;
        let progress = self.denials.progress(path);
        let known = self.reached.entry(inside.to_owned());
        let known = known.or_insert_with(|| self.denials.progress(&inside.to_string_lossy()));
        if !progress.adds_to(known) {
            return None;
        }
        known.merge(&progress);
        Some(inside.to_owned())
    }

    /// Returns how a deny rule guards this path. Within a read-only folder only hiding matters.
    fn denied(&self, path: &str, folder: bool, read_only: bool) -> Option<GuardKind> {
        let hidden = if folder {
            self.denials.denies_reading_folder(path)
        } else {
            self.denials.denies_reading(path)
        };
        if hidden {
            return Some(GuardKind::Hidden);
        }
        let changing = !self.on_view && !read_only && self.denials.denies_changing(path);
        changing.then_some(GuardKind::ReadOnly)
    }

    fn add_guard(&mut self, at: &Path, kind: FileType, guard: GuardKind) -> Result<(), WalkStop> {
        self.found.denied.push(match (guard, kind.is_dir()) {
            (GuardKind::Hidden, true) => PathGuard::hide_dir(at),
            (GuardKind::Hidden, false) => PathGuard::hide_file(at),
            (GuardKind::ReadOnly, true) => PathGuard::protect_dir(at),
            (GuardKind::ReadOnly, false) => PathGuard::protect_file(at),
        });
        self.covered.insert(at.to_owned());
        let mut todo = vec![(at.to_owned(), kind)];
        while let Some((at, kind)) = todo.pop() {
            if kind.is_file() {
                self.note_names(&at, guard);
            } else if kind.is_dir() {
                let below = read(&self.workspace.root().join(&at), self.left).unwrap_or_default();
                self.count(below.len())?;
                let below = below.into_iter();
                todo.extend(below.map(|entry| (at.join(entry.name), entry.kind)));
            }
        }
        Ok(())
    }

    /// Records a denied file that has other names.
    fn note_names(&mut self, at: &Path, guard: GuardKind) {
        if let Some(file) = self.with_names(at) {
            let known = self.linked.entry(file).or_insert(guard);
            *known = guard.max(*known);
        }
    }

    /// Returns true if this is a protected file with several names.
    fn is_protected_by_name(&self, at: &Path) -> bool {
        self.with_names(at).is_some() && protected_from_commands(&at.to_string_lossy()).is_some()
    }

    /// Returns the device and inode of a file that has several names.
    fn with_names(&self, at: &Path) -> Option<(u64, u64)> {
        let meta = self.workspace.root().join(at).symlink_metadata().ok()?;
        (meta.is_file() && meta.nlink() > 1).then(|| (meta.dev(), meta.ino()))
    }

    /// Returns true if this folder is a repository, and guards its settings.
    fn is_repository(&mut self, folder: &Path, entries: &[FolderEntry]) -> bool {
        let holds = |name: &str| entries.iter().any(|entry| entry.name == name);
        if folder == Path::new("") && !holds(".git") {
            self.found.git.push(PathGuard::protect_dir(".git"));
        }
        let by_name = folder.file_name().is_some_and(|name| name == ".git");
        let by_content = has_repository_shape(holds);
        if by_content || (by_name && holds("HEAD")) {
            let names = entries.iter().map(|entry| entry.name.to_string_lossy());
            let names: BTreeSet<String> = names.map(Cow::into_owned).collect();
            self.guard_repository(folder, &names);
            return true;
        }
        if by_name {
            // This also covers a placeholder for another command.
            self.guard_folder(folder);
        }
        false
    }

    fn guard_repository(&mut self, folder: &Path, names: &BTreeSet<String>) {
        if !self.repositories.insert(folder.to_owned()) {
            return;
        }
        if names.contains("commondir") {
            self.pointers.push(folder.join("commondir"));
        }
        if self.repositories.len() > MAX_REPOSITORIES {
            self.guard_folder(folder);
        } else {
            self.found.git.extend(git_folders::guards(folder, names));
        }
    }

    /// Returns true if the repositories of submodules whose names begin with this folder's lie below it.
    fn is_among_modules(&self, folder: &Path) -> bool {
        let mut above = folder.ancestors().skip(1);
        let repository = above.find(|above| self.repositories.contains(*above));
        let inside = repository.and_then(|above| folder.strip_prefix(above).ok());
        inside.is_some_and(|inside| inside.starts_with("modules"))
    }

    /// Lets no repository of a submodule appear in a folder, which git would adopt.
    fn close_to_modules(&mut self, folder: &Path, entries: &[FolderEntry]) {
        self.found.git.push(PathGuard::no_new_entries(folder));
        // Git neither uses such a file as a repository nor changes it.
        let files = entries.iter().filter(|entry| !entry.kind.is_dir());
        let files = files.map(|entry| PathGuard::protect_file(folder.join(&entry.name)));
        self.found.git.extend(files);
    }

    fn guard_folder(&mut self, folder: &Path) {
        self.found.git.push(PathGuard::protect_dir(folder));
        self.covered.insert(folder.to_owned());
    }

    /// Guards the targets of `.git` files and `commondir` files that are not known repositories.
    fn follow_pointers(&mut self) -> Result<(), WalkStop> {
        for pointer in std::mem::take(&mut self.pointers) {
            let Some(target) = self.workspace.git_pointer(&pointer) else {
                continue;
            };
            if !self.repositories.contains(&target) && !self.covered.contains(&target) {
                self.count(1)?;
                self.guard_folder(&target);
            }
        }
        Ok(())
    }

    /// Guards denied files under their other names.
    fn find_other_names(&mut self) -> Result<(), WalkStop> {
        let mut todo = vec![PathBuf::new()];
        while let Some(folder) = todo.pop() {
            for FolderEntry { name, kind } in self.list(&folder, &folder)? {
                let at = folder.join(name);
                let hidden = self.covered.contains(&at)
                    && self.denials.denies_reading(&at.to_string_lossy());
                if hidden {
                    continue;
                }
                if at.as_os_str().len() > MAX_PATH {
                    self.close_to_names(&at, kind);
                    continue;
                }
                if kind.is_dir() {
                    todo.push(at);
                } else if kind.is_file()
                    && let Some(file) = self.with_names(&at)
                    && let Some(guard) = self.linked.get(&file)
                    && (*guard == GuardKind::Hidden || !self.is_within_cover(&at))
                {
                    self.found.denied.push(match guard {
                        GuardKind::Hidden => PathGuard::hide_file(at),
                        GuardKind::ReadOnly => PathGuard::protect_file(at),
                    });
                }
            }
        }
        Ok(())
    }

    /// Guards a folder that is too deep to be searched for other names of denied files.
    fn close_to_names(&mut self, at: &Path, kind: FileType) {
        let strictest = self.linked.values().max();
        if let Some(guard) = strictest.filter(|_| kind.is_dir() && !self.is_within_cover(at)) {
            self.found.denied.push(match guard {
                GuardKind::Hidden => PathGuard::hide_dir(at),
                GuardKind::ReadOnly => PathGuard::protect_dir(at),
            });
        }
    }

    fn is_within_cover(&self, at: &Path) -> bool {
        at.ancestors().any(|above| self.covered.contains(above))
    }

    fn list(&mut self, folder: &Path, shown: &Path) -> Result<Vec<FolderEntry>, WalkStop> {
        match read(&self.workspace.root().join(folder), self.left) {
            Ok(entries) => {
                self.count(entries.len())?;
                Ok(entries)
            }
            Err(error) if folder == Path::new("") => Err(WalkStop::Unlistable(error)),
            Err(error) => {
                let missing = [io::ErrorKind::NotFound, io::ErrorKind::NotADirectory];
                if !missing.contains(&error.kind()) {
                    self.close(folder, shown);
                }
                Ok(Vec::new())
            }
        }
    }

    /// Guards a folder that cannot be listed, because the command may be able to make it listable. Rules see `shown`, too.
    fn close(&mut self, folder: &Path, shown: &Path) {
        // A link may lead to a folder whose own path cannot be covered: one above it is.
        let mut above = folder.ancestors();
        let folder = above.find(|above| above.as_os_str().len() <= MAX_PATH + MAX_NAME);
        let folder = folder.unwrap_or(Path::new(""));
        let is_new = self.covered.insert(folder.to_owned());
        let mut paths = [folder, shown].into_iter().map(Path::to_string_lossy);
        if paths.any(|path| self.denials.may_deny_reading_below(&path)) {
            // A link may lead to what was only read-only before.
            let guard = PathGuard::hide_dir(folder);
            if is_new || !self.found.denied.contains(&guard) {
                self.found.denied.push(guard);
            }
        } else if is_new && !self.on_view {
            self.found.git.push(PathGuard::protect_dir(folder));
        }
    }

    fn count(&mut self, entries: usize) -> Result<(), WalkStop> {
        self.left = self.left.checked_sub(entries).ok_or(WalkStop::TooMany)?;
        Ok(())
    }
}

/// Returns the entries of a folder, or slightly more than `most` of them.
fn read(folder: &Path, most: usize) -> io::Result<Vec<FolderEntry>> {
    let entries = fs::read_dir(folder)?.take(most.saturating_add(1));
    let entries = entries.map(|entry| {
        let entry = entry?;
        let kind = entry.file_type()?;
        let name = entry.file_name();
        Ok(FolderEntry { name, kind })
    });
    entries.collect()
}
