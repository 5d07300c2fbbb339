//! `PathLocation`: where a path of another program leads: into the workspace, out of it, or an unknown place.

use std::path::{Path, PathBuf};

use haft::permission::PathClaim;
use haft::workspace::{EntryKind, WorkspaceError};

use super::Outside;
use crate::lexical::normalize;

/// The place that a path leads to.
#[derive(Debug)]
pub(super) enum PathLocation {
    /// In the workspace.
    Inside(PathClaim, Option<EntryKind>),
    /// This path outside the workspace, or one of haft's own files.
    Away(PathBuf),
    /// Unknown.
    Unknown,
}

/// Joins a path to a folder.
pub(super) fn join_path(base: &str, path: &str) -> String {
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

/// Resolves a path from a folder.
pub(super) fn spot(outside: &Outside, base: &str, path: &str, entry: bool) -> PathLocation {
    let workspace = &outside.workspace;
    let whole = join_path(base, path);
    let whole = to_workspace_path(workspace.root(), &whole, entry).unwrap_or(whole);
    let place = if entry {
        workspace.entry(&whole)
    } else {
        workspace.place(&whole)
    };
    let claim = place.and_then(|place| Ok((place.claim()?, place.kind())));
    match claim {
        Ok((claim, kind)) => PathLocation::Inside(claim, kind),
        Err(WorkspaceError::Own(_)) => {
            PathLocation::Away(normalize(&workspace.root().join(&whole)))
        }
        Err(WorkspaceError::Outside(_)) => outside_spot(outside, &workspace.root().join(&whole)),
        Err(_) => PathLocation::Unknown,
    }
}

/// Rewrites an absolute path that reaches the workspace, or a folder in it, through a link outside, so that it begins with the
/// workspace's own path. What follows that link stays as written, because the workspace resolves it. A link at the very end may itself
/// be removed or replaced, so it counts only if it leads to a folder that is used.
fn to_workspace_path(root: &Path, path: &str, entry: bool) -> Option<String> {
    let path = Path::new(path);
    if !path.is_absolute() || path.starts_with(root) {
        return None;
    }
    // A path that does not exist resolves like its last existing parent.
    let real = path.ancestors().find_map(|at| at.canonicalize().ok())?;
    if !real.starts_with(root) {
        return None;
    }
    let mut folders: Vec<&Path> = path.ancestors().collect();
    folders.reverse();
    let (at, inside) = folders.into_iter().find_map(|at| {
        let inside = at.canonicalize().ok()?;
        let is_way = at != path || (!entry && inside.is_dir());
        (is_way && inside.starts_with(root)).then_some((at, inside))
    })?;
    let rest = path.strip_prefix(at).ok()?;
    inside.join(rest).to_str().map(str::to_owned)
}

/// Returns a place that its path, or a link on it, puts outside the workspace.
fn outside_spot(outside: &Outside, path: &Path) -> PathLocation {
    let root = outside.workspace.root();
    let clean = normalize(path);
    if !clean.starts_with(root) {
        return PathLocation::Away(clean);
    }
    // A link leads out. A path that does not exist is in a folder that does.
    let mut folder = Some(path);
    while let Some(at) = folder {
        if let Ok(real) = at.canonicalize() {
            let rest = path.strip_prefix(at).unwrap_or(Path::new(""));
            let real = normalize(&real.join(rest));
            let away = !real.starts_with(root);
            return if away {
                PathLocation::Away(real)
            } else {
                PathLocation::Unknown
            };
        }
        folder = at.parent();
    }
    PathLocation::Unknown
}
