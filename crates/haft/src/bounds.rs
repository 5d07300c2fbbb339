//! Bounds on what is shared by callers that do not know each other: places, and bytes in memory.
//!
//! Whoever holds something for a caller takes it off a bound first. Each [`Class`] of callers has a share of its own, so that
//! what one uses up is never another's; within a share each holder of a [`Budget`] has some bytes that nobody can take.

mod budget;
mod places;

pub use budget::{Budget, Charge};
pub use places::{Place, Places};

/// Whose share of something bounded is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Class {
    /// A caller that has not shown who it is.
    Stranger,
    /// A caller that may call tools.
    Client,
    /// The person who may decide.
    Operator,
}

/// One of something for each class of callers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shares<T> {
    /// For callers that have not shown who they are.
    pub strangers: T,
    /// For callers that may call tools.
    pub clients: T,
    /// For the person who may decide.
    pub operator: T,
}

impl<T> Shares<T> {
    /// The share of a class.
    pub fn of(&self, class: Class) -> &T {
        match class {
            Class::Stranger => &self.strangers,
            Class::Client => &self.clients,
            Class::Operator => &self.operator,
        }
    }

    /// Something else for each class, made of its share.
    pub fn map<U>(self, mut make: impl FnMut(T) -> U) -> Shares<U> {
        Shares {
            strangers: make(self.strangers),
            clients: make(self.clients),
            operator: make(self.operator),
        }
    }
}
