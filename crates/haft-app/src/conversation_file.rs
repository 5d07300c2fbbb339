//! The conversation of an agent's run, in the run's folder: whether there is one, and whether its calls have their answers.

use std::path::{Path, PathBuf};

use haft_agent::conversation::FileConversation;
use haft_agent::{Conversation as _, has_open_calls};

/// The file's name in the run's folder.
const FILE_NAME: &str = "conversation.jsonl";

/// Returns the path of the conversation of the run with this folder.
pub(crate) fn path(folder: &Path) -> PathBuf {
    folder.join(FILE_NAME)
}

/// Returns whether a run is an agent's, so that its conversation can be resumed.
pub fn is_kept(folder: &Path) -> bool {
    path(folder).is_file()
}

/// Returns whether a run has a conversation with calls that have no answer. One that cannot be read counts as such: its run stays open.
pub(crate) async fn is_open(folder: &Path) -> bool {
    if !is_kept(folder) {
        return false;
    }
    let entries = match FileConversation::open(path(folder)) {
        Ok(conversation) => conversation.entries().await,
        Err(error) => Err(error),
    };
    match entries {
        Ok(entries) => has_open_calls(entries),
        Err(error) => {
            tracing::warn!(%error, folder = %folder.display(), "read a conversation");
            true
        }
    }
}
