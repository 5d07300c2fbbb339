//! The text before and after a command's changes, for display to the user.

use std::collections::BTreeMap;
use std::path::Path;

use sha2::{Digest as _, Sha256};

use crate::change::EntryState;
use crate::change::collect::upper::Upper;
use crate::change::collect::{ChangeList, ViewChange};
use crate::change::net::ChangeKind;
use crate::preview::{
    Aspect, ChangeSide, FileChange, FileChangeKind, MAX_LISTED, Preview, SideOpener,
};
use crate::workspace::Workspace;
use haft_types::text::hex;

/// Maximum number of folders whose further files are counted separately.
const MAX_FOLDERS: usize = 100;

/// The changes, and where their files are.
#[derive(Clone, Copy)]
pub(super) struct PreviewSources<'a> {
    pub(super) changes: &'a ChangeList,
    pub(super) upper: &'a Upper,
    pub(super) workspace: &'a Workspace,
}

/// Returns the changes as text, within the budget of one request, in the order of their paths. If there are too many, those for which
/// `first` is true are listed before others, and others as they come; the rest is counted by folder. `holds_changes` says whether a change
/// lies below a folder: one without any was made empty, or was empty.
pub(super) fn file_changes(
    from: PreviewSources<'_>,
    ordered: impl Iterator<Item = usize>,
    first: &dyn Fn(&Path) -> bool,
    holds_changes: &dyn Fn(&Path) -> bool,
) -> Vec<FileChange> {
    let changes = from.changes;
    // By their numbers, which take less memory than the changes.
    let (mut listed, mut rest, mut empty) = (Vec::new(), Vec::new(), Vec::new());
    for at in ordered {
        let Some(change) = changes.get(at) else {
            continue;
        };
        if is_folder(&change) && !holds_changes(change.path) {
            empty.push(at);
        }
        if !is_shown(&change) {
            continue;
        }
        if first(change.path) {
            listed.push(at);
        } else {
            rest.push(at);
        }
    }
    if listed.len() > MAX_LISTED {
        let mut more = listed.split_off(MAX_LISTED);
        more.append(&mut rest);
        rest = more;
    }
    let room = (MAX_LISTED - listed.len()).min(rest.len());
    let more = rest.split_off(room);
    listed.append(&mut rest);
    // The changes are sorted by path.
    listed.sort_unstable();
    let mut preview = Preview::default();
    for change in listed.into_iter().filter_map(|at| changes.get(at)) {
        let (shown, before, after) = described(from, &change);
        if has_content(&change) {
            if first(change.path) {
                preview.add_first(shown, before, after);
            } else {
                preview.add(shown, before, after);
            }
        }
        if let Some((shown, before, after)) = mode_change(&change) {
            preview.add(shown, before, after);
        }
    }
    let mut shown = preview.into_changes();
    shown.extend(empty_folders(changes, empty));
    shown.extend(folders(more.into_iter().filter_map(|at| changes.get(at))));
    shown
}

/// Returns the new folders and the deleted ones that hold nothing: the first of each are named, and further ones counted.
fn empty_folders(changes: &ChangeList, empty: Vec<usize>) -> Vec<FileChange> {
    let is_new = |at: &usize| changes.get(*at).is_some_and(|one| one.after.is_some());
    let (new, deleted): (Vec<_>, Vec<_>) = empty.into_iter().partition(is_new);
    let mut shown = Vec::new();
    for (action, all) in [
        (FileChangeKind::Create, new),
        (FileChangeKind::Delete, deleted),
    ] {
        let folder = |path: String| {
            let mut folder = FileChange::unread(path);
            (folder.action, folder.aspect) = (action, Aspect::Folder);
            folder
        };
        let (named, counted) = all.split_at(all.len().min(MAX_FOLDERS));
        let named = named.iter().map(|at| changes.path(*at).to_string_lossy());
        shown.extend(named.map(|path| folder(path.into_owned())));
        if counted.is_empty() {
            continue;
        }
        let mut digest = Sha256::new();
        for at in counted {
            digest.update(changes.path(*at).as_os_str().as_encoded_bytes());
            digest.update([0]);
        }
        let mut more = folder(".".to_owned());
        more.files = Some(counted.len() as u64);
        more.after_sha256 = Some(hex(&digest.finalize()));
        more.fold("the request names 100 empty folders at most");
        shown.push(more);
    }
    shown
}

/// Whether a change makes or deletes a folder and nothing else, as far as the change itself says.
fn is_folder(change: &ViewChange<'_>) -> bool {
    matches!(
        (&change.before, &change.after),
        (None, Some(EntryState::Folder { .. })) | (Some(EntryState::Folder { .. }), None)
    )
}

/// Whether anything is shown of a change.
fn is_shown(change: &ViewChange<'_>) -> bool {
    has_content(change) || mode_change(change).is_some()
}

/// Whether it is more than a folder that is created or deleted.
fn has_content(change: &ViewChange<'_>) -> bool {
    let content =
        |state: &Option<EntryState>| !matches!(state, None | Some(EntryState::Folder { .. }));
    change.action == ChangeKind::Chmod || content(&change.before) || content(&change.after)
}

/// Counts files by the folder at the top that holds them.
fn folders<'a>(changes: impl Iterator<Item = ViewChange<'a>>) -> Vec<FileChange> {
    let mut folders: BTreeMap<String, (u64, u64, Sha256)> = BTreeMap::new();
    for change in changes {
        let mut parts = change.path.components();
        let top = parts.next().filter(|_| parts.next().is_some());
        let top = top.map_or_else(
            || ".".to_owned(),
            |top| top.as_os_str().to_string_lossy().into_owned(),
        );
        let known = folders.contains_key(&top) || folders.len() < MAX_FOLDERS;
        let (count, bytes, digest) = folders
            .entry(if known { top } else { ".".to_owned() })
            .or_default();
        *count += 1;
        if let Some(EntryState::File { bytes: more, .. }) = &change.after {
            *bytes = bytes.saturating_add(*more);
        }
        // Plain data: this cannot fail.
        let line = serde_json::to_vec(&(
            change.path.to_string_lossy(),
            change.action,
            &change.before,
            &change.after,
        ));
        let line = line.unwrap_or_default();
        digest.update((line.len() as u64).to_le_bytes());
        digest.update(line);
    }
    let folded = |(path, (count, bytes, digest)): (String, (u64, u64, Sha256))| {
        let mut change = FileChange::unread(path);
        change.files = Some(count);
        change.after_bytes = Some(bytes);
        change.after_sha256 = Some(hex(&digest.finalize()));
        change.fold("the request names 2,000 files at most");
        change
    };
    folders.into_iter().map(folded).collect()
}

/// Describes a change without its content, with what opens that. Shows a link as its target, a mode as a number.
fn described<'a>(
    from: PreviewSources<'a>,
    change: &ViewChange<'a>,
) -> (FileChange, ChangeSide<'a>, ChangeSide<'a>) {
    let (before, after) = (change.before.as_ref(), change.after.as_ref());
    let mut shown = FileChange::unread(change.path.to_string_lossy());
    let path = change.path;
    let PreviewSources {
        upper, workspace, ..
    } = from;
    let is_link = |state: &EntryState| matches!(state, EntryState::Link { .. });
    shown.aspect = match (before.map(is_link), after.map(is_link)) {
        (None | Some(true), Some(true)) | (Some(true), None) => Aspect::Link,
        (Some(false), Some(true)) => Aspect::BecomesLink,
        (Some(true), Some(false)) => Aspect::WasLink,
        _ => Aspect::Content,
    };
    let (was, is) = if change.action == ChangeKind::Chmod {
        shown.aspect = Aspect::Mode;
        (
            before.map_or(ChangeSide::None, mode),
            after.map_or(ChangeSide::None, mode),
        )
    } else {
        let facts = |state: Option<&EntryState>| match state {
            Some(EntryState::File { sha256, bytes, .. }) => {
                (sha256.map(|hash| hash.to_string()), Some(*bytes))
            }
            _ => (None, None),
        };
        (shown.before_sha256, shown.before_bytes) = facts(before);
        (shown.after_sha256, shown.after_bytes) = facts(after);
        let lower = before.map_or(ChangeSide::None, |state| {
            side(
                state,
                Box::new(move || Some(workspace.open_file(path).ok()?.file)),
            )
        });
        let new = after.map_or(ChangeSide::None, |state| {
            side(state, Box::new(move || upper.file(path).ok()))
        });
        (lower, new)
    };
    shown.action = match (&was, &is) {
        (ChangeSide::None, _) => FileChangeKind::Create,
        (_, ChangeSide::None) => FileChangeKind::Delete,
        _ => FileChangeKind::Change,
    };
    (shown, was, is)
}

/// Returns a changed mode of a file, or the mode of a new entry if it is unusual for one made by an editor; `None` if
/// [`described`] shows it.
fn mode_change(
    change: &ViewChange<'_>,
) -> Option<(FileChange, ChangeSide<'static>, ChangeSide<'static>)> {
    const COMMON_FILE_MODES: [u32; 7] = [0o400, 0o444, 0o600, 0o640, 0o644, 0o660, 0o664];
    const COMMON_FOLDER_MODES: [u32; 3] = [0o700, 0o755, 0o775];
    let is = bits(change.after.as_ref()?)?;
    let was = change.before.as_ref().and_then(bits);
    let folder = matches!(change.after, Some(EntryState::Folder { .. }));
    let usual = match was {
        Some(was) => was == is,
        None if folder => COMMON_FOLDER_MODES.contains(&is),
        None => COMMON_FILE_MODES.contains(&is),
    };
    if usual || change.action == ChangeKind::Chmod {
        return None;
    }
    let text = |bits: u32| line(format!("mode {bits:04o}\n"));
    let mut shown = FileChange::unread(change.path.to_string_lossy());
    shown.aspect = Aspect::Mode;
    if was.is_none() {
        shown.action = FileChangeKind::Create;
    }
    Some((shown, was.map_or(ChangeSide::None, text), text(is)))
}

/// Returns the permission bits of a file or folder, if known.
fn bits(state: &EntryState) -> Option<u32> {
    match state {
        EntryState::File { mode, .. } | EntryState::Folder { mode } => {
            mode.map(|mode| mode & 0o777)
        }
        EntryState::Link { .. } | EntryState::Other => None,
    }
}

fn side<'a>(state: &EntryState, open: SideOpener<'a>) -> ChangeSide<'a> {
    match state {
        EntryState::File { .. } => ChangeSide::File(open),
        EntryState::Link { target } => line(format!("link to {}\n", target.display())),
        EntryState::Folder { .. } => ChangeSide::None,
        EntryState::Other => line("a pipe, socket, device or unreadable file\n".to_owned()),
    }
}

fn mode(state: &EntryState) -> ChangeSide<'static> {
    match state {
        EntryState::File {
            mode: Some(mode), ..
        }
        | EntryState::Folder { mode: Some(mode) } => line(format!("mode {mode:04o}\n")),
        _ => line("mode unknown\n".to_owned()),
    }
}

fn line(text: String) -> ChangeSide<'static> {
    ChangeSide::Content(text.into_bytes().into())
}
