//! The files that git keeps for itself. What is executable or steers git is none of them: it stays visible.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::Path;

use haft::approval::meaning::{Meaning, MeaningKind};
use haft::change::State;

use super::object::loose;
use crate::command::meaning::sides::{PathChange, Side, Sides};
use crate::command::meaning::words::{count, name};

/// Files in a repository, a worktree's folder or a submodule's that hold no settings.
const OWN_FILES: [&str; 9] = [
    "AUTO_MERGE",
    "COMMIT_EDITMSG",
    "FETCH_HEAD",
    "HEAD",
    "ORIG_HEAD",
    "REBASE_HEAD",
    "TAG_EDITMSG",
    "index",
    "packed-refs",
];
/// Files that steer the next commit while they are there. That they are gone says nothing.
const STEERING: [&str; 8] = [
    "CHERRY_PICK_HEAD",
    "MERGE_HEAD",
    "MERGE_MODE",
    "MERGE_MSG",
    "MERGE_RR",
    "REVERT_HEAD",
    "SQUASH_MSG",
    "index.lock",
];
/// Maximum size of a loose object or log that is folded, in bytes.
const MAX_FOLDED: u64 = 4 << 20;

/// Returns what a file is, in one word, if git keeps it for itself. `path` is relative to the repository.
fn word(path: &Path) -> Option<&'static str> {
    let mut parts = path.iter();
    let first = parts.next()?.to_str()?;
    let rest = parts.as_path();
    let is_last = rest.as_os_str().is_empty();
    match first {
        "objects" if rest == Path::new("info") || rest == Path::new("info/packs") => Some("object"),
        "objects" => is_object(rest).then_some("object"),
        // A lock is no ref: git reads nothing of it.
        "refs" => (!is_lock(path)).then_some("ref"),
        "logs" if is_last || rest == Path::new("HEAD") || rest.starts_with("refs") => Some("log"),
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
        file if is_last && (OWN_FILES.contains(&file) || STEERING.contains(&file)) => Some("file"),
        _ => None,
    }
}

fn is_lock(path: &Path) -> bool {
    path.extension().is_some_and(|end| end == "lock")
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
        let ends = ["pack", "idx", "rev"];
        name.is_some_and(|(hash, end)| is_hex(hash, 40) && ends.contains(&end))
    };
    match parts.as_deref() {
        Some([] | ["pack"]) => true,
        Some(["pack", name]) => is_pack(name),
        Some([folder]) => is_hex(folder, 2),
        Some([folder, name]) => is_hex(folder, 2) && is_hex(name, 38),
        _ => false,
    }
}

/// Returns true if the file is what its name says, so that nothing else can be hidden in it. A link, an executable file and a stored
/// object that changes are shown.
fn is_genuine(sides: &Sides<'_>, change: &PathChange, word: &str) -> bool {
    let is_new = change.before.is_none();
    match &change.after {
        None | Some(State::Folder { .. }) => true,
        Some(State::File { mode, .. }) if mode.is_none_or(|mode| mode & 0o111 == 0) => {
            let name = change.path.file_name().and_then(|name| name.to_str());
            let name = name.unwrap_or_default();
            let is_loose = name.len() == 38;
            match word {
                "object" if is_loose => {
                    let content = sides.open(Side::After, &change.path);
                    is_new && content.is_some_and(|content| loose(&content, MAX_FOLDED).is_some())
                }
                "object" if name != "packs" => is_new,
                "log" => {
                    let content = sides.read(Side::After, &change.path, MAX_FOLDED);
                    content.is_some_and(|content| is_log(&content))
                }
                _ => !STEERING.contains(&name),
            }
        }
        Some(_) => false,
    }
}

/// Returns true if each line begins with two ids, as git writes them into logs.
fn is_log(content: &[u8]) -> bool {
    let is_id = |word: Option<&[u8]>| {
        word.is_some_and(|word| word.len() == 40 && word.iter().all(u8::is_ascii_hexdigit))
    };
    let lines = content.split(|byte| *byte == b'\n');
    lines.filter(|line| !line.is_empty()).all(|line| {
        let mut words = line.split(|byte| *byte == b' ');
        is_id(words.next()) && is_id(words.next())
    })
}

/// Returns true for a folder that git takes for a repository by its name: `.git`, one of its modules, `NAME.git`.
fn is_named(repository: &Path) -> bool {
    let mut parts = repository.iter().map(OsStr::as_encoded_bytes);
    parts.any(|part| part.ends_with(b".git"))
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
    let mut deleted = 0;
    for change in sides.below(repository) {
        let inside = change.path.strip_prefix(repository).ok()?;
        let word = if inside.as_os_str().is_empty() {
            Some("folder")
        } else {
            word(inside)
        };
        let is_own = |word: &&str| {
            select(&change.path) && is_named(repository) && is_genuine(sides, change, word)
        };
        let Some(word) = word.filter(is_own) else {
            continue;
        };
        if word == "object" && matches!(change.before, Some(State::File { .. })) {
            deleted += 1;
            continue;
        }
        covers.push(change.path.to_string_lossy().into_owned());
        let is_folder = |state: &Option<State>| matches!(state, Some(State::Folder { .. }));
        if !is_folder(&change.before) && !is_folder(&change.after) {
            *counts.entry(word).or_default() += 1;
        }
    }
    if covers.is_empty() && deleted == 0 && not_understood.is_none() {
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
    if deleted > 0 {
        let objects = count(deleted, "stored object");
        let warning = format!("{objects} deleted or changed: what needs them cannot be read");
        meaning.warnings.push(warning);
    }
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
            "objects/info/commit-graph",
            "objects/info/commit-graphs/evil.py",
            "objects/pack/multi-pack-index",
            "refs/heads/main.lock",
            "lfs/objects/evil.js",
            "logs/HEAD/evil",
            "opcode",
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
