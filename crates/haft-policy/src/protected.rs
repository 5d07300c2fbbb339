//! Protected paths: file tools read and never write them, but for instructions to agents, about which haft asks; a command's changes to all
//! of them need approval.

use std::collections::HashSet;
use std::sync::LazyLock;

use haft_files::paths::segments;

mod instructions;
mod names;

use names::{ENDINGS, ProtectedKind};

pub use instructions::agent_instructions;

/// The protected name of a git repository's folder.
pub(crate) const GIT: &str = ".git";

/// A name that is protected, in any folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProtectedName {
    /// The path of a file or folder: `.mcp.json`, `.haft/skills`.
    pub path: &'static str,
    /// Whether it is a folder, including everything in it.
    pub is_folder: bool,
}

/// Returns the names that a file tool may read but not write, at any depth, compared case-insensitively.
pub fn protected_names() -> impl Iterator<Item = ProtectedName> {
    let of = |is_folder| move |path: &'static str| ProtectedName { path, is_folder };
    let folders = names::of_kind(ProtectedKind::Folder);
    let files =
        names::of_kind(ProtectedKind::File).chain(haft_shell::STARTUP_FILES.iter().copied());
    folders.map(of(true)).chain(files.map(of(false)))
}

/// Returns the names of files and folders that tell coding agents what to do, at any depth, compared case-insensitively. A change to one
/// needs approval, whoever makes it.
pub fn instruction_names() -> impl Iterator<Item = ProtectedName> {
    instructions::all()
}

/// Returns all names whose change by a command needs approval.
pub(crate) fn names_for_commands() -> impl Iterator<Item = ProtectedName> {
    protected_names().chain(instruction_names())
}

/// Returns the protected name at or above this path, or the one that writing the path would replace.
pub fn protected(path: &str) -> Option<&'static str> {
    let parts = segments(path);
    if !may_be_protected(&parts) {
        return None;
    }
    protected_names()
        .map(|name| name.path)
        .find(|entry| (0..parts.len()).any(|from| is_same_or_above(entry, &parts[from..])))
        .or_else(|| protected_ending(&parts))
}

/// Returns the name for which a command's change of this path needs approval: a protected one, or one of instructions to agents that no
/// package brings.
pub fn protected_from_commands(path: &str) -> Option<&'static str> {
    read_only_for_commands(path).or_else(|| instructions::changed_by_command(&segments(path)))
}

/// Returns the protected name for a change by a command. In a `.git` folder only what makes git run programs or trust other places is
/// protected ([`is_git_setting`]), and the folder as a whole: objects, refs, the index and the like are data.
pub(crate) fn read_only_for_commands(path: &str) -> Option<&'static str> {
    let parts = segments(path);
    if !may_be_protected(&parts) {
        return None;
    }
    let protects = |entry: &str, here: &[&str]| {
        is_same_or_above(entry, here) && (entry != GIT || is_setting(&here[1..]))
    };
    protected_names()
        .map(|name| name.path)
        .find(|entry| (0..parts.len()).any(|from| protects(entry, &parts[from..])))
        .or_else(|| protected_ending(&parts))
}

/// Whether a path can be protected at all: it has the first segment of a protected name, or a protected ending. Nearly none has, and of
/// a large change set each path is looked at.
fn may_be_protected(parts: &[&str]) -> bool {
    static FIRST: LazyLock<HashSet<String>> = LazyLock::new(|| {
        let first = |name: ProtectedName| name.path.split('/').next().map(str::to_ascii_lowercase);
        protected_names().filter_map(first).collect()
    });
    let mut parts_of = parts.iter();
    parts_of.any(|part| FIRST.contains(&*part.to_ascii_lowercase()))
        || protected_ending(parts).is_some()
}

/// Returns the endings of protected names.
pub(crate) fn protected_endings() -> impl Iterator<Item = &'static str> {
    ENDINGS.iter().map(|(ending, _)| *ending)
}

/// Returns the protected ending of the last segment.
fn protected_ending(parts: &[&str]) -> Option<&'static str> {
    let name = parts.last()?.as_bytes();
    let ends = |ending: &str| {
        let at = name.len().checked_sub(ending.len());
        at.is_some_and(|at| name[at..].eq_ignore_ascii_case(ending.as_bytes()))
    };
    let mut endings = ENDINGS.iter();
    endings
        .find(|(ending, _)| ends(ending))
        .map(|(_, shown)| *shown)
}

/// Whether git reads settings from this path within a repository's folder (`hooks/pre-commit`; empty for the folder itself). Settings
/// can name programs to run and other places to trust. Also true for a folder that contains such paths.
pub fn is_git_setting(within: &str) -> bool {
    is_setting(&segments(within))
}

/// Compares up to the shorter of the two: a path that ends within an entry is a folder above it.
fn is_same_or_above(entry: &str, here: &[&str]) -> bool {
    here.iter()
        .zip(entry.split('/'))
        .all(|(a, b)| a.eq_ignore_ascii_case(b))
}

/// Folders within a repository's folder that contain further repository folders.
const NESTED_REPOSITORIES: [&str; 2] = ["modules", WORKTREES];

/// The one whose folders have names without slashes.
const WORKTREES: &str = "worktrees";

/// Maximum number of folders inspected in the name of a submodule.
const MAX_DEPTH: usize = 64;

/// Files in a repository's folder that are data: git runs nothing that they name. Each may have a lock file beside it.
const DATA_FILES: &[&str] = &[
    "HEAD",
    "ORIG_HEAD",
    "FETCH_HEAD",
    "MERGE_HEAD",
    "MERGE_MSG",
    "MERGE_MODE",
    "MERGE_RR",
    "AUTO_MERGE",
    "CHERRY_PICK_HEAD",
    "REVERT_HEAD",
    "REBASE_HEAD",
    "SQUASH_MSG",
    "COMMIT_EDITMSG",
    "TAG_EDITMSG",
    "description",
    "index",
    "packed-refs",
    "shallow",
    "gc.log",
    "gc.pid",
];

/// Folders in a repository's folder that contain only data.
const DATA_FOLDERS: &[&str] = &["refs", "logs", "reftable", "rr-cache"];

fn is_setting(within: &[&str]) -> bool {
    let [name, below @ ..] = within else {
        return true;
    };
    if !NESTED_REPOSITORIES.contains(name) {
        return !is_data(within);
    }
    if below.len() > MAX_DEPTH {
        return true;
    }
    if *name == WORKTREES {
        return below.len() < 2 || is_setting(&below[1..]);
    }
    // The name of a submodule may contain slashes: any folder below it may be the repository's folder. Which one is, the workspace says:
    // what a command changed is also judged by the shape of these folders (`GitFolders::in_submodules`).
    let plain =
        |name: &&str| !name.eq_ignore_ascii_case("hooks") && !name.eq_ignore_ascii_case("info");
    let holds = |at: usize| below[..at].iter().all(plain) && is_data(&below[at..]);
    !(1..below.len()).any(holds)
}

/// Whether a path within a repository's folder is data, by its exact name: any unknown path may be a setting.
fn is_data(within: &[&str]) -> bool {
    match within {
        ["objects", "info", file, ..] => {
            matches!(*file, "packs" | "commit-graph" | "commit-graphs")
        }
        // In `lfs`, git-lfs keeps the content of files, by their hashes.
        ["objects", ..]
        | ["info", "refs"]
        | ["lfs", "cache" | "incomplete" | "objects" | "tmp", ..] => true,
        [folder, ..] if DATA_FOLDERS.contains(folder) => true,
        [file] => {
            let file = file.strip_suffix(".lock").unwrap_or(file);
            DATA_FILES.contains(&file)
                || file.starts_with("sharedindex.")
                || file.starts_with("index.stash.")
        }
        _ => false,
    }
}
