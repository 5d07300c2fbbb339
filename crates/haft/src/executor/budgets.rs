//! What a call takes of the budgets of effects before it runs.

use crate::budget::{NoRoom, Reservation, Uses, Want};
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
        uses: uses(judged),
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
    policy.budgets()?.standing(of_run, uses(judged)).first()
}

fn uses(judged: &Judged) -> Uses {
    let spec = judged.admitted.entry().spec();
    Uses::of(spec, judged.judgement.permissions())
}
