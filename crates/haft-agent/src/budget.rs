//! `Budget`: what a conversation may use up; `Spending`: what it has used up.

use std::time::Duration;

use haft_wire::Usage;
use serde::{Deserialize, Serialize};

/// The default limit of the model's replies to one prompt.
pub const MAX_TURNS: u32 = 100;

/// The default limit of a conversation's bytes: far more than any model reads at once, and little enough for a machine's memory.
pub const MAX_BYTES: u64 = 64 << 20;

/// The limits of a conversation. `None` means no limit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Budget {
    /// Replies of the model to one prompt.
    pub turns: Option<u32>,
    /// Tokens read and written in the whole conversation.
    pub tokens: Option<u64>,
    /// Money in the whole conversation, in the currency of the [`Prices`]; without prices nothing is counted.
    pub money: Option<f64>,
    /// Bytes of the history as sent to the model; compressing it frees some again.
    pub bytes: Option<u64>,
    /// Wall-clock time of one prompt, including the time spent waiting for users.
    pub time: Option<Duration>,
}

impl Default for Budget {
    /// [`MAX_TURNS`] and [`MAX_BYTES`], no other limits.
    fn default() -> Self {
        Self {
            turns: Some(MAX_TURNS),
            tokens: None,
            money: None,
            bytes: Some(MAX_BYTES),
            time: None,
        }
    }
}

/// Prices per million tokens, in any currency.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Prices {
    /// Tokens read, not from a cache.
    pub input: f64,
    /// Tokens read from a cache.
    pub cached: f64,
    /// Tokens written, including thinking.
    pub output: f64,
}

impl Prices {
    /// Returns the cost of this many tokens.
    pub fn of(&self, usage: &Usage) -> f64 {
        let fresh = usage.input.saturating_sub(usage.cached);
        let parts = [
            (fresh, self.input),
            (usage.cached.min(usage.input), self.cached),
            (usage.output, self.output),
        ];
        let all = parts
            .into_iter()
            .map(|(tokens, price)| as_f64(tokens) * price);
        all.sum::<f64>() / 1_000_000.0
    }
}

#[expect(
    clippy::cast_precision_loss,
    reason = "token counts are far below 2^52"
)]
fn as_f64(tokens: u64) -> f64 {
    tokens as f64
}

/// What a conversation has used up.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Spending {
    /// Replies of the model, in the whole conversation.
    pub turns: u32,
    /// Replies to the last prompt.
    pub turns_of_prompt: u32,
    /// Tokens read, including those from a cache.
    pub input: u64,
    /// The tokens of `input` that were read from a cache.
    pub cached: u64,
    /// Tokens written.
    pub output: u64,
    /// The tokens of `input` and `output` that were estimated because the provider did not report them.
    #[serde(skip_serializing_if = "is_zero")]
    pub estimated: u64,
    /// Money, if prices are known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub money: Option<f64>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands a reference")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

impl Spending {
    /// Counts a reply.
    pub(crate) fn add(&mut self, usage: &Usage, prices: Option<&Prices>) {
        self.turns = self.turns.saturating_add(1);
        self.turns_of_prompt = self.turns_of_prompt.saturating_add(1);
        self.count(usage, prices);
    }

    /// Counts tokens of a request that is not a turn of the conversation.
    pub(crate) fn count(&mut self, usage: &Usage, prices: Option<&Prices>) {
        self.input = self.input.saturating_add(usage.input);
        self.cached = self.cached.saturating_add(usage.cached);
        self.output = self.output.saturating_add(usage.output);
        if let Some(prices) = prices {
            self.money = Some(self.money.unwrap_or_default() + prices.of(usage));
        }
    }

    /// Starts counting a new prompt.
    pub(crate) fn begin_prompt(&mut self) {
        self.turns_of_prompt = 0;
    }

    /// Returns the tokens read and written.
    pub fn tokens(&self) -> u64 {
        self.input.saturating_add(self.output)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn money_is_counted_by_what_was_read_fresh_read_from_a_cache_and_written() {
        let prices = Prices {
            input: 3.0,
            cached: 0.3,
            output: 15.0,
        };
        let usage = |input, cached, output| Usage {
            input,
            cached,
            output,
            thinking: 0,
        };
        for (usage, cost) in [
            (usage(0, 0, 0), 0.0),
            (usage(1_000_000, 0, 0), 3.0),
            (usage(1_000_000, 1_000_000, 0), 0.3),
            (usage(1_000_000, 500_000, 100_000), 1.5 + 0.15 + 1.5),
            // A provider that counts cached tokens separately.
            (usage(10, 1_000_000, 0), 10.0 * 0.3 / 1_000_000.0),
        ] {
            assert!((prices.of(&usage) - cost).abs() < 1e-9, "{usage:?}");
        }
    }
}
