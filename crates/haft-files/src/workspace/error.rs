//! `WorkspaceError`: the reason why a path or an operation on it was refused.

use std::io;
use std::path::Path;

use rustix::io::Errno;

use crate::workspace::{EntryKind, display_path};
use haft_types::error::{ErrorKind, ToolError};

/// The reason why a path or an operation on it was refused.
#[derive(Debug, thiserror::Error)]
pub enum WorkspaceError {
    /// The path, or a link on it, leads out of the root.
    #[error("path {0:?} leaves the workspace")]
    Outside(String),
    /// haft's own state, settings or secrets.
    #[error("path {0:?} is haft's own and off limits for tools")]
    Own(String),
    /// A path at or below a `.git` entry, or a tree that contains one.
    #[error("path {0:?} belongs to a repository's .git and may only be read")]
    Git(String),
    /// The text is not a valid path.
    #[error("path {0:?} is not a path: {1}")]
    Malformed(String, &'static str),
    /// Nothing is there.
    #[error("no file or folder {path:?}")]
    NotFound {
        /// The requested path.
        path: String,
        /// A similar name that exists.
        near: Option<String>,
    },
    /// A folder, a pipe, a device or a socket where a regular file is needed.
    #[error("{path:?} is {kind}, not a regular file")]
    NotAFile {
        /// The requested path.
        path: String,
        /// The kind of entry.
        kind: EntryKind,
    },
    /// A file where a folder is needed.
    #[error("{0:?} is not a folder")]
    NotADirectory(String),
    /// The root itself cannot be deleted, moved or replaced.
    #[error("the workspace root cannot be deleted, moved or written")]
    Root,
    /// A folder with entries, and no permission to remove them all.
    #[error("folder {0:?} is not empty")]
    NotEmpty(String),
    /// Something already exists there.
    #[error("{0:?} exists already")]
    Exists(String),
    /// A folder cannot be moved below itself.
    #[error("folder {0:?} cannot be moved into itself")]
    IntoItself(String),
    /// Another process changed the path while it was in use.
    #[error("{0:?} changed while it was used")]
    Changed(String),
    /// Its changes were to be made within a time, or while a call lasts, and that is over.
    #[error("not all was changed: {0}")]
    Stopped(&'static str),
    /// Git, or another haft, changes the repository at this moment.
    #[error(
        "git is at work in the repository: {0} is there; if no git runs there any more, delete that file"
    )]
    GitAtWork(String),
    /// Several changes failed half-way, and this one could not be reverted.
    #[error("{path:?} could not be put back after {cause}: {source}; {before}")]
    NotPutBack {
        /// The changed path.
        path: String,
        /// The reason why the changes were reverted.
        cause: Box<WorkspaceError>,
        /// The reason why this one could not be reverted.
        source: io::Error,
        /// Where its old content is, if there was any.
        before: String,
    },
    /// The change could not be recorded first, so it could not be undone.
    #[error("the change cannot be recorded, so nothing was changed: {0}")]
    NotNoted(io::Error),
    /// The disk is full, or a quota or file size limit is reached.
    #[error("no space left to write {0:?}")]
    Full(String),
    /// The system refused the operation.
    #[error("{verb} {path:?}: {source}")]
    Io {
        /// The operation that failed.
        verb: &'static str,
        /// The path it failed on.
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
            // Only for a path that had no links a moment ago.
            Errno::LOOP | Errno::XDEV | Errno::AGAIN => Self::Changed(path),
            Errno::NAMETOOLONG => Self::Malformed(path, "a name of more than 255 bytes"),
            Errno::NOSYS => Self::Io {
                verb,
                path,
                source: io::Error::new(
                    io::ErrorKind::Unsupported,
                    "this system has neither openat2 (Linux 5.6) nor numbers of mounts (Linux 5.8), and haft needs one of them here",
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
            Self::Exists(_) | Self::Changed(_) | Self::GitAtWork(_) => ErrorKind::Conflict,
            Self::Malformed(..) => ErrorKind::InvalidArguments,
            Self::NotNoted(_) => ErrorKind::Unavailable,
            Self::NotAFile { .. }
            | Self::NotADirectory(_)
            | Self::NotEmpty(_)
            | Self::IntoItself(_)
            | Self::NotPutBack { .. }
            | Self::Stopped(_)
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
                kind: EntryKind::Directory,
                ..
            } => "list_files shows what the folder holds",
            Self::NotAFile { .. } => "only regular files can be read or written",
            Self::NotEmpty(_) => "recursive=true deletes a folder and everything in it",
            Self::Changed(_) => "another process moved it: check again, then repeat the call",
            Self::Full(_) => "nothing was changed; free some space or write less",
            _ => return None,
        };
        Some(advice.to_owned())
    }
}

impl From<WorkspaceError> for ToolError {
    fn from(error: WorkspaceError) -> Self {
        let tool_error = Self::new(error.kind(), error.to_string());
        match error.advice() {
            Some(advice) => tool_error.with_advice(advice).with_source(error),
            None => tool_error.with_source(error),
        }
    }
}
