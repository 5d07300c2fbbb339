//! `EntryState`: what is at a path, as far as haft can compare and restore it.

use std::path::Path;

use rustix::fs::{FileType, OFlags};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use crate::change::{FileHash, PathText, log};
use crate::workspace::{EntryKind, OpenFile, Workspace, WorkspaceError};

/// What is at a path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum EntryState {
    /// A regular file.
    File {
        /// The SHA-256 of its bytes; `None` for a file over the size limit.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        sha256: Option<FileHash>,
        /// Its size in bytes.
        bytes: u64,
        /// Its permission bits; `None` if the umask decides.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        mode: Option<u32>,
    },
    /// A symbolic link.
    Link {
        /// The path that it holds, as text.
        target: PathText,
    },
    /// A folder, without its content.
    Folder {
        /// Its permission bits; `None` if the umask decides.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        mode: Option<u32>,
    },
    /// A pipe, socket, device or unreadable file.
    Other,
}

impl EntryState {
    /// Whether both have the same content and mode. An unknown mode equals any mode; folder modes are not compared.
    pub fn is_same(&self, other: &Self) -> bool {
        match (self, other) {
            (
                Self::File { sha256, mode, .. },
                Self::File {
                    sha256: others,
                    mode: other_mode,
                    ..
                },
            ) => {
                let modes = mode.zip(*other_mode);
                sha256.is_some() && sha256 == others && modes.is_none_or(|(a, b)| a == b)
            }
            (Self::Folder { .. }, Self::Folder { .. }) => true,
            (Self::Other, _) | (_, Self::Other) => false,
            _ => self == other,
        }
    }
}

/// Computes the SHA-256 of a file; `None` if it is too large.
pub(super) type FileHashFn<'a> =
    &'a mut dyn FnMut(OpenFile) -> Result<Option<FileHash>, WorkspaceError>;

/// Returns the state of a real path of a workspace.
pub(super) fn state_at(
    workspace: &Workspace,
    real: &Path,
    digest: FileHashFn<'_>,
) -> Result<Option<EntryState>, WorkspaceError> {
    let to_error = |e: Errno| WorkspaceError::from_errno("look at", real, e);
    let stat = match workspace.stat(real) {
        Ok(stat) => stat,
        // A parent that is now a link counts as missing, too.
        Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => return Ok(None),
        Err(e) => return Err(to_error(e)),
    };
    Ok(Some(
        match EntryKind::of(FileType::from_raw_mode(stat.st_mode)) {
            EntryKind::Directory => EntryState::Folder {
                mode: Some(stat.st_mode & 0o7777),
            },
            EntryKind::Link => EntryState::Link {
                target: workspace.link_text(real)?.as_path().into(),
            },
            EntryKind::File => match workspace.open_file(real) {
                Ok(open) => {
                    let bytes = open.stamp.bytes();
                    EntryState::File {
                        sha256: digest(open)?,
                        bytes,
                        mode: Some(stat.st_mode & 0o7777),
                    }
                }
                Err(WorkspaceError::Io { .. }) => EntryState::Other,
                Err(error) => return Err(error),
            },
            EntryKind::Pipe | EntryKind::Socket | EntryKind::Device => EntryState::Other,
        },
    ))
}

/// Returns the SHA-256 of an open file; `None` if it is too large.
pub(super) fn hash_open_file(
    mut open: OpenFile,
    real: &Path,
) -> Result<Option<FileHash>, WorkspaceError> {
    log::hash_file(&mut open.file, None)
        .map_err(|e| WorkspaceError::io("read", &real.to_string_lossy(), e))
}

impl Workspace {
    /// Returns the text of the link at a real path.
    fn link_text(&self, real: &Path) -> Result<std::path::PathBuf, WorkspaceError> {
        use std::os::unix::ffi::OsStringExt as _;
        let fd = self.beneath(real, OFlags::PATH)?;
        let text = rustix::fs::readlinkat(&fd, "", Vec::new())
            .map_err(|e| WorkspaceError::from_errno("read link", real, e))?;
        Ok(std::ffi::OsString::from_vec(text.into_bytes()).into())
    }
}
