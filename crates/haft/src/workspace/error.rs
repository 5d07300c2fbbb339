//! `WorkspaceError`: why a path or an operation on it was refused.

use std::io;
use std::path::Path;

use rustix::io::Errno;

use crate::error::{ErrorKind, ToolError};
use crate::workspace::{Kind, display_path};

/// Why a path or an operation on it was refused.
#[derive(Debug, thiserror::Error)]
pub enum WorkspaceError {
    /// The path, or a link on it, leads out of the root.
    #[error("path {0:?} leaves the workspace")]
    Outside(String),
    /// haft's own state, settings or secrets.
    #[error("path {0:?} is haft's own and out of reach for tools")]
    Own(String),
    /// At or below a `.git` entry, or a tree that holds one.
    #[error("path {0:?} belongs to a repository's .git and may only be read")]
    Git(String),
    /// No path at all.
    #[error("path {0:?} is not a path: {1}")]
    Malformed(String, &'static str),
    /// Nothing there.
    #[error("no file or folder {path:?}")]
    NotFound {
        /// What was asked for.
        path: String,
        /// A name that is there and looks like it.
        near: Option<String>,
    },
    /// A folder, a pipe, a device or a socket where a regular file is needed.
    #[error("{path:?} is {kind}, not a regular file")]
    NotAFile {
        /// What was asked for.
        path: String,
        /// What it is.
        kind: Kind,
    },
    /// A file where a folder is needed.
    #[error("{0:?} is not a folder")]
    NotADirectory(String),
    /// The root itself cannot be deleted, moved or replaced.
    #[error("the workspace root cannot be deleted, moved or written")]
    Root,
    /// A folder with entries, and no leave to remove them all.
    #[error("folder {0:?} is not empty")]
    NotEmpty(String),
    /// Something is there already.
    #[error("{0:?} exists already")]
    Exists(String),
    /// A folder cannot be moved below itself.
    #[error("folder {0:?} cannot be moved into itself")]
    IntoItself(String),
    /// Another process changed the path while it was used.
    #[error("{0:?} changed while it was used")]
    Changed(String),
    /// Several changes failed half-way, and this one could not be undone.
    #[error("{path:?} could not be put back after {cause}: {source}; {before}")]
    NotPutBack {
        /// What was changed.
        path: String,
        /// Why the changes were undone.
        cause: Box<WorkspaceError>,
        /// Why this one could not be.
        source: io::Error,
        /// Where its old text is, if there was one.
        before: String,
    },
    /// What is to be changed could not be noted first, so that nobody could undo it.
    #[error("what would be changed cannot be noted, so nothing was: {0}")]
    NotNoted(io::Error),
    /// The disk, a quota or the largest file size.
    #[error("no space left to write {0:?}")]
    Full(String),
    /// The system refused.
    #[error("{verb} {path:?}: {source}")]
    Io {
        /// What was tried.
        verb: &'static str,
        /// On what.
        path: String,
        /// The system's reason.
        source: io::Error,
    },
}

impl WorkspaceError {
    pub(crate) fn io(verb: &'static str, path: &str, source: io::Error) -> Self {
        match source.raw_os_error().map(Errno::from_raw_os_error) {
            Some(errno) => Self::from_errno(verb, Path::new(path), errno),
            None => Self::Io {
                verb,
                path: path.to_owned(),
                source,
            },
        }
    }

    pub(crate) fn from_errno(verb: &'static str, path: &Path, errno: Errno) -> Self {
        let path = display_path(path);
        match errno {
            Errno::NOENT => Self::NotFound { path, near: None },
            Errno::NOTDIR => Self::NotADirectory(path),
            Errno::NOTEMPTY => Self::NotEmpty(path),
            Errno::EXIST => Self::Exists(path),
            Errno::NOSPC | Errno::DQUOT | Errno::FBIG => Self::Full(path),
            // Only ever raised for a path that was found to hold no link a moment ago.
            Errno::LOOP | Errno::XDEV | Errno::AGAIN => Self::Changed(path),
            Errno::NAMETOOLONG => Self::Malformed(path, "a name of more than 255 bytes"),
            Errno::NOSYS => Self::Io {
                verb,
                path,
                source: io::Error::new(
                    io::ErrorKind::Unsupported,
                    "this kernel has no openat2 (Linux 5.6), without which the workspace's edge cannot be held",
                ),
            },
            other => Self::Io {
                verb,
                path,
                source: other.into(),
            },
        }
    }

    fn kind(&self) -> ErrorKind {
        match self {
            Self::Outside(_) | Self::Own(_) | Self::Git(_) | Self::Root => ErrorKind::Denied,
            Self::NotFound { .. } => ErrorKind::NotFound,
            Self::Exists(_) | Self::Changed(_) => ErrorKind::Conflict,
            Self::Malformed(..) => ErrorKind::InvalidArguments,
            Self::NotNoted(_) => ErrorKind::Unavailable,
            Self::NotAFile { .. }
            | Self::NotADirectory(_)
            | Self::NotEmpty(_)
            | Self::IntoItself(_)
            | Self::NotPutBack { .. }
            | Self::Full(_)
            | Self::Io { .. } => ErrorKind::Failed,
        }
    }

    fn advice(&self) -> Option<String> {
        let advice = match self {
            Self::Outside(_) => {
                "use a path relative to the workspace root; links may only lead inside"
            }
            Self::NotFound {
                near: Some(near), ..
            } => return Some(format!("did you mean {near:?}?")),
            Self::NotFound { near: None, .. } => {
                "list_files or glob_files shows what is there; paths are literal"
            }
            Self::NotAFile {
                kind: Kind::Directory,
                ..
            } => "list_files shows what the folder holds",
            Self::NotAFile { .. } => "only regular files can be read or written",
            Self::NotEmpty(_) => "recursive=true deletes a folder with all it holds",
            Self::Changed(_) => "another process moved it: look again, then repeat the call",
            Self::Full(_) => "nothing was changed; free some space or write less",
            _ => return None,
        };
        Some(advice.to_owned())
    }
}

impl From<WorkspaceError> for ToolError {
    fn from(error: WorkspaceError) -> Self {
        let told = Self::new(error.kind(), error.to_string());
        match error.advice() {
            Some(advice) => told.with_advice(advice).with_source(error),
            None => told.with_source(error),
        }
    }
}
