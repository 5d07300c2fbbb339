//! `State`: what lies at a path, as far as it can be compared and brought back.

use std::path::Path;

use rustix::fs::{FileType, OFlags};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use crate::change::{PathText, log};
use crate::workspace::{Kind, OpenFile, Workspace, WorkspaceError};

/// What lies at a path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum State {
    /// A regular file.
    File {
        /// The SHA-256 of its bytes, hex; none for one that is too large to be read for this.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        sha256: Option<String>,
        /// Its size.
        bytes: u64,
        /// Who may do what with it; none where the system decides when it is made.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        mode: Option<u32>,
    },
    /// A symbolic link.
    Link {
        /// Its text.
        target: PathText,
    },
    /// A folder, without what it holds.
    Folder {
        /// Who may do what with it; none where the system decides when it is made.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        mode: Option<u32>,
    },
    /// A pipe, a socket, a device, or a file that this user cannot read.
    Other,
}

impl State {
    /// Whether both are the same to whoever looks at the file; a mode that is not known is any, and that of a folder.
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

/// Reads a file for its SHA-256; none where it is too large.
pub(super) type Digest<'a> = &'a mut dyn FnMut(OpenFile) -> Result<Option<String>, WorkspaceError>;

/// What lies at a real path of a workspace.
pub(super) fn state(
    workspace: &Workspace,
    real: &Path,
    digest: Digest<'_>,
) -> Result<Option<State>, WorkspaceError> {
    let told = |e: Errno| WorkspaceError::from_errno("look at", real, e);
    let stat = match workspace.stat(real) {
        Ok(stat) => stat,
        // Also where a folder on the way is a link now: this path is nobody's.
        Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => return Ok(None),
        Err(e) => return Err(told(e)),
    };
    Ok(Some(
        match Kind::of(FileType::from_raw_mode(stat.st_mode)) {
            Kind::Directory => State::Folder {
                mode: Some(stat.st_mode & 0o7777),
            },
            Kind::Link => State::Link {
                target: workspace.link_text(real)?.as_path().into(),
            },
            Kind::File => match workspace.open_file(real) {
                Ok(open) => {
                    let bytes = open.stamp.bytes();
                    State::File {
                        sha256: digest(open)?,
                        bytes,
                        mode: Some(stat.st_mode & 0o7777),
                    }
                }
                Err(WorkspaceError::Io { .. }) => State::Other,
                Err(error) => return Err(error),
            },
            Kind::Pipe | Kind::Socket | Kind::Device => State::Other,
        },
    ))
}

/// The SHA-256 of a file at a path.
pub(super) fn read(mut open: OpenFile, real: &Path) -> Result<Option<String>, WorkspaceError> {
    log::digest(&mut open.file, None)
        .map_err(|e| WorkspaceError::io("read", &real.to_string_lossy(), e))
}

impl Workspace {
    /// The text of the link at a real path.
    fn link_text(&self, real: &Path) -> Result<std::path::PathBuf, WorkspaceError> {
        use std::os::unix::ffi::OsStringExt as _;
        let fd = self.beneath(real, OFlags::PATH)?;
        let text = rustix::fs::readlinkat(&fd, "", Vec::new())
            .map_err(|e| WorkspaceError::from_errno("read link", real, e))?;
        Ok(std::ffi::OsString::from_vec(text.into_bytes()).into())
    }
}
