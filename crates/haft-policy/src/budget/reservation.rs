//! `Reservation`: what a cleared call has reserved from the budgets, returned if the call never starts.

use std::sync::Arc;

use jiff::civil::Date;

use super::{BudgetError, Budgets, EffectCounts, EffectEstimate, Ledger, RunEffectCounts};
use haft_types::future::run_blocking;

/// What a call has reserved. Dropping it returns this, unless the call has started.
#[derive(Debug, Default)]
pub struct Reservation {
    uses: EffectCounts,
    run: Option<Arc<RunEffectCounts>>,
    day: Option<(Ledger, Date)>,
}

/// What a call needs from the budgets.
#[derive(Debug, Clone, Copy)]
pub struct BudgetRequest<'a> {
    /// What it would use up.
    pub call: EffectEstimate,
    /// The counts of its run.
    pub run: &'a Arc<RunEffectCounts>,
    /// The budgets, if there are any.
    pub budgets: Option<&'a Budgets>,
    /// Whether a user agreed: it is counted, but always has room.
    pub agreed: bool,
}

impl Reservation {
    /// Reserves what a call needs, all of it or nothing.
    ///
    /// # Errors
    /// There is no room for it, or today's counts are unknown.
    pub async fn take(want: BudgetRequest<'_>) -> Result<Self, BudgetError> {
        let mut reserved = Self::of_run(want)?;
        let ledger = |budgets: &'_ Budgets| budgets.ledger_for(want.call.uses).cloned();
        let (Some(ledger), Some(budgets)) = (want.budgets.and_then(ledger), want.budgets) else {
            return Ok(reserved);
        };
        let limits = (!want.agreed).then_some(*budgets.day());
        let uses = want.call.uses;
        let counting = ledger.clone();
        let counted = run_blocking(move || counting.take(uses, limits.as_ref())).await;
        let counted = counted.map_err(|error| ledger.error(&error.to_string()))?;
        match counted {
            Ok(day) => reserved.day = Some((ledger, day)),
            Err(BudgetError::Unknown(error)) if want.agreed => {
                tracing::warn!(%error, "a call that a person agreed to was not counted for the day");
            }
            Err(no_room) => return Err(no_room),
        }
        Ok(reserved)
    }

    /// Reserves it if only the run counts; `None` if the day counts, too.
    pub fn reserve_in_run(want: BudgetRequest<'_>) -> Option<Result<Self, BudgetError>> {
        if want.call.uses.is_none() {
            return Some(Ok(Self::default()));
        }
        let needs_day = |budgets: &Budgets| budgets.ledger_for(want.call.uses).is_some();
        if want.budgets.is_some_and(needs_day) {
            return None;
        }
        Some(Self::of_run(want))
    }

    fn of_run(want: BudgetRequest<'_>) -> Result<Self, BudgetError> {
        if want.call.uncounted && !want.agreed {
            return Err(BudgetError::Uncounted);
        }
        match want.budgets.filter(|_| !want.agreed) {
            Some(budgets) => {
                let counted = want.run.add_within(budgets.run(), want.call.uses);
                counted.map_err(BudgetError::UsedUp)?;
            }
            None => want.run.add(want.call.uses),
        }
        Ok(Self {
            uses: want.call.uses,
            run: Some(Arc::clone(want.run)),
            day: None,
        })
    }

    /// Returns what was reserved.
    pub fn uses(&self) -> EffectCounts {
        self.uses
    }

    /// Marks the reservation as used, because the call starts.
    pub fn spend(mut self) {
        self.run = None;
        self.day = None;
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        let uses = self.uses;
        if let Some(run) = self.run.take() {
            run.give_back(uses);
        }
        if let Some((ledger, day)) = self.day.take() {
            // Continues in the background.
            drop(run_blocking(move || {
                if let Err(error) = ledger.give_back(uses, day) {
                    tracing::warn!(%error, "a call that did not run stays counted for the day");
                }
            }));
        }
    }
}
