//! What a call takes of the budgets of effects before it runs.

use crate::budget::{Budgets, NoRoom, Reservation, Want, Wanted};
use crate::executor::exit::OpenCall;
use crate::executor::judge::Judged;

/// Takes what a call uses up. A person who `agreed` to it gives it the room that there is not.
///
/// # Errors
/// There is no room for it: it is to be asked about.
pub(super) async fn take(
    open: &OpenCall<'_>,
    judged: &Judged,
    agreed: bool,
) -> Result<Reservation, NoRoom> {
    let policy = open.parts().policy.now();
    let want = Want {
        call: wanted(policy.budgets(), judged),
        run: open.session().run_uses(),
        budgets: policy.budgets(),
        agreed,
    };
    match Reservation::take_now(want) {
        Some(reserved) => reserved,
        // Boxed: few calls are counted for a day, and every call's future would be as large.
        None => Box::pin(Reservation::take(want)).await,
    }
}

/// Why there is no room for a call, if there is none. Nothing is taken.
pub(super) fn no_room(open: &OpenCall<'_>, judged: &Judged) -> Option<NoRoom> {
    let policy = open.parts().policy.now();
    let of_run = open.session().uses();
    let budgets = policy.budgets()?;
    let call = wanted(Some(budgets), judged);
    budgets.standing(of_run, call).first()
}

fn wanted(budgets: Option<&Budgets>, judged: &Judged) -> Wanted {
    let spec = judged.admitted.entry().spec();
    let permissions = judged.judgement.permissions();
    match budgets {
        Some(budgets) => budgets.wanted(spec, permissions),
        None => Wanted::unlimited(spec, permissions),
    }
}
