//! Effect budgets: how much calls may delete, send and run, per run and per day, before more needs approval.
//!
//! A call is counted when it is cleared, together with the check for room, so that no two parallel calls take the last unit. What
//! a call reserved is returned if the call provably never started. A run's counts are in its
//! `haft::Session` and its record, the day's in a [`Ledger`] that all processes of a user share. The guard
//! [`EffectBudgets`](crate::EffectBudgets) judges by them.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::untrusted::recipient;
pub use haft_types::permission::BUDGET_EFFECT;
use haft_types::permission::{Effect, Permission};
use haft_types::spec::ToolSpec;

mod counts;
mod day;
pub mod ledger;
mod reservation;
mod run;
mod wanted;

pub use day::DayCounts;
pub use ledger::{Ledger, LedgerError};
pub use reservation::{BudgetRequest, Reservation};
pub use run::RunEffectCounts;
pub use wanted::EffectEstimate;

/// The rule named by requests that exist because a budget is used up.
pub const BUDGET_RULE: &str = "guard budgets";

/// What budgets count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CountedEffect {
    /// Files, links and folders that are removed, including moved ones.
    Deletions,
    /// Effects that could carry data out of the workspace to a host, a server or a tool of the open world.
    Sends,
    /// Commands that are run.
    Commands,
}

impl CountedEffect {
    /// All kinds, in the order of their names in settings.
    pub const ALL: [Self; 3] = [Self::Deletions, Self::Sends, Self::Commands];

    /// Returns the name used in settings and records.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Deletions => "deletions",
            Self::Sends => "sends",
            Self::Commands => "commands",
        }
    }

    /// Returns what an effect of a call counts as, if anything.
    pub(crate) fn of(spec: &ToolSpec, permissions: &[Permission], effect: &Effect) -> Option<Self> {
        match effect {
            Effect::Remove(_) => Some(Self::Deletions),
            Effect::Run { .. } => Some(Self::Commands),
            Effect::Connect { .. } | Effect::Other { .. } | Effect::Call => {
                recipient(spec, permissions, effect).map(|_| Self::Sends)
            }
            _ => None,
        }
    }
}

/// Counts of effects.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct EffectCounts {
    /// [`CountedEffect::Deletions`].
    #[serde(skip_serializing_if = "is_zero")]
    pub deletions: u64,
    /// [`CountedEffect::Sends`].
    #[serde(skip_serializing_if = "is_zero")]
    pub sends: u64,
    /// [`CountedEffect::Commands`].
    #[serde(skip_serializing_if = "is_zero")]
    pub commands: u64,
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde hands a field over by reference"
)]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

impl EffectCounts {
    /// No effects.
    pub const NONE: Self = Self {
        deletions: 0,
        sends: 0,
        commands: 0,
    };

    /// Returns how many effects of each kind a call with these permissions has; the call itself may count as one.
    pub(crate) fn of(spec: &ToolSpec, permissions: &[Permission]) -> Self {
        let mut uses = Self::NONE;
        let stated = permissions.iter().map(|permission| &permission.effect);
        for effect in std::iter::once(&Effect::Call).chain(stated) {
            if let Some(counted) = CountedEffect::of(spec, permissions, effect) {
                *uses.of_mut(counted) += 1;
            }
        }
        uses
    }

    /// Returns whether all counts are zero.
    pub fn is_none(&self) -> bool {
        *self == Self::NONE
    }

    /// Returns the count of this kind.
    pub fn get(&self, counted: CountedEffect) -> u64 {
        match counted {
            CountedEffect::Deletions => self.deletions,
            CountedEffect::Sends => self.sends,
            CountedEffect::Commands => self.commands,
        }
    }

    fn of_mut(&mut self, counted: CountedEffect) -> &mut u64 {
        match counted {
            CountedEffect::Deletions => &mut self.deletions,
            CountedEffect::Sends => &mut self.sends,
            CountedEffect::Commands => &mut self.commands,
        }
    }

    /// Returns the sum of both, kind by kind; saturates.
    pub fn plus(mut self, more: Self) -> Self {
        for counted in CountedEffect::ALL {
            let count = self.of_mut(counted);
            *count = count.saturating_add(more.get(counted));
        }
        self
    }

    /// Returns the counts minus these, kind by kind; not below zero.
    pub(crate) fn minus(mut self, less: Self) -> Self {
        for counted in CountedEffect::ALL {
            let count = self.of_mut(counted);
            *count = count.saturating_sub(less.get(counted));
        }
        self
    }
}

/// Maximum counts; `None` for no budget.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct EffectLimits {
    /// [`CountedEffect::Deletions`].
    pub deletions: Option<u64>,
    /// [`CountedEffect::Sends`].
    pub sends: Option<u64>,
    /// [`CountedEffect::Commands`].
    pub commands: Option<u64>,
    /// Money spent on models, in the currency of their prices. The agent loop counts it and asks.
    pub money: Option<f64>,
}

impl EffectLimits {
    /// Returns the limit for this kind; `None` for no budget.
    pub fn get(&self, counted: CountedEffect) -> Option<u64> {
        match counted {
            CountedEffect::Deletions => self.deletions,
            CountedEffect::Sends => self.sends,
            CountedEffect::Commands => self.commands,
        }
    }

    /// Returns whether there is no budget at all.
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }

    /// Returns the first budget that has no room for these.
    pub(crate) fn first_exceeded(
        &self,
        period: Period,
        used: EffectCounts,
        wanted: EffectCounts,
    ) -> Option<ExhaustedBudget> {
        let over = |counted: CountedEffect| self.exceeded(counted, period, used, wanted);
        CountedEffect::ALL.into_iter().find_map(over)
    }

    fn exceeded(
        &self,
        counted: CountedEffect,
        period: Period,
        used: EffectCounts,
        wanted: EffectCounts,
    ) -> Option<ExhaustedBudget> {
        let (limit, wanted) = (self.get(counted)?, wanted.get(counted));
        let used = used.get(counted);
        (wanted > 0 && used.saturating_add(wanted) > limit).then_some(ExhaustedBudget {
            counted,
            period,
            limit,
            used,
            wanted,
        })
    }
}

/// The period of a budget.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Period {
    /// A run.
    Run,
    /// A day in UTC.
    Day,
}

impl Period {
    /// Returns the name used in settings.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Run => "run",
            Self::Day => "day",
        }
    }
}

/// A budget that has no room for a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExhaustedBudget {
    /// The kind of effect.
    pub counted: CountedEffect,
    /// The period of the budget.
    pub period: Period,
    /// The limit.
    pub limit: u64,
    /// The count before the call.
    pub used: u64,
    /// The count that the call would add.
    pub wanted: u64,
}

/// A sentence for the user who decides.
impl fmt::Display for ExhaustedBudget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            limit,
            used,
            wanted,
            ..
        } = self;
        let (what, period) = (self.counted.as_str(), self.period.as_str());
        let what = match limit {
            1 => what.strip_suffix('s').unwrap_or(what),
            _ => what,
        };
        write!(f, "the budget of {limit} {what} a {period} ")?;
        if used >= limit {
            write!(f, "is used up: {used} of {limit}")
        } else {
            let left = limit - used;
            write!(f, "has room for {left} more, but the call needs {wanted}")
        }
    }
}

/// Why a call does not fit the budgets.
#[derive(Debug, Clone, thiserror::Error)]
pub enum BudgetError {
    /// A budget is used up.
    #[error("{0}")]
    UsedUp(ExhaustedBudget),
    /// The counts of today are unknown.
    #[error("the budgets of the day cannot be counted: {0}")]
    Unknown(#[from] LedgerError),
    /// The files that it deletes cannot be counted.
    #[error(
        "haft cannot count the deletions of a command that works directly on the workspace, and a budget of deletions is set"
    )]
    Uncounted,
}

impl BudgetError {
    /// Returns what the operator can do about it.
    pub fn operator(&self) -> String {
        match self {
            Self::UsedUp(used_up) => format!(
                "budgets.{}.{} sets the limit",
                used_up.period.as_str(),
                used_up.counted.as_str()
            ),
            Self::Unknown(_) => LedgerError::ADVICE.to_owned(),
            Self::Uncounted => "budgets.run.deletions and budgets.day.deletions set the limit; deletions of a command on a copy of the workspace are counted (sandbox.changes)"
                .to_owned(),
        }
    }
}

/// The state of the budgets for each kind of effect of a call.
#[derive(Debug, Clone)]
pub struct BudgetStatus {
    each: [Option<BudgetError>; 3],
}

impl BudgetStatus {
    /// Returns why there is no room for this kind of effect.
    pub(crate) fn of(&self, counted: CountedEffect) -> Option<&BudgetError> {
        self.each.get(counted as usize)?.as_ref()
    }

    /// Returns why there is no room for the call.
    pub fn first(self) -> Option<BudgetError> {
        self.each.into_iter().flatten().next()
    }
}

/// The budgets of a policy.
#[derive(Debug, Clone, Default)]
pub struct Budgets {
    run: EffectLimits,
    day: EffectLimits,
    ledger: Option<Ledger>,
    commands_reach_out: bool,
}

impl Budgets {
    /// Creates budgets for each run.
    pub fn of_run(run: EffectLimits) -> Self {
        Self {
            run,
            ..Self::default()
        }
    }

    /// Adds budgets for each day, counted in this ledger.
    pub fn with_day(mut self, day: EffectLimits, ledger: Ledger) -> Self {
        self.day = day;
        self.ledger = Some(ledger);
        self
    }

    /// Sets whether jailed commands have the machine's network: what they reach is not judged separately, so each command counts as a
    /// send. Commands without a jail always do.
    pub fn commands_reach_out(mut self, they_do: bool) -> Self {
        self.commands_reach_out = they_do;
        self
    }

    /// Returns whether there are no budgets.
    pub fn is_none(&self) -> bool {
        self.run.is_none() && self.day.is_none()
    }

    /// Returns the budgets of each run.
    pub fn run(&self) -> &EffectLimits {
        &self.run
    }

    /// Returns the budgets of each day.
    pub fn day(&self) -> &EffectLimits {
        &self.day
    }

    /// Returns the ledger of daily counts; `None` if there are no daily budgets.
    pub fn ledger(&self) -> Option<&Ledger> {
        self.ledger.as_ref().filter(|_| !self.day.is_none())
    }

    /// Returns the ledger if the call uses anything that has a daily budget.
    pub(crate) fn ledger_for(&self, wanted: EffectCounts) -> Option<&Ledger> {
        let counts =
            |counted: &CountedEffect| wanted.get(*counted) > 0 && self.day.get(*counted).is_some();
        self.ledger()
            .filter(|_| CountedEffect::ALL.iter().any(counts))
    }

    /// Returns whether there is room for a call, for each kind. Counts nothing.
    pub fn standing(&self, of_run: EffectCounts, call: EffectEstimate) -> BudgetStatus {
        let wanted = call.uses;
        let looks =
            |counted: &CountedEffect| wanted.get(*counted) > 0 && self.day.get(*counted).is_some();
        let today = self.ledger_for(wanted).map(Ledger::today);
        let one = |counted: CountedEffect| {
            let of_run = self.run.exceeded(counted, Period::Run, of_run, wanted);
            if let Some(used_up) = of_run {
                return Some(BudgetError::UsedUp(used_up));
            }
            match today.as_ref().filter(|_| looks(&counted))? {
                Err(error) => Some(BudgetError::Unknown(error.clone())),
                Ok(today) => {
                    let used_up = self.day.exceeded(counted, Period::Day, today.uses, wanted);
                    used_up.map(BudgetError::UsedUp)
                }
            }
        };
        let mut each = CountedEffect::ALL.map(one);
        if call.uncounted
            && let Some(deletions) = each.get_mut(CountedEffect::Deletions as usize)
        {
            deletions.get_or_insert(BudgetError::Uncounted);
        }
        BudgetStatus { each }
    }
}

#[cfg(test)]
mod tests;
