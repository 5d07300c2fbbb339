//! `UnjudgedCall`: why a call has no verdict here: something is wrong, or another process of haft has to judge it.

use crate::problem::Problem;

/// Why a call has no verdict here.
#[derive(Debug)]
pub(super) enum UnjudgedCall {
    /// It could not be judged, and is denied.
    Problem(Problem),
    /// Whether the hook's process gives commands the same is not known yet: the answer depends on these variables.
    NeedsEnvironment(Vec<String>),
    /// The hook's process gives commands another environment, or has settings that load: it judges by itself.
    OtherEnvironment,
}

impl From<Problem> for UnjudgedCall {
    fn from(problem: Problem) -> Self {
        Self::Problem(problem)
    }
}
