//! `Learning`: the policy in force, which grows by the rules that people choose "always" for while it is.

use std::sync::{Arc, PoisonError, RwLock};

use crate::policy::{Policy, RuleText, RulesError};

/// What such a rule's layer is called.
const LAYER: &str = "always";

/// The policy now. Clones share it.
#[derive(Debug, Clone)]
pub(super) struct Learning(Arc<RwLock<Arc<Policy>>>);

impl Learning {
    /// This policy, to begin with.
    pub(super) fn new(policy: Arc<Policy>) -> Self {
        Self(Arc::new(RwLock::new(policy)))
    }

    /// The policy as it is now; one call is judged by one.
    pub(super) fn now(&self) -> Arc<Policy> {
        Arc::clone(&self.0.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Adds an allow rule. Deny and ask rules and guards stand over it, as over every other.
    pub(super) fn learn(&self, rule: &str) -> Result<(), RulesError> {
        let mut policy = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let rule = RuleText {
            layer: LAYER.to_owned(),
            ..RuleText::new(rule)
        };
        *policy = Arc::new(policy.allowing(rule)?);
        Ok(())
    }
}
