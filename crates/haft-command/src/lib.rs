//! What the commands of a line do: which files they read, change and remove, and which of them only read.
//!
//! `haft-shell` finds the commands that a shell would start for a line; this crate knows the programs. It decides nothing.

mod find;
mod git;
mod grep;
mod path;
mod readers;
mod spelled;
mod touched;
mod uses;

pub use crate::find::only_looks;
pub use crate::path::clean;
pub use crate::readers::only_reads;
pub use crate::spelled::{ShellWord, WordForm};
pub use crate::touched::{TouchedFiles, touched};
pub use crate::uses::{CommandUses, PathAccess, PathCertainty, PathUse, creates_links, uses};
