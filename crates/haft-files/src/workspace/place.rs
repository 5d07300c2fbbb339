//! `ResolvedPath`: where a path really leads, resolved link by link from the root's descriptor.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Component, Path, PathBuf};

use rustix::fs::{AtFlags, FileType, OFlags, Stat};
use rustix::io::Errno;

use crate::workspace::{EntryKind, Workspace, WorkspaceError, display_path, is_git};
use haft_types::permission::PathClaim;

/// Maximum number of links followed on one path: the kernel's own limit (path rule 4).
const MAX_LINKS: u32 = 40;
/// Maximum length of a path in bytes: the kernel's `PATH_MAX` without the final NUL (path rule 1).
const MAX_PATH: usize = 4095;
/// Minimum similarity of a suggested name: one letter in three may differ.
const MIN_SIMILARITY: f64 = 0.6;
/// Maximum number of names compared for a suggestion.
const MAX_COMPARED: usize = 10_000;

/// Where a path leads: a path below the root without links, and what was there when it was resolved.
#[derive(Debug, Clone)]
pub struct ResolvedPath {
    /// The path cleaned by its text alone, or the real path if the text alone would leave the root.
    written: PathBuf,
    real: PathBuf,
    /// Number of components at the end of `real` that do not exist.
    missing: usize,
    found: Option<(EntryKind, u64)>,
}

impl ResolvedPath {
    /// Returns the real path below the root; empty for the root itself.
    pub fn real(&self) -> &Path {
        &self.real
    }

    /// Returns the path as written and cleaned, for results and messages; `.` is the root.
    pub fn display(&self) -> String {
        display_path(&self.written)
    }

    /// Returns the error for a place where nothing is. It suggests no name: only a call's view knows which names may be shown.
    pub(super) fn not_found(&self) -> WorkspaceError {
        WorkspaceError::NotFound {
            path: self.display(),
            near: None,
        }
    }

    /// Returns the kind of what is there.
    pub fn kind(&self) -> Option<EntryKind> {
        self.found.map(|(kind, _)| kind)
    }

    /// Returns its size in bytes.
    pub fn bytes(&self) -> Option<u64> {
        self.found.map(|(_, bytes)| bytes)
    }

    /// Returns the number of path components that do not exist; a file can be written here once its parents are created.
    pub(crate) fn missing(&self) -> usize {
        self.missing
    }

    /// Returns the path as the policy must see it.
    ///
    /// # Errors
    /// [`WorkspaceError::Outside`] if the path leads out of the root, [`WorkspaceError::Own`] if it is haft's own,
    /// [`WorkspaceError::Malformed`] if it is not a valid path, [`WorkspaceError::Io`] if it cannot be inspected.
    pub fn claim(&self) -> Result<PathClaim, WorkspaceError> {
        let text = |path: &Path| match path.to_str() {
            Some("") => Ok(".".to_owned()),
            Some(text) => Ok(text.to_owned()),
            // A lossy text could match a rule that the bytes would not.
            None => Err(WorkspaceError::Malformed(
                display_path(path),
                "a link leads to a name that is not UTF-8",
            )),
        };
        Ok(PathClaim {
            path: text(&self.written)?,
            target: if self.real == self.written {
                None
            } else {
                Some(text(&self.real)?)
            },
        })
    }

    /// Fails if the path no longer leads where the policy cleared it (path rule 5).
    ///
    /// # Errors
    /// [`WorkspaceError::Changed`] if it leads elsewhere, otherwise the errors of [`place`](Workspace::place).
    pub fn still(self, cleared: &PathClaim) -> Result<Self, WorkspaceError> {
        if self.claim()? == *cleared {
            Ok(self)
        } else {
            Err(WorkspaceError::Changed(self.display()))
        }
    }

    pub(super) fn need(&self, wanted: EntryKind) -> Result<(), WorkspaceError> {
        match (self.kind(), wanted) {
            (Some(kind), _) if kind == wanted => Ok(()),
            (Some(_), EntryKind::Directory) => Err(WorkspaceError::NotADirectory(self.display())),
            (Some(kind), _) => Err(WorkspaceError::NotAFile {
                path: self.display(),
                kind,
            }),
            (None, _) => Err(WorkspaceError::NotFound {
                path: self.display(),
                near: None,
            }),
        }
    }
}

/// Whether to follow a link at the end of a path.
#[derive(Clone, Copy, PartialEq, Eq)]
enum FinalLink {
    Follow,
    Keep,
}

enum PathComponent {
    Name(OsString),
    Up,
}

/// A path that is being resolved.
struct PathResolver {
    real: PathBuf,
    /// The remaining parts, the next one last.
    todo: Vec<PathComponent>,
    links: u32,
    missing: usize,
    found: Option<(EntryKind, u64)>,
}

impl Workspace {
    /// Resolves a path, following all links. A path whose end does not exist has a place, too: a file can be written there.
    ///
    /// # Errors
    /// [`WorkspaceError::Outside`] if the path leads out of the root, [`WorkspaceError::Own`] if it is haft's own,
    /// [`WorkspaceError::Malformed`] if it is not a valid path, [`WorkspaceError::Io`] if it cannot be inspected.
    pub fn place(&self, path: &str) -> Result<ResolvedPath, WorkspaceError> {
        self.resolve(path, FinalLink::Follow)
    }

    /// Resolves a path without following a link at its end, so that the link itself is deleted or moved.
    ///
    /// # Errors
    /// [`WorkspaceError::Outside`] if the path leads out of the root, [`WorkspaceError::Own`] if it is haft's own,
    /// [`WorkspaceError::Malformed`] if it is not a valid path, [`WorkspaceError::Io`] if it cannot be inspected.
    pub fn entry(&self, path: &str) -> Result<ResolvedPath, WorkspaceError> {
        self.resolve(path, FinalLink::Keep)
    }

    /// Like [`place`](Self::place), for something that must exist. A call's view also suggests a similar name.
    ///
    /// # Errors
    /// Those of [`place`](Self::place), and [`WorkspaceError::NotFound`] if nothing exists there.
    pub fn existing(&self, path: &str) -> Result<ResolvedPath, WorkspaceError> {
        let place = self.place(path)?;
        if place.found.is_none() {
            return Err(place.not_found());
        }
        Ok(place)
    }

    fn resolve(&self, path: &str, last: FinalLink) -> Result<ResolvedPath, WorkspaceError> {
        let relative = self.relative(path)?;
        let written = clean(relative);
        let text = relative.as_os_str().as_bytes();
        let folder = text.ends_with(b"/") || text.ends_with(b"/.") || text == b".";
        let last = if folder { FinalLink::Follow } else { last };
        let mut walk = PathResolver {
            real: PathBuf::new(),
            todo: Vec::new(),
            links: 0,
            missing: 0,
            found: None,
        };
        if !self.resolve_directly(relative, last, &mut walk) {
            push_parts(&mut walk.todo, relative);
            self.follow(path, last, &mut walk)?;
        }
        if folder
            && walk
                .found
                .is_some_and(|(kind, _)| kind != EntryKind::Directory)
        {
            return Err(WorkspaceError::NotADirectory(path.to_owned()));
        }
        if folder && walk.found.is_none() {
            return Err(WorkspaceError::NotFound {
                path: path.to_owned(),
                near: None,
            });
        }
        if self.is_own(&walk.real) {
            return Err(WorkspaceError::Own(path.to_owned()));
        }
        Ok(ResolvedPath {
            written: written.unwrap_or_else(|| walk.real.clone()),
            real: walk.real,
            missing: walk.missing,
            found: walk.found,
        })
    }

    /// Returns the path below the root (path rules 1 and 2). Text is compared only to translate an absolute path; what enforces
    /// the boundary is that the rest is then followed by descriptors.
    fn relative<'a>(&self, path: &'a str) -> Result<&'a Path, WorkspaceError> {
        let malformed = |why| {
            Err(WorkspaceError::Malformed(
                path.chars().take(200).collect(),
                why,
            ))
        };
        if path.is_empty() {
            return malformed("it is empty; the root is \".\"");
        }
        if path.contains('\0') {
            return malformed("it holds a NUL byte");
        }
        if path.len() > MAX_PATH {
            return malformed("it is longer than 4,095 bytes");
        }
        if !path.starts_with('/') {
            return Ok(Path::new(path));
        }
        self.below_root(Path::new(path))
            .ok_or_else(|| WorkspaceError::Outside(path.to_owned()))
    }

    pub(super) fn below_root<'a>(&self, absolute: &'a Path) -> Option<&'a Path> {
        let below = absolute.strip_prefix(&self.inner.root);
        let below = below.or_else(|_| absolute.strip_prefix(&self.inner.given));
        match below {
            Ok(rest) if rest.as_os_str().is_empty() => Some(Path::new(".")),
            Ok(rest) => Some(rest),
            Err(_) => None,
        }
    }

    /// Resolves the common case in one system call: a path without `..` and without links.
    fn resolve_directly(&self, relative: &Path, last: FinalLink, walk: &mut PathResolver) -> bool {
        let plain = |part: Component<'_>| matches!(part, Component::Normal(_) | Component::CurDir);
        if !relative.components().all(plain) {
            return false;
        }
        let real: PathBuf = relative
            .components()
            .filter(|part| *part != Component::CurDir)
            .collect();
        let Ok(stat) = self.stat(&real) else {
            return false;
        };
        let (kind, bytes) = kind_and_bytes(&stat);
        if kind == EntryKind::Link && last == FinalLink::Follow {
            return false;
        }
        walk.real = real;
        walk.found = Some((kind, bytes));
        true
    }

    fn follow(
        &self,
        path: &str,
        last: FinalLink,
        walk: &mut PathResolver,
    ) -> Result<(), WorkspaceError> {
        let root = self.stat(Path::new(""));
        let root = root.map_err(|e| WorkspaceError::from_errno("look at", Path::new(""), e))?;
        walk.found = Some(kind_and_bytes(&root));
        while let Some(part) = walk.todo.pop() {
            match part {
                PathComponent::Up => self.to_parent(path, walk)?,
                PathComponent::Name(name) => self.step(path, last, walk, name)?,
            }
        }
        Ok(())
    }

    /// Goes to the real parent; above the root there is none (path rule 3).
    fn to_parent(&self, path: &str, walk: &mut PathResolver) -> Result<(), WorkspaceError> {
        match walk.found {
            None => {
                return Err(WorkspaceError::NotFound {
                    path: path.to_owned(),
                    near: None,
                });
            }
            Some((EntryKind::Directory, _)) => {}
            Some(_) => return Err(WorkspaceError::NotADirectory(path.to_owned())),
        }
        if !walk.real.pop() {
            return Err(WorkspaceError::Outside(path.to_owned()));
        }
        let stat = self.stat(&walk.real);
        let stat = stat.map_err(|e| WorkspaceError::from_errno("look at", &walk.real, e))?;
        walk.found = Some(kind_and_bytes(&stat));
        Ok(())
    }

    fn step(
        &self,
        path: &str,
        last: FinalLink,
        walk: &mut PathResolver,
        name: OsString,
    ) -> Result<(), WorkspaceError> {
        match walk.found {
            None => {
                walk.real.push(name);
                walk.missing += 1;
                return Ok(());
            }
            Some((EntryKind::Directory, _)) => {}
            Some(_) => return Err(WorkspaceError::NotADirectory(path.to_owned())),
        }
        let mut next = walk.real.join(&name);
        let mut found = self.stat(&next);
        if matches!(found, Err(Errno::NOENT))
            && let Some(same) = self.same_name(&walk.real, &name)
        {
            next = walk.real.join(same);
            found = self.stat(&next);
        }
        let stat = match found {
            Ok(stat) => stat,
            Err(Errno::NOENT) => {
                walk.real = next;
                walk.missing = 1;
                walk.found = None;
                return Ok(());
            }
            Err(e) => return Err(WorkspaceError::from_errno("look at", &next, e)),
        };
        let (kind, bytes) = kind_and_bytes(&stat);
        if kind != EntryKind::Link || (last == FinalLink::Keep && walk.todo.is_empty()) {
            walk.real = next;
            walk.found = Some((kind, bytes));
            return Ok(());
        }
        self.expand(path, walk, &next)
    }

    /// Replaces a link with the parts of its target.
    fn expand(
        &self,
        path: &str,
        walk: &mut PathResolver,
        link: &Path,
    ) -> Result<(), WorkspaceError> {
        walk.links += 1;
        if walk.links > MAX_LINKS {
            return Err(WorkspaceError::Malformed(
                path.to_owned(),
                "its symbolic links lead in a circle, or there are more than 40",
            ));
        }
        let fd = self.beneath(link, OFlags::PATH)?;
        let target = rustix::fs::readlinkat(&fd, "", Vec::new())
            .map_err(|e| WorkspaceError::from_errno("read link", link, e))?;
        let target = PathBuf::from(OsString::from_vec(target.into_bytes()));
        if target.is_absolute() {
            let inside = self.below_root(&target);
            let inside = inside.ok_or_else(|| WorkspaceError::Outside(path.to_owned()))?;
            walk.real = PathBuf::new();
            push_parts(&mut walk.todo, inside);
        } else {
            push_parts(&mut walk.todo, &target);
        }
        walk.found = Some((EntryKind::Directory, 0));
        Ok(())
    }

    /// Refuses paths that may be read but not changed (path rules 7 and 8).
    pub(super) fn may_change(&self, place: &ResolvedPath) -> Result<(), WorkspaceError> {
        if place.real.as_os_str().is_empty() {
            return Err(WorkspaceError::Root);
        }
        let by_shape = || !self.inner.repositories && self.is_git_place(&place.real);
        if !self.inner.git && (is_git(&place.real) || by_shape()) {
            return Err(WorkspaceError::Git(place.display()));
        }
        Ok(())
    }

    /// Refuses the same paths, given as a real path that was not resolved, and haft's own.
    pub(super) fn may_change_path(&self, real: &Path) -> Result<(), WorkspaceError> {
        if self.is_own(real) {
            return Err(WorkspaceError::Own(display_path(real)));
        }
        self.may_change(&ResolvedPath {
            written: real.to_owned(),
            real: real.to_owned(),
            missing: 0,
            found: None,
        })
    }

    /// Returns the place of a path below the root that no link may redirect.
    ///
    /// # Errors
    /// A parent is a link or not a folder, or the path is haft's own.
    pub(crate) fn real_place(&self, real: &Path) -> Result<ResolvedPath, WorkspaceError> {
        if self.is_own(real) {
            return Err(WorkspaceError::Own(display_path(real)));
        }
        let mut place = ResolvedPath {
            written: real.to_owned(),
            real: real.to_owned(),
            missing: 0,
            found: None,
        };
        for above in real.ancestors() {
            match self.stat(above) {
                Ok(stat) if place.missing == 0 => {
                    place.found = Some(kind_and_bytes(&stat));
                    return Ok(place);
                }
                Ok(stat) if kind_and_bytes(&stat).0 == EntryKind::Directory => return Ok(place),
                Ok(_) | Err(Errno::NOTDIR) => {
                    return Err(WorkspaceError::Changed(display_path(real)));
                }
                Err(Errno::NOENT) => place.missing += 1,
                Err(e) => return Err(WorkspaceError::from_errno("look at", real, e)),
            }
        }
        Err(WorkspaceError::Root)
    }

    pub(crate) fn stat(&self, real: &Path) -> rustix::io::Result<Stat> {
        let fd = self.open_beneath(real, OFlags::PATH)?;
        rustix::fs::statat(&fd, "", AtFlags::EMPTY_PATH)
    }

    /// Returns a visible name in the deepest existing folder that is similar to the missing one.
    pub(super) fn similar_name(
        &self,
        place: &ResolvedPath,
        shows: &dyn Fn(&Path) -> bool,
    ) -> Option<String> {
        let mut folder = place.real.clone();
        let mut name = folder.file_name()?.to_owned();
        for _ in 1..place.missing.max(1) {
            folder.pop();
            folder.file_name()?.clone_into(&mut name);
        }
        folder.pop();
        let wanted = name.to_string_lossy().to_lowercase();
        let names = self.names(&folder, MAX_COMPARED).ok()?;
        let score =
            |name: &String| strsim::normalized_damerau_levenshtein(&wanted, &name.to_lowercase());
        let best = names
            .iter()
            .filter(|name| shows(&folder.join(name)))
            .map(|name| (score(name), name))
            .filter(|(score, _)| *score >= MIN_SIMILARITY)
            .max_by(|a, b| a.0.total_cmp(&b.0))?;
        Some(display_path(&folder.join(best.1)))
    }
}

pub(super) fn kind_and_bytes(stat: &Stat) -> (EntryKind, u64) {
    let kind = EntryKind::of(FileType::from_raw_mode(stat.st_mode));
    (kind, u64::try_from(stat.st_size).unwrap_or(0))
}

fn push_parts(todo: &mut Vec<PathComponent>, path: &Path) {
    let parts = path.components().rev().filter_map(|part| match part {
        Component::Normal(name) => Some(PathComponent::Name(name.to_owned())),
        Component::ParentDir => Some(PathComponent::Up),
        Component::CurDir | Component::RootDir | Component::Prefix(_) => None,
    });
    todo.extend(parts);
}

/// Removes `.` and `..` by text alone; `None` if that would leave the root.
pub(super) fn clean(relative: &Path) -> Option<PathBuf> {
    let mut clean = PathBuf::new();
    for part in relative.components() {
        match part {
            Component::Normal(name) => clean.push(name),
            Component::ParentDir => {
                if !clean.pop() {
                    return None;
                }
            }
            Component::CurDir | Component::RootDir | Component::Prefix(_) => {}
        }
    }
    Some(clean)
}
