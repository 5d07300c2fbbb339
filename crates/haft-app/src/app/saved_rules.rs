//! The rules that were saved with approvals in the application's workspace: lists them, and puts their changes in force.

use std::sync::Arc;

use haft::policy::{Policy, RuleText};

use super::App;
use crate::problem::Problem;
use crate::rules::file::RuleFile;
use crate::rules::{RuleChange, SavedRule, edit};

impl App {
    /// Returns the rules that were saved with approvals in this workspace, oldest first.
    ///
    /// # Errors
    /// Their file cannot be read.
    pub fn kept_rules(&self) -> Result<Vec<SavedRule>, Problem> {
        edit::list(&self.rule_file(), &self.rule_check())
    }

    /// Edits or removes a rule, and returns its previous content. The change is in force here at once, and in other processes as soon as
    /// they check the file.
    ///
    /// # Errors
    /// No rule has the id (any unique prefix is accepted), the new text is not a rule or names a tool that does not exist, or the file
    /// cannot be written.
    pub fn change_rule(&self, id: &str, change: RuleChange<'_>) -> Result<SavedRule, Problem> {
        let (saved, old) = edit::change(&self.rule_file(), &self.rule_check(), id, change)?;
        if let Some(old) = old {
            self.apply_change(&old, change)?;
        }
        Ok(saved)
    }

    /// Returns the policy in force without a rule that was saved with an approval.
    ///
    /// # Errors
    /// No rule has the id (any unique prefix is accepted), it does not load, or its file cannot be read.
    pub(crate) fn policy_without(&self, id: &str) -> Result<Policy, Problem> {
        let rule = edit::text_of(&self.rule_file(), id)?;
        let policy = self.executor().policy();
        let rules = edit::with_change(policy.rule_set(), &rule, RuleChange::Remove);
        let policy = Policy::clone(&policy).with_rules(rules);
        policy.map_err(|error| Problem::settings(error.to_string()))
    }

    fn rule_file(&self) -> RuleFile {
        RuleFile::of(self.home(), self.workspace())
    }

    fn apply_change(&self, old: &RuleText, change: RuleChange<'_>) -> Result<(), Problem> {
        let policy = self.executor().policy();
        let rules = edit::with_change(policy.rule_set(), old, change);
        let policy = Policy::clone(&policy).with_rules(rules);
        let policy = Arc::new(policy.map_err(|error| Problem::settings(error.to_string()))?);
        let in_force = &self.0.surroundings.rules.policy;
        in_force.replace(Arc::clone(&policy));
        self.executor().replace_policy(policy);
        Ok(())
    }
}
