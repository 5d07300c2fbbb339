//! Limits on resources shared by callers that do not know each other: places, and bytes in memory.
//!
//! Code that holds something for a caller first takes it from a limit. Each [`CallerClass`] of callers has its own share, so that no class
//! can use up another's; within a class, each principal has a share ([`PrincipalShares`]), and within that, each holder of a
//! [`ByteBudget`] has some bytes reserved.

mod budget;
mod places;
mod shares;

pub use budget::{ByteBudget, Charge};
pub use places::{ConcurrencyLimit, ConcurrencyPermit};
pub use shares::{FULL_SHARES, PrincipalShares, ShareKey};

/// The class of a caller, which determines its share.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CallerClass {
    /// A caller that has not authenticated.
    Stranger,
    /// A caller that may call tools.
    Client,
    /// The operator, who may decide.
    Operator,
}

/// One value per class of callers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shares<T> {
    /// The value for callers that have not authenticated.
    pub strangers: T,
    /// The value for callers that may call tools.
    pub clients: T,
    /// The value for the operator.
    pub operator: T,
}

impl<T> Shares<T> {
    /// Returns the share of a class.
    pub fn of(&self, class: CallerClass) -> &T {
        match class {
            CallerClass::Stranger => &self.strangers,
            CallerClass::Client => &self.clients,
            CallerClass::Operator => &self.operator,
        }
    }

    /// Maps each share to another value.
    pub fn map<U>(self, mut make: impl FnMut(T) -> U) -> Shares<U> {
        Shares {
            strangers: make(self.strangers),
            clients: make(self.clients),
            operator: make(self.operator),
        }
    }
}
