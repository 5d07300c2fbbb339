//! Stores the command's versions of conflicting files as artifacts, so that neither version is lost.

use std::path::PathBuf;

use haft::change::collect::CollectedChanges;
use haft::context::CallContext;
use haft::result::Artifact;

use crate::command::changes::fate_table::{Fate, FateTable};

/// Maximum number of files stored per command, and maximum size of each in bytes.
const MAX_FILES: usize = 20;
const MAX_FILE_BYTES: u64 = 16 << 20;

/// Returns the files in conflict whose versions are stored.
pub(super) fn in_conflict(fates: &FateTable) -> Vec<PathBuf> {
    let fates = fates.iter();
    let in_conflict = fates.filter(|(_, fate)| matches!(fate, Fate::Conflict(_)));
    let paths = in_conflict.map(|(path, _)| path.to_owned());
    paths.take(MAX_FILES).collect()
}

/// Stores the versions of these files and returns their artifacts by path; none without an artifact store.
pub(super) async fn keep(
    in_conflict: &[PathBuf],
    collected: &CollectedChanges,
    context: &CallContext,
) -> Vec<(String, Artifact)> {
    let Ok(artifacts) = context.artifacts() else {
        return Vec::new();
    };
    let mut versions = Vec::new();
    for path in in_conflict {
        let Ok(bytes) = collected.content(path, MAX_FILE_BYTES) else {
            continue;
        };
        let text = std::str::from_utf8(&bytes).is_ok();
        let media_type = if text {
            "text/plain; charset=utf-8"
        } else {
            "application/octet-stream"
        };
        let size = bytes.len() as u64;
        match artifacts.put(media_type, bytes.into()).await {
            Ok(reference) => {
                let artifact = Artifact {
                    reference: reference.as_str().to_owned(),
                    media_type: media_type.to_owned(),
                    bytes: size,
                    preview: String::new(),
                };
                versions.push((path.to_string_lossy().into_owned(), artifact));
            }
            Err(error) => {
                tracing::warn!(%error, path = %path.display(), "store the command's version of a file");
            }
        }
    }
    versions
}
