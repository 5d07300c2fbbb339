//! `RunGroup`: runs that belong together, as the commands of an agent's session do: what a user allows in one for the session holds in all.

use std::sync::Arc;

use haft_types::opaque_debug;

use crate::approval::Grant;

/// Keeps what users allowed for a group of runs where each of them finds it: they may be processes of their own.
pub trait GrantStore: Send + Sync {
    /// Returns what was allowed so far; nothing of what cannot be read.
    fn grants(&self) -> Vec<Grant>;

    /// Adds what a user allowed. If it cannot be kept, it holds in its own run.
    fn add(&self, grant: &Grant);
}

opaque_debug!(GrantStore);

/// Runs that belong together.
#[derive(Debug, Clone)]
pub struct RunGroup {
    name: String,
    grants: Arc<dyn GrantStore>,
}

impl RunGroup {
    /// Creates the group of this name, which is plain enough for a file's name, with the store of what its users allowed.
    pub fn new(name: impl Into<String>, grants: Arc<dyn GrantStore>) -> Self {
        Self {
            name: name.into(),
            grants,
        }
    }

    /// Returns its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn grants(&self) -> Vec<Grant> {
        self.grants.grants()
    }

    pub(super) fn add(&self, grant: &Grant) {
        self.grants.add(grant);
    }
}
