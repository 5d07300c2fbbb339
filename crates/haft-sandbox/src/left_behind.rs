//! `LeftBehind`: what a command left that ended with its jail: processes, and files in its own HOME.

use std::path::PathBuf;

/// What a command left that ended with its jail. Both lists are bounded, and name things as the command called them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LeftBehind {
    /// The programs of the processes that still ran, each once.
    pub processes: Vec<String>,
    /// Files and folders with files in its HOME that begin with a dot, and in `go`: relative to HOME, at most three
    /// levels deep.
    pub home: Vec<PathBuf>,
}
