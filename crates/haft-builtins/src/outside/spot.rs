//! `Spot`: where a path leads that another program names: into the workspace, out of it, or nobody knows.

use std::path::{Path, PathBuf};

use haft::permission::PathClaim;
use haft::workspace::{Kind, WorkspaceError};

use super::Outside;
use crate::command::lexical::cleaned;

/// Where a path leads.
#[derive(Debug)]
pub(super) enum Spot {
    /// Into the workspace.
    Inside(PathClaim, Option<Kind>),
    /// Out of it, to this place; or to what is haft's own.
    Away(PathBuf),
    /// Nobody knows.
    Unknown,
}

/// A path from a folder.
pub(super) fn joined(base: &str, path: &str) -> String {
    let whole = match base {
        "." => path.to_owned(),
        base => Path::new(base).join(path).to_string_lossy().into_owned(),
    };
    let trimmed = whole.trim_end_matches('/');
    match trimmed {
        "" if whole.is_empty() => ".".to_owned(),
        "" => "/".to_owned(),
        trimmed => trimmed.to_owned(),
    }
}

/// Where one path leads from one folder.
pub(super) fn spot(outside: &Outside, base: &str, path: &str, entry: bool) -> Spot {
    let workspace = &outside.workspace;
    let whole = joined(base, path);
    let place = if entry {
        workspace.entry(&whole)
    } else {
        workspace.place(&whole)
    };
    let claim = place.and_then(|place| Ok((place.claim()?, place.kind())));
    match claim {
        Ok((claim, kind)) => Spot::Inside(claim, kind),
        Err(WorkspaceError::Own(_)) => Spot::Away(cleaned(&workspace.root().join(&whole))),
        Err(WorkspaceError::Outside(_)) => beyond(outside, &workspace.root().join(&whole)),
        Err(_) => Spot::Unknown,
    }
}

/// A place that is not in the workspace, by its path or by a link on it.
fn beyond(outside: &Outside, path: &Path) -> Spot {
    let root = outside.workspace.root();
    let clean = cleaned(path);
    if !clean.starts_with(root) {
        return Spot::Away(clean);
    }
    // A link leads there. What does not exist lies in a folder that does.
    let mut folder = Some(path);
    while let Some(at) = folder {
        if let Ok(real) = at.canonicalize() {
            let rest = path.strip_prefix(at).unwrap_or(Path::new(""));
            let real = cleaned(&real.join(rest));
            let away = !real.starts_with(root);
            return if away {
                Spot::Away(real)
            } else {
                Spot::Unknown
            };
        }
        folder = at.parent();
    }
    Spot::Unknown
}
