//! `PolicyInForce`: the current policy, for components that outlive a change of it.

use std::sync::Arc;

use haft::policy::Policy;
use parking_lot::RwLock;

/// The policy in force, for components that outlive a change of it. Clones share it.
#[derive(Debug, Clone)]
pub(crate) struct PolicyInForce(Arc<RwLock<Arc<Policy>>>);

impl PolicyInForce {
    /// Starts with this policy.
    pub(crate) fn new(policy: Arc<Policy>) -> Self {
        Self(Arc::new(RwLock::new(policy)))
    }

    /// Returns the current policy.
    pub(crate) fn now(&self) -> Arc<Policy> {
        Arc::clone(&self.0.read())
    }

    /// Replaces the policy.
    pub(crate) fn replace(&self, policy: Arc<Policy>) {
        *self.0.write() = policy;
    }
}
