//! `RunLimits`: the bounds of a run or a chain, checked when built.

use std::time::Duration;

use crate::spec::{Risk, ToolSpec};
use crate::tokens::{self, Tokenizer};

/// The bounds of a run; all above zero, checked when built.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunLimits {
    /// Calls in all, counted before anything else is looked at.
    pub max_calls: u64,
    /// One call, without the wait for a person.
    pub call_timeout: Duration,
    /// The wait for a person.
    pub approval_timeout: Duration,
    /// All calls together: time spent running tools, without waits and idle time.
    pub total_timeout: Duration,
    /// Tokens of content and data together that a call returns inline.
    pub inline_tokens: usize,
    /// Bytes of pictures and sound that a call returns inline.
    pub inline_media_bytes: usize,
    /// Bytes instead of tokens: inside a chain.
    pub inline_bytes: Option<usize>,
    /// The highest risk that the policy's allow is enough for: a call above it is asked about. It only ever raises a verdict.
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

/// Why limits make no sense.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LimitsError {
    /// A limit of zero would refuse everything.
    #[error("limit {0} must be above zero")]
    Zero(&'static str),
    /// One call could outlast the whole.
    #[error("limit call_timeout must not exceed total_timeout")]
    CallOverTotal,
    /// A script would see its call time out while a person still thinks.
    #[error("limit approval_timeout must be below call_timeout in a chain")]
    ApprovalOverCall,
}

impl RunLimits {
    /// Checks that all are above zero and a call fits into the whole.
    ///
    /// # Errors
    /// [`LimitsError::Zero`] names the limit that is zero, [`LimitsError::CallOverTotal`] says that a call could outlast the run.
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

    /// What a result of this tool may return inline: so many tokens by this tokenizer, or bytes in a script.
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

    /// The limits of a chain (contract §2).
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

    /// The checks of [`check`](Self::check), and that a person's time ends before the call's does.
    ///
    /// # Errors
    /// As for [`check`](Self::check), and [`LimitsError::ApprovalOverCall`] where a call could end before its approval limit.
    pub fn check_chain(&self) -> Result<(), LimitsError> {
        self.check()?;
        if self.approval_timeout >= self.call_timeout {
            return Err(LimitsError::ApprovalOverCall);
        }
        Ok(())
    }
}
