//! The command's versions of files of which another program made another: kept as artifacts, so that neither is lost.

use haft::context::CallContext;
use haft::result::Artifact;

use crate::command::changes::kept::{Fate, Kept};

/// Most files that are kept of one command, and the bytes of the longest.
const MOST: usize = 20;
const LONGEST: u64 = 16 << 20;

/// The versions that can be kept, by path; without a store for artifacts there are none.
pub(super) fn keep(kept: &Kept, context: &CallContext) -> Vec<(String, Artifact)> {
    let Ok(artifacts) = context.artifacts() else {
        return Vec::new();
    };
    let in_conflict = kept.with_note(|note| {
        let fates = note.fates.iter();
        let conflicts = fates.filter(|(_, fate)| matches!(fate, Fate::Conflict(_)));
        let paths = conflicts.map(|(path, _)| path.0.clone());
        paths.take(MOST).collect::<Vec<_>>()
    });
    let versions = in_conflict.into_iter().filter_map(|path| {
        let bytes = kept.collected.content(&path, LONGEST).ok()?;
        let text = std::str::from_utf8(&bytes).is_ok();
        let media_type = if text {
            "text/plain; charset=utf-8"
        } else {
            "application/octet-stream"
        };
        let size = bytes.len() as u64;
        let reference = artifacts.put(media_type, bytes.into());
        let reference = reference.inspect_err(|error| {
            tracing::warn!(%error, path = %path.display(), "keep the command's version of a file");
        });
        let artifact = Artifact {
            reference: reference.ok()?.as_str().to_owned(),
            media_type: media_type.to_owned(),
            bytes: size,
            preview: String::new(),
        };
        Some((path.to_string_lossy().into_owned(), artifact))
    });
    versions.collect()
}
