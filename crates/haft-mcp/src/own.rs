//! URIs of this server's own resources: a run's artifacts, and the files of skills.

use haft::call::RunId;

/// Prefix of an artifact's URI.
pub(crate) const ARTIFACTS: &str = "artifact://";
/// Prefix of a skill file's URI.
pub(crate) const SKILLS: &str = "skill://";

/// Returns whether a URI is one of this server's own: no host offers others with these prefixes.
pub(crate) fn is_own(uri: &str) -> bool {
    uri.starts_with(ARTIFACTS) || uri.starts_with(SKILLS)
}

/// Returns the URI of a run's artifact.
pub(crate) fn artifact_uri(run: &RunId, reference: &str) -> String {
    format!("{ARTIFACTS}{run}/{reference}")
}
