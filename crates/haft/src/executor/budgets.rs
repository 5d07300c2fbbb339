//! Reserves from the effect budgets before a call runs.

use crate::budget::{BudgetError, BudgetRequest, Budgets, EffectEstimate, Reservation};
use crate::executor::exit::OpenCall;
use crate::executor::judge::RuledCall;

/// Reserves what a call uses up. If a user `agreed` to it, the call may exceed the budgets.
///
/// # Errors
/// The budgets have no room for the call: it needs approval.
pub(super) async fn take(
    open: &OpenCall<'_>,
    judged: &RuledCall,
    agreed: bool,
) -> Result<Reservation, BudgetError> {
    let policy = open.parts().policy.now();
    let want = BudgetRequest {
        call: wanted(policy.budgets(), judged),
        run: open.session().run_uses(),
        budgets: policy.budgets(),
        agreed,
    };
    match Reservation::reserve_in_run(want) {
        Some(reserved) => reserved,
        // Boxed: few calls count towards a daily budget, and the future of every call would be as large.
        None => Box::pin(Reservation::take(want)).await,
    }
}

/// Returns why the budgets have no room for a call, if they have none. Reserves nothing.
pub(super) fn no_room(open: &OpenCall<'_>, judged: &RuledCall) -> Option<BudgetError> {
    let policy = open.parts().policy.now();
    let of_run = open.session().uses();
    let budgets = policy.budgets()?;
    let call = wanted(Some(budgets), judged);
    budgets.standing(of_run, call).first()
}

fn wanted(budgets: Option<&Budgets>, judged: &RuledCall) -> EffectEstimate {
    let spec = judged.admitted.entry().spec();
    let permissions = judged.judgement.permissions();
    match budgets {
        Some(budgets) => budgets.wanted(spec, permissions),
        None => EffectEstimate::unlimited(spec, permissions),
    }
}
