//! `RunEffectCounts`: the counts of a run, shared by all of its calls.

use parking_lot::Mutex;

use super::{EffectCounts, EffectLimits, ExhaustedBudget, Period};

/// The counts of a run.
#[derive(Debug, Default)]
pub struct RunEffectCounts(Mutex<EffectCounts>);

impl RunEffectCounts {
    /// Returns the counts so far.
    pub fn now(&self) -> EffectCounts {
        *self.0.lock()
    }

    /// Counts these, regardless of budgets.
    pub fn add(&self, uses: EffectCounts) {
        let mut now = self.0.lock();
        *now = now.plus(uses);
    }

    /// Counts these if there is room for all of them.
    pub(crate) fn add_within(
        &self,
        limits: &EffectLimits,
        uses: EffectCounts,
    ) -> Result<(), ExhaustedBudget> {
        let mut now = self.0.lock();
        if let Some(used_up) = limits.first_exceeded(Period::Run, *now, uses) {
            return Err(used_up);
        }
        *now = now.plus(uses);
        Ok(())
    }

    /// Removes these counts.
    pub(crate) fn give_back(&self, uses: EffectCounts) {
        let mut now = self.0.lock();
        *now = now.minus(uses);
    }
}
