//! Addresses of this server's own resources: a run's artifacts, and the files of skills.

use haft::call::RunId;

/// What the address of an artifact begins with.
pub(crate) const ARTIFACTS: &str = "artifact://";
/// What the address of a skill's file begins with.
pub(crate) const SKILLS: &str = "skill://";

/// Whether an address is one of this server's own: no host offers others under it.
pub(crate) fn is_own(uri: &str) -> bool {
    uri.starts_with(ARTIFACTS) || uri.starts_with(SKILLS)
}

/// The address of a run's artifact.
pub(crate) fn artifact_uri(run: &RunId, reference: &str) -> String {
    format!("{ARTIFACTS}{run}/{reference}")
}
