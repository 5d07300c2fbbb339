//! The guard of budgets: what would exceed how much there may be of it, in a run or a day, is asked about.

use super::JudgedCall;
use super::guard::{Guard, MinimumVerdict};
use crate::budget::{BUDGET_EFFECT, Budgets, NoRoom};
use crate::permission::{Effect, Permission};

/// Asks about deletions, sends and commands beyond the budgets ([`Policy::with_budgets`](super::Policy::with_budgets)), even where a
/// rule allows them. It looks at the counts; the executor takes from them when it clears a call.
#[derive(Debug, Clone)]
pub struct EffectBudgets(Budgets);

impl EffectBudgets {
    pub(super) fn new(budgets: Budgets) -> Self {
        Self(budgets)
    }

    pub(super) fn budgets(&self) -> &Budgets {
        &self.0
    }

    /// What is used of each budget that there is, for a person who asks why a call passes.
    pub(super) fn counts(&self, call: &JudgedCall<'_>) -> String {
        self.0.counts(call.used.unwrap_or_default())
    }
}

impl Guard for EffectBudgets {
    fn name(&self) -> &'static str {
        "budgets"
    }

    fn concerns(&self, effect: &Effect) -> bool {
        matches!(
            effect,
            Effect::Call
                | Effect::Remove(_)
                | Effect::Run { .. }
                | Effect::Connect { .. }
                | Effect::Other { .. }
        )
    }

    fn floor(
        &self,
        call: &JudgedCall<'_>,
        permission: &Permission,
    ) -> Result<MinimumVerdict, String> {
        if let Effect::Other { kind, value } = &permission.effect
            && kind == BUDGET_EFFECT
        {
            return Ok(MinimumVerdict::ask(value.clone()));
        }
        let budgets = &self.0;
        let mut counted = budgets.counted(call.spec, call.permissions, permission);
        let standing = call.standing(budgets);
        let no_room =
            standing.and_then(|standing| counted.find_map(|counted| standing.of(counted)));
        // Not a matter of what was used: where nothing is counted it holds, too.
        let uncounted = budgets
            .is_uncounted(call.permissions, permission)
            .then_some(&NoRoom::Uncounted);
        let Some(no_room) = no_room.or(uncounted) else {
            return Ok(MinimumVerdict::NONE);
        };
        Ok(MinimumVerdict::ask(no_room.to_string()).for_operator(no_room.operator()))
    }
}
