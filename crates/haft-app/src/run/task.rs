//! The task of an agent's run: the beginning of the first prompt in its conversation.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::Path;

use haft::text::clip;

/// The name of the conversation's file in the run's folder.
pub(crate) const FILE_NAME: &str = "conversation.jsonl";
/// Maximum number of bytes of a first prompt that are read for a list.
const MAX_FIRST_LINE: u64 = 64 << 10;
/// Maximum number of its words and of its characters that are listed.
const MAX_WORDS: usize = 30;
const MAX_TITLE: usize = 100;

/// Returns the task of the run with this folder, if it is an agent's and can be read; secrets are not redacted.
pub(crate) fn of(folder: &Path) -> Option<String> {
    let mut line = String::new();
    let file = File::open(folder.join(FILE_NAME))
        .ok()?
        .take(MAX_FIRST_LINE);
    BufReader::new(file).read_line(&mut line).ok()?;
    let entry: serde_json::Value = serde_json::from_str(&line).ok()?;
    let text = entry.pointer("/entry/user/0/text")?.as_str()?;
    let words: Vec<&str> = text.split_whitespace().take(MAX_WORDS).collect();
    let words = words.join(" ");
    (!words.is_empty()).then(|| clip(&words, MAX_TITLE).into_owned())
}
