//! `SkillError`: the reason why a skill's file could not be read.

use std::io;
use std::path::Path;

use rustix::io::Errno;

use haft_types::error::{ErrorKind, ToolError};

/// The reason why a skill's file could not be read.
#[derive(Debug, thiserror::Error)]
pub enum SkillError {
    /// Nothing is there.
    #[error("no file {0:?} in the skill's folder")]
    NotFound(String),
    /// The path, or a link on it, leads out of the skill's folder.
    #[error("{0:?} leaves the skill's folder")]
    Outside(String),
    /// A folder, a pipe, a device or a socket where a regular file is needed.
    #[error("{path:?} is {kind}, not a regular file")]
    NotAFile {
        /// The requested path.
        path: String,
        /// The kind of entry.
        kind: &'static str,
    },
    /// The file exceeds the size limit.
    #[error("{path:?} is larger than {limit} bytes")]
    TooLarge {
        /// The requested path.
        path: String,
        /// Maximum number of bytes read.
        limit: u64,
    },
    /// The text is not a valid path.
    #[error("{0:?} is not a path below the skill's folder")]
    Malformed(String),
    /// The skill's folder was removed, or a link replaced it or a folder above it.
    #[error("the skill's folder {0:?} changed while it was used")]
    Changed(String),
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

impl SkillError {
    pub(super) fn from_errno(verb: &'static str, path: &Path, errno: Errno) -> Self {
        let path = path.to_string_lossy().into_owned();
        match errno {
            Errno::NOENT | Errno::NOTDIR => Self::NotFound(path),
            // A link out of the folder, an absolute link, or a loop of links.
            Errno::XDEV | Errno::LOOP => Self::Outside(path),
            Errno::NAMETOOLONG | Errno::INVAL => Self::Malformed(path),
            other => Self::Io {
                verb,
                path,
                source: other.into(),
            },
        }
    }

    fn kind(&self) -> ErrorKind {
        match self {
            Self::NotFound(_) => ErrorKind::NotFound,
            Self::Outside(_) => ErrorKind::Denied,
            Self::Malformed(_) => ErrorKind::InvalidArguments,
            Self::Changed(_) => ErrorKind::Conflict,
            Self::NotAFile { .. } | Self::TooLarge { .. } | Self::Io { .. } => ErrorKind::Failed,
        }
    }
}

impl From<SkillError> for ToolError {
    fn from(error: SkillError) -> Self {
        let tool_error = Self::new(error.kind(), error.to_string());
        let advice = match &error {
            SkillError::NotFound(_) => "the skill's resources are listed when it is loaded",
            SkillError::Outside(_) => "only files below the skill's own folder can be read",
            _ => return tool_error.with_source(error),
        };
        tool_error.with_advice(advice).with_source(error)
    }
}
