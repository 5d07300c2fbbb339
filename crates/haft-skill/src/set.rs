//! `SkillSet`: the skills below several roots; `Catalogue`: their combined result, kept up to date cheaply.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::watch;

pub use crate::walk::BrokenSkill;
use crate::walk::{RootScan, WatchedPath, walk};
use crate::{Skill, SkillProblem, SkillSource};

/// The folders of a workspace that contain skills; the first wins.
pub const WORKSPACE_FOLDERS: [&str; 3] = [".haft/skills", ".agents/skills", ".claude/skills"];

/// A folder that is searched for skills.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkillRoot {
    source: SkillSource,
    /// The folder that no link may lead out of.
    edge: Option<PathBuf>,
    withheld: bool,
}

impl SkillRoot {
    /// Creates a root for a folder of a workspace (both without links, the second relative). If the workspace is not trusted, the
    /// folder is only named, not read. Links out of the workspace are not followed.
    pub fn workspace(workspace: &Path, folder: &str, trusted: bool) -> Self {
        Self {
            source: SkillSource::Workspace(workspace.join(folder).into()),
            edge: Some(workspace.to_path_buf()),
            withheld: !trusted,
        }
    }

    /// Creates a root for a folder that the settings name.
    pub fn configured(folder: impl Into<PathBuf>) -> Self {
        Self::of(SkillSource::Configured(folder.into().into()))
    }

    /// Creates a root for a folder of the user.
    pub fn user(folder: impl Into<PathBuf>) -> Self {
        Self::of(SkillSource::User(folder.into().into()))
    }

    fn of(source: SkillSource) -> Self {
        Self {
            source,
            edge: None,
            withheld: false,
        }
    }

    /// Returns the kind of root and its folder.
    pub fn source(&self) -> &SkillSource {
        &self.source
    }
}

/// The skills that are visible: name patterns, with `*` for any text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SkillFilter {
    /// The only visible names; empty for all.
    pub allow: Vec<String>,
    /// Hidden names; takes precedence.
    pub deny: Vec<String>,
}

impl SkillFilter {
    /// Whether a name passes.
    pub fn passes(&self, name: &str) -> bool {
        let any = |patterns: &[String]| patterns.iter().any(|pattern| fits(pattern, name));
        (self.allow.is_empty() || any(&self.allow)) && !any(&self.deny)
    }
}

/// Whether a pattern matches the whole text; `*` matches any text, including none.
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

/// A skill that is not used because an earlier one has the same name.
#[derive(Debug, Clone)]
pub struct ShadowedSkill {
    /// The unused skill.
    pub skill: Skill,
    /// The `SKILL.md` of the skill used instead.
    pub by: PathBuf,
}

/// The content of the roots at one moment.
#[derive(Debug, Default)]
pub struct Catalogue {
    version: u64,
    skills: Vec<Skill>,
    index: HashMap<String, usize>,
    shadowed: Vec<ShadowedSkill>,
    hidden: Vec<Skill>,
    broken: Vec<BrokenSkill>,
    withheld: Vec<PathBuf>,
    problems: Vec<SkillProblem>,
}

impl Catalogue {
    /// Returns the usable skills, in the order of the roots, then by depth, then by path. No two have the same name.
    pub fn skills(&self) -> &[Skill] {
        &self.skills
    }

    /// Returns the skill with this name.
    pub fn find(&self, name: &str) -> Option<&Skill> {
        self.index.get(name).map(|at| &self.skills[*at])
    }

    /// Returns the skills whose name was already taken.
    pub fn shadowed(&self) -> &[ShadowedSkill] {
        &self.shadowed
    }

    /// Returns the skills that the filter hides.
    pub fn hidden(&self) -> &[Skill] {
        &self.hidden
    }

    /// Returns the skills that did not load.
    pub fn broken(&self) -> &[BrokenSkill] {
        &self.broken
    }

    /// Returns the existing folders that were not read because their workspace is not trusted.
    pub fn withheld(&self) -> &[PathBuf] {
        &self.withheld
    }

    /// Returns the problems of the roots and the folders below them.
    pub fn problems(&self) -> &[SkillProblem] {
        &self.problems
    }

    /// Returns the version, which increases with each change.
    pub fn version(&self) -> u64 {
        self.version
    }

    fn add(&mut self, root: &SkillRoot, below: &RootScan, filter: &SkillFilter) {
        self.problems.extend(below.problems.iter().cloned());
        for found in &below.found {
            let skill = match &found.read {
                Ok(skill) => skill,
                // Report a folder below two roots once.
                Err(broken) if self.broken.iter().any(|b| b.location == broken.location) => {
                    continue;
                }
                Err(broken) => {
                    self.broken.push(BrokenSkill {
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
                    self.shadowed.push(ShadowedSkill { skill, by });
                }
            } else {
                self.index
                    .insert(skill.name().to_owned(), self.skills.len());
                self.skills.push(skill.clone());
            }
        }
    }
}

/// The skills below several roots; earlier roots take precedence.
///
/// [`SkillSet::current`] checks for changes and reads what changed: a change on disk takes effect with the next
/// call, without a thread or a watcher.
#[derive(Debug)]
pub struct SkillSet {
    roots: Vec<SkillRoot>,
    filter: SkillFilter,
    state: Mutex<SkillSetState>,
    version: watch::Sender<u64>,
}

#[derive(Debug, Default)]
struct SkillSetState {
    roots: Vec<RootState>,
    catalogue: Arc<Catalogue>,
}

/// The state of a root when it was read.
#[derive(Debug)]
struct RootState {
    /// Its path as given, since its target may change.
    watch: WatchedPath,
    below: RootScan,
}

impl SkillSet {
    /// Creates a set of the skills below these roots; reads nothing yet.
    pub fn new(roots: Vec<SkillRoot>, filter: SkillFilter) -> Self {
        Self {
            roots,
            filter,
            state: Mutex::new(SkillSetState::default()),
            version: watch::Sender::new(0),
        }
    }

    /// Returns the roots; the first wins.
    pub fn roots(&self) -> &[SkillRoot] {
        &self.roots
    }

    /// Returns the current content of the roots. Reads files and blocks: about a microsecond per file if nothing changed.
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
                None => look(root, &RootScan::default()),
            };
            state.roots.push(seen);
        }
        drop(old);
        let next = self.catalogue(&state);
        if !is_same(&next, &state.catalogue) {
            state.catalogue = Arc::new(next);
            self.version.send_replace(state.catalogue.version);
        }
        Arc::clone(&state.catalogue)
    }

    /// Returns a receiver for the version of each new catalogue, sent when [`SkillSet::current`] finds it.
    pub fn versions(&self) -> watch::Receiver<u64> {
        self.version.subscribe()
    }

    fn catalogue(&self, state: &SkillSetState) -> Catalogue {
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

fn look(root: &SkillRoot, old: &RootScan) -> RootState {
    let path = root.source.root();
    let watch = WatchedPath::on(path.to_path_buf());
    let below = if root.withheld || !watch.is_there() {
        RootScan::default()
    } else {
        scan_below(root, path, old)
    };
    RootState { watch, below }
}

fn scan_below(root: &SkillRoot, path: &Path, old: &RootScan) -> RootScan {
    let refused = |why: &str| RootScan {
        problems: vec![SkillProblem::warning(format!(
            "{:?} {why}",
            path.to_string_lossy()
        ))],
        ..RootScan::default()
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

/// Whether no difference is visible to callers.
fn is_same(new: &Catalogue, old: &Catalogue) -> bool {
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
