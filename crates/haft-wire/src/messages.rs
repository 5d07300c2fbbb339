//! Anthropic Messages: `POST /v1/messages`.

mod block;
mod content;
mod declare;
mod event;
mod history;
mod open;
mod piece;
mod read;
mod stream;
mod write;

#[cfg(test)]
mod tests;

pub(crate) use declare::fragment;
pub(crate) use read::read;
pub(crate) use stream::MessagesStream;
pub(crate) use write::write;
