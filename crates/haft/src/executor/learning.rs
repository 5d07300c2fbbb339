//! `LivePolicy`: the current policy, which grows by the rules that users choose "always" for.

use std::sync::Arc;

use parking_lot::RwLock;

use crate::approval::{ApprovalRequest, RuleStore, SavedRules};
use crate::policy::{Policy, RuleText, RulesError};

/// Name of the layer of learned rules.
const LEARNED_LAYER: &str = "always";

/// The current policy. Clones share it.
#[derive(Debug, Clone)]
pub(super) struct LivePolicy {
    policy: Arc<RwLock<Arc<Policy>>>,
    store: Option<Arc<dyn RuleStore>>,
}

impl LivePolicy {
    /// Starts with this policy.
    pub(super) fn new(policy: Arc<Policy>) -> Self {
        Self {
            policy: Arc::new(RwLock::new(policy)),
            store: None,
        }
    }

    /// Returns a clone that stores learned rules here.
    pub(super) fn with_store(&self, store: Arc<dyn RuleStore>) -> Self {
        Self {
            policy: Arc::clone(&self.policy),
            store: Some(store),
        }
    }

    /// Returns the current policy; a call is judged by a single one.
    pub(super) fn now(&self) -> Arc<Policy> {
        Arc::clone(&self.policy.read())
    }

    /// Judges calls by this policy from now on; calls judged before run as judged.
    pub(super) fn replace(&self, policy: Arc<Policy>) {
        *self.policy.write() = policy;
    }

    /// Learns the rules that a user chose to keep when approving this request: `rule`, or the suggested ones. As for every allow rule,
    /// deny rules, ask rules and guards take precedence. A rule that cannot be stored is logged: the call is still approved.
    pub(super) fn keep(&self, request: &ApprovalRequest, rule: Option<&str>, by: &str) {
        let kept = SavedRules {
            rules: request.kept_rules(rule),
            workspace: &request.workspace,
            approval: &request.id,
            by,
        };
        if let Err(error) = self.accept(&kept) {
            tracing::error!(%error, id = %request.id, "keep a rule that was chosen for good");
        }
    }

    /// Applies rules and stores them.
    ///
    /// # Errors
    /// A rule cannot be parsed, and none applies; or the rules apply but cannot be stored.
    pub(super) fn accept(&self, kept: &SavedRules<'_>) -> Result<(), String> {
        self.learn(&kept.rules).map_err(|error| error.to_string())?;
        self.store.as_ref().map_or(Ok(()), |store| store.keep(kept))
    }

    fn learn(&self, rules: &[RuleText]) -> Result<(), RulesError> {
        let mut policy = self.policy.write();
        let rules = rules.iter().map(|rule| RuleText {
            layer: LEARNED_LAYER.to_owned(),
            ..rule.clone()
        });
        *policy = Arc::new(policy.allowing(rules)?);
        Ok(())
    }
}
