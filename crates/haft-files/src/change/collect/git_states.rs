//! `GitStates`: what changed files of repositories recorded when they were shown, so that what git only stores in another way since is no
//! change of it.
//!
//! On the host, a `git status` renews the times in an index, and `git gc` moves refs and objects into packs. None of this changes what a
//! request has shown. So an index is compared by its entries, a ref by what it names, and any other file of git by its bytes.

use std::collections::{BTreeMap, HashMap};
use std::io::Read as _;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::change::collect::ViewChange;
use crate::change::net::ChangeKind;
use crate::change::{EntryState, PathText};
use crate::git_index::{Index, MAX_INDEX};
use crate::workspace::{Workspace, is_git};
use haft_types::text::hex;

/// Maximum size of a ref's file, in bytes.
const MAX_REF: u64 = 4 << 10;
/// Maximum size of the file with packed refs, in bytes.
const MAX_PACKED: u64 = 64 << 20;

/// The states of changed files and folders of repositories, by their paths.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct GitStates(BTreeMap<PathText, GitState>);

/// A changed file or folder of a repository.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct GitState {
    pub(super) action: ChangeKind,
    /// How it was stored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) before: Option<EntryState>,
    /// What it recorded.
    value: String,
}

impl GitStates {
    /// Returns the states of these changes before they are applied.
    pub(super) fn read<'c>(
        workspace: &Workspace,
        changes: impl Iterator<Item = ViewChange<'c>>,
    ) -> Self {
        let mut values = GitValues::new(workspace);
        // A new file has no earlier state, unless it is a ref that is packed.
        let has_state = |change: &ViewChange<'_>| {
            let is_folder = matches!(change.after, Some(EntryState::Folder { .. }));
            change.before.is_some() || is_folder || ref_at(change.path).is_some()
        };
        let each = changes.filter(|change| is_git(change.path) && has_state(change));
        let states = each.filter_map(|change| {
            let state = GitState {
                action: change.action,
                value: values.value(change.path, change.before.as_ref())?,
                before: change.before,
            };
            Some((PathText::from(change.path), state))
        });
        Self(states.collect())
    }

    /// Returns true if nothing is known.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the state of a path that still records the same. `now` is what is there.
    pub(super) fn unchanged(
        &self,
        values: &mut GitValues<'_>,
        path: &Path,
        now: Option<&EntryState>,
    ) -> Option<&GitState> {
        let known = self.0.get(path)?;
        (values.value(path, now).as_ref() == Some(&known.value)).then_some(known)
    }
}

/// Whether a path is that of a folder in which git keeps refs or objects: it comes and goes as these are packed.
pub(super) fn is_store(path: &Path) -> bool {
    is_git(path) && path.iter().any(|part| part == "refs" || part == "objects")
}

/// Reads what files of repositories record.
pub(super) struct GitValues<'a> {
    workspace: &'a Workspace,
    /// The packed refs of repositories.
    packed: HashMap<PathBuf, Option<HashMap<String, String>>>,
}

impl<'a> GitValues<'a> {
    pub(super) fn new(workspace: &'a Workspace) -> Self {
        Self {
            workspace,
            packed: HashMap::new(),
        }
    }

    /// Returns what a file of a repository records; `None` if that cannot be told. `state` is what is there.
    fn value(&mut self, path: &Path, state: Option<&EntryState>) -> Option<String> {
        if matches!(state, Some(EntryState::Folder { .. })) {
            return is_store(path).then(String::new);
        }
        if matches!(state, Some(EntryState::Link { .. } | EntryState::Other)) {
            return None;
        }
        if let Some((repository, name)) = ref_at(path) {
            return self.ref_value(path, repository, &name, state.is_some());
        }
        match state {
            // A folder that is to be made.
            None => is_store(path).then(String::new),
            Some(EntryState::File { sha256, .. }) => {
                let index = path.file_name().is_some_and(|name| name == "index");
                let index = index.then(|| self.index_value(path)).flatten();
                index.or_else(|| sha256.map(|hash| hash.to_string()))
            }
            Some(_) => None,
        }
    }

    fn index_value(&self, path: &Path) -> Option<String> {
        let bytes = self.read(path, MAX_INDEX)?;
        let index = Index::of(&bytes, self.workspace.object_hash(path)?)?;
        Some(format!("entries {}", hex(&index.recorded()?)))
    }

    fn ref_value(
        &mut self,
        path: &Path,
        repository: &Path,
        name: &str,
        is_loose: bool,
    ) -> Option<String> {
        if is_loose {
            let text = String::from_utf8(self.read(path, MAX_REF)?).ok()?;
            return Some(text.trim_end().to_owned());
        }
        if !self.packed.contains_key(repository) {
            let packed = self.read_packed(repository);
            self.packed.insert(repository.to_owned(), packed);
        }
        let packed = self.packed.get(repository)?.as_ref()?;
        Some(packed.get(name).cloned().unwrap_or_default())
    }

    fn read_packed(&self, repository: &Path) -> Option<HashMap<String, String>> {
        let path = repository.join("packed-refs");
        if self.workspace.look(&path).is_none() {
            return Some(HashMap::new());
        }
        let text = String::from_utf8(self.read(&path, MAX_PACKED)?).ok()?;
        let lines = text.lines().filter(|line| !line.starts_with(['#', '^']));
        let refs = lines.filter_map(|line| line.split_once(' '));
        Some(
            refs.map(|(id, name)| (name.to_owned(), id.to_owned()))
                .collect(),
        )
    }

    fn read(&self, path: &Path, most: u64) -> Option<Vec<u8>> {
        let open = self.workspace.open_file(path).ok()?;
        let mut bytes = Vec::new();
        (open.stamp.bytes() <= most).then_some(())?;
        open.file.take(most).read_to_end(&mut bytes).ok()?;
        Some(bytes)
    }
}

/// Returns the repository of a ref and the ref's name; `None` for a path that is not that of a ref.
fn ref_at(path: &Path) -> Option<(&Path, String)> {
    let mut above = path.ancestors().filter(|folder| is_git(folder));
    // The outermost: a branch may be called `refs` too.
    let refs = above
        .by_ref()
        .filter(|folder| folder.ends_with("refs"))
        .last()?;
    let name = path.strip_prefix(refs).ok()?.to_str()?;
    if name.is_empty() {
        return None;
    }
    Some((refs.parent()?, format!("refs/{name}")))
}
