//! `Conversation`: where the history is kept as it grows; from its entries a run goes on in another process.

use std::io;

use haft::future::BoxFuture;
use haft_wire::{Part, Stop, Turn, Usage};

pub mod file;
mod line;
pub mod memory;

pub use file::FileConversation;
pub use memory::MemoryConversation;

/// One thing that happened. Entries are only ever appended, in the order in which things happen.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Entry {
    /// What the user says.
    User(Vec<Part>),
    /// What the host tells the model.
    Host(String),
    /// What the model said.
    Turn {
        /// Its turn.
        turn: Turn,
        /// Why it stopped.
        stop: Stop,
        /// What it cost.
        usage: Usage,
    },
    /// Calls of the last turn are about to run, by their place in the turn. Written before they do: one that was begun and has no
    /// answer may have run.
    Begun(Vec<usize>),
    /// One of several calls of tools that a call of the last turn stands for has ended.
    Stepped {
        /// The call's place in the turn.
        place: usize,
        /// What came of it: the outcome as JSON text.
        outcome: String,
    },
    /// A call of the last turn waits for a decision.
    Suspended {
        /// Its place in the turn.
        place: usize,
        /// The request that it waits for.
        approval: String,
    },
    /// A call of the last turn has its answer.
    Answered {
        /// Its place in the turn.
        place: usize,
        /// The answer.
        answer: AnswerText,
    },
    /// The tools that were declared, in this order, from here on.
    Offered(Vec<String>),
    /// The skills that are active from here on.
    Skills(Vec<String>),
    /// An old answer was shortened: what it held is kept elsewhere.
    Shortened {
        /// The turn, counted from 1.
        turn: u32,
        /// The call's place in it.
        place: usize,
        /// What stands in place of it.
        text: String,
    },
    /// What was spent on something else than a turn: on a reply that broke off, or on a turn whose provider says nothing of it.
    Spent {
        /// The tokens.
        usage: Usage,
        /// Whether they were estimated by the length of what was read and written.
        is_estimate: bool,
    },
    /// The messages before a turn were replaced by a summary.
    Summary {
        /// The first turn that stands as it is, counted from 1.
        turn: u32,
        /// The summary.
        text: String,
        /// What it cost.
        usage: Usage,
    },
}

/// An answer to a call, without the call.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AnswerText {
    /// What the model reads.
    pub parts: Vec<Part>,
    /// Whether the call failed.
    pub is_error: bool,
    /// Tools that a search found, by their names on the wire.
    pub loads: Vec<String>,
    /// The item in the provider's own shape, as JSON text.
    pub item: Option<String>,
}

impl AnswerText {
    /// A text as the answer.
    pub fn text(text: impl Into<String>) -> Self {
        Self {
            parts: vec![Part::Text(text.into())],
            ..Self::default()
        }
    }

    /// The same, for a call that failed.
    pub fn error(text: impl Into<String>) -> Self {
        Self {
            is_error: true,
            ..Self::text(text)
        }
    }
}

/// Keeps a conversation.
pub trait Conversation: Send + Sync {
    /// All entries so far, in their order.
    ///
    /// # Errors
    /// They cannot be read, or one that is not the last is damaged.
    fn entries(&self) -> BoxFuture<'_, io::Result<Vec<Entry>>>;

    /// Appends an entry. It survives this process when this returns.
    ///
    /// # Errors
    /// It cannot be written; nothing of it is kept then.
    fn append(&self, entry: &Entry) -> io::Result<()>;

    /// Waits until all that was appended survives the machine, too.
    ///
    /// # Errors
    /// What the disk says.
    fn sync(&self) -> BoxFuture<'_, io::Result<()>>;
}

impl std::fmt::Debug for dyn Conversation + '_ {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Conversation")
    }
}
