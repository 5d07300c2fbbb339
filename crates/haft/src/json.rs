//! JSON as callers send it: scanned strictly, checked against a compiled schema, never silently changed.

pub mod bind;
pub mod cache;
mod coerce;
pub(crate) mod escape;
pub(crate) mod keys;
pub(crate) mod lexer;
pub(crate) mod refs;
pub mod scan;
pub mod schema;
pub(crate) mod value;

#[cfg(test)]
mod tests;
