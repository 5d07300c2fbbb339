//! Gemini `generateContent`, of the Gemini API and of Vertex AI.

mod declare;
mod history;
mod part;
mod partial;
mod parts;
mod read;
mod results;
mod stream;
mod write;

#[cfg(test)]
mod tests;

pub(crate) use declare::fragment;
pub(crate) use read::read;
pub(crate) use stream::GeminiStream;
pub(crate) use write::write;
