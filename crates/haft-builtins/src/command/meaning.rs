//! What a change set amounts to, as a person reads it: commits instead of the files in which git stores them, packages instead of a
//! lockfile's lines.
//!
//! Everything here reads files that a command wrote. Every reader is haft's own and bounded: in bytes, in entries and in time.

mod budget;
mod folded;
mod git;
mod lines;
mod lockfile;
mod notebook;
mod picture;
mod read;
mod sides;
mod single;
mod words;
mod worktree;

pub use crate::picture::PictureReader;
pub(super) use git::{Incoming, IncomingFile, incoming, stored};
pub(in crate::command) use picture::{MAX_PIXELS, MAX_THUMBNAIL};
pub use read::{ReadOptions, read};
pub use sides::{ChangeSides, PathChange, PathContent, Side};
pub(in crate::command) use words::{one_line, size};
