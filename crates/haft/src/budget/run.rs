//! `RunUses`: what the calls of a run have used up, shared by all of them.

use parking_lot::Mutex;

use super::{EffectLimits, Period, UsedUp, Uses};

/// The counts of a run.
#[derive(Debug, Default)]
pub(crate) struct RunUses(Mutex<Uses>);

impl RunUses {
    /// What was used so far.
    pub(crate) fn now(&self) -> Uses {
        *self.0.lock()
    }

    /// Counts these, whatever the budgets are.
    pub(crate) fn add(&self, uses: Uses) {
        let mut now = self.0.lock();
        *now = now.plus(uses);
    }

    /// Counts these where there is room for all of them.
    pub(crate) fn add_within(&self, limits: &EffectLimits, uses: Uses) -> Result<(), UsedUp> {
        let mut now = self.0.lock();
        if let Some(used_up) = limits.without_room(Period::Run, *now, uses) {
            return Err(used_up);
        }
        *now = now.plus(uses);
        Ok(())
    }

    /// Counts these no longer.
    pub(crate) fn give_back(&self, uses: Uses) {
        let mut now = self.0.lock();
        *now = now.minus(uses);
    }
}
