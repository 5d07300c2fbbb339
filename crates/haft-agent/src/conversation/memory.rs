//! `MemoryConversation`: a conversation that lasts as long as the process.

use std::io;

use haft::future::BoxFuture;
use parking_lot::Mutex;

use crate::conversation::{Conversation, ConversationEntry};

/// Stores entries in memory.
#[derive(Debug, Default)]
pub struct MemoryConversation(Mutex<Vec<ConversationEntry>>);

impl MemoryConversation {
    /// Creates an empty conversation.
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates a conversation with these entries.
    pub fn of(entries: Vec<ConversationEntry>) -> Self {
        Self(Mutex::new(entries))
    }
}

impl Conversation for MemoryConversation {
    fn entries(&self) -> BoxFuture<'_, io::Result<Vec<ConversationEntry>>> {
        let entries = self.0.lock().clone();
        Box::pin(async move { Ok(entries) })
    }

    fn append(&self, entry: &ConversationEntry) -> io::Result<()> {
        self.0.lock().push(entry.clone());
        Ok(())
    }

    fn sync(&self) -> BoxFuture<'_, io::Result<()>> {
        Box::pin(async { Ok(()) })
    }
}
