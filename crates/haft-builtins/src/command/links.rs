//! `Links`: the symbolic links of a workspace, and further names of files by hard links; where a link leads, and over which others.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Component, Path, PathBuf};

/// Maximum number of workspace entries to search.
const MAX_ENTRIES: usize = 1_000_000;
/// Maximum number of links to follow.
const MAX_LINKS: usize = 200_000;
/// Maximum number of links on the way of one, as in the kernel.
const MAX_HOPS: usize = 40;
/// Maximum number of ways of one link. It has several if a command replaces links on its way.
const MAX_WAYS: usize = 64;

/// A file, by device and inode.
pub(super) type FileId = (u64, u64);

/// The reason why the links of a workspace are not all known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TooMany;

/// The links of a workspace. All paths are relative to its root, and lead over no link.
#[derive(Debug, Default)]
pub(super) struct Links {
    root: PathBuf,
    /// The texts of each link: the one in the workspace, and the one that a command left on its copy.
    texts: BTreeMap<PathBuf, Vec<PathBuf>>,
    /// Links of a command at paths that were files or folders before.
    replacing: HashSet<PathBuf>,
    /// True if there is a folder whose links work although they cannot be listed.
    pub(super) unlisted: bool,
    /// The names of the files that were searched for.
    names: HashMap<FileId, Vec<PathBuf>>,
}

/// Where a link leads.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct Way {
    /// Its ends below the root, whether they exist or not; empty for the root itself.
    pub(super) ends: Vec<PathBuf>,
    /// The other links that it leads over.
    pub(super) over: Vec<PathBuf>,
}

impl Links {
    /// Finds the links below a root, which is a real path, and all names of `files`.
    pub(super) fn find(root: &Path, files: &HashSet<FileId>) -> Result<Self, TooMany> {
        let mut links = Self {
            root: root.to_owned(),
            ..Self::default()
        };
        let (mut todo, mut left) = (vec![PathBuf::new()], MAX_ENTRIES);
        while let Some(folder) = todo.pop() {
            let entries = match fs::read_dir(root.join(&folder)) {
                Ok(entries) => entries,
                Err(error) if is_gone(&error) || !can_be_entered(&root.join(&folder)) => continue,
                Err(_) => {
                    links.unlisted = true;
                    continue;
                }
            };
            for entry in entries {
                left = left.checked_sub(1).ok_or(TooMany)?;
                let Ok(entry) = entry else {
                    return Err(TooMany);
                };
                let Ok(kind) = entry.file_type() else {
                    continue;
                };
                if kind.is_dir() {
                    let at = folder.join(entry.file_name());
                    if !holds_git_objects(&at) {
                        todo.push(at);
                    }
                } else if kind.is_symlink() {
                    if let Ok(text) = fs::read_link(entry.path()) {
                        links.add(folder.join(entry.file_name()), text)?;
                    }
                } else if !files.is_empty()
                    && let Some(id) = entry.metadata().ok().as_ref().and_then(id)
                    && files.contains(&id)
                {
                    let names = links.names.entry(id).or_default();
                    names.push(folder.join(entry.file_name()));
                }
            }
        }
        Ok(links)
    }

    /// Adds a link that a command left on its copy; `replaces` is true if it left it where something other than a link was.
    pub(super) fn add_change(
        &mut self,
        path: &Path,
        text: &Path,
        replaces: bool,
    ) -> Result<(), TooMany> {
        if replaces {
            self.replacing.insert(path.to_owned());
        }
        self.add(path.to_owned(), text.to_owned())
    }

    fn add(&mut self, path: PathBuf, text: PathBuf) -> Result<(), TooMany> {
        let texts = self.texts.entry(path).or_default();
        if !texts.contains(&text) {
            texts.push(text);
        }
        if self.texts.len() > MAX_LINKS {
            return Err(TooMany);
        }
        Ok(())
    }

    /// Returns the links, sorted by path.
    pub(super) fn paths(&self) -> impl Iterator<Item = &PathBuf> {
        self.texts.keys()
    }

    /// Returns the links below a path.
    pub(super) fn below(&self, path: &Path) -> Vec<&PathBuf> {
        let from = self.texts.range(path.to_owned()..);
        let links = from.map(|(link, _)| link);
        links.take_while(|link| link.starts_with(path)).collect()
    }

    /// Returns the names of one of the files that were searched for.
    pub(super) fn names(&self, file: FileId) -> &[PathBuf] {
        self.names.get(&file).map_or(&[], Vec::as_slice)
    }

    /// Returns where a link leads.
    pub(super) fn way(&self, link: &Path) -> Result<Way, TooMany> {
        let mut way = Way::default();
        let mut ways = 0;
        let mut todo = vec![Walker::new(link)];
        while let Some(mut walker) = todo.pop() {
            ways += 1;
            if ways > MAX_WAYS {
                return Err(TooMany);
            }
            loop {
                if let Some(texts) = self.texts.get(&walker.at)
                    && !walker.plain
                {
                    if walker.at != link && !way.over.contains(&walker.at) {
                        way.over.push(walker.at.clone());
                    }
                    let followed = texts.iter().filter_map(|text| walker.follow(self, text));
                    todo.extend(followed);
                    // A loop of links leads nowhere.
                    if !self.replacing.contains(&walker.at) || walker.at == link {
                        break;
                    }
                }
                walker.plain = false;
                match walker.step() {
                    Step::On => {}
                    Step::AboveRoot => match self.lead_back(&walker.above(&self.root)) {
                        Some(inside) => walker.restart(&inside),
                        None => break,
                    },
                    Step::End => {
                        if !way.ends.contains(&walker.at) {
                            way.ends.push(walker.at.clone());
                        }
                        break;
                    }
                }
            }
        }
        Ok(way)
    }

    /// Returns where an absolute path leads below the root: it may do so over links elsewhere.
    fn lead_back(&self, path: &Path) -> Option<PathBuf> {
        let inside = |path: &Path| path.strip_prefix(&self.root).map(Path::to_owned).ok();
        if let Some(inside) = inside(path) {
            return Some(inside);
        }
        // The part that exists; the rest cannot hold links.
        let exists = path.ancestors().find_map(|above| {
            let real = above.canonicalize().ok()?;
            Some(real.join(path.strip_prefix(above).ok()?))
        });
        inside(&exists?)
    }
}

/// A position on a link's way.
#[derive(Debug)]
struct Walker {
    at: PathBuf,
    /// The remaining parts, last first.
    rest: Vec<PathBuf>,
    hops: usize,
    /// True if the link at this position is taken as what it replaced.
    plain: bool,
}

enum Step {
    On,
    AboveRoot,
    End,
}

impl Walker {
    fn new(link: &Path) -> Self {
        Self {
            at: link.to_owned(),
            rest: Vec::new(),
            hops: 0,
            plain: false,
        }
    }

    /// Returns the walker behind a link with this text.
    fn follow(&self, links: &Links, text: &Path) -> Option<Self> {
        let hops = self.hops + 1;
        if hops > MAX_HOPS {
            return None;
        }
        let mut next = Self {
            at: self.at.parent().unwrap_or(Path::new("")).to_owned(),
            rest: self.rest.clone(),
            hops,
            plain: true,
        };
        if text.is_absolute() {
            next.at = PathBuf::new();
            let mut whole = text.to_owned();
            whole.extend(next.rest.drain(..).rev());
            let inside = links.lead_back(&whole)?;
            next.restart(&inside);
        } else {
            next.push(text);
        }
        Some(next)
    }

    fn push(&mut self, path: &Path) {
        let parts = path.components().rev();
        self.rest
            .extend(parts.map(|part| PathBuf::from(part.as_os_str())));
    }

    fn restart(&mut self, inside: &Path) {
        self.at = PathBuf::new();
        self.rest.clear();
        self.push(inside);
    }

    /// Returns the rest of the way from the folder above the root.
    fn above(&self, root: &Path) -> PathBuf {
        let mut path = root.parent().unwrap_or(root).to_owned();
        path.extend(self.rest.iter().rev());
        path
    }

    fn step(&mut self) -> Step {
        let Some(part) = self.rest.pop() else {
            return Step::End;
        };
        match part.components().next() {
            Some(Component::Normal(_)) => self.at.push(part),
            Some(Component::ParentDir) if !self.at.pop() => return Step::AboveRoot,
            _ => {}
        }
        Step::On
    }
}

/// Returns the identity of a file that has several names.
pub(super) fn id(meta: &fs::Metadata) -> Option<FileId> {
    (meta.is_file() && meta.nlink() > 1).then(|| (meta.dev(), meta.ino()))
}

fn is_gone(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
    )
}

fn can_be_entered(folder: &Path) -> bool {
    folder.join(".").symlink_metadata().is_ok()
}

/// Returns true for the folders of git's objects, which are numerous and hold no links.
fn holds_git_objects(folder: &Path) -> bool {
    let name = folder.file_name().unwrap_or_default().as_bytes();
    let of_objects = name == b"pack" || (name.len() == 2 && name.iter().all(u8::is_ascii_hexdigit));
    let parent = folder.parent();
    of_objects
        && parent.is_some_and(|parent| parent.ends_with("objects"))
        && folder.iter().any(|part| part == ".git")
}
