//! Protected paths: what a file tool reads and never writes, and what is asked about where a command changes it.

use super::paths::segments;

/// The protected name of a repository's folder.
pub(super) const GIT: &str = ".git";

/// A name that is protected, in any folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProtectedName {
    /// The path of a file or folder: `.mcp.json`, `.haft/skills`.
    pub path: &'static str,
    /// Whether it is a folder with all that lies in it.
    pub is_folder: bool,
}

/// Folders that file tools read and do not write: what coding agents and editors run or are told to do.
const FOLDERS: &[&str] = &[
    GIT,
    ".haft/skills",
    ".agents/plugins",
    ".agents/skills",
    ".amazonq",
    ".amp",
    ".augment",
    ".claude",
    ".cline",
    ".clinerules/hooks",
    ".codex",
    ".config/amp",
    ".config/devin",
    ".config/goose",
    ".config/opencode",
    ".continue",
    ".copilot",
    ".crush",
    ".cursor",
    ".devcontainer",
    ".devin",
    ".factory",
    ".fleet",
    ".gemini",
    ".github/copilot",
    ".github/hooks",
    ".goose",
    ".husky",
    ".idea",
    ".junie",
    ".kilocode",
    ".kiro",
    ".opencode",
    ".qwen",
    ".roo",
    ".trae",
    ".vs",
    ".vscode",
    ".windsurf",
    ".zed",
];

/// Files of that kind, beside the ones that shells read when they start.
const FILES: &[&str] = &[
    ".agents/hooks.json",
    ".crush.json",
    ".devcontainer.json",
    ".envrc",
    ".mcp.json",
    "crush.json",
    "haft.toml",
    "opencode.json",
    "opencode.jsonc",
];

/// The names that a file tool may read but not write, at any depth, compared without case.
pub fn protected_names() -> impl Iterator<Item = ProtectedName> {
    let of = |is_folder| move |path: &&'static str| ProtectedName { path, is_folder };
    let files = FILES.iter().chain(haft_shell::STARTUP_FILES);
    FOLDERS.iter().map(of(true)).chain(files.map(of(false)))
}

/// The protected name at or above this path, or that writing the path would replace.
pub fn protected(path: &str) -> Option<&'static str> {
    let parts = segments(path);
    protected_names()
        .map(|name| name.path)
        .find(|entry| (0..parts.len()).any(|from| meets(entry, &parts[from..])))
}

/// The same for a change that a command makes. In a `.git` folder only what makes git run programs or trust other places is
/// protected ([`is_git_setting`]), and the folder as a whole: objects, refs, the index and the like are data.
pub fn protected_from_commands(path: &str) -> Option<&'static str> {
    let parts = segments(path);
    let protects =
        |entry: &str, here: &[&str]| meets(entry, here) && (entry != GIT || is_setting(&here[1..]));
    protected_names()
        .map(|name| name.path)
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
