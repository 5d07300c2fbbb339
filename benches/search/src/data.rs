//! The parts of the tools' results that are compared.

use haft::Outcome;
use serde::Deserialize;
use serde::de::DeserializeOwned;

/// The result of `grep_files`.
#[derive(Debug, Deserialize)]
pub(crate) struct Matches {
    pub(crate) matches: Vec<Match>,
    pub(crate) truncated: bool,
    /// Why files were not searched to their end.
    #[serde(default)]
    pub(crate) notes: Vec<String>,
}

/// One line.
#[derive(Debug, Deserialize)]
pub(crate) struct Match {
    pub(crate) path: String,
    pub(crate) line: u64,
}

/// The result of `glob_files`.
#[derive(Debug, Deserialize)]
pub(crate) struct Entries {
    pub(crate) entries: Vec<Entry>,
    pub(crate) truncated: bool,
}

/// One file.
#[derive(Debug, Deserialize)]
pub(crate) struct Entry {
    pub(crate) path: String,
    pub(crate) kind: String,
}

/// Returns the structured result.
pub(crate) fn of<T: DeserializeOwned>(outcome: &Outcome) -> T {
    let raw = outcome.data.as_ref().expect("structured content");
    serde_json::from_str(raw.get()).expect("the shape of the result")
}
