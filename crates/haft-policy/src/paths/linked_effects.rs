//! The effects of a call under the further names by which links reach its files, judged like the effects themselves.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;

use crate::Policy;
use crate::guards::{Guard, MinimumVerdict};
use crate::judged_call::JudgedCall;
use crate::paths::linked_names::{LinkedNames, join};
use haft_files::workspace::{GitFolders, Links, Workspace};
use haft_types::permission::{Effect, PathClaim, Permission, UNKNOWN_NAMES, Verdict};
use haft_types::spec::Risk;

/// The further names of a workspace's files as they were last found, for one set of rules.
#[derive(Debug, Default)]
pub(crate) struct NameCache(Mutex<Option<(Arc<Links>, Arc<LinkedNames>)>>);

/// Requires approval of changes to files if links may give them names that are not known: a rule may deny one.
#[derive(Debug, Clone, Copy)]
pub struct UnknownNames;

impl Guard for UnknownNames {
    fn name(&self) -> &'static str {
        "unknown-names"
    }

    fn concerns(&self, effect: &Effect) -> bool {
        matches!(effect, Effect::Other { kind, .. } if kind == UNKNOWN_NAMES)
    }

    fn floor(&self, _: &JudgedCall<'_>, permission: &Permission) -> Result<MinimumVerdict, String> {
        if !self.concerns(&permission.effect) {
            return Ok(MinimumVerdict::NONE);
        }
        let why = permission.effect.value();
        Ok(MinimumVerdict::ask(format!(
            "these files may have further names that rules protect, and not all are known: {why}"
        )))
    }
}

/// A test of paths under all names by which links reach them, as they are at the first test.
#[derive(Debug)]
pub struct AllNames {
    policy: Arc<Policy>,
    workspace: Workspace,
    names: OnceLock<Arc<LinkedNames>>,
}

impl AllNames {
    /// Creates a test for a workspace.
    pub fn new(policy: Arc<Policy>, workspace: &Workspace) -> Self {
        Self {
            policy,
            workspace: workspace.clone(),
            names: OnceLock::new(),
        }
    }

    /// Whether this holds for a path, in the form of a `PathClaim`, and for each of its further names.
    pub fn all(&self, path: &str, holds: &dyn Fn(&Policy, &str) -> bool) -> bool {
        if !holds(&self.policy, path) {
            return false;
        }
        let find = || self.policy.names_in(&self.workspace);
        let names = self.names.get_or_init(find);
        let Some(place) = within(path).filter(|_| !names.is_empty()) else {
            return true;
        };
        let mut each = names.names_of(&place).into_iter();
        each.all(|name| holds(&self.policy, &name.to_string_lossy()))
    }
}

impl Policy {
    /// Returns the further names of the files in this workspace, as links and rules are now.
    pub(crate) fn names_in(&self, workspace: &Workspace) -> Arc<LinkedNames> {
        let links = workspace.links();
        if links.is_empty() {
            return Arc::default();
        }
        let mut cached = self.names.0.lock();
        if let Some((of, names)) = &*cached
            && Arc::ptr_eq(of, &links)
            && names.is_current()
        {
            return Arc::clone(names);
        }
        let own = workspace.hidden_inside();
        let names = Arc::new(LinkedNames::find(&links, &self.denials(), own));
        *cached = Some((links, Arc::clone(&names)));
        names
    }

    /// Returns the effects that a call has under further names of its files, as far as they are not allowed, and one that says so if
    /// there may be more. The files are in the tool's workspace, if it has one, else in the policy's.
    pub fn linked_effects(
        &self,
        call: &JudgedCall<'_>,
        workspace: Option<&Workspace>,
    ) -> Vec<Permission> {
        let mut effects = call.permissions.iter().map(|one| &one.effect);
        let Some(workspace) = workspace.or(self.workspace.as_ref()) else {
            return Vec::new();
        };
        if !effects.any(|effect| effect.path().is_some()) {
            return Vec::new();
        }
        let names = self.names_in(workspace);
        let after = self.names_after(call, workspace);
        let all: Vec<&LinkedNames> = std::iter::once(&*names).chain(&after).collect();
        let mut found = Vec::new();
        if let Some(why) = all.iter().find_map(|names| names.unknown())
            && self.needs_names(call)
        {
            let unknown = Permission::unknown_names(why);
            found.extend((!call.permissions.contains(&unknown)).then_some(unknown));
        }
        let mut renamed = under_names(call, &all);
        renamed.extend(in_repositories(call, workspace));
        if renamed.is_empty() {
            return found;
        }
        let all = [call.permissions, &renamed].concat();
        let named = JudgedCall::new(call.spec, call.arguments, &all, call.run);
        let naming = self.rules.naming(call.spec);
        let judged = |one: &Permission| self.judge_effect(&named, &naming, one).verdict;
        found.extend(
            renamed
                .into_iter()
                .filter(|one| judged(one) != Verdict::Allow),
        );
        found
    }

    /// Returns the further names of the files as the links will be after the call; `None` if it leaves no link where it is not now.
    fn names_after(&self, call: &JudgedCall<'_>, workspace: &Workspace) -> Option<LinkedNames> {
        let mut links = workspace.links();
        let new = new_links(call, &links);
        if new.is_empty() {
            return None;
        }
        let changed = Arc::make_mut(&mut links);
        for (path, text) in new {
            changed.add_change(&path, &text, false);
        }
        let own = workspace.hidden_inside();
        Some(LinkedNames::find(&links, &self.denials(), own))
    }

    /// Whether a call does something that rules may forbid under an unknown name.
    fn needs_names(&self, call: &JudgedCall<'_>) -> bool {
        let withholds = self.rules.withholds_from(call.spec.name.as_str());
        let mut effects = call.permissions.iter().map(|one| &one.effect);
        effects.any(|effect| {
            let path = effect.path().and_then(place_of);
            path.is_some() && (withholds || effect.changed_path().is_some())
        })
    }
}

/// Whether a call applies changes that were prepared beforehand: those of a command on its copy, or of an undo. Their paths have no
/// links; a target is where a new link leads.
fn applies(call: &JudgedCall<'_>) -> bool {
    let applies = |one: &Permission| matches!(one.effect, Effect::Apply { .. });
    call.permissions.iter().any(applies)
}

/// Returns path and text of the links that a call leaves where they are not now. Other calls than those that apply changes can only
/// move links: whatever they remove may then be at each path that they write.
fn new_links(call: &JudgedCall<'_>, links: &Links) -> Vec<(PathBuf, PathBuf)> {
    let effects = || call.permissions.iter().map(|one| &one.effect);
    let written = effects().filter_map(|effect| match effect {
        Effect::Write(claim) => Some(claim),
        _ => None,
    });
    if applies(call) {
        let linked = |claim: &PathClaim| {
            let text = links.root().join(claim.target.as_ref()?);
            Some((within(&claim.path)?, text))
        };
        return written.filter_map(linked).collect();
    }
    let removed = effects().filter_map(|effect| match effect {
        Effect::Remove(claim) => place_of(claim),
        _ => None,
    });
    let from: Vec<PathBuf> = topmost(removed.collect());
    let to = topmost(written.filter_map(place_of).collect());
    let mut new = Vec::new();
    for from in &from {
        for (link, texts) in links.texts_below(from) {
            let rest = link.strip_prefix(from).unwrap_or(Path::new(""));
            for to in &to {
                new.extend(texts.iter().map(|text| (join(to, rest), text.clone())));
            }
        }
    }
    new
}

/// Returns the paths that lie below no other.
fn topmost(mut paths: Vec<PathBuf>) -> Vec<PathBuf> {
    paths.sort();
    paths.dedup_by(|path, above| path.starts_with(above));
    paths
}

/// Returns a call's effects under all further names of their files.
fn under_names(call: &JudgedCall<'_>, names: &[&LinkedNames]) -> Vec<Permission> {
    let on_copy = applies(call);
    let mut known: Option<HashSet<(String, String)>> = None;
    let mut found: Vec<Permission> = Vec::new();
    for permission in call.permissions {
        let Some(claim) = permission.effect.path() else {
            continue;
        };
        let place = if on_copy {
            within(&claim.path)
        } else {
            place_of(claim)
        };
        let Some(place) = place else {
            continue;
        };
        for name in names.iter().flat_map(|names| names.names_of(&place)) {
            let path = name.to_string_lossy().into_owned();
            let claim = PathClaim {
                path,
                target: Some(claim_path(&place)),
            };
            let effect = match &permission.effect {
                Effect::Read(_) => Effect::Read(claim),
                Effect::Remove(_) => Effect::Remove(claim),
                _ => Effect::Write(claim),
            };
            let known = known.get_or_insert_with(|| {
                let each = call.permissions.iter();
                each.map(|one| kind_and_path(&one.effect)).collect()
            });
            if known.insert(kind_and_path(&effect)) {
                let risk = Risk::Safe;
                found.push(Permission { effect, risk });
            }
        }
    }
    found
}

/// Returns a call's changes in folders of any name that git treats as repositories, under the names that they would have in `.git`,
/// and those of files that settings of a repository name. Says so if these are not all known.
/// What a command changed on its copy is found together with all of its changes.
fn in_repositories(call: &JudgedCall<'_>, workspace: &Workspace) -> Vec<Permission> {
    if applies(call) {
        return Vec::new();
    }
    let each = call.permissions.iter();
    let changed = each.filter_map(|one| Some((one, place_of(one.effect.changed_path()?)?)));
    let changed: Vec<(&Permission, PathBuf)> = changed.collect();
    if changed.is_empty() {
        return Vec::new();
    }
    let places = changed.iter().map(|(_, place)| place);
    let mut folders = GitFolders::find(workspace, places);
    let unread = folders.named_by_settings().unread();
    let unread = unread.map(Permission::unknown_names);
    let unread = unread.filter(|unread| !call.permissions.contains(unread));
    let named = changed.iter().filter_map(|(permission, place)| {
        let found = folders.locate_for_tool(place)?;
        let claim = PathClaim {
            path: found.name().to_string_lossy().into_owned(),
            target: Some(claim_path(place)),
        };
        let effect = match &permission.effect {
            Effect::Remove(_) => Effect::Remove(claim),
            _ => Effect::Write(claim),
        };
        let risk = Risk::Safe;
        Some(Permission { effect, risk })
    });
    let mut found: Vec<Permission> = named.collect();
    found.extend(unread);
    found
}

fn kind_and_path(effect: &Effect) -> (String, String) {
    (effect.kind().to_owned(), effect.value().to_owned())
}

/// Returns where a claim leads in the workspace.
fn place_of(claim: &PathClaim) -> Option<PathBuf> {
    within(claim.target.as_deref().unwrap_or(&claim.path))
}

/// Returns the path below the root that a claim states; empty for the root itself.
fn within(path: &str) -> Option<PathBuf> {
    match path {
        "." => Some(PathBuf::new()),
        path if path.starts_with('/') || path == ".." || path.starts_with("../") => None,
        path => Some(PathBuf::from(path)),
    }
}

fn claim_path(place: &Path) -> String {
    match place.to_string_lossy() {
        path if path.is_empty() => ".".to_owned(),
        path => path.into_owned(),
    }
}
