//! `LinkedNames`: the further names by which links reach the files of a workspace, as far as rules may judge them otherwise than by
//! their own names.
//!
//! Used in both modes: on a copy, a change is judged by all names of its path; in the workspace itself, the ends of such links get
//! the guards of their names.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::path::{Path, PathBuf};

use haft::change::State;
use haft::change::collect::ViewChange;
use haft::policy::{Denials, NameProgress};
use haft::workspace::Workspace;

use crate::command::git_changes::{meets, named_by_settings};
use crate::command::links::{FileId, Links, TooMany, id};

/// Maximum number of names in all.
const MAX_NAMES: usize = 20_000;

/// The further names of a workspace's files.
#[derive(Debug, Default)]
pub(super) struct LinkedNames {
    /// The names of files and folders that links lead to or over, by their own paths.
    names: HashMap<PathBuf, Vec<PathBuf>>,
    /// Other names of changed files, by hard links.
    hard: HashMap<PathBuf, Vec<PathBuf>>,
}

impl LinkedNames {
    /// Finds the further names in a workspace.
    pub(super) fn find(workspace: &Workspace, denials: &Denials) -> Result<Self, TooMany> {
        let links = Links::find(workspace.root(), &HashSet::new())?;
        Self::of(&links, workspace, denials)
    }

    /// Finds the further names of changed files: by links of the workspace, and by those that the changes leave.
    pub(super) fn of_changes(
        workspace: &Workspace,
        changes: &[ViewChange],
        denials: &Denials,
    ) -> Result<Self, TooMany> {
        let file = |change: &ViewChange| -> Option<FileId> {
            let path = workspace.root().join(&change.path);
            let before = matches!(change.before, Some(State::File { .. }));
            before.then(|| id(&path.symlink_metadata().ok()?)).flatten()
        };
        let files = changes.iter().map(|change| (&change.path, file(change)));
        let files: Vec<(&PathBuf, FileId)> = files
            .filter_map(|(path, file)| Some((path, file?)))
            .collect();
        let wanted = files.iter().map(|(_, file)| *file).collect();
        let mut links = Links::find(workspace.root(), &wanted)?;
        if links.unlisted {
            return Err(TooMany);
        }
        for change in changes {
            if let Some(State::Link { target }) = &change.after {
                let before = change.before.as_ref();
                let replaces = before.is_some_and(|state| !matches!(state, State::Link { .. }));
                links.add_change(&change.path, &target.0, replaces)?;
            }
        }
        let mut names = Self::of(&links, workspace, denials)?;
        for (path, file) in files {
            let others = links.names(file).iter().filter(|name| *name != path);
            names.hard.insert(path.clone(), others.cloned().collect());
        }
        Ok(names)
    }

    fn of(links: &Links, workspace: &Workspace, denials: &Denials) -> Result<Self, TooMany> {
        let mut search = Search {
            links,
            denials,
            ways: HashMap::new(),
            settings: named_by_settings(workspace),
            known: HashMap::new(),
            found: Self::default(),
            count: 0,
        };
        search.run()?;
        Ok(search.found)
    }

    /// Returns each file or folder that links lead to or over, with its further names.
    pub(super) fn all(&self) -> impl Iterator<Item = (&PathBuf, &Vec<PathBuf>)> {
        self.names.iter()
    }

    /// Returns the further names of a path.
    pub(super) fn names_of(&self, path: &Path) -> BTreeSet<PathBuf> {
        let mut names: BTreeSet<PathBuf> = self.by_links(path).collect();
        for other in self.hard.get(path).into_iter().flatten() {
            names.insert(other.clone());
            names.extend(self.by_links(other));
        }
        names
    }

    fn by_links<'a>(&'a self, path: &'a Path) -> impl Iterator<Item = PathBuf> + 'a {
        path.ancestors().flat_map(move |above| {
            let rest = path.strip_prefix(above).unwrap_or(Path::new(""));
            let names = self.names.get(above).into_iter().flatten();
            names.map(move |name| join(name, rest))
        })
    }
}

/// Joins paths, without a slash at the end if there is nothing to add.
fn join(path: &Path, rest: &Path) -> PathBuf {
    if rest == Path::new("") {
        path.to_owned()
    } else {
        path.join(rest)
    }
}

/// A search for names. A link within a folder that has further names has further names itself, and so has what it leads to. Only
/// names that match more of a rule than those known before count, so that the search ends however links lead in circles.
struct Search<'a> {
    links: &'a Links,
    denials: &'a Denials,
    ways: HashMap<&'a Path, Vec<PathBuf>>,
    /// Paths that git's settings name.
    settings: Vec<PathBuf>,
    /// What the known names of a place match, and whether git's settings name one.
    known: HashMap<PathBuf, (NameProgress, bool)>,
    found: LinkedNames,
    count: usize,
}

impl<'a> Search<'a> {
    fn run(&mut self) -> Result<(), TooMany> {
        let mut todo: Vec<&'a PathBuf> = self.links.paths().collect();
        while let Some(link) = todo.pop() {
            let mut names: Vec<PathBuf> = self.found.by_links(link).collect();
            names.push(link.clone());
            for place in self.places(link)? {
                let mut more = false;
                for name in &names {
                    more |= self.note(&place, name)?;
                }
                if more {
                    let below = self.links.below(&place).into_iter();
                    todo.extend(below.filter(|below| **below != *place));
                }
            }
        }
        Ok(())
    }

    /// Returns the places that a link leads to or over.
    fn places(&mut self, link: &'a Path) -> Result<Vec<PathBuf>, TooMany> {
        if let Some(places) = self.ways.get(link) {
            return Ok(places.clone());
        }
        let way = self.links.way(link)?;
        let places: Vec<PathBuf> = way.ends.into_iter().chain(way.over).collect();
        self.ways.insert(link, places.clone());
        Ok(places)
    }

    /// Notes a name if rules may judge it, or something below it, otherwise than by the names known before.
    fn note(&mut self, place: &Path, name: &Path) -> Result<bool, TooMany> {
        let progress = |path: &Path| {
            let by_rules = self.denials.progress(&path.to_string_lossy());
            (by_rules, meets(&self.settings, path))
        };
        let (new, by_settings) = progress(name);
        let known = self.known.entry(place.to_owned());
        let known = known.or_insert_with(|| progress(place));
        if !new.adds_to(&known.0) && (known.1 || !by_settings) {
            return Ok(false);
        }
        known.0.merge(&new);
        known.1 |= by_settings;
        self.count += 1;
        if self.count > MAX_NAMES {
            return Err(TooMany);
        }
        let names = self.found.names.entry(place.to_owned()).or_default();
        names.push(name.to_owned());
        Ok(true)
    }
}
