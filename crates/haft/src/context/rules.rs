//! `CurrentRules`: the policy's verdicts on a host's internal tools, also after the asking call has ended.

use std::sync::Arc;

use super::Host;
use crate::arguments::Arguments;
use crate::budget::RunUses;
use crate::json::canonical::args_digest;
use crate::permission::{Permission, Verdict};
use crate::policy::{EffectVerdict, JudgedCall};

/// The current policy, for work that outlives its call.
#[derive(Clone)]
pub struct CurrentRules {
    host: Arc<dyn Host>,
    /// The run's counts, for the budgets.
    uses: Arc<RunUses>,
}

impl CurrentRules {
    pub(super) fn of(host: &Arc<dyn Host>, uses: &Arc<RunUses>) -> Self {
        Self {
            host: Arc::clone(host),
            uses: Arc::clone(uses),
        }
    }

    /// Returns the policy's verdict on each permission by itself, as if one of the host's internal tools had it; deny if there is no
    /// such tool.
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
        // A call without arguments leaves nothing unstated, so a rule kept for such calls covers it.
        let (arguments, unstated) = (Arguments::new("{}".to_owned()), args_digest("{}"));
        let call = JudgedCall {
            unstated: Some(&unstated),
            used: Some(self.uses.now()),
            ..JudgedCall::new(entry.spec(), &arguments, permissions)
        };
        self.host.policy().effect_verdicts(&call)
    }

    /// Returns the allow rules that would let one of the host's internal tools do this without asking: see [`Policy::suggest`].
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
