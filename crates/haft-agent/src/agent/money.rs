//! Counts the cost of replies per day, and asks the operator when a budget of money is used up.

use haft::budget::{Budgets, EffectLimits, Period};
use haft::call::Origin;
use haft::future::run_blocking;
use haft::{Status, ToolCall};

use crate::agent::Agent;
use crate::end::{ExceededBudget, RunEnd, WaitingCall};
use crate::event::AgentEvent;
use crate::spend_more::{SPEND_MORE, SpendMore};

/// The money of a conversation.
#[derive(Debug, Default)]
pub(super) struct MoneyTracker {
    /// The amount already counted for the day.
    counted: f64,
    /// The amount up to which an operator let the run go, beyond its budget.
    of_run: f64,
    /// The day, and the amount up to which an operator let it go, beyond its budget.
    of_day: Option<(String, f64)>,
}

impl MoneyTracker {
    /// Creates the state of a conversation that has already cost `money`, which was counted at that time.
    pub(super) fn spent(money: Option<f64>) -> Self {
        Self {
            counted: money.unwrap_or_default(),
            ..Self::default()
        }
    }
}

/// A budget of money that is used up.
struct ExceededMoney {
    period: Period,
    limit: f64,
    /// The amount spent.
    used: f64,
    /// The amount up to which the run may continue without asking.
    up_to: f64,
    /// The day; empty for a run's budget, and if the day is unknown.
    day: String,
    /// The reason why the amount spent is unknown.
    unknown: Option<String>,
}

impl Agent {
    /// Counts for the day what the conversation has cost since the last count.
    pub(super) async fn count_money(&mut self) {
        let spent = self.history.spent.money.unwrap_or_default();
        let more = spent - self.money.counted;
        self.money.counted = spent;
        let policy = self.executor.policy();
        let ledger = policy.budgets().and_then(Budgets::ledger).cloned();
        let Some(ledger) = ledger.filter(|_| more > 0.0) else {
            return;
        };
        let counted = run_blocking(move || ledger.spend(more)).await;
        let error = match counted {
            Ok(Ok(_)) => return,
            Ok(Err(error)) => error.to_string(),
            Err(error) => error.to_string(),
        };
        tracing::warn!(error, "the cost of a reply was not counted for the day");
    }

    /// Returns the end if a budget of money is used up and no operator lets the run continue.
    pub(super) async fn out_of_money(&mut self) -> Option<RunEnd> {
        let policy = self.executor.policy();
        let budgets = policy.budgets()?;
        let over = match self.over_in_run(budgets.run()) {
            Some(over) => over,
            None => self.over_today(budgets).await?,
        };
        self.ask_for_more(over).await
    }

    fn over_in_run(&self, limits: &EffectLimits) -> Option<ExceededMoney> {
        let limit = limits.money?;
        let used = self.history.spent.money.unwrap_or_default();
        let up_to = self.money.of_run.max(limit);
        (used >= up_to).then_some(ExceededMoney {
            period: Period::Run,
            limit,
            used,
            up_to,
            day: String::new(),
            unknown: None,
        })
    }

    async fn over_today(&self, budgets: &Budgets) -> Option<ExceededMoney> {
        let limit = budgets.day().money?;
        let ledger = budgets.ledger()?.clone();
        let today = match run_blocking(move || ledger.today()).await {
            Ok(today) => today.map_err(|error| error.to_string()),
            Err(error) => Err(error.to_string()),
        };
        let over = |used, up_to, day, unknown| ExceededMoney {
            period: Period::Day,
            limit,
            used,
            up_to,
            day,
            unknown,
        };
        let today = match today {
            Ok(today) => today,
            // The run's own cost is known: an operator can allow the same amount again.
            Err(why) => {
                let used = self.history.spent.money.unwrap_or_default();
                let agreed = self.money.of_day.as_ref();
                let up_to = agreed.filter(|(day, _)| day.is_empty());
                let up_to = up_to.map_or(0.0, |(_, up_to)| *up_to);
                return (used >= up_to).then(|| over(used, up_to, String::new(), Some(why)));
            }
        };
        let day = today.day.to_string();
        let agreed = self.money.of_day.as_ref();
        let agreed = agreed.filter(|(of, _)| *of == day);
        let up_to = agreed.map_or(limit, |(_, up_to)| up_to.max(limit));
        (today.money >= up_to).then(|| over(today.money, up_to, day, None))
    }

    /// Asks whether the run may spend the same amount again.
    async fn ask_for_more(&mut self, over: ExceededMoney) -> Option<RunEnd> {
        let question = SpendMore {
            period: over.period.as_str().to_owned(),
            limit: over.limit,
            up_to: over.up_to,
            day: over.day.clone(),
            unknown: over.unknown.clone(),
        };
        let call = ToolCall::new(SPEND_MORE, question.to_arguments()).from_origin(Origin::Host);
        let outcome = self.executor.execute_internal(&self.session, call).await;
        if outcome.status == Status::Ok {
            let next = over.used + over.limit;
            match over.period {
                Period::Run => self.money.of_run = next,
                Period::Day => self.money.of_day = Some((over.day, next)),
            }
            return None;
        }
        if outcome.status == Status::Suspended
            && let Some(approval) = outcome.approval
        {
            self.tell_watcher(AgentEvent::Approval {
                id: &outcome.call,
                tool: &outcome.tool,
                approval: &approval,
            });
            return Some(RunEnd::Suspended(vec![WaitingCall {
                call: outcome.call,
                tool: outcome.tool,
                approval,
                is_decided: false,
            }]));
        }
        if outcome.status == Status::Cancelled {
            return Some(self.cancelled());
        }
        Some(RunEnd::Budget(ExceededBudget::MoneyOf {
            limit: over.limit,
            period: over.period,
        }))
    }
}
