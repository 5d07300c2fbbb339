//! `SkillSet`: the skills below several roots; `Catalogue`: what they come to, kept up to date cheaply.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::watch;

pub use crate::skill::walk::Broken;
use crate::skill::walk::{Below, Watch, walk};
use crate::skill::{Problem, Skill, Source};

/// The folders of a workspace that hold skills, the first wins.
pub const WORKSPACE_FOLDERS: [&str; 3] = [".haft/skills", ".agents/skills", ".claude/skills"];

/// A folder in which skills are looked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Root {
    source: Source,
    /// No link below leads out of this folder.
    edge: Option<PathBuf>,
    withheld: bool,
}

impl Root {
    /// A folder of a workspace (both without links, the second relative). Where the workspace is not trusted it is not
    /// read, only named. No link out of the workspace is followed.
    pub fn workspace(workspace: &Path, folder: &str, trusted: bool) -> Self {
        Self {
            source: Source::Workspace(workspace.join(folder).into()),
            edge: Some(workspace.to_path_buf()),
            withheld: !trusted,
        }
    }

    /// A folder that the settings name.
    pub fn configured(folder: impl Into<PathBuf>) -> Self {
        Self::of(Source::Configured(folder.into().into()))
    }

    /// A folder of the user's own.
    pub fn user(folder: impl Into<PathBuf>) -> Self {
        Self::of(Source::User(folder.into().into()))
    }

    fn of(source: Source) -> Self {
        Self {
            source,
            edge: None,
            withheld: false,
        }
    }

    /// What sort of root it is, and its folder.
    pub fn source(&self) -> &Source {
        &self.source
    }
}

/// Which skills may be seen at all: names with `*` for any text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Filter {
    /// These alone; empty for all.
    pub allow: Vec<String>,
    /// Not these; wins.
    pub deny: Vec<String>,
}

impl Filter {
    /// Whether a name passes.
    pub fn passes(&self, name: &str) -> bool {
        let any = |patterns: &[String]| patterns.iter().any(|pattern| fits(pattern, name));
        (self.allow.is_empty() || any(&self.allow)) && !any(&self.deny)
    }
}

/// Whether a pattern stands for the whole text; `*` is any text, also none.
fn fits(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('*');
    let Some(mut rest) = parts.next().and_then(|head| text.strip_prefix(head)) else {
        return false;
    };
    let parts: Vec<&str> = parts.collect();
    let Some((tail, middle)) = parts.split_last() else {
        return rest.is_empty();
    };
    for part in middle {
        let Some(at) = rest.find(part) else {
            return false;
        };
        rest = &rest[at + part.len()..];
    }
    rest.ends_with(tail)
}

/// A skill that is not used because one of the same name was found earlier.
#[derive(Debug, Clone)]
pub struct Shadowed {
    /// The one that is not used.
    pub skill: Skill,
    /// The `SKILL.md` of the one that is.
    pub by: PathBuf,
}

/// What the roots hold at one moment.
#[derive(Debug, Default)]
pub struct Catalogue {
    version: u64,
    skills: Vec<Skill>,
    index: HashMap<String, usize>,
    shadowed: Vec<Shadowed>,
    hidden: Vec<Skill>,
    broken: Vec<Broken>,
    withheld: Vec<PathBuf>,
    problems: Vec<Problem>,
}

impl Catalogue {
    /// The skills that may be used, in the order of the roots, shallow ones first, then by path. No two have one name.
    pub fn skills(&self) -> &[Skill] {
        &self.skills
    }

    /// The skill of a name.
    pub fn find(&self, name: &str) -> Option<&Skill> {
        self.index.get(name).map(|at| &self.skills[*at])
    }

    /// Skills whose name was taken.
    pub fn shadowed(&self) -> &[Shadowed] {
        &self.shadowed
    }

    /// Skills that the filter hides.
    pub fn hidden(&self) -> &[Skill] {
        &self.hidden
    }

    /// Skills that did not load.
    pub fn broken(&self) -> &[Broken] {
        &self.broken
    }

    /// Folders that are there and were not read, because their workspace is not trusted.
    pub fn withheld(&self) -> &[PathBuf] {
        &self.withheld
    }

    /// What was wrong with the roots and the folders below them.
    pub fn problems(&self) -> &[Problem] {
        &self.problems
    }

    /// Which change this is; rises with each.
    pub fn version(&self) -> u64 {
        self.version
    }

    fn add(&mut self, root: &Root, below: &Below, filter: &Filter) {
        self.problems.extend(below.problems.iter().cloned());
        for found in &below.found {
            let skill = match &found.read {
                Ok(skill) => skill,
                // One folder below two roots is told once.
                Err(broken) if self.broken.iter().any(|b| b.location == broken.location) => {
                    continue;
                }
                Err(broken) => {
                    self.broken.push(Broken {
                        source: root.source.clone(),
                        ..broken.clone()
                    });
                    continue;
                }
            };
            let earlier = self.find(skill.name()).map(Skill::location);
            if !filter.passes(skill.name()) {
                self.hidden.push(skill.clone());
            } else if let Some(by) = earlier {
                if by != skill.location() {
                    let skill = skill.clone();
                    self.shadowed.push(Shadowed { skill, by });
                }
            } else {
                self.index
                    .insert(skill.name().to_owned(), self.skills.len());
                self.skills.push(skill.clone());
            }
        }
    }
}

/// The skills below several roots, earlier roots first.
///
/// [`SkillSet::current`] looks whether anything changed and reads what did: a change on disk counts from the next
/// call on, without a thread or a watcher.
#[derive(Debug)]
pub struct SkillSet {
    roots: Vec<Root>,
    filter: Filter,
    state: Mutex<State>,
    version: watch::Sender<u64>,
}

#[derive(Debug, Default)]
struct State {
    roots: Vec<Seen>,
    catalogue: Arc<Catalogue>,
}

/// A root as it was seen.
#[derive(Debug)]
struct Seen {
    /// Its path as given: what it leads to may change.
    watch: Watch,
    below: Below,
}

impl SkillSet {
    /// Skills below these roots; nothing is read yet.
    pub fn new(roots: Vec<Root>, filter: Filter) -> Self {
        Self {
            roots,
            filter,
            state: Mutex::new(State::default()),
            version: watch::Sender::new(0),
        }
    }

    /// The roots, the first wins.
    pub fn roots(&self) -> &[Root] {
        &self.roots
    }

    /// What the roots hold now. It reads files and blocks for that: about a microsecond a file where nothing changed.
    pub fn current(&self) -> Arc<Catalogue> {
        let mut state = self.state.lock();
        let held = state
            .roots
            .iter()
            .map(|seen| seen.watch.holds() && seen.below.holds());
        let held: Vec<bool> = held.collect();
        if state.catalogue.version > 0 && held.iter().all(|held| *held) {
            return Arc::clone(&state.catalogue);
        }
        let mut old = std::mem::take(&mut state.roots).into_iter().zip(held);
        for root in &self.roots {
            let seen = match old.next() {
                Some((seen, true)) => seen,
                Some((seen, false)) => look(root, &seen.below),
                None => look(root, &Below::default()),
            };
            state.roots.push(seen);
        }
        drop(old);
        let next = self.catalogue(&state);
        if !same(&next, &state.catalogue) {
            state.catalogue = Arc::new(next);
            self.version.send_replace(state.catalogue.version);
        }
        Arc::clone(&state.catalogue)
    }

    /// Tells the version of each new catalogue, when [`SkillSet::current`] finds it.
    pub fn versions(&self) -> watch::Receiver<u64> {
        self.version.subscribe()
    }

    fn catalogue(&self, state: &State) -> Catalogue {
        let mut catalogue = Catalogue {
            version: state.catalogue.version + 1,
            ..Catalogue::default()
        };
        for (root, seen) in self.roots.iter().zip(&state.roots) {
            if root.withheld && seen.watch.is_there() {
                catalogue.withheld.push(root.source.root().to_path_buf());
            }
            catalogue.add(root, &seen.below, &self.filter);
        }
        catalogue
    }
}

fn look(root: &Root, old: &Below) -> Seen {
    let path = root.source.root();
    let watch = Watch::on(path.to_path_buf());
    let below = if root.withheld || !watch.is_there() {
        Below::default()
    } else {
        look_below(root, path, old)
    };
    Seen { watch, below }
}

fn look_below(root: &Root, path: &Path, old: &Below) -> Below {
    let refused = |why: &str| Below {
        problems: vec![Problem::warning(format!(
            "{:?} {why}",
            path.to_string_lossy()
        ))],
        ..Below::default()
    };
    let real = match path.canonicalize() {
        Ok(real) => real,
        Err(e) => return refused(&format!("cannot be opened: {e}")),
    };
    if root
        .edge
        .as_deref()
        .is_some_and(|edge| !real.starts_with(edge))
    {
        return refused("is a link that leaves the workspace and is not followed");
    }
    walk(&root.source, &real, root.edge.as_deref(), &old.found)
}

/// Whether nothing a caller could see differs.
fn same(new: &Catalogue, old: &Catalogue) -> bool {
    let skills = |new: &[Skill], old: &[Skill]| {
        new.len() == old.len() && new.iter().zip(old).all(|(new, old)| new.is(old))
    };
    let shadowed = new.shadowed.iter().zip(&old.shadowed);
    old.version > 0
        && skills(&new.skills, &old.skills)
        && skills(&new.hidden, &old.hidden)
        && new.shadowed.len() == old.shadowed.len()
        && shadowed
            .into_iter()
            .all(|(new, old)| new.skill.is(&old.skill) && new.by == old.by)
        && new.broken == old.broken
        && new.withheld == old.withheld
        && new.problems == old.problems
}
