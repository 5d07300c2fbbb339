//! `Review`: what a model says of a request before a person is asked. It decides only what its [`ReviewPowers`] hold; the rest is an opinion.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::approval::{ApprovalRequest, Decision};
use crate::clock;
use crate::future::BoxFuture;
use crate::text::clip;
use haft_types::opaque_debug;
use haft_types::text::visible;

mod powers;

pub use powers::{PowersError, ReviewPowers, asked_classes};

/// Where a reviewer's decisions come from ([`Decision::from`]). Only the executor makes decisions from there.
pub const FROM: &str = "reviewer";

/// Maximum size, in bytes, of a reviewer's reason.
pub const MAX_REASON: usize = 600;
/// Maximum size, in bytes, of a model's name.
const MAX_MODEL: usize = 200;

/// What a reviewer answers about a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReviewVerdict {
    /// The call may run.
    Allow,
    /// The call must not run.
    Deny,
    /// A person has to decide.
    Pass,
}

impl ReviewVerdict {
    /// Returns the word used in records and `--json`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Deny => "deny",
            Self::Pass => "pass",
        }
    }
}

/// Tokens and money that a review used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ReviewCost {
    /// Tokens read.
    pub input: u64,
    /// Tokens written.
    pub output: u64,
    /// Money, if the model's prices are known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub money: Option<f64>,
}

/// A reviewer's answer.
#[derive(Debug, Clone, PartialEq)]
pub struct ReviewAnswer {
    /// What it says; [`Pass`](ReviewVerdict::Pass) where it failed.
    pub verdict: ReviewVerdict,
    /// Why, in the model's words, or in haft's where the review failed.
    pub reason: String,
    /// Whether there is no verdict of the model: it did not answer, or not with exactly one verdict, or it was not asked.
    pub failed: bool,
    /// What it used.
    pub cost: ReviewCost,
}

impl ReviewAnswer {
    /// Returns the answer of a reviewer that has no verdict: a person is asked.
    pub fn failed(why: impl Into<String>) -> Self {
        Self {
            verdict: ReviewVerdict::Pass,
            reason: why.into(),
            failed: true,
            cost: ReviewCost::default(),
        }
    }
}

/// A person's word on a review, said afterwards.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PersonsWord {
    /// Whether the person would have said the same.
    pub agrees: bool,
    /// Who says so.
    pub by: String,
    /// When, in nanoseconds since 1970.
    pub at: i64,
}

/// A review of a request: stored before the model is asked, and again with its answer. A request is reviewed once.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Review {
    /// The model's name.
    pub model: String,
    /// What it says; `None` while it is asked, and for good if the process that asked it has exited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<ReviewVerdict>,
    /// Why: the model's words in one line, or haft's where the review failed.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// Whether there is no verdict of the model.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub failed: bool,
    /// Why an allow or a deny is only an opinion; `None` if it decides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub opinion: Option<String>,
    /// What it used.
    #[serde(default)]
    pub cost: ReviewCost,
    /// When it began, in nanoseconds since 1970.
    pub began: i64,
    /// How long it took, in milliseconds.
    #[serde(default)]
    pub took_ms: u64,
    /// A person's word on it, said afterwards.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub person: Option<PersonsWord>,
}

impl Review {
    /// Creates the review of a request that a model is about to be asked about.
    pub fn begin(model: &str) -> Self {
        Self {
            model: clip(&visible::line(model), MAX_MODEL).into_owned(),
            verdict: None,
            reason: String::new(),
            failed: false,
            opinion: None,
            cost: ReviewCost::default(),
            began: now(),
            took_ms: 0,
            person: None,
        }
    }

    /// Returns the review with the model's answer, and whether it decides by these powers.
    #[must_use]
    pub fn answered(
        &self,
        answer: &ReviewAnswer,
        request: &ApprovalRequest,
        powers: &ReviewPowers,
    ) -> Self {
        let opinion = match answer.verdict {
            ReviewVerdict::Pass => None,
            verdict => powers.why_not(request, verdict).err(),
        };
        let took = now().saturating_sub(self.began);
        Self {
            verdict: Some(answer.verdict),
            reason: clip(&unquoted(answer.reason.trim()), MAX_REASON).into_owned(),
            failed: answer.failed,
            opinion,
            cost: answer.cost,
            took_ms: u64::try_from(took / 1_000_000).unwrap_or(0),
            ..self.clone()
        }
    }

    /// Returns the decision that the verdict is; `None` if it is an opinion, a pass or none yet.
    pub(crate) fn decision(&self) -> Option<Decision> {
        let by = format!("reviewer {}", self.model);
        match self.verdict {
            _ if self.opinion.is_some() || self.failed => None,
            // The model's words are for people: the caller, itself a model, gets none of them.
            Some(ReviewVerdict::Deny) => Some(Decision::deny(by, FROM)),
            Some(ReviewVerdict::Allow) => Some(Decision::approve(by, FROM)),
            Some(ReviewVerdict::Pass) | None => None,
        }
    }

    /// Returns the review in one sentence, for people: whose words it has is clear from the quotes.
    pub fn sentence(&self) -> String {
        let model = &self.model;
        let reason = &self.reason;
        match self.verdict {
            None => format!("{model} was asked and has not answered"),
            Some(_) if self.failed => format!("{model} has no verdict: “{reason}”"),
            Some(ReviewVerdict::Pass) => format!("{model} leaves it to you: “{reason}”"),
            Some(verdict) => {
                let word = verdict.as_str();
                let weight = match &self.opinion {
                    Some(why) => format!(" (an opinion: {why})"),
                    None => String::new(),
                };
                format!("{model} says {word}: “{reason}”{weight}")
            }
        }
    }
}

/// Returns words as one line that cannot end the quotes in which it is shown.
fn unquoted(words: &str) -> String {
    let is_quote = |c: char| matches!(c, '"' | '“' | '”' | '„' | '‟' | '«' | '»' | '＂');
    visible::line(words).replace(is_quote, "'")
}

impl Decision {
    /// Returns whether a reviewer made it, and no person has seen the request.
    pub fn is_by_reviewer(&self) -> bool {
        self.from == FROM
    }
}

fn now() -> i64 {
    i64::try_from(clock::now()).unwrap_or(i64::MAX)
}

/// Says what it thinks of requests before a person is asked: a model.
pub trait Reviewer: Send + Sync {
    /// Returns the model's name, for people and records.
    fn model(&self) -> &str;

    /// Returns what its verdicts decide.
    fn powers(&self) -> &ReviewPowers;

    /// Returns the longest that it takes for an answer.
    fn time_limit(&self) -> Duration;

    /// Returns why it has no verdict in this process, whatever it is asked: its key is not set.
    fn problem(&self) -> Option<&str> {
        None
    }

    /// Takes all powers from it, as its settings have changed: from now on it is asked about nothing.
    fn retire(&self);

    /// Answers about a request. Dropping the future ends the review: a person has decided, or the call is gone.
    fn review<'a>(&'a self, request: &'a ApprovalRequest) -> BoxFuture<'a, ReviewAnswer>;
}

opaque_debug!(Reviewer);

#[cfg(test)]
mod tests;
