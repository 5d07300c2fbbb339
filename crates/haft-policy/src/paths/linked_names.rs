//! `LinkedNames`: the further names by which links reach the files of a workspace, as far as rules may judge them otherwise than by
//! their own names.
//!
//! It is used wherever a path is judged or guarded: by the policy for every effect of a call, by commands for what they changed on
//! a copy, and by the jail for what it protects in the workspace itself.

use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};

use crate::paths::denials::Denials;
use crate::paths::name_progress::NameProgress;
use crate::paths::plain_parts::PlainParts;
use haft_files::workspace::{Links, OutsideLinks, TooManyLinks};
use haft_types::text::visible;

/// Maximum number of names in all.
const MAX_NAMES: usize = 20_000;
/// Maximum number of folders elsewhere that one link leads through.
const MAX_BEYOND: usize = 8;
/// Maximum number of links to follow, counted again for further names.
const MAX_STEPS: usize = 500_000;

/// The further names of a workspace's files.
#[derive(Debug, Default)]
pub struct LinkedNames {
    /// The names of files and folders that links lead to, by their own paths.
    names: HashMap<PathBuf, Vec<PathBuf>>,
    /// The names of links that other links lead over. A change of such a link changes what the name reaches, but the
    /// files below the link's target do not have the name.
    over: HashMap<PathBuf, Vec<PathBuf>>,
    /// Why there may be more.
    unknown: Option<String>,
    outside: OutsideLinks,
}

impl LinkedNames {
    /// Finds the names that links give to what these paths name and to what rules, secrets and protected names may name.
    pub fn find(links: &Links, denials: &Denials, named: &[PathBuf]) -> Self {
        let mut search = LinkedNameSearch {
            links,
            denials,
            named,
            plain: PlainParts::new(denials),
            ways: HashMap::new(),
            known: HashMap::new(),
            found: Self {
                unknown: links.missing(),
                ..Self::default()
            },
            count: 0,
            steps: 0,
        };
        if search.run().is_err() {
            let why = format!("links give files more than {MAX_NAMES} further names");
            search.found.unknown.get_or_insert(why);
        }
        search.found
    }

    /// Returns why there may be more names, as a clause; `None` if all are known.
    pub fn unknown(&self) -> Option<&str> {
        self.unknown.as_deref()
    }

    /// Whether all names are known, and there are none.
    pub fn is_empty(&self) -> bool {
        self.names.is_empty() && self.over.is_empty() && self.unknown.is_none()
    }

    /// Returns each file or folder that links lead to, with its further names.
    pub fn ends(&self) -> impl Iterator<Item = (&PathBuf, &Vec<PathBuf>)> {
        self.names.iter()
    }

    /// Returns each link that other links lead over, with the names that lead over it.
    pub fn over(&self) -> impl Iterator<Item = (&PathBuf, &Vec<PathBuf>)> {
        self.over.iter()
    }

    /// Returns the further names of a path.
    pub fn names_of(&self, path: &Path) -> BTreeSet<PathBuf> {
        let over = joined(&self.over, path);
        self.by_links(path).chain(over).collect()
    }

    /// Whether what was looked at outside the workspace is still the same.
    pub(crate) fn is_current(&self) -> bool {
        self.outside.is_current()
    }

    /// Returns the names of a path because links lead to it or to a folder above it.
    fn by_links<'a>(&'a self, path: &'a Path) -> impl Iterator<Item = PathBuf> + 'a {
        joined(&self.names, path)
    }
}

/// Returns the names that a path has because it or a folder above it has some.
fn joined<'a>(
    names: &'a HashMap<PathBuf, Vec<PathBuf>>,
    path: &'a Path,
) -> impl Iterator<Item = PathBuf> + 'a {
    path.ancestors().flat_map(move |above| {
        let rest = path.strip_prefix(above).unwrap_or(Path::new(""));
        let names = names.get(above).into_iter().flatten();
        names.map(move |name| join(name, rest))
    })
}

/// Joins paths, without a slash at the end if there is nothing to add.
pub(crate) fn join(path: &Path, rest: &Path) -> PathBuf {
    if rest == Path::new("") {
        path.to_owned()
    } else {
        path.join(rest)
    }
}

/// A search for names. A link within a folder that has further names has further names itself, and so has what it leads to. Only
/// names that match more of a rule than those known before count, so that the search ends however links lead in circles.
struct LinkedNameSearch<'a> {
    links: &'a Links,
    denials: &'a Denials,
    named: &'a [PathBuf],
    plain: PlainParts<'a>,
    /// Where each link leads, by its absolute path.
    ways: HashMap<PathBuf, LinkTargets>,
    /// What the known names of a place match, and whether `named` does; for links that others lead over apart.
    known: HashMap<(PathBuf, LinkTargetRole), (NameProgress, bool)>,
    found: LinkedNames,
    count: usize,
    steps: usize,
}

/// What a place is on the way of a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum LinkTargetRole {
    /// Its end.
    End,
    /// Another link that it leads over.
    Over,
}

/// Where a link leads.
#[derive(Clone)]
struct LinkTargets {
    /// What it leads to or over in the workspace.
    inside: Vec<(PathBuf, LinkTargetRole)>,
    /// Further links in the folders elsewhere that it leads to: their absolute paths, and those below the folder.
    beyond: Vec<(PathBuf, PathBuf)>,
}

impl<'a> LinkedNameSearch<'a> {
    fn run(&mut self) -> Result<(), TooManyLinks> {
        let mut todo: Vec<&'a PathBuf> = self.links.paths().collect();
        while let Some(link) = todo.pop() {
            let own = self.links.root().join(link);
            let names: Vec<PathBuf> = self.found.by_links(link).collect();
            let names: Vec<PathBuf> = std::iter::once(link.clone()).chain(names).collect();
            let mut gained = Vec::new();
            self.follow(&own, &names, &mut gained)?;
            for place in gained {
                let below = self.links.below(&place).into_iter();
                todo.extend(below.filter(|below| **below != place));
            }
        }
        Ok(())
    }

    /// Notes that what a link leads to has these names too, and adds the places that had gained names.
    fn follow(
        &mut self,
        link: &Path,
        names: &[PathBuf],
        gained: &mut Vec<PathBuf>,
    ) -> Result<(), TooManyLinks> {
        let mut todo = vec![(link.to_owned(), names.to_vec(), 0)];
        while let Some((link, mut names, depth)) = todo.pop() {
            names.retain(|name| self.counts(name));
            if names.is_empty() {
                continue;
            }
            self.steps += 1;
            if self.steps > MAX_STEPS {
                return Err(TooManyLinks);
            }
            let places = self.places(&link);
            for (place, role) in places.inside {
                let mut more = false;
                for name in &names {
                    more |= self.note(&place, role, name)?;
                }
                if more && role == LinkTargetRole::End {
                    gained.push(place);
                }
            }
            if depth == MAX_BEYOND && !places.beyond.is_empty() {
                self.cut(&link);
                continue;
            }
            for (beyond, rest) in places.beyond {
                let names = names.iter().map(|name| join(name, &rest)).collect();
                todo.push((beyond, names, depth + 1));
            }
        }
        Ok(())
    }

    /// Whether a name may match what others do not.
    fn counts(&mut self, name: &Path) -> bool {
        let parts = name.iter().any(|part| !self.plain.is_plain(part));
        parts || meets(self.named, name)
    }

    fn places(&mut self, link: &Path) -> LinkTargets {
        if let Some(places) = self.ways.get(link) {
            return places.clone();
        }
        let way = self.links.way(link, &mut self.found.outside);
        if way.is_cut {
            self.cut(link);
        }
        let mut beyond = Vec::new();
        for folder in way.outside {
            match self.found.outside.below(&folder, self.links.root()) {
                Ok(links) => {
                    beyond.extend(links.into_iter().map(|rest| (folder.join(&rest), rest)));
                }
                Err(TooManyLinks) => self.cut(link),
            }
        }
        let ends = way.ends.into_iter().map(|end| (end, LinkTargetRole::End));
        let over = way
            .over
            .into_iter()
            .map(|over| (over, LinkTargetRole::Over));
        let inside = ends.chain(over).collect();
        let places = LinkTargets { inside, beyond };
        self.ways.insert(link.to_owned(), places.clone());
        places
    }

    /// Notes that a link could not be followed to all its ends.
    fn cut(&mut self, link: &Path) {
        let link = link.strip_prefix(self.links.root()).unwrap_or(link);
        let link = visible::path(&link.to_string_lossy());
        let why = format!("the link {link} leads to more places than haft follows");
        self.found.unknown.get_or_insert(why);
    }

    /// Notes a name if rules may judge it, or something below it, otherwise than by the names known before.
    fn note(
        &mut self,
        place: &Path,
        role: LinkTargetRole,
        name: &Path,
    ) -> Result<bool, TooManyLinks> {
        let progress = |path: &Path| {
            let by_rules = self.denials.progress(&path.to_string_lossy());
            (by_rules, meets(self.named, path))
        };
        let (new, is_named) = progress(name);
        let known = self.known.entry((place.to_owned(), role));
        let known = known.or_insert_with(|| progress(place));
        if !new.adds_to(&known.0) && (known.1 || !is_named) {
            return Ok(false);
        }
        if self.count == MAX_NAMES {
            return Err(TooManyLinks);
        }
        known.0.merge(&new);
        known.1 |= is_named;
        self.count += 1;
        let names = match role {
            LinkTargetRole::End => &mut self.found.names,
            LinkTargetRole::Over => &mut self.found.over,
        };
        let names = names.entry(place.to_owned()).or_default();
        names.push(name.to_owned());
        Ok(true)
    }
}

/// Whether a path is, holds or lies in one of these.
fn meets(named: &[PathBuf], path: &Path) -> bool {
    let mut named = named.iter();
    named.any(|named| path.starts_with(named) || named.starts_with(path))
}
