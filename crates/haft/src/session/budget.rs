//! `CallBudget`: the number of calls that may still be made. A script's calls count for the script and for the run around it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The call budget of a run, or of a script within one.
#[derive(Debug)]
pub(crate) struct CallBudget {
    used: AtomicU64,
    max: u64,
    outer: Option<Arc<CallBudget>>,
}

/// The error for an exhausted budget.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum BudgetExhausted {
    /// The budget of the whole run.
    #[error("the run's budget of {0} calls is used up")]
    Run(u64),
    /// The budget of one script.
    #[error("the script's budget of {0} calls is used up")]
    Script(u64),
}

impl BudgetExhausted {
    /// Returns what to do next.
    pub(crate) fn advice(self) -> &'static str {
        match self {
            Self::Run(_) => "start a new run",
            Self::Script(_) => "do the rest in another script",
        }
    }

    /// Returns the setting that raises the budget, for the operator.
    pub(crate) fn setting(self) -> &'static str {
        match self {
            Self::Run(_) => "raise limits.max_calls",
            Self::Script(_) => "raise chain.max_tool_calls",
        }
    }
}

impl CallBudget {
    /// Creates the budget of a run.
    pub(crate) fn of_run(max: u64) -> Self {
        Self {
            used: AtomicU64::new(0),
            max,
            outer: None,
        }
    }

    /// Creates the budget of a script within a run: each call is counted in both.
    pub(crate) fn within(outer: &Arc<Self>, max: u64) -> Self {
        Self {
            outer: Some(Arc::clone(outer)),
            ..Self::of_run(max)
        }
    }

    /// Returns whether it is within another budget.
    pub(crate) fn is_nested(&self) -> bool {
        self.outer.is_some()
    }

    /// Returns the number of calls so far.
    pub(crate) fn used(&self) -> u64 {
        self.used.load(Ordering::Relaxed)
    }

    /// Counts one call in this budget and in those around it.
    pub(crate) fn spend(&self) -> Result<(), BudgetExhausted> {
        let more = |used: u64| (used < self.max).then(|| used + 1);
        let spent = self
            .used
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, more);
        match (spent, &self.outer) {
            (Ok(_), Some(outer)) => outer.spend(),
            (Ok(_), None) => Ok(()),
            (Err(_), Some(_)) => Err(BudgetExhausted::Script(self.max)),
            (Err(_), None) => Err(BudgetExhausted::Run(self.max)),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::{BudgetExhausted, CallBudget};

    #[test]
    fn p12_a_script_spends_its_own_budget_and_the_run_s() {
        let run = Arc::new(CallBudget::of_run(5));
        let script = CallBudget::within(&run, 3);
        assert!((0..3).all(|_| script.spend().is_ok()));
        assert_eq!(script.spend(), Err(BudgetExhausted::Script(3)));
        assert_eq!(run.used(), 3);
        let second = CallBudget::within(&run, 3);
        assert!((0..2).all(|_| second.spend().is_ok()));
        assert_eq!(second.spend(), Err(BudgetExhausted::Run(5)));
        assert_eq!(run.spend(), Err(BudgetExhausted::Run(5)));
    }
}
