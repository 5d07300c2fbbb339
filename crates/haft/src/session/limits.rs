//! `RunLimits`: the limits of a run or a chain, checked when a session is built.

use std::time::Duration;

use crate::spec::{Risk, ToolSpec};
use crate::tokens::{self, Tokenizer};

/// The limits of a run, all above zero; checked when the session is built.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunLimits {
    /// Maximum number of calls, counted before any other check.
    pub max_calls: u64,
    /// Time limit of one call, not counting waits for a decision.
    pub call_timeout: Duration,
    /// Maximum wait for a decision.
    pub approval_timeout: Duration,
    /// Time limit of all calls together: time spent running tools, not counting waits and idle time.
    pub total_timeout: Duration,
    /// Maximum number of tokens of content and data together that a call returns inline.
    pub inline_tokens: usize,
    /// Maximum size, in bytes, of images and audio that a call returns inline.
    pub inline_media_bytes: usize,
    /// The inline limit in bytes instead of tokens, inside a chain.
    pub inline_bytes: Option<usize>,
    /// The highest risk that the policy may allow without approval; a call above it needs approval. It only ever raises a verdict.
    pub max_risk_unapproved: Risk,
}

impl Default for RunLimits {
    /// The limits of a direct call (contract §2).
    fn default() -> Self {
        Self {
            max_calls: 10_000,
            call_timeout: Duration::from_secs(600),
            approval_timeout: Duration::from_secs(300),
            total_timeout: Duration::from_secs(3600),
            inline_tokens: 12_000,
            inline_media_bytes: 5 << 20,
            inline_bytes: None,
            max_risk_unapproved: Risk::Critical,
        }
    }
}

/// Why limits are invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LimitsError {
    /// A limit is zero, which would refuse everything.
    #[error("limit {0} must be above zero")]
    Zero(&'static str),
    /// One call could outlast the run.
    #[error("limit call_timeout must not exceed total_timeout")]
    CallOverTotal,
    /// A script's call could time out while the user still decides.
    #[error("limit approval_timeout must be below call_timeout in a chain")]
    ApprovalOverCall,
}

impl RunLimits {
    /// Checks that all limits are above zero and that a call fits into the total time.
    ///
    /// # Errors
    /// [`LimitsError::Zero`] names the limit that is zero; [`LimitsError::CallOverTotal`] if a call could outlast the run.
    pub fn check(&self) -> Result<(), LimitsError> {
        let zero = [
            ("max_calls", self.max_calls == 0),
            ("call_timeout", self.call_timeout.is_zero()),
            ("approval_timeout", self.approval_timeout.is_zero()),
            ("total_timeout", self.total_timeout.is_zero()),
            ("inline_tokens", self.inline_tokens == 0),
            ("inline_media_bytes", self.inline_media_bytes == 0),
            ("inline_bytes", self.inline_bytes == Some(0)),
        ];
        if let Some((name, _)) = zero.iter().find(|(_, is_zero)| *is_zero) {
            return Err(LimitsError::Zero(name));
        }
        if self.call_timeout > self.total_timeout {
            return Err(LimitsError::CallOverTotal);
        }
        Ok(())
    }

    /// Returns how much a result of this tool may return inline: tokens of this tokenizer, or bytes inside a script.
    pub(crate) fn inline<'a>(
        &self,
        spec: &ToolSpec,
        tokenizer: &'a dyn Tokenizer,
    ) -> (&'a dyn Tokenizer, usize) {
        let tokens = spec.inline_tokens.unwrap_or(self.inline_tokens);
        match self.inline_bytes {
            Some(bytes) => (&tokens::Bytes, bytes),
            None => (tokenizer, tokens),
        }
    }

    /// Returns the limits of a chain (contract §2).
    pub fn chain() -> Self {
        Self {
            max_calls: 50,
            call_timeout: Duration::from_secs(60),
            approval_timeout: Duration::from_secs(55),
            total_timeout: Duration::from_secs(300),
            inline_bytes: Some(4096),
            ..Self::default()
        }
    }

    /// Makes the checks of [`check`](Self::check), and checks that the approval timeout ends before the call does.
    ///
    /// # Errors
    /// As for [`check`](Self::check), and [`LimitsError::ApprovalOverCall`] if a call could end before its approval timeout.
    pub fn check_chain(&self) -> Result<(), LimitsError> {
        self.check()?;
        if self.approval_timeout >= self.call_timeout {
            return Err(LimitsError::ApprovalOverCall);
        }
        Ok(())
    }
}
