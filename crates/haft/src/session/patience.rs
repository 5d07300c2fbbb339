//! `Patience`: what becomes of a call while a person has not decided about it.

/// How a session waits for people. Where the inbox does not outlive the process, every session waits and then denies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Patience {
    /// The call waits within the approval limit and is denied after it.
    #[default]
    WaitThenDeny,
    /// The call waits within the approval limit and is suspended after it.
    WaitThenSuspend,
    /// The call does not wait: it is suspended at once.
    SuspendAtOnce,
}
