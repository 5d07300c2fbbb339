//! `CurrentRules`: what the policy says of a host's own tools, also when the call that asks has ended.

use std::sync::Arc;

use super::Host;
use crate::arguments::Arguments;
use crate::budget::RunUses;
use crate::json::canonical::args_digest;
use crate::permission::{Permission, Verdict};
use crate::policy::{EffectVerdict, JudgedCall};

/// The policy as it is at each moment, for what goes on after its call.
#[derive(Clone)]
pub struct CurrentRules {
    host: Arc<dyn Host>,
    /// The counts of its run, for the budgets.
    uses: Arc<RunUses>,
}

impl CurrentRules {
    pub(super) fn of(host: &Arc<dyn Host>, uses: &Arc<RunUses>) -> Self {
        Self {
            host: Arc::clone(host),
            uses: Arc::clone(uses),
        }
    }

    /// What the policy says of each permission by itself, were it that of one of the host's own tools; denied where
    /// there is no such tool.
    pub fn verdicts(&self, name: &str, permissions: &[Permission]) -> Vec<EffectVerdict> {
        let tools = self.host.internal_tools();
        let Some(entry) = tools.entry(name) else {
            let denied = EffectVerdict {
                verdict: Verdict::Deny,
                reason: format!("this host has no tool {name:?} of its own"),
                names_place: false,
            };
            return vec![denied; permissions.len()];
        };
        // A call without arguments leaves nothing unstated: a rule that was kept for such calls covers it.
        let (arguments, unstated) = (Arguments::new("{}".to_owned()), args_digest("{}"));
        let call = JudgedCall {
            unstated: Some(&unstated),
            used: Some(self.uses.now()),
            ..JudgedCall::new(entry.spec(), &arguments, permissions)
        };
        self.host.policy().effect_verdicts(&call)
    }

    /// The allow rules that would let one of the host's own tools do this without asking: see [`Policy::suggest`].
    ///
    /// [`Policy::suggest`]: crate::policy::Policy::suggest
    pub fn rules_for(&self, name: &str, permissions: &[Permission]) -> Vec<String> {
        let tools = self.host.internal_tools();
        let (arguments, unstated) = (Arguments::new("{}".to_owned()), args_digest("{}"));
        let suggest = |spec| {
            let call = JudgedCall {
                unstated: Some(&unstated),
                ..JudgedCall::new(spec, &arguments, permissions)
            };
            self.host.policy().suggest(&call)
        };
        let entry = tools.entry(name);
        entry.map_or_else(Vec::new, |entry| suggest(entry.spec()))
    }
}

impl std::fmt::Debug for CurrentRules {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CurrentRules").finish_non_exhaustive()
    }
}
