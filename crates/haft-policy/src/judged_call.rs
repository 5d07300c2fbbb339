//! `JudgedCall`: a call as the policy sees it.

use std::cell::OnceCell;

use serde_json::Value;

use crate::budget::{BudgetStatus, Budgets};
use crate::run_history::RunHistory;
use crate::run_properties::RunProperties;
use haft_types::permission::{Effect, Permission};
use haft_types::spec::ToolSpec;

/// A call as the policy sees it.
#[derive(Debug, Clone)]
pub struct JudgedCall<'a> {
    /// The spec of the called tool.
    pub spec: &'a ToolSpec,
    /// The effective arguments, for rules on parameters: the text of a JSON object that was admitted.
    pub arguments: &'a str,
    /// The call's effects, without `Effect::Call`, which every call has.
    pub permissions: &'a [Permission],
    /// The digest of the arguments that the permissions do not state. A rule for a single approved call compares it, and
    /// does not match if it is absent.
    pub unstated: Option<&'a str>,
    /// What the run has done so far.
    pub run: &'a RunHistory,
    /// The state of the budgets, computed on first use.
    pub(crate) standing: OnceCell<BudgetStatus>,
    /// The parsed arguments, computed on first use.
    pub(crate) value: OnceCell<Value>,
    /// Whether the call runs a command, computed on first use: a guard asks for every one of thousands of effects.
    pub(crate) runs_command: OnceCell<bool>,
    /// Whether one of its commands changes the folder, computed on first use: each of its commands asks.
    pub(crate) changes_folder: OnceCell<bool>,
    /// What the call adds to the properties of its run, computed on first use.
    pub(crate) properties: OnceCell<RunProperties>,
    /// Which of `permissions` may set variables or redefine names, computed on first use: each of its commands asks.
    pub(crate) altering: OnceCell<Vec<usize>>,
}

impl<'a> JudgedCall<'a> {
    /// Creates a call of a run with this history, which no rule for a single approved call covers.
    pub fn new(
        spec: &'a ToolSpec,
        arguments: &'a str,
        permissions: &'a [Permission],
        run: &'a RunHistory,
    ) -> Self {
        Self {
            spec,
            arguments,
            permissions,
            unstated: None,
            run,
            standing: OnceCell::new(),
            value: OnceCell::new(),
            runs_command: OnceCell::new(),
            changes_folder: OnceCell::new(),
            altering: OnceCell::new(),
            properties: OnceCell::new(),
        }
    }

    /// Sets the digest of the arguments that the permissions do not state, for rules that cover a single approved call.
    pub fn with_unstated(mut self, digest: impl Into<Option<&'a str>>) -> Self {
        self.unstated = digest.into();
        self
    }

    /// Whether the call runs a command. The jail confines its file effects, so they need approval where a file tool would be refused.
    pub(crate) fn runs_command(&self) -> bool {
        let is_run = |permission: &Permission| matches!(permission.effect, Effect::Run { .. });
        let look = || self.permissions.iter().any(is_run);
        *self.runs_command.get_or_init(look)
    }

    /// Whether reading this secret was approved in the run.
    pub(crate) fn is_released(&self, path: &str) -> bool {
        self.run.released.iter().any(|released| released == path)
    }

    /// Returns the state of these budgets, computed once however many effects the call has. `None` if the call is not counted.
    pub(crate) fn standing(&self, budgets: &Budgets) -> Option<&BudgetStatus> {
        let used = self.run.used?;
        let look = || budgets.standing(used, budgets.wanted(self.spec, self.permissions));
        Some(self.standing.get_or_init(look))
    }

    /// Returns the arguments as a value; parses them at most once.
    pub(crate) fn value(&self) -> &Value {
        self.value
            .get_or_init(|| haft_json::value::value(self.arguments))
    }
}
