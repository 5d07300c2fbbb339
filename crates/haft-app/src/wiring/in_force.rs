//! `PolicyInForce`: the policy as it is now, for parts that outlive a change of it.

use std::sync::Arc;

use haft::policy::Policy;
use parking_lot::RwLock;

/// The policy in force, for what outlives a change of it. Copies share it.
#[derive(Debug, Clone)]
pub(crate) struct PolicyInForce(Arc<RwLock<Arc<Policy>>>);

impl PolicyInForce {
    /// This policy, to begin with.
    pub(crate) fn new(policy: Arc<Policy>) -> Self {
        Self(Arc::new(RwLock::new(policy)))
    }

    /// The policy as it is now.
    pub(crate) fn now(&self) -> Arc<Policy> {
        Arc::clone(&self.0.read())
    }

    /// Puts another policy in its place.
    pub(crate) fn replace(&self, policy: Arc<Policy>) {
        *self.0.write() = policy;
    }
}
