//! Splits a command line into the commands that a shell would start.
//!
//! `a && b`, `$(b)`, `"b"` or `b\`+newline get around a rule that matches the text of a command line. This crate finds every
//! simple command of a line, wherever it is, with the files named by redirections, and follows the wrappers (`sudo`, `timeout`,
//! `sh -c`) that run other commands. It understands a small part of bash exactly and rejects the rest with a [`ParseError`], so
//! its results are the commands that bash starts. It makes no policy decisions.
//!
//! ```
//! use haft_shell::{AsWord, layers, parse};
//!
//! let line = parse("sudo rm -rf x && ls > out")?;
//! let texts: Vec<&str> = line.commands.iter().map(|command| command.text.as_str()).collect();
//! assert_eq!(texts, ["sudo rm -rf x", "ls"]);
//! assert_eq!(line.writes[0].text, "out");
//!
//! // `sudo` runs a command of its own.
//! let run = layers(&line.commands[0].words);
//! let names: Vec<&str> = run.commands.iter().map(|layer| layer.words[0].text()).collect();
//! assert_eq!(names, ["sudo", "rm"]);
//! # Ok::<(), haft_shell::ParseError>(())
//! ```
//!
//! A rejected line can still be searched: [`fragments`] returns the commands visible in any text. Use it for rules that forbid,
//! never for rules that allow.

mod each;
mod error;
mod word;
mod command;
mod looks;
mod options;
mod wrapper;
mod builtin;
mod layers;
mod escapes;
mod extent;
mod variables;
mod dialects;
mod format;
mod arithmetic;
mod walk;
mod computed;
mod parameter;
mod lexer;
mod plain;
mod counting;
mod parser;
mod compound;
mod condition;
#[cfg(feature = "grammar")]
mod tree;
mod line;
mod alike;
mod fragments;
mod path;
mod startup;
mod executed;

pub use crate::alike::reads_alike;
pub use crate::builtin::{ALTERING, alters_shell, runs_quoted};
pub use crate::command::{AssignedValue, SimpleCommand};
pub use crate::each::Loop;
pub use crate::error::{LONGEST_LINE, ParseError, is_too_long};
pub use crate::executed::{ValueUse, runs_at_start, split_assignment, value_use};
pub use crate::format::conversions;
pub use crate::fragments::{Fragments, fragments};
pub use crate::layers::{Layers, ShellText, is_shell, layers, script};
pub use crate::line::{Line, MOST_PARTS, parse};
pub use crate::looks::FirstLook;
pub use crate::options::{Given, Operands, Options};
pub use crate::path::{clean, cleaned};
pub use crate::plain::{direct_words, join_words, may_spell, needs_quotes, plain_words, push_word};
pub use crate::startup::STARTUP_FILES;
pub use crate::variables::is_number;
pub use crate::word::{AsWord, Expansions, Word};
pub use crate::wrapper::{Layer, LayerFolder, base_name, inner_command, is_wrapper};
