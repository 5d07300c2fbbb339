//! The folder of a run: its record, its calls' changes, its copies.

use std::path::{Path, PathBuf};

/// Maximum length of a run id, which names a folder.
const MAX_ID: usize = 128;

/// An id that is not valid as a folder name, cut to 128 characters.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "invalid run id {0:?}: use 1 to 128 characters of A-Z a-z 0-9 _ . -, not starting with . or -"
)]
pub struct InvalidRunId(pub String);

/// Returns the folder of a run in haft's state folder; it need not exist. Ids that would lead elsewhere are refused.
///
/// # Errors
/// The id could lead elsewhere.
pub fn run_dir(home: &Path, run: &str) -> Result<PathBuf, InvalidRunId> {
    let plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.' | b'-');
    let named = !run.is_empty() && run.len() <= MAX_ID && !run.starts_with(['.', '-']);
    if named && run.bytes().all(plain) {
        Ok(home.join("runs").join(run))
    } else {
        Err(InvalidRunId(run.chars().take(MAX_ID).collect()))
    }
}
