//! `LoginUse`: a use of one of the host's logins, as rules and the user judge it.

/// A use of a login, as a user is asked about it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct LoginUse {
    /// For what, as rules name it: `https:example.com`.
    pub(crate) purpose: String,
    /// By what, in words.
    pub(crate) by: String,
}
