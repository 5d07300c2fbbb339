//! Checks what git recorded in a command about files that deny rules hide from it. To the command they look empty or missing, and a
//! commit would make them so. An index must record for them what it recorded before, whatever the command did.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::io::{self, Read as _};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use haft::change::EntryState;
use haft::change::collect::{CollectedChanges, ViewChange};
use haft::git_index::ObjectHash;
use haft::policy::Denials;
use haft::text::visible;
use haft::workspace::{OutsideRepository, Workspace, object_hash_in, repository_above};

use crate::command::index::{self, IndexRecords};
use crate::lexical::normalize;

/// The signature at the start of every index.
const INDEX_SIGNATURE: &[u8] = b"DIRC";
/// Maximum number of files that are searched for one that commands cannot read.
const MAX_SEARCHED: usize = 500_000;
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
        let trees = self.work_trees(path);
        let Some([before, after]) = self.records(change) else {
            let file = trees.iter().find_map(|tree| self.hidden_below(tree))?;
            return Some(format!(
                "haft cannot tell what it records of {file}, which commands cannot read: it reads no index that is a link, split, damaged or over 64 MiB"
            ));
        };
        let names: BTreeSet<&Vec<u8>> = before.keys().chain(after.keys()).collect();
        let differing = names
            .into_iter()
            .filter(|name| before.get(*name) != after.get(*name));
        let mut hidden = differing.filter_map(|name| {
            let mut trees = trees.iter();
            trees.find_map(|tree| self.hidden(tree, name))
        });
        let name = hidden.next()?;
        Some(format!(
            "it records a change to {name}, which commands cannot read: leave that file out of what git adds"
        ))
    }

    /// Returns what an index recorded before and records now; `None` if either cannot be determined.
    fn records(&self, change: &ViewChange<'_>) -> Option<[IndexRecords; 2]> {
        let path = change.path;
        if matches!(change.after, Some(EntryState::Link { .. })) {
            return None;
        }
        let after = index::recorded(self.upper.as_ref()?, path, self.object_hash(path)?)?;
        if self.workspace.open_file(path).is_err() {
            return Some([IndexRecords::new(), after]);
        }
        let before = index::recorded(self.workspace, path, self.workspace.object_hash(path)?)?;
        Some([before, after])
    }

    /// Returns the hash that names the objects of an index as the command left its repository.
    fn object_hash(&self, index: &Path) -> Option<ObjectHash> {
        let has = |path: &Path| self.text(path).is_some();
        let settings = repository_above(index, has)?.join("config");
        object_hash_in(&self.text(&settings).unwrap_or_default())
    }

    /// Returns a file of a work tree, or one in a folder of a sparse index, that is hidden from commands. `name` is how the index names
    /// it.
    fn hidden(&self, tree: &Path, name: &[u8]) -> Option<String> {
        let prefix = self.workspace.repository().map(OutsideRepository::prefix);
        let name = match prefix.filter(|_| tree == Path::new("")) {
            Some(prefix) => index::below(prefix, name)?,
            None => name,
        };
        let file = tree.join(OsStr::from_bytes(name));
        if name.ends_with(b"/") {
            return self.hidden_below(&file);
        }
        self.is_hidden(&file)
            .then(|| visible::path(&file.to_string_lossy()))
    }

    /// Returns true if a file is hidden from commands. They see an empty or missing file as it is.
    fn is_hidden(&self, file: &Path) -> bool {
        let is = self.workspace.root().join(file).symlink_metadata();
        let seen = is.map_or(true, |meta| meta.is_file() && meta.len() == 0);
        !seen && self.denials.denies_reading(&file.to_string_lossy())
    }

    /// Returns the first file below a folder that is hidden from commands, or the folder if it has too many files to be searched. No work
    /// tree has a repository's own files, or another repository's.
    fn hidden_below(&self, folder: &Path) -> Option<String> {
        let (mut left, mut seen) = (vec![folder.to_owned()], 0_usize);
        while let Some(at) = left.pop() {
            let entries = self.workspace.root().join(&at).read_dir();
            for entry in entries.into_iter().flatten().flatten() {
                let path = at.join(entry.file_name());
                seen += 1;
                if seen > MAX_SEARCHED || self.is_hidden(&path) {
                    return Some(visible::path(&path.to_string_lossy()));
                }
                let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
                let is_git = entry.file_name().eq_ignore_ascii_case(".git");
                if is_folder && !is_git {
                    left.push(path);
                }
            }
        }
        None
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
