//! The guard for budgets: asks for approval of calls that would exceed a limit per run or day.

use crate::budget::{BUDGET_EFFECT, BudgetError, Budgets};
use crate::guards::{Guard, MinimumVerdict};
use crate::judged_call::JudgedCall;
use haft_types::permission::{Effect, Permission};

/// Asks for approval of deletions, sends and commands beyond the budgets ([`Policy::with_budgets`](crate::Policy::with_budgets)), even
/// where a rule allows them. It only reads the counts; the executor charges them when it clears a call.
#[derive(Debug, Clone)]
pub struct EffectBudgets(Budgets);

impl EffectBudgets {
    /// The guard's name.
    pub(crate) const NAME: &str = "budgets";

    pub(crate) fn new(budgets: Budgets) -> Self {
        Self(budgets)
    }

    pub(crate) fn budgets(&self) -> &Budgets {
        &self.0
    }

    /// Says how much of each configured budget is used, for the explanation of a call.
    pub(crate) fn counts(&self, call: &JudgedCall<'_>) -> String {
        self.0.counts(call.run.used.unwrap_or_default())
    }
}

impl Guard for EffectBudgets {
    fn name(&self) -> &'static str {
        Self::NAME
    }

    fn depends_on_run(&self) -> bool {
        true
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
        // Independent of the counts: this also holds where nothing is counted.
        let uncounted = budgets
            .is_uncounted(call.permissions, permission)
            .then_some(&BudgetError::Uncounted);
        let Some(no_room) = no_room.or(uncounted) else {
            return Ok(MinimumVerdict::NONE);
        };
        Ok(MinimumVerdict::ask(no_room.to_string()).for_operator(no_room.operator()))
    }
}
