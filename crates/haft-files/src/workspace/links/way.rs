//! `LinkResolution`: where a link of the workspace leads, step by step, also over folders and links outside.

use std::collections::{HashMap, HashSet, VecDeque};
use std::ffi::OsString;
use std::fs;
use std::path::{Component, Path, PathBuf};

use super::Links;
use super::listing::FolderLinks;

/// Maximum number of links on the way of one, as in the kernel.
const MAX_HOPS: usize = 40;
/// Maximum number of different positions on the ways of one link. It has several ways if a command replaces links on them.
const MAX_POSITIONS: usize = 10_000;
/// Maximum number of paths outside the workspace to look at, and of entries of folders there.
const MAX_OUTSIDE: usize = 100_000;

/// Where a link leads.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct LinkResolution {
    /// Its ends below the root, whether they exist or not; empty for the root itself.
    pub ends: Vec<PathBuf>,
    /// The other links of the workspace that it leads over.
    pub over: Vec<PathBuf>,
    /// Its ends elsewhere.
    pub outside: Vec<PathBuf>,
    /// Whether it leads on in more ways than were followed.
    pub is_cut: bool,
}

/// More ways or links than are followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TooManyLinks;

/// What was looked at outside the workspace because ways lead there: each link once, and folders in which ways end.
#[derive(Debug, Default)]
pub struct OutsideLinks {
    texts: HashMap<PathBuf, Option<PathBuf>>,
    folders: HashMap<PathBuf, FolderLinks>,
    /// Ends of ways that are not folders.
    others: HashSet<PathBuf>,
    entries: usize,
}

impl OutsideLinks {
    /// Returns the text of a link, or `None` if the path is not one.
    fn text(&mut self, path: &Path) -> Result<Option<PathBuf>, TooManyLinks> {
        if let Some(known) = self.texts.get(path) {
            return Ok(known.clone());
        }
        if self.texts.len() >= MAX_OUTSIDE {
            return Err(TooManyLinks);
        }
        let text = fs::read_link(path).ok();
        self.texts.insert(path.to_owned(), text.clone());
        Ok(text)
    }

    /// Returns the links below a folder, and `root` if it lies there, relative to the folder.
    ///
    /// # Errors
    /// There are more than are followed.
    pub fn below(&mut self, folder: &Path, root: &Path) -> Result<Vec<PathBuf>, TooManyLinks> {
        let (mut found, mut todo) = (Vec::new(), vec![PathBuf::new()]);
        if !folder.is_dir() {
            self.others.insert(folder.to_owned());
            return Ok(found);
        }
        while let Some(at) = todo.pop() {
            let path = folder.join(&at);
            if path == root {
                found.push(at);
                continue;
            }
            if !self.folders.contains_key(&path) {
                let left = MAX_OUTSIDE - self.entries;
                let listed = FolderLinks::of(path.clone(), left).unwrap_or_default();
                if listed.entries > left || listed.unlisted || listed.too_long {
                    return Err(TooManyLinks);
                }
                self.entries += listed.entries;
                self.folders.insert(path.clone(), listed);
            }
            let Some(listed) = self.folders.get(&path) else {
                continue;
            };
            found.extend(listed.links.iter().map(|(name, _)| at.join(name)));
            todo.extend(listed.folders.iter().map(|name| at.join(name)));
        }
        Ok(found)
    }

    /// Whether all of it is still as it was.
    pub fn is_current(&self) -> bool {
        let mut texts = self.texts.iter();
        texts.all(|(path, text)| fs::read_link(path).ok() == *text)
            && self.folders.values().all(FolderLinks::is_current)
            && !self.others.iter().any(|path| path.is_dir())
    }
}

impl Links {
    /// Returns the root of the workspace.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Returns where a link leads that lies at this absolute path without links, in the workspace or elsewhere.
    pub fn way(&self, link: &Path, outside: &mut OutsideLinks) -> LinkResolution {
        let mut search = LinkResolver {
            links: self,
            outside,
            link,
            way: LinkResolution::default(),
            seen: HashSet::new(),
            todo: VecDeque::new(),
        };
        let start = LinkCursor {
            at: link.to_owned(),
            has_come_down: true,
            ..LinkCursor::default()
        };
        search.todo.push_back(start);
        if search.run().is_err() {
            search.way.is_cut = true;
        }
        search.way
    }
}

/// A search for all ways of one link. A position that two of them share is followed once.
struct LinkResolver<'a> {
    links: &'a Links,
    outside: &'a mut OutsideLinks,
    /// The link itself, an absolute path.
    link: &'a Path,
    way: LinkResolution,
    seen: HashSet<(PathBuf, Vec<OsString>)>,
    /// Walkers that have just arrived somewhere, those with the fewest links behind them first.
    todo: VecDeque<LinkCursor>,
}

impl LinkResolver<'_> {
    fn run(&mut self) -> Result<(), TooManyLinks> {
        while let Some(mut walker) = self.todo.pop_front() {
            while self.passes(&walker)? {
                if !walker.step() {
                    self.end(&walker.at);
                    break;
                }
            }
        }
        Ok(())
    }

    /// Follows the link at a walker's position, if there is one. Returns whether the walker itself goes on.
    fn passes(&mut self, walker: &LinkCursor) -> Result<bool, TooManyLinks> {
        if !walker.has_come_down {
            return Ok(true);
        }
        let Ok(inside) = walker.at.strip_prefix(&self.links.root) else {
            let text = self.outside.text(&walker.at)?;
            return match text {
                Some(text) => self.follow(walker, &text).map(|()| false),
                None => Ok(true),
            };
        };
        let links = self.links;
        let Some(texts) = links.texts.get(inside) else {
            return Ok(true);
        };
        let is_start = walker.at == self.link;
        if !is_start && !self.way.over.iter().any(|over| over == inside) {
            self.way.over.push(inside.to_owned());
        }
        for text in texts {
            self.follow(walker, text)?;
        }
        Ok(links.replacing.contains(inside) && !is_start)
    }

    fn follow(&mut self, walker: &LinkCursor, text: &Path) -> Result<(), TooManyLinks> {
        // A loop of links leads nowhere.
        if walker.hops == MAX_HOPS {
            return Ok(());
        }
        let next = walker.behind(text);
        if self.seen.insert((next.at.clone(), next.rest.clone())) {
            if self.seen.len() > MAX_POSITIONS {
                return Err(TooManyLinks);
            }
            self.todo.push_back(next);
        }
        Ok(())
    }

    fn end(&mut self, at: &Path) {
        let (ends, end) = match at.strip_prefix(&self.links.root) {
            Ok(inside) => (&mut self.way.ends, inside),
            Err(_) => (&mut self.way.outside, at),
        };
        if !ends.iter().any(|known| known == end) {
            ends.push(end.to_owned());
        }
    }
}

/// A position on a link's way.
#[derive(Debug, Default)]
struct LinkCursor {
    /// An absolute path without links.
    at: PathBuf,
    /// The remaining parts, last first; `..` leads up.
    rest: Vec<OsString>,
    hops: usize,
    /// Whether the last step led into something that may be a link.
    has_come_down: bool,
}

impl LinkCursor {
    /// Returns the walker behind a link with this text.
    fn behind(&self, text: &Path) -> Self {
        let mut rest = self.rest.clone();
        let parts = text.components().rev().filter_map(|part| match part {
            Component::Normal(name) => Some(name.to_owned()),
            Component::ParentDir => Some(OsString::from("..")),
            Component::CurDir | Component::RootDir | Component::Prefix(_) => None,
        });
        rest.extend(parts);
        let folder = match self.at.parent() {
            Some(parent) if !text.is_absolute() => parent,
            _ => Path::new("/"),
        };
        Self {
            at: folder.to_owned(),
            rest,
            hops: self.hops + 1,
            has_come_down: false,
        }
    }

    /// Goes one part further; returns false at the end.
    fn step(&mut self) -> bool {
        let Some(part) = self.rest.pop() else {
            return false;
        };
        self.has_come_down = part != "..";
        if self.has_come_down {
            self.at.push(part);
        } else {
            self.at.pop();
        }
        true
    }
}
