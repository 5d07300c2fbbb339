//! Rules that a user keeps with an approval: never wider than what the request showed, unless the user wrote the rule.

use crate::approval::{ApprovalId, ApprovalRequest};
use crate::arguments::Arguments;
use crate::permission::{Effect, Verdict};
use crate::policy::{JudgedCall, PROPOSED_RULE, Policy, RuleText, RulesError, RunHistory};
use crate::spec::ToolSpec;
use haft_types::opaque_debug;

/// The rules of one approval for good.
#[derive(Debug)]
pub struct SavedRules<'a> {
    /// The rules to store.
    pub rules: Vec<RuleText>,
    /// The root of the workspace that they apply to.
    pub workspace: &'a str,
    /// The request that was approved.
    pub approval: &'a ApprovalId,
    /// Who approved it.
    pub by: &'a str,
}

/// Stores rules that users choose for good. Called once the approval counts and the call is about to run.
pub trait RuleStore: Send + Sync {
    /// Stores the rules beyond this process.
    ///
    /// # Errors
    /// Why they cannot be stored, for the log.
    fn keep(&self, kept: &SavedRules<'_>) -> Result<(), String>;
}

opaque_debug!(RuleStore);

impl ApprovalRequest {
    /// Returns whether this policy together with these rules would allow the call without approval; `spec` is the tool's.
    ///
    /// # Errors
    /// One of the rules cannot be parsed.
    pub fn is_allowed_with(
        &self,
        policy: &Policy,
        spec: &ToolSpec,
        rules: Vec<RuleText>,
    ) -> Result<bool, RulesError> {
        if self.offers_folders() && rules.iter().all(|rule| self.suggested.contains(&rule.rule)) {
            // They are about the folders that git ignores; what else the command changed is asked about again.
            return Ok(!rules.is_empty());
        }
        if self.snapshot.more_permissions.is_some() {
            // Nobody can tell about effects that are only counted.
            return Ok(false);
        }
        let arguments = Arguments::new(self.arguments.clone());
        // What guards ask because of the run's history is asked each time; a rule is about calls in general.
        let run = RunHistory::none();
        let call = JudgedCall::new(spec, arguments.as_str(), &self.snapshot.permissions, &run)
            .with_unstated(self.unstated.as_str());
        let policy = policy.allowing(rules)?;
        Ok(policy.judge(&call).verdict == Verdict::Allow)
    }

    /// Returns whether the suggested rules are about folders that git ignores, which a command changed.
    fn offers_folders(&self) -> bool {
        let ignores = |effect: &Effect| matches!(effect, Effect::Apply { ignored, .. } if !ignored.is_empty());
        let mut effects = self.snapshot.permissions.iter().map(|p| &p.effect);
        !self.suggested.is_empty() && effects.any(ignores)
    }

    /// Returns the rule that the call proposes, if any.
    pub fn proposal(&self) -> Option<&str> {
        let mut effects = self.snapshot.permissions.iter().map(|p| &p.effect);
        effects.find_map(|effect| match effect {
            Effect::Other { kind, value } if kind == PROPOSED_RULE => Some(value.as_str()),
            _ => None,
        })
    }

    /// Returns the rules that an approval for good keeps: the written one, unless it equals a suggested one; otherwise the suggested
    /// ones. Suggested rules apply only to calls like this one: the same tool, and the same value of each argument that the
    /// call's permissions do not state. A rule for a connection applies to every command, and one for a folder that git ignores to every
    /// change in it.
    pub fn kept_rules(&self, written: Option<&str>) -> Vec<RuleText> {
        match written {
            Some(rule) if !self.suggested.iter().any(|known| known == rule) => {
                vec![RuleText::new(rule)]
            }
            _ => {
                let like_this = |rule: &String| {
                    let text = RuleText::new(rule);
                    // It states a connection or a folder in full: every command may use it, and the user is told so.
                    if rule.starts_with("Network(") || self.offers_folders() {
                        return text;
                    }
                    text.kept_for(self.tool.as_str(), &self.unstated)
                };
                self.suggested.iter().map(like_this).collect()
            }
        }
    }
}
