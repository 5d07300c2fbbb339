//! A rule that a running call proposed and a user accepted.

use crate::context::CallContext;
use crate::error::ToolError;
use crate::permission::Effect;
use crate::policy::{PROPOSED_RULE, RuleText};

impl CallContext {
    /// Applies an allow rule that this call proposed ([`PROPOSED_RULE`]) and a user accepted, and stores it as "always" does.
    ///
    /// # Errors
    /// `denied` if no user approved this very call with this rule, `unavailable` if the rule cannot be stored.
    pub fn keep_rule(&self, rule: RuleText) -> Result<(), ToolError> {
        self.cleared(&Effect::Other {
            kind: PROPOSED_RULE.to_owned(),
            value: rule.rule.clone(),
        })?;
        let consent = self.judgement.decision();
        let consent = consent.and_then(|consent| Some((consent.approval.as_ref()?, &consent.by)));
        let (approval, by) =
            consent.ok_or_else(|| ToolError::denied("no user accepted the rule"))?;
        self.host.keep_rule(rule, approval, by)
    }
}
