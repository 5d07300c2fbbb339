//! `JudgedCall`: a call as the policy sees it.

use std::cell::OnceCell;

use serde_json::Value;

use crate::arguments::Arguments;
use crate::budget::{Budgets, Standing, Uses};
use crate::permission::Permission;
use crate::spec::ToolSpec;
use crate::untrusted::UntrustedSource;

/// A call as the policy sees it.
#[derive(Debug, Clone)]
pub struct JudgedCall<'a> {
    /// The tool.
    pub spec: &'a ToolSpec,
    /// The effective arguments, for rules on parameters.
    pub arguments: &'a Arguments,
    /// What the call wants to do, without `Effect::Call`, which every call has.
    pub permissions: &'a [Permission],
    /// The digest of the arguments that the permissions do not state; a rule that was kept for one call compares it, and
    /// covers nothing where it is absent.
    pub unstated: Option<&'a str>,
    /// Secrets whose reading was approved in the call's run, in the form of a [`PathClaim`](crate::permission::PathClaim).
    pub released: &'a [String],
    /// What the call's run has read that strangers may have written.
    pub untrusted: &'a [UntrustedSource],
    /// What the calls of its run have used of the budgets of effects; `None` for what is no call that would be counted.
    pub used: Option<Uses>,
    /// How it stands with the budgets, once it was looked at.
    pub(crate) standing: OnceCell<Standing>,
    /// The arguments as a value, once a rule asks for it.
    pub(crate) value: OnceCell<Value>,
}

impl<'a> JudgedCall<'a> {
    /// A call that no rule kept for one call covers.
    pub fn new(
        spec: &'a ToolSpec,
        arguments: &'a Arguments,
        permissions: &'a [Permission],
    ) -> Self {
        Self {
            spec,
            arguments,
            permissions,
            unstated: None,
            released: &[],
            untrusted: &[],
            used: None,
            standing: OnceCell::new(),
            value: OnceCell::new(),
        }
    }

    /// Whether reading this secret was approved in the call's run.
    pub(crate) fn is_released(&self, path: &str) -> bool {
        self.released.iter().any(|released| released == path)
    }

    /// How it stands with these budgets; looked at once, however many effects it has. `None` for what is not counted.
    pub(crate) fn standing(&self, budgets: &Budgets) -> Option<&Standing> {
        let used = self.used?;
        let look = || budgets.standing(used, budgets.wanted(self.spec, self.permissions));
        Some(self.standing.get_or_init(look))
    }

    /// The arguments as a value; parsed at most once.
    pub(crate) fn value(&self) -> &Value {
        self.value.get_or_init(|| self.arguments.value())
    }
}
