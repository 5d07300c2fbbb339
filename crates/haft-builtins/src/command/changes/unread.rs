//! Checks what git recorded in a command about files that deny rules hide from it. To the command they look empty or missing, and a
//! commit would make them so. An index must record for them what it recorded before, whatever the command did.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::io::{self, Read as _};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use haft::change::EntryState;
use haft::change::collect::{CollectedChanges, ViewChange};
use haft::policy::Denials;
use haft::workspace::{OutsideRepository, Workspace};

use crate::command::index;
use crate::lexical::normalize;

/// The signature at the start of every index.
const INDEX_SIGNATURE: &[u8] = b"DIRC";
/// Maximum size of a file that names a work tree, in bytes.
const MAX_POINTER_FILE: u64 = 64 << 10;

/// Returns the repositories in which git would record hidden files differently than before, each with the reason why none of its
/// changes may be applied. `upper` holds the command's changes.
pub(super) fn repositories_with_hidden_files(
    upper: &Path,
    collected: &CollectedChanges,
    workspace: &Workspace,
    denials: &Denials,
) -> Vec<(PathBuf, String)> {
    if !denials.deny_reading() {
        return Vec::new();
    }
    let look = IndexCheck {
        upper: Workspace::open(upper).ok(),
        collected,
        workspace,
        denials,
    };
    let changes = collected.changes.iter();
    let refused = changes.filter(|change| look.is_index(change));
    let refused = refused.filter_map(|change| {
        let why = look.at(&change)?;
        let reason = format!("{}: {why}", change.path.display());
        Some((repository(change.path), reason))
    });
    refused.collect()
}

/// Returns the folder of the repository that an index belongs to, even for one of its worktrees or submodules.
fn repository(index: &Path) -> PathBuf {
    let within = |part: &&Path| {
        part.file_name()
            .is_some_and(|name| name == "worktrees" || name == "modules")
    };
    let part = index.ancestors().filter(within).last().unwrap_or(index);
    part.parent().unwrap_or(Path::new("")).to_owned()
}

struct IndexCheck<'a> {
    upper: Option<Workspace>,
    collected: &'a CollectedChanges,
    workspace: &'a Workspace,
    denials: &'a Denials,
}

impl IndexCheck<'_> {
    /// Returns true if a change leaves an index, in a folder of any name. A file whose first bytes cannot be read may be one, and so
    /// may a link beside a `HEAD`: git follows it.
    fn is_index(&self, change: &ViewChange<'_>) -> bool {
        if change.path.file_name() != Some(OsStr::new("index")) {
            return false;
        }
        match &change.after {
            Some(EntryState::File { .. }) => self.is_signed(change.path).unwrap_or(true),
            Some(EntryState::Link { .. }) => {
                self.text(&change.path.with_file_name("HEAD")).is_some()
            }
            _ => false,
        }
    }

    /// Returns true if a file that the command left begins like an index.
    fn is_signed(&self, path: &Path) -> io::Result<bool> {
        let mut start = Vec::with_capacity(INDEX_SIGNATURE.len());
        let file = self.collected.open(path)?;
        file.take(INDEX_SIGNATURE.len() as u64)
            .read_to_end(&mut start)?;
        Ok(start == INDEX_SIGNATURE)
    }

    /// Returns why an index must not be applied, or `None` if it may be.
    fn at(&self, change: &ViewChange<'_>) -> Option<String> {
        let path = change.path;
        let unknown = || {
            let why = "haft cannot tell what it records of files that commands cannot read: it reads no index that is a link, split, sparse or over 64 MiB, and no SHA-256 names";
            Some(why.to_owned())
        };
        if matches!(change.after, Some(EntryState::Link { .. })) {
            return unknown();
        }
        let read = |of: &Workspace| index::recorded(of, path);
        let Some(after) = self.upper.as_ref().and_then(read) else {
            return unknown();
        };
        let fresh = self.workspace.open_file(path).is_err();
        let Some(before) = read(self.workspace).or_else(|| fresh.then(Default::default)) else {
            return unknown();
        };
        let trees = self.work_trees(path);
        let names: BTreeSet<&Vec<u8>> = before.keys().chain(after.keys()).collect();
        let other = names.into_iter().find(|name| {
            let differs = before.get(*name) != after.get(*name);
            differs && trees.iter().any(|tree| self.is_hidden(tree, name))
        })?;
        let name = String::from_utf8_lossy(other);
        Some(format!(
            "it records a change to {name}, which commands cannot read: leave that file out of what git adds"
        ))
    }

    /// Returns true if a file of a work tree is hidden from commands. Commands see an empty or missing file as it is.
    fn is_hidden(&self, tree: &Path, name: &[u8]) -> bool {
        let prefix = self.workspace.repository().map(OutsideRepository::prefix);
        let name = match prefix.filter(|_| tree == Path::new("")) {
            Some(prefix) => match index::below(prefix, name) {
                Some(name) => name,
                None => return false,
            },
            None => name,
        };
        let file = tree.join(OsStr::from_bytes(name));
        let is = self.workspace.root().join(&file).symlink_metadata();
        let seen = is.map_or(true, |meta| meta.is_file() && meta.len() == 0);
        self.denials.denies_reading(&file.to_string_lossy()) && !seen
    }

    /// Returns the folders that may contain the files of an index: the parent of its repository, and those that the repository's
    /// own files name.
    fn work_trees(&self, path: &Path) -> BTreeSet<PathBuf> {
        let folder = path.parent().unwrap_or(Path::new(""));
        let above = folder.parent().unwrap_or(Path::new(""));
        let mut trees = BTreeSet::from([above.to_owned(), PathBuf::new()]);
        let is_git = |part: &Path| {
            part.file_name()
                .is_some_and(|name| name.eq_ignore_ascii_case(".git"))
        };
        trees.extend(
            folder
                .ancestors()
                .find(|part| is_git(part))
                .and_then(Path::parent)
                .map(Path::to_owned),
        );
        // For a worktree: the path of its `.git` file.
        let linked = self.text(&folder.join("gitdir"));
        trees.extend(
            linked
                .as_deref()
                .and_then(|to| Path::new(to.trim()).parent())
                .and_then(|to| self.resolve_inside(folder, to)),
        );
        // For a submodule: the setting `core.worktree`.
        let settings = self.text(&folder.join("config")).unwrap_or_default();
        let lines = settings.lines().filter_map(|line| line.split_once('='));
        let named = lines.filter(|(key, _)| key.trim().eq_ignore_ascii_case("worktree"));
        trees.extend(named.filter_map(|(_, to)| {
            self.resolve_inside(folder, Path::new(to.trim().trim_matches('"')))
        }));
        trees
    }

    /// Reads a small file as the command left it, or as it is in the workspace.
    fn text(&self, path: &Path) -> Option<String> {
        let left = self.collected.content(path, MAX_POINTER_FILE).ok();
        let bytes = left.or_else(|| std::fs::read(self.workspace.host_path(path)).ok())?;
        String::from_utf8(bytes).ok()
    }

    /// Resolves a folder named by a file in `from`, if it is below the root.
    fn resolve_inside(&self, from: &Path, to: &Path) -> Option<PathBuf> {
        let whole = normalize(&self.workspace.host_path(from).join(to));
        self.workspace.below(&whole)
    }
}
