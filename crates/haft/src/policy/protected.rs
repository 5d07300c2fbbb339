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

fn is_setting(within: &[&str]) -> bool {
    let holds_others = within
        .first()
        .is_some_and(|name| is_one_of(&REPOSITORIES, name));
    // The name of a submodule may hold slashes: each folder below it may be the one of the repository.
    is_setting_of_one(within)
        || (holds_others && (2..within.len()).any(|from| is_setting_of_one(&within[from..])))
}

/// The same for a repository's folder without those within it.
fn is_setting_of_one(within: &[&str]) -> bool {
    let [name, below @ ..] = within else {
        return true;
    };
    let is_config = |name: &str| {
        let start = name.as_bytes().get(..6);
        start.is_some_and(|start| start.eq_ignore_ascii_case(b"config"))
    };
    if name.eq_ignore_ascii_case("info") {
        let first = below.first();
        return first.is_none_or(|name| name.eq_ignore_ascii_case("attributes"));
    }
    // The steps of an operation that is under way can name programs.
    let steps = match name.to_ascii_lowercase().as_str() {
        "rebase-merge" => Some("git-rebase-todo"),
        "sequencer" => Some("todo"),
        _ => None,
    };
    if let (Some(steps), Some(file)) = (steps, below.first()) {
        return file.len() >= steps.len()
            && file.as_bytes()[..steps.len()].eq_ignore_ascii_case(steps.as_bytes());
    }
    is_config(name)
        || is_one_of(&["hooks", "commondir", "gitdir"], name)
        || (is_one_of(&REPOSITORIES, name) && below.len() <= 1)
}

fn is_one_of(names: &[&str], name: &str) -> bool {
    names.iter().any(|one| name.eq_ignore_ascii_case(one))
}
