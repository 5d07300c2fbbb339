//! The files that git keeps for itself. What is executable or steers git is none of them: it stays visible.

use std::collections::BTreeMap;
use std::path::Path;

use haft::approval::meaning::{Meaning, MeaningKind};
use haft::change::State;

use crate::command::meaning::sides::{PathChange, Sides};
use crate::command::meaning::words::{count, name};

/// Files in a repository, a worktree's folder or a submodule's that hold no settings.
const OWN_FILES: [&str; 20] = [
    "AUTO_MERGE",
    "CHERRY_PICK_HEAD",
    "COMMIT_EDITMSG",
    "FETCH_HEAD",
    "HEAD",
    "MERGE_HEAD",
    "MERGE_MODE",
    "MERGE_MSG",
    "MERGE_RR",
    "ORIG_HEAD",
    "REBASE_HEAD",
    "REVERT_HEAD",
    "SQUASH_MSG",
    "TAG_EDITMSG",
    "gc.log",
    "gc.pid",
    "index",
    "index.lock",
    "opcode",
    "packed-refs",
];

/// Returns what a file is, in one word, if git keeps it for itself. `path` is relative to the repository.
fn word(path: &Path) -> Option<&'static str> {
    let mut parts = path.iter();
    let first = parts.next()?.to_str()?;
    let rest = parts.as_path();
    let is_last = rest.as_os_str().is_empty();
    match first {
        "objects" if rest.starts_with("info") && !is_last => {
            let file = rest.strip_prefix("info").ok()?;
            // `alternates` leads git to other folders.
            let is_known = ["", "packs", "commit-graph", "commit-graphs"]
                .iter()
                .any(|known| {
                    file.starts_with(known) && (!known.is_empty() || file.as_os_str().is_empty())
                });
            is_known.then_some("object")
        }
        "objects" => is_object(rest).then_some("object"),
        "refs" => Some("ref"),
        "logs" if is_last || rest.starts_with("HEAD") || rest.starts_with("refs") => Some("log"),
        "lfs" if rest.starts_with("objects") || rest.starts_with("tmp") || is_last => {
            Some("LFS object")
        }
        "worktrees" => {
            let mut parts = rest.iter();
            parts.next();
            let inner = parts.as_path();
            if inner.as_os_str().is_empty() {
                Some("folder")
            } else {
                word(inner)
            }
        }
        file if is_last && OWN_FILES.contains(&file) => Some("file"),
        file if is_last && file.starts_with("sharedindex.") => Some("file"),
        _ => None,
    }
}

/// Returns true for the names that git gives to objects, packs and their folders. `path` is relative to the folder of objects.
fn is_object(path: &Path) -> bool {
    let parts: Option<Vec<&str>> = path.iter().map(|part| part.to_str()).collect();
    let is_hex = |text: &str, length: usize| {
        text.len() == length && text.bytes().all(|byte| byte.is_ascii_hexdigit())
    };
    let is_pack = |name: &str| {
        let name = name
            .strip_prefix("pack-")
            .and_then(|name| name.split_once('.'));
        let ends = ["pack", "idx", "rev", "bitmap", "mtimes", "keep", "promisor"];
        name.is_some_and(|(hash, end)| is_hex(hash, 40) && ends.contains(&end))
    };
    match parts.as_deref() {
        Some([] | ["pack"] | ["pack", "multi-pack-index"]) => true,
        Some(["pack", name]) => is_pack(name),
        Some([folder]) => is_hex(folder, 2),
        Some([folder, name]) => is_hex(folder, 2) && is_hex(name, 38),
        _ => false,
    }
}

/// Returns true if nothing is at stake but content: a link or an executable file is shown.
fn is_plain(change: &PathChange) -> bool {
    match &change.after {
        None | Some(State::Folder { .. }) => true,
        Some(State::File { mode, .. }) => mode.is_none_or(|mode| mode & 0o111 == 0),
        Some(_) => false,
    }
}

/// Returns the one line for git's own files in the repository in a folder, or `None` if none of them changed. It covers them if
/// what they mean is understood.
pub(super) fn internals(
    sides: &Sides<'_>,
    repository: &Path,
    select: &dyn Fn(&Path) -> bool,
    not_understood: Option<&str>,
) -> Option<Meaning> {
    let (mut counts, mut covers) = (BTreeMap::<&str, usize>::new(), Vec::new());
    for change in sides.below(repository) {
        let inside = change.path.strip_prefix(repository).ok()?;
        let word = if inside.as_os_str().is_empty() {
            Some("folder")
        } else {
            word(inside)
        };
        let Some(word) = word.filter(|_| select(&change.path) && is_plain(change)) else {
            continue;
        };
        covers.push(change.path.to_string_lossy().into_owned());
        let is_folder = |state: &Option<State>| matches!(state, Some(State::Folder { .. }));
        if !is_folder(&change.before) && !is_folder(&change.after) {
            *counts.entry(word).or_default() += 1;
        }
    }
    if covers.is_empty() && not_understood.is_none() {
        return None;
    }
    let each: Vec<String> = counts
        .iter()
        .map(|(word, number)| count(*number, word))
        .collect();
    let folder = name(repository.as_os_str().as_encoded_bytes());
    let title = if each.is_empty() {
        format!("git's own files in {folder}")
    } else {
        format!("git's own files in {folder}: {}", each.join(", "))
    };
    let mut meaning = Meaning::new(MeaningKind::GitInternals, title);
    match not_understood {
        Some(why) => meaning.warnings.push(format!(
            "haft does not understand what changes in {folder}: {why}"
        )),
        None => meaning.covers = covers,
    }
    Some(meaning)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::word;

    #[test]
    fn what_steers_git_is_never_one_of_its_own_files() {
        for path in [
            "HEAD",
            "index",
            "logs/HEAD",
            "objects/ab/cdef0123456789abcdef0123456789abcdef01",
            "objects/pack/pack-0123456789abcdef0123456789abcdef01234567.pack",
            "objects/info/commit-graph",
            "refs/heads/main",
            "worktrees/w/HEAD",
            "worktrees/w/logs/HEAD",
        ] {
            assert!(word(Path::new(path)).is_some(), "{path}");
        }
        for path in [
            "config",
            "config.worktree",
            "hooks/pre-commit",
            "info/attributes",
            "info/exclude",
            "info/grafts",
            "objects/info/alternates",
            "objects/evil.sh",
            "objects/ab/evil",
            "objects/pack/pack-1.py",
            "logs/evil.sh",
            "objects/info/http-alternates",
            "shallow",
            "rebase-merge/git-rebase-todo",
            "sequencer/todo",
            "worktrees/w/gitdir",
            "worktrees/w/commondir",
            "worktrees/w/config.worktree",
            "modules/lib/config",
            "modules/lib/hooks/post-checkout",
            "description",
            "commondir",
            "gitdir",
        ] {
            assert_eq!(word(Path::new(path)), None, "{path}");
        }
    }
}
