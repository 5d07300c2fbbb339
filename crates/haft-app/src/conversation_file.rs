//! The conversation of an agent's run, in the run's folder: whether there is one, its task, and whether its calls have their answers.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};

use haft::text::clip;
use haft_agent::conversation::FileConversation;
use haft_agent::{
    Conversation as _, ConversationEntry, closed_by_denial, has_open_calls, owes_reply,
};

/// The file's name in the run's folder.
const FILE_NAME: &str = "conversation.jsonl";
/// Maximum number of bytes of a first prompt that are read for a list.
const MAX_FIRST_LINE: u64 = 64 << 10;
/// Maximum number of its words and of its characters that are listed.
const MAX_WORDS: usize = 30;
const MAX_TITLE: usize = 100;

/// Returns the path of the conversation of the run with this folder.
pub(crate) fn path(folder: &Path) -> PathBuf {
    folder.join(FILE_NAME)
}

/// Returns whether a run is an agent's, so that its conversation can be resumed.
pub fn is_kept(folder: &Path) -> bool {
    path(folder).is_file()
}

/// Returns whether a run has a conversation with calls that have no answer or, where `goes_on`, one that the model has not answered. One
/// that cannot be read counts as such: its run stays open.
pub(crate) async fn is_open(folder: &Path, goes_on: bool) -> bool {
    if !is_kept(folder) {
        return false;
    }
    match entries(folder).await {
        Ok(entries) if goes_on => owes_reply(entries),
        Ok(entries) => has_open_calls(entries),
        Err(error) => {
            tracing::warn!(%error, folder = %folder.display(), "read a conversation");
            true
        }
    }
}

async fn entries(folder: &Path) -> io::Result<Vec<ConversationEntry>> {
    FileConversation::open(path(folder))?.entries().await
}

/// Ends the conversation of the run with this folder, if it has one, with the denial that ended the run. `denied` has the answers to the
/// calls that were denied, by their approval requests.
pub(crate) async fn end_by_denial(
    folder: &Path,
    denial: &str,
    denied: &HashMap<String, String>,
) -> io::Result<()> {
    if !is_kept(folder) {
        return Ok(());
    }
    let conversation = FileConversation::open(path(folder))?;
    let entries = conversation.entries().await?;
    for entry in closed_by_denial(entries, denial, &|request| denied.get(request).cloned()) {
        conversation.append(&entry)?;
    }
    conversation.sync().await
}

/// Returns the task of the run with this folder, the beginning of the first prompt, if it is an agent's and can be read; secrets are
/// not redacted.
pub(crate) fn task(folder: &Path) -> Option<String> {
    let mut line = String::new();
    let file = File::open(path(folder)).ok()?.take(MAX_FIRST_LINE);
    BufReader::new(file).read_line(&mut line).ok()?;
    let entry: serde_json::Value = serde_json::from_str(&line).ok()?;
    let text = entry.pointer("/entry/user/0/text")?.as_str()?;
    let words: Vec<&str> = text.split_whitespace().take(MAX_WORDS).collect();
    let words = words.join(" ");
    (!words.is_empty()).then(|| clip(&words, MAX_TITLE).into_owned())
}
