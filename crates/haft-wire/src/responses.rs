//! OpenAI Responses. Every request is self-contained: a host that does not want anything stored adds `store` and `include`
//! (`reasoning.encrypted_content`), and the reasoning comes back in the turns.

mod answer;
mod choice;
mod content;
mod declare;
mod echo;
mod item;
mod read;
mod stream;
mod write;

pub(crate) use declare::fragment;
pub(crate) use read::read;
pub(crate) use stream::ResponsesStream;
pub(crate) use write::write;
