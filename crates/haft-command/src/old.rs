//! The answers of before, for the comparison.

pub mod find;
pub mod git;
pub mod grep;
pub mod readers;
pub mod touched;
pub mod uses;
