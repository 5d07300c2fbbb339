//! `Purse`: what a review costs, and whether the day's budget of money has room for it.

use haft::approval::review::ReviewCost;
use haft::budget::{Budgets, Ledger};
use haft::future::run_blocking;
use haft::policy::Policy;
use haft_wire::{Reply, Usage};

use crate::budget::Prices;

/// The approximate number of bytes per token, for a provider that does not report them.
const BYTES_A_TOKEN: usize = 4;

/// What a review is paid from.
pub(super) struct Purse<'a> {
    prices: Option<&'a Prices>,
    ledger: Option<Ledger>,
}

impl<'a> Purse<'a> {
    /// Opens the day's budget.
    ///
    /// # Errors
    /// It has no room, or is not known.
    pub(super) async fn open(policy: &Policy, prices: Option<&'a Prices>) -> Result<Self, String> {
        let budgets = policy.budgets();
        let ledger = budgets.and_then(Budgets::ledger).cloned();
        let limit = budgets.and_then(|budgets| budgets.day().money);
        if let Some(limit) = limit {
            if prices.is_none() {
                return Err("budgets.day.money needs the prices of its model".to_owned());
            }
            let ledger = ledger.clone().ok_or("the day's budget has no ledger")?;
            let today = run_blocking(move || ledger.today()).await;
            let today = today.map_err(|error| error.to_string())?;
            let today = today.map_err(|error| error.to_string())?;
            if today.money >= limit {
                return Err(format!("the day's budget of {limit} of money is used up"));
            }
        }
        Ok(Self { prices, ledger })
    }

    /// Counts what a request of this many bytes costs to read, as its provider may bill it although no whole reply has arrived.
    pub(super) async fn lose(self, bytes: usize) {
        let usage = Usage {
            input: bytes.div_ceil(BYTES_A_TOKEN) as u64,
            ..Usage::default()
        };
        if let Some(money) = self.prices.map(|prices| prices.of(&usage)) {
            self.count(money).await;
        }
    }

    async fn count(self, money: f64) {
        let Some(ledger) = self.ledger.filter(|_| money > 0.0) else {
            return;
        };
        let counted = run_blocking(move || ledger.spend(money)).await;
        if !matches!(counted, Ok(Ok(_))) {
            tracing::warn!("the cost of a review was not counted for the day");
        }
    }

    /// Counts a reply to a request of this many bytes.
    pub(super) async fn pay(self, reply: &Reply, bytes: usize) -> ReviewCost {
        let usage = reported(reply, bytes);
        let money = self.prices.map(|prices| prices.of(&usage));
        if let Some(money) = money {
            self.count(money).await;
        }
        ReviewCost {
            input: usage.input,
            output: usage.output,
            money,
        }
    }
}

/// Returns the tokens as reported; a count of zero cannot be real, and is estimated.
fn reported(reply: &Reply, bytes: usize) -> Usage {
    let tokens = |bytes: usize| bytes.div_ceil(BYTES_A_TOKEN) as u64;
    let mut usage = reply.usage;
    if usage.input == 0 {
        usage.input = tokens(bytes);
    }
    if usage.output == 0 {
        usage.output = tokens(reply.turn.raw.get().len());
    }
    usage
}
