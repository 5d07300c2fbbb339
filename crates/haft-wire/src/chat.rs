//! OpenAI Chat Completions, with the variants of the many providers that use it.

mod arguments;
mod calls;
mod choice;
mod content;
mod declare;
mod echo;
mod gather;
mod partial;
mod piece;
mod read;
mod write;

pub(crate) use declare::fragment;
pub(crate) use read::{ChatStream, read};
pub(crate) use write::write;
