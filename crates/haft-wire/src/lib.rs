//! All dialects of tool calling: the formats of requests to model providers and of their answers, behind one neutral format.
//!
//! A host declares its tools once ([`ToolDeclaration`]), keeps one history ([`Message`]) and asks a [`Dialect`] for the body of the next
//! request ([`Request`]); the provider's answer comes back as a [`Reply`], complete or from a stream ([`ReplyReader`]). Nothing here sends
//! anything, knows a tool, or runs one.
//!
//! What a provider sent is kept unchanged ([`Turn::raw`]) and sent back unchanged, so that items unknown to this crate
//! are preserved.

pub mod declarations;
pub mod declared;
pub mod declarer;
pub mod dialect;
pub mod error;
pub mod events;
pub mod limits;
pub mod message;
pub mod names;
pub mod reader;
pub mod reply;
pub mod request;
pub mod strict;
pub mod stream;
mod body;
mod borrowed;
mod chat;
mod dispatch;
mod fault;
mod feed;
mod foreign;
mod fragment;
mod gemini;
mod loose;
mod malformed;
mod media;
mod messages;
mod responses;

pub use declarations::Declarations;
pub use declared::ToolDeclaration;
pub use declarer::Declarer;
pub use dialect::Dialect;
pub use error::WireError;
pub use limits::ReplyLimits;
pub use message::{ContentPart, Message, ToolOutput};
pub use reader::ReplyReader;
pub use reply::{Call, CallKind, Reply, StopReason, Turn, TurnItem, Usage};
pub use request::{Request, ToolChoice};
pub use stream::Delta;
