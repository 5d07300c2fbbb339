//! `WaitMode`: what becomes of a call while no decision about it has come.

/// How a session waits for people.
///
/// Where the inbox does not outlive the process, no call is suspended: it is denied in that place, at once where no approver
/// can answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum WaitMode {
    /// The call waits within the approval limit as long as an approver of this process may answer, and is suspended after
    /// it. Without an approver, or when the approver says that it reaches nobody, the call is suspended at once.
    #[default]
    WhileAsked,
    /// The call waits within the approval limit, whoever answers, and is denied after it.
    WaitThenDeny,
    /// The call waits within the approval limit, whoever answers, and is suspended after it.
    WaitThenSuspend,
    /// The call waits within the approval limit, whoever answers, and is of no use after it: it is denied then, also where an
    /// approver answers [`Later`](crate::Answer::Later) or the session is left, and its request is withdrawn in any case.
    WaitThenWithdraw,
    /// The call does not wait: it is suspended at once.
    SuspendAtOnce,
    /// The call does not wait, and no request is made: it is denied at once.
    DenyAtOnce,
}
