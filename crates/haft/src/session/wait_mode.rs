//! `WaitMode`: what happens to a call while there is no decision about it.

/// How a session waits for decisions.
///
/// If the inbox does not outlive the process, calls are denied instead of suspended; at once if no approver can answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum WaitMode {
    /// The call waits within the approval timeout while an approver of this process may answer, and is suspended afterwards. Without
    /// an approver, or if the approver reports that it reaches no one, the call is suspended at once.
    #[default]
    WhileAsked,
    /// The call waits within the approval timeout for any decision, and is denied afterwards.
    WaitThenDeny,
    /// The call waits within the approval timeout for any decision, and is suspended afterwards.
    WaitThenSuspend,
    /// The call waits within the approval timeout for any decision and is useless afterwards: it is denied, even if an approver
    /// answers [`Later`](crate::ApproverReply::Later) or the session leaves, and its request is always withdrawn.
    WaitThenWithdraw,
    /// The call does not wait: it is suspended at once.
    SuspendAtOnce,
    /// The call does not wait and makes no request: it is denied at once.
    DenyAtOnce,
}

impl WaitMode {
    /// Returns whether calls wait for what other processes do, whoever can be asked here.
    pub(crate) fn waits_for_others(self) -> bool {
        matches!(
            self,
            Self::WaitThenDeny | Self::WaitThenSuspend | Self::WaitThenWithdraw
        )
    }
}
