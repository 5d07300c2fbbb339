//! `RunHistory`: what a run has done, as far as the verdict on its next call depends on it.

use std::sync::Arc;

use crate::budget::EffectCounts;
use crate::run_properties::RunProperties;
use crate::untrusted::{SeenLinks, UntrustedSource};

/// What a run has done, as far as the verdict on its next call depends on it. A session creates it
/// (`haft::Session::history`), and every judgement needs one: without it, a guard would judge a run that has read
/// untrusted content like one that has read nothing.
#[derive(Debug, Clone)]
pub struct RunHistory {
    /// Secrets whose reading was approved in the run, in the form of a [`PathClaim`](haft_types::permission::PathClaim).
    pub released: Arc<[String]>,
    /// The untrusted content that the run has read.
    pub untrusted: Arc<[UntrustedSource]>,
    /// The addresses that stood in what it has read.
    pub links: Arc<SeenLinks>,
    /// Whether it has seen private data: see [`RunProperties`].
    pub private: bool,
    /// Whether it could have sent something out.
    pub sent: bool,
    /// What the run's calls have used of the effect budgets; `None` if the call is not counted.
    pub used: Option<EffectCounts>,
}

impl RunHistory {
    /// Returns the history of a run that has done nothing: for what a policy says in general, never for a call that is made.
    pub fn none() -> Self {
        Self {
            released: Arc::default(),
            untrusted: Arc::default(),
            links: Arc::default(),
            private: false,
            sent: false,
            used: None,
        }
    }

    /// Returns which of the three of the Rule of Two the run holds.
    pub fn properties(&self) -> RunProperties {
        RunProperties {
            untrusted: !self.untrusted.is_empty(),
            private: self.private || !self.released.is_empty(),
            sends: self.sent,
        }
    }

    /// Whether the run has read from this recipient, in the form of an origin.
    pub(crate) fn has_read_from(&self, recipient: &str) -> bool {
        self.untrusted.iter().any(|source| source.is_of(recipient))
    }
}
