//! What replies cost is counted for the day, and a person is asked where a budget of money is used up.

use haft::budget::{Budgets, EffectLimits, Period};
use haft::call::Origin;
use haft::future::run_blocking;
use haft::{Status, ToolCall};

use crate::agent::Agent;
use crate::end::{End, Exceeded, Waiting};
use crate::event::AgentEvent;
use crate::spend_more::{SPEND_MORE, SpendMore};

/// The money of a conversation.
#[derive(Debug, Default)]
pub(super) struct Money {
    /// What was counted for the day.
    counted: f64,
    /// What a person let the run cost, beyond its budget.
    of_run: f64,
    /// What a person let a day cost, beyond its budget.
    of_day: Option<(String, f64)>,
}

impl Money {
    /// That of a conversation which has cost this already, counted when it did.
    pub(super) fn spent(money: Option<f64>) -> Self {
        Self {
            counted: money.unwrap_or_default(),
            ..Self::default()
        }
    }
}

/// A budget of money that is used up.
struct Over {
    period: Period,
    limit: f64,
    /// What was spent.
    used: f64,
    /// Up to which amount the run may go on without a person.
    up_to: f64,
    /// Which day it is; empty for a run's, and where that is not known.
    day: String,
    /// Why it is not known what was spent.
    unknown: Option<String>,
}

impl Agent {
    /// Counts for the day what the conversation has cost since it was counted last.
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

    /// The end, where a budget of money is used up and no person lets the run go on.
    pub(super) async fn out_of_money(&mut self) -> Option<End> {
        let policy = self.executor.policy();
        let budgets = policy.budgets()?;
        let over = match self.over_in_run(budgets.run()) {
            Some(over) => over,
            None => self.over_today(budgets).await?,
        };
        self.ask_for_more(over).await
    }

    fn over_in_run(&self, limits: &EffectLimits) -> Option<Over> {
        let limit = limits.money?;
        let used = self.history.spent.money.unwrap_or_default();
        let up_to = self.money.of_run.max(limit);
        (used >= up_to).then_some(Over {
            period: Period::Run,
            limit,
            used,
            up_to,
            day: String::new(),
            unknown: None,
        })
    }

    async fn over_today(&self, budgets: &Budgets) -> Option<Over> {
        let limit = budgets.day().money?;
        let ledger = budgets.ledger()?.clone();
        let today = match run_blocking(move || ledger.today()).await {
            Ok(today) => today.map_err(|error| error.to_string()),
            Err(error) => Err(error.to_string()),
        };
        let over = |used, up_to, day, unknown| Over {
            period: Period::Day,
            limit,
            used,
            up_to,
            day,
            unknown,
        };
        let today = match today {
            Ok(today) => today,
            // The run's own cost is known: a person lets it go on for as much again.
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

    /// Asks whether the run may cost as much again.
    async fn ask_for_more(&mut self, over: Over) -> Option<End> {
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
            return Some(End::Suspended(vec![Waiting {
                call: outcome.call,
                tool: outcome.tool,
                approval,
            }]));
        }
        if outcome.status == Status::Cancelled {
            return Some(End::Cancelled);
        }
        Some(End::Budget(Exceeded::MoneyOf {
            limit: over.limit,
            period: over.period,
        }))
    }
}
