//! The use of each budget, as text.

use super::{Budgets, CountedEffect, EffectCounts, EffectLimits, Ledger, Period};

impl Budgets {
    /// Describes each budget and its use: `deletions a day: 3 of 20 used`.
    pub(crate) fn counts(&self, of_run: EffectCounts) -> String {
        let mut each = lines(self.run(), Period::Run, of_run);
        match self.ledger().map(Ledger::today) {
            None => {}
            Some(Ok(today)) => each.extend(lines(self.day(), Period::Day, today.uses)),
            Some(Err(error)) => {
                each.push(format!("the budgets of the day cannot be counted: {error}"));
            }
        }
        each.join("; ")
    }
}

fn lines(limits: &EffectLimits, period: Period, used: EffectCounts) -> Vec<String> {
    let one = |counted: CountedEffect| {
        let (limit, used) = (limits.get(counted)?, used.get(counted));
        let (what, period) = (counted.as_str(), period.as_str());
        Some(format!("{what} a {period}: {used} of {limit} used"))
    };
    CountedEffect::ALL.into_iter().filter_map(one).collect()
}
