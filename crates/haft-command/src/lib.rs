//! What the commands of a line do: which files they read, change and remove, and which of them only read.
//!
//! `haft-shell` finds the commands that a shell would start for a line; this crate knows the programs. It decides nothing.
//!
//! [`meaning`] is the one answer to what a command does; a file in `programs/` states it for programs of one form. From it are derived what
//! runs unasked ([`only_reads`]), which files rules cover ([`touched`]), what is removed ([`removed`]) and what a command does outside a jail
//! ([`uses`]), what shows text from a network ([`network_reader`]) and which files say what a command runs ([`definitions`]).
//!
//! ```
//! use haft_command::{meaning, removed, touched};
//! use haft_shell::{inner_command, plain_words};
//!
//! let words = plain_words("timeout 5 grep -r KEY src").unwrap();
//! let command = inner_command(&words);
//! assert!(meaning(command).only_reads);
//! assert_eq!(touched(command).below, ["src"]);
//!
//! let words = plain_words("rm -rf build").unwrap();
//! assert!(meaning(inner_command(&words)).unknown, "a folder and all that it holds");
//! assert_eq!(removed(inner_command(&words)).unwrap(), ["build"]);
//! ```

mod answers;
mod definitions;
mod forms;
mod meaning;
mod network;
mod outside;
mod path_use;
mod program;
mod programs;
mod scan;
mod script_files;
mod shape;
mod started;
mod summary;
#[cfg(test)]
mod tests;
mod touched;
mod word;

pub use crate::answers::{may_act_by_pattern, removed};
pub use crate::definitions::{defines_commands, definitions};
pub use crate::meaning::CommandMeaning;
pub use crate::network::network_reader;
pub use crate::outside::{CommandUses, uses};
pub use crate::path_use::{PathAccess, PathCertainty, PathUse};
pub use crate::programs::{folder_of, meaning, only_reads};
pub use crate::shape::{PathShape, ShapePart, matches};
pub use crate::touched::{TouchedFiles, touched};
pub use crate::word::{Bindings, CommandWord, ShellWord, WordForm};
