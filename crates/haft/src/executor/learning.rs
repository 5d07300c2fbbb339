//! `Learning`: the policy in force, which grows by the rules that people choose "always" for while it is.

use std::sync::Arc;

use parking_lot::RwLock;

use crate::approval::{ApprovalRequest, KeptRules, RuleStore};
use crate::policy::{Policy, RuleText, RulesError};

/// What such a rule's layer is called.
const LAYER: &str = "always";

/// The policy now. Clones share it.
#[derive(Debug, Clone)]
pub(super) struct Learning {
    policy: Arc<RwLock<Arc<Policy>>>,
    store: Option<Arc<dyn RuleStore>>,
}

impl Learning {
    /// This policy, to begin with.
    pub(super) fn new(policy: Arc<Policy>) -> Self {
        Self {
            policy: Arc::new(RwLock::new(policy)),
            store: None,
        }
    }

    /// The same, with the rules that it learns kept here.
    pub(super) fn kept_in(&self, store: Arc<dyn RuleStore>) -> Self {
        Self {
            policy: Arc::clone(&self.policy),
            store: Some(store),
        }
    }

    /// The policy as it is now; one call is judged by one.
    pub(super) fn now(&self) -> Arc<Policy> {
        Arc::clone(&self.policy.read())
    }

    /// From now on calls are judged by this policy; those that were judged before run as they were judged.
    pub(super) fn replace(&self, policy: Arc<Policy>) {
        *self.policy.write() = policy;
    }

    /// Keeps the rules that a person chose for good with an approval of this request: `rule`, or the suggested ones. Deny
    /// and ask rules and guards stand over them, as over every other. A rule that cannot be kept is logged: the call was
    /// approved all the same.
    pub(super) fn keep(&self, request: &ApprovalRequest, rule: Option<&str>, by: &str) {
        let kept = KeptRules {
            rules: request.kept_rules(rule),
            workspace: &request.workspace,
            approval: &request.id,
            by,
        };
        if let Err(error) = self.accept(&kept) {
            tracing::error!(%error, id = %request.id, "keep a rule that was chosen for good");
        }
    }

    /// Puts rules in force and keeps them.
    ///
    /// # Errors
    /// A rule cannot be read, and nothing is in force; or it is in force and cannot be kept.
    pub(super) fn accept(&self, kept: &KeptRules<'_>) -> Result<(), String> {
        self.learn(&kept.rules).map_err(|error| error.to_string())?;
        self.store.as_ref().map_or(Ok(()), |store| store.keep(kept))
    }

    fn learn(&self, rules: &[RuleText]) -> Result<(), RulesError> {
        let mut policy = self.policy.write();
        let rules = rules.iter().map(|rule| RuleText {
            layer: LAYER.to_owned(),
            ..rule.clone()
        });
        *policy = Arc::new(policy.allowing(rules)?);
        Ok(())
    }
}
