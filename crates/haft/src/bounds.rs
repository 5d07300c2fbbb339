//! Bounds on what is shared by callers that do not know each other: places, and bytes in memory.
//!
//! Whoever is asked to hold something for a caller takes it off a bound first. Both kinds keep something for those who come
//! late: some [`Places`] are the operator's alone, and each holder of a [`Budget`] has some bytes of its own.

mod budget;
mod places;

pub use budget::{Budget, Charge};
pub use places::{Place, Places};
