//! Protected paths: what a file tool reads and never writes, and what is asked about where a command changes it.

use super::paths::segments;

/// The entry of [`PROTECTED`] for a repository's folder.
pub(super) const GIT: &str = ".git";

/// Paths that a file tool may read but not write, at any depth, compared without case.
pub const PROTECTED: &[&str] = &[
    GIT,
    ".haft/skills",
    ".agents/skills",
    ".claude",
    ".mcp.json",
    ".cursor",
    ".vscode",
    ".envrc",
    "haft.toml",
    ".bashrc",
    ".bash_profile",
    ".bash_login",
    ".bash_logout",
    ".profile",
    ".zshrc",
    ".zprofile",
    ".zshenv",
    ".zlogin",
    ".zlogout",
    ".kshrc",
];

/// The entry of `PROTECTED` at or above this path, or that writing the path would replace.
pub fn protected(path: &str) -> Option<&'static str> {
    let parts = segments(path);
    PROTECTED
        .iter()
        .copied()
        .find(|entry| (0..parts.len()).any(|from| meets(entry, &parts[from..])))
}

/// The same for a change that a command makes. In a `.git` folder only what makes git run programs or trust other places is
/// protected ([`is_git_setting`]), and the folder as a whole: objects, refs, the index and the like are data.
pub fn protected_from_commands(path: &str) -> Option<&'static str> {
    let parts = segments(path);
    let protects =
        |entry: &str, here: &[&str]| meets(entry, here) && (entry != GIT || is_setting(&here[1..]));
    PROTECTED
        .iter()
        .copied()
        .find(|entry| (0..parts.len()).any(|from| protects(entry, &parts[from..])))
}

/// Whether git takes settings from this path within a repository's folder (`hooks/pre-commit`; empty for the folder itself):
/// they can name programs to run and other places to trust. Also true for a folder that holds such paths.
pub fn is_git_setting(within: &str) -> bool {
    is_setting(&segments(within))
}

/// Zipping ends with the shorter: a path that ends within an entry is a folder above it.
fn meets(entry: &str, here: &[&str]) -> bool {
    here.iter()
        .zip(entry.split('/'))
        .all(|(a, b)| a.eq_ignore_ascii_case(b))
}

/// Folders of a repository's folder that hold other ones, by name.
const REPOSITORIES: [&str; 2] = ["modules", "worktrees"];

/// Folders in the name of a submodule beyond which nobody looks.
const DEEPEST: usize = 64;

/// Files of a repository's folder that are data: git runs nothing that they name. Each may have a lock beside it.
const DATA: &[&str] = &[
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

/// Folders of a repository's folder whose content is data.
const DATA_FOLDERS: &[&str] = &["refs", "logs", "reftable", "rr-cache"];

fn is_setting(within: &[&str]) -> bool {
    let [name, below @ ..] = within else {
        return true;
    };
    if !REPOSITORIES.contains(name) {
        return !is_data(within);
    }
    if below.len() > DEEPEST {
        return true;
    }
    // The name of a submodule may hold slashes: each folder below it may be the one of the repository.
    let plain =
        |name: &&str| !name.eq_ignore_ascii_case("hooks") && !name.eq_ignore_ascii_case("info");
    let holds = |at: usize| below[..at].iter().all(plain) && is_data(&below[at..]);
    !(1..below.len()).any(holds)
}

/// Whether a path within a repository's folder is data, by its exact name: whatever is not known may be a setting.
fn is_data(within: &[&str]) -> bool {
    match within {
        ["objects", "info", file, ..] => {
            matches!(*file, "packs" | "commit-graph" | "commit-graphs")
        }
        ["objects", ..] | ["info", "refs"] => true,
        [folder, ..] if DATA_FOLDERS.contains(folder) => true,
        [file] => {
            let file = file.strip_suffix(".lock").unwrap_or(file);
            DATA.contains(&file)
                || file.starts_with("sharedindex.")
                || file.starts_with("index.stash.")
        }
        _ => false,
    }
}
