//! The text before and after a change, for display to the user.

use std::fs::File;
use std::io::Read as _;

use crate::approval::preview::{FileChange, MAX_SIDE};
use crate::change::State;
use crate::change::collect::ViewChange;
use crate::change::collect::upper::Upper;
use crate::change::net::Action;
use crate::workspace::Workspace;

/// One side of a change.
struct Side {
    bytes: Vec<u8>,
    /// Whether the file is longer.
    clipped: bool,
}

/// Returns the change as text; `None` for a folder that is created or deleted. Shows a link as its target, a mode as a number.
pub(super) fn file_change(
    upper: &Upper,
    workspace: &Workspace,
    change: &ViewChange,
) -> Option<FileChange> {
    let (before, after) = (change.before.as_ref(), change.after.as_ref());
    let (was, is) = if change.action == Action::Chmod {
        (before.map(mode), after.map(mode))
    } else {
        let path = &change.path;
        let lower = || Some(workspace.open_file(path).ok()?.file);
        let new = || upper.file(path).ok();
        let was = before.and_then(|state| side(state, &lower));
        (was, after.and_then(|state| side(state, &new)))
    };
    if was.is_none() && is.is_none() {
        return None;
    }
    let text = |side: &Option<Side>| side.as_ref().map(|side| side.bytes.clone());
    let path = change.path.to_string_lossy();
    let mut shown = FileChange::new(path, text(&was).as_deref(), text(&is).as_deref());
    shown.clipped |= [was, is].into_iter().flatten().any(|side| side.clipped);
    shown.before_sha256 = match before {
        Some(State::File { sha256, .. }) => sha256.clone(),
        _ => None,
    };
    Some(shown)
}

/// Returns a changed mode of a file, or the mode of a new entry if it is unusual for one made by an editor; `None` if
/// [`file_change`] shows it.
pub(super) fn mode_change(change: &ViewChange) -> Option<FileChange> {
    const COMMON_FILE_MODES: [u32; 5] = [0o600, 0o640, 0o644, 0o660, 0o664];
    const COMMON_FOLDER_MODES: [u32; 3] = [0o700, 0o755, 0o775];
    let is = bits(change.after.as_ref()?)?;
    let was = change.before.as_ref().and_then(bits);
    let folder = matches!(change.after, Some(State::Folder { .. }));
    let usual = match was {
        Some(was) => was == is,
        None if folder => COMMON_FOLDER_MODES.contains(&is),
        None => COMMON_FILE_MODES.contains(&is),
    };
    if usual || change.action == Action::Chmod {
        return None;
    }
    let text = |bits: u32| format!("mode {bits:04o}\n");
    let path = format!("{} (mode)", change.path.to_string_lossy());
    let was = was.map(text);
    let mut shown = FileChange::new(
        path,
        was.as_deref().map(str::as_bytes),
        Some(text(is).as_bytes()),
    );
    shown.before_sha256 = None;
    Some(shown)
}

/// Returns the permission bits of a file or folder, if known.
fn bits(state: &State) -> Option<u32> {
    match state {
        State::File { mode, .. } | State::Folder { mode } => mode.map(|mode| mode & 0o777),
        State::Link { .. } | State::Other => None,
    }
}

fn side(state: &State, open: &dyn Fn() -> Option<File>) -> Option<Side> {
    match state {
        State::File { .. } => read(open()?),
        State::Link { target } => Some(line(format!("link to {}\n", target.display()))),
        State::Folder { .. } => None,
        State::Other => Some(line(
            "a pipe, socket, device or unreadable file\n".to_owned(),
        )),
    }
}

fn mode(state: &State) -> Side {
    match state {
        State::File {
            mode: Some(mode), ..
        }
        | State::Folder { mode: Some(mode) } => line(format!("mode {mode:04o}\n")),
        _ => line("mode unknown\n".to_owned()),
    }
}

fn line(text: String) -> Side {
    Side {
        bytes: text.into_bytes(),
        clipped: false,
    }
}

/// Reads the beginning of a file, cut between two characters.
fn read(file: File) -> Option<Side> {
    let mut bytes = Vec::new();
    let most = MAX_SIDE as u64 + 1;
    file.take(most).read_to_end(&mut bytes).ok()?;
    let clipped = bytes.len() > MAX_SIDE;
    if clipped {
        bytes.truncate(MAX_SIDE);
        if let Err(error) = std::str::from_utf8(&bytes)
            && error.error_len().is_none()
        {
            bytes.truncate(error.valid_up_to());
        }
    }
    Some(Side { bytes, clipped })
}
