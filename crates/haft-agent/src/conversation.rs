//! `Conversation`: where the history is recorded as it grows; another process can resume a run from its entries.

use std::io;

use haft::future::BoxFuture;
use haft_wire::{ContentPart, StopReason, Turn, Usage};

pub mod file;
mod line;
pub mod memory;

pub use file::FileConversation;
pub use memory::MemoryConversation;

/// One recorded event. Entries are only appended, in the order in which they happen.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum ConversationEntry {
    /// A prompt of the user.
    User(Vec<ContentPart>),
    /// A note of the host to the model.
    Host(String),
    /// A reply of the model.
    Turn {
        /// The reply's text, calls and other items.
        turn: Turn,
        /// Why the model stopped.
        stop: StopReason,
        /// The tokens that the provider reports for it; zero where it reports none.
        usage: Usage,
    },
    /// Calls of the last turn are about to run, by their place in the turn. Written before they run: a call that was started and has
    /// no answer may have run.
    Begun(Vec<usize>),
    /// One of the steps that a call of the last turn stands for has ended.
    Stepped {
        /// The call's place in the turn.
        place: usize,
        /// The step's outcome as JSON text.
        outcome: String,
    },
    /// A call of the last turn waits for a decision.
    Suspended {
        /// Its place in the turn.
        place: usize,
        /// The id of the approval request.
        approval: String,
    },
    /// A call of the last turn has its answer.
    Answered {
        /// Its place in the turn.
        place: usize,
        /// What the model reads as its result, until the answer is shortened.
        answer: AnswerText,
    },
    /// The tools declared from here on, in this order.
    Offered(Vec<String>),
    /// The skills active from here on.
    Skills(Vec<String>),
    /// An old answer was shortened: its full text is stored elsewhere.
    Shortened {
        /// The turn, counted from 1.
        turn: u32,
        /// The call's place in it.
        place: usize,
        /// The text that replaces it.
        text: String,
    },
    /// Tokens used for something other than a turn: for a reply that broke off, or for a turn whose provider does not report them.
    Spent {
        /// The tokens read and written.
        usage: Usage,
        /// Whether they were estimated from the length of what was read and written.
        is_estimate: bool,
    },
    /// A summary replaced the messages before a turn.
    Summary {
        /// The first turn that is kept unchanged, counted from 1.
        turn: u32,
        /// The summary with haft's mark, the last to-do list and the user's last words: the model reads it as a message
        /// of the user.
        text: String,
        /// The tokens read and written for it.
        usage: Usage,
    },
    /// A denial ended the run; the text says who denied what. Only another prompt continues the conversation.
    Denied(String),
}

/// An answer to a call, without the call.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AnswerText {
    /// The parts that the model reads.
    pub parts: Vec<ContentPart>,
    /// Whether the call failed.
    pub is_error: bool,
    /// Tools found by a search, by their names on the wire.
    pub loads: Vec<String>,
    /// The item in the provider's own format, as JSON text.
    pub item: Option<String>,
}

impl AnswerText {
    /// Creates an answer with a text.
    pub fn text(text: impl Into<String>) -> Self {
        Self {
            parts: vec![ContentPart::Text(text.into())],
            ..Self::default()
        }
    }

    /// Creates an error answer with a text.
    pub fn error(text: impl Into<String>) -> Self {
        Self {
            is_error: true,
            ..Self::text(text)
        }
    }
}

/// Stores a conversation.
pub trait Conversation: Send + Sync {
    /// Returns all entries so far, in order.
    ///
    /// # Errors
    /// If they cannot be read, or an entry other than the last is damaged.
    fn entries(&self) -> BoxFuture<'_, io::Result<Vec<ConversationEntry>>>;

    /// Appends an entry. Once this returns, the entry survives a crash of this process.
    ///
    /// # Errors
    /// If it cannot be written; no part of it is kept then.
    fn append(&self, entry: &ConversationEntry) -> io::Result<()>;

    /// Waits until all appended entries survive a crash of the machine, too.
    ///
    /// # Errors
    /// If the disk reports an error.
    fn sync(&self) -> BoxFuture<'_, io::Result<()>>;
}

impl std::fmt::Debug for dyn Conversation + '_ {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Conversation")
    }
}
