//! Ranks short documents by a query: an in-memory inverted index for thousands of names, labels and descriptions.
//!
//! Made for catalogs that a program already has in memory, such as tools, commands, settings or help pages: a few hundred to some
//! ten thousand entries, each with a name and a few sentences. An index is built once, answers in microseconds, and never changes.
//!
//! - The score is BM25. A query that is a document's name or one of its aliases puts that document first.
//! - Words are split like identifiers in programs: `readFile2`, `HTTPServer` and `find_users` are found by their parts. Common
//!   English endings and stop words are dropped; Chinese, Japanese and Thai text, which has no spaces, and Korean are
//!   indexed by characters and pairs of them.
//! - Everything is limited: the bytes of a text, the terms of a document, the terms of a query.
//!
//! ```
//! use haft_search::{Document, Index};
//!
//! let commands = [
//!     ("git.commit", "Record changes to the repository"),
//!     ("git.log", "Show the history of commits"),
//!     ("disk.usage", "Tell how much space files take"),
//! ];
//! let documents = commands.iter().map(|(name, text)| Document::new(name).with_text(text));
//! let index = Index::new(documents.enumerate());
//!
//! let best = index.search("history of commits", 5, |_| true);
//! assert_eq!(commands[best[0].document].0, "git.log");
//! // A name in full, whatever its case, comes first.
//! assert_eq!(index.search("Disk.Usage", 5, |_| true)[0].document, 2);
//! // The filter leaves documents out before the best are chosen.
//! assert!(index.search("space", 5, |document| document != 2).is_empty());
//! ```

mod document;
mod index;
mod labels;
mod top;
mod words;

pub use document::Document;
pub use index::{Index, NAMED};
pub use top::{Hit, TopHits};
pub use words::{clip, terms};
