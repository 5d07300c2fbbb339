//! An entry as one line of JSON: `{"v":1,"KIND":{…}}`.

use std::io;

use haft_wire::{Call, CallKind, ContentPart, StopReason, Turn, TurnItem, Usage};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::conversation::{AnswerText, ConversationEntry};

/// The version written, and the newest one that can be read.
const VERSION: u32 = 1;

/// Encodes an entry, with the line feed.
pub(super) fn write(entry: &ConversationEntry) -> io::Result<Vec<u8>> {
    let line = ConversationLine {
        v: VERSION,
        entry: entry.into(),
    };
    let mut text = serde_json::to_vec(&line)?;
    text.push(b'\n');
    Ok(text)
}

/// Decodes an entry.
pub(super) fn read(line: &[u8]) -> io::Result<ConversationEntry> {
    let wrong = |why: String| io::Error::new(io::ErrorKind::InvalidData, why);
    let line: ConversationLine = serde_json::from_slice(line).map_err(|e| wrong(e.to_string()))?;
    if line.v > VERSION {
        let why = format!(
            "an entry of version {}; this program reads up to {VERSION}",
            line.v
        );
        return Err(wrong(why));
    }
    line.entry.into_entry().map_err(wrong)
}

#[derive(Serialize, Deserialize)]
struct ConversationLine {
    v: u32,
    entry: StoredEntry,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum StoredEntry {
    User(Vec<StoredPart>),
    Host(String),
    Turn(Box<StoredTurn>),
    Begun(Vec<usize>),
    Stepped {
        place: usize,
        outcome: String,
    },
    Suspended {
        place: usize,
        approval: String,
    },
    Answered {
        place: usize,
        answer: StoredAnswer,
    },
    Offered(Vec<String>),
    Skills(Vec<String>),
    Shortened {
        turn: u32,
        place: usize,
        text: String,
    },
    Spent {
        usage: StoredUsage,
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        is_estimate: bool,
    },
    Summary {
        turn: u32,
        text: String,
        usage: StoredUsage,
    },
    Denied(String),
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum StoredPart {
    Text(String),
    Image {
        media_type: String,
        data: String,
    },
    Audio {
        media_type: String,
        data: String,
    },
    File {
        name: String,
        media_type: String,
        data: String,
    },
}

#[derive(Serialize, Deserialize)]
struct StoredTurn {
    dialect: String,
    stop: String,
    usage: StoredUsage,
    items: Vec<StoredItem>,
    raw: Box<RawValue>,
}

#[derive(Serialize, Deserialize, Clone, Copy)]
struct StoredUsage {
    input: u64,
    cached: u64,
    output: u64,
    thinking: u64,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum StoredItem {
    Text(String),
    Thinking(String),
    Refusal(String),
    Call(Box<StoredCall>),
    Hosted {
        kind: String,
        name: Option<String>,
        raw: Box<RawValue>,
    },
    Approval {
        id: String,
        server: String,
        name: String,
        arguments: String,
    },
    Unknown {
        kind: String,
        raw: Box<RawValue>,
    },
}

#[derive(Serialize, Deserialize)]
struct StoredCall {
    id: String,
    item: Option<String>,
    kind: StoredKind,
    name: String,
    namespace: Option<String>,
    toolset: Option<String>,
    caller: Option<Box<RawValue>>,
    arguments: String,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum StoredKind {
    Function,
    Freeform,
    ToolSearch,
    Provider(String),
}

#[derive(Serialize, Deserialize)]
struct StoredAnswer {
    parts: Vec<StoredPart>,
    is_error: bool,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    loads: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    item: Option<String>,
}

impl From<&ConversationEntry> for StoredEntry {
    fn from(entry: &ConversationEntry) -> Self {
        match entry {
            ConversationEntry::User(parts) => {
                Self::User(parts.iter().map(StoredPart::from).collect())
            }
            ConversationEntry::Host(text) => Self::Host(text.clone()),
            ConversationEntry::Turn { turn, stop, usage } => Self::Turn(Box::new(StoredTurn {
                dialect: turn.dialect.as_str().to_owned(),
                stop: stop.to_string(),
                usage: (*usage).into(),
                items: turn.items.iter().filter_map(StoredItem::of).collect(),
                raw: turn.raw.clone(),
            })),
            ConversationEntry::Begun(places) => Self::Begun(places.clone()),
            ConversationEntry::Stepped { place, outcome } => Self::Stepped {
                place: *place,
                outcome: outcome.clone(),
            },
            ConversationEntry::Suspended { place, approval } => Self::Suspended {
                place: *place,
                approval: approval.clone(),
            },
            ConversationEntry::Answered { place, answer } => Self::Answered {
                place: *place,
                answer: answer.into(),
            },
            ConversationEntry::Offered(names) => Self::Offered(names.clone()),
            ConversationEntry::Skills(names) => Self::Skills(names.clone()),
            ConversationEntry::Shortened { turn, place, text } => Self::Shortened {
                turn: *turn,
                place: *place,
                text: text.clone(),
            },
            ConversationEntry::Spent { usage, is_estimate } => Self::Spent {
                usage: (*usage).into(),
                is_estimate: *is_estimate,
            },
            ConversationEntry::Summary { turn, text, usage } => Self::Summary {
                turn: *turn,
                text: text.clone(),
                usage: (*usage).into(),
            },
            ConversationEntry::Denied(why) => Self::Denied(why.clone()),
        }
    }
}

impl StoredEntry {
    fn into_entry(self) -> Result<ConversationEntry, String> {
        Ok(match self {
            Self::User(parts) => {
                ConversationEntry::User(parts.into_iter().map(ContentPart::from).collect())
            }
            Self::Host(text) => ConversationEntry::Host(text),
            Self::Turn(turn) => turn.into_entry()?,
            Self::Begun(places) => ConversationEntry::Begun(places),
            Self::Stepped { place, outcome } => ConversationEntry::Stepped { place, outcome },
            Self::Suspended { place, approval } => ConversationEntry::Suspended { place, approval },
            Self::Answered { place, answer } => ConversationEntry::Answered {
                place,
                answer: answer.into(),
            },
            Self::Offered(names) => ConversationEntry::Offered(names),
            Self::Skills(names) => ConversationEntry::Skills(names),
            Self::Shortened { turn, place, text } => {
                ConversationEntry::Shortened { turn, place, text }
            }
            Self::Spent { usage, is_estimate } => ConversationEntry::Spent {
                usage: usage.into(),
                is_estimate,
            },
            Self::Summary { turn, text, usage } => ConversationEntry::Summary {
                turn,
                text,
                usage: usage.into(),
            },
            Self::Denied(why) => ConversationEntry::Denied(why),
        })
    }
}

impl StoredTurn {
    fn into_entry(self) -> Result<ConversationEntry, String> {
        let dialect = self.dialect.parse().map_err(|e| format!("{e}"))?;
        Ok(ConversationEntry::Turn {
            turn: Turn {
                dialect,
                items: self.items.into_iter().map(TurnItem::from).collect(),
                raw: self.raw,
            },
            stop: stop_of(self.stop),
            usage: self.usage.into(),
        })
    }
}

/// Returns the stop reason for a word.
fn stop_of(word: String) -> StopReason {
    match word.as_str() {
        "end" => StopReason::End,
        "calls" => StopReason::Calls,
        "length" => StopReason::Length,
        "filter" => StopReason::Filter,
        "pause" => StopReason::Pause,
        _ => StopReason::Other(word),
    }
}

impl From<Usage> for StoredUsage {
    fn from(usage: Usage) -> Self {
        Self {
            input: usage.input,
            cached: usage.cached,
            output: usage.output,
            thinking: usage.thinking,
        }
    }
}

impl From<StoredUsage> for Usage {
    fn from(usage: StoredUsage) -> Self {
        Self {
            input: usage.input,
            cached: usage.cached,
            output: usage.output,
            thinking: usage.thinking,
        }
    }
}

impl From<&ContentPart> for StoredPart {
    fn from(part: &ContentPart) -> Self {
        match part.clone() {
            ContentPart::Text(text) => Self::Text(text),
            ContentPart::Image { media_type, data } => Self::Image { media_type, data },
            ContentPart::Audio { media_type, data } => Self::Audio { media_type, data },
            ContentPart::File {
                name,
                media_type,
                data,
            } => Self::File {
                name,
                media_type,
                data,
            },
        }
    }
}

impl From<StoredPart> for ContentPart {
    fn from(part: StoredPart) -> Self {
        match part {
            StoredPart::Text(text) => Self::Text(text),
            StoredPart::Image { media_type, data } => Self::Image { media_type, data },
            StoredPart::Audio { media_type, data } => Self::Audio { media_type, data },
            StoredPart::File {
                name,
                media_type,
                data,
            } => Self::File {
                name,
                media_type,
                data,
            },
        }
    }
}

impl StoredItem {
    /// Returns `None` for an item of a newer kind than this format knows; the turn's raw text has it.
    fn of(item: &TurnItem) -> Option<Self> {
        Some(match item.clone() {
            TurnItem::Text(text) => Self::Text(text),
            TurnItem::Thinking(text) => Self::Thinking(text),
            TurnItem::Refusal(text) => Self::Refusal(text),
            TurnItem::Call(call) => Self::Call(Box::new(call.into())),
            TurnItem::Hosted { kind, name, raw } => Self::Hosted { kind, name, raw },
            TurnItem::Approval {
                id,
                server,
                name,
                arguments,
            } => Self::Approval {
                id,
                server,
                name,
                arguments,
            },
            TurnItem::Unknown { kind, raw } => Self::Unknown { kind, raw },
            _ => return None,
        })
    }
}

impl From<StoredItem> for TurnItem {
    fn from(item: StoredItem) -> Self {
        match item {
            StoredItem::Text(text) => Self::Text(text),
            StoredItem::Thinking(text) => Self::Thinking(text),
            StoredItem::Refusal(text) => Self::Refusal(text),
            StoredItem::Call(call) => Self::Call((*call).into()),
            StoredItem::Hosted { kind, name, raw } => Self::Hosted { kind, name, raw },
            StoredItem::Approval {
                id,
                server,
                name,
                arguments,
            } => Self::Approval {
                id,
                server,
                name,
                arguments,
            },
            StoredItem::Unknown { kind, raw } => Self::Unknown { kind, raw },
        }
    }
}

impl From<Call> for StoredCall {
    fn from(call: Call) -> Self {
        Self {
            id: call.id,
            item: call.item,
            kind: match call.kind {
                CallKind::Function => StoredKind::Function,
                CallKind::Freeform => StoredKind::Freeform,
                CallKind::ToolSearch => StoredKind::ToolSearch,
                CallKind::Provider(word) => StoredKind::Provider(word),
            },
            name: call.name,
            namespace: call.namespace,
            toolset: call.toolset,
            caller: call.caller,
            arguments: call.arguments,
        }
    }
}

impl From<StoredCall> for Call {
    fn from(call: StoredCall) -> Self {
        Self {
            id: call.id,
            item: call.item,
            kind: match call.kind {
                StoredKind::Function => CallKind::Function,
                StoredKind::Freeform => CallKind::Freeform,
                StoredKind::ToolSearch => CallKind::ToolSearch,
                StoredKind::Provider(word) => CallKind::Provider(word),
            },
            name: call.name,
            namespace: call.namespace,
            toolset: call.toolset,
            caller: call.caller,
            arguments: call.arguments,
        }
    }
}

impl From<&AnswerText> for StoredAnswer {
    fn from(answer: &AnswerText) -> Self {
        Self {
            parts: answer.parts.iter().map(StoredPart::from).collect(),
            is_error: answer.is_error,
            loads: answer.loads.clone(),
            item: answer.item.clone(),
        }
    }
}

impl From<StoredAnswer> for AnswerText {
    fn from(answer: StoredAnswer) -> Self {
        Self {
            parts: answer.parts.into_iter().map(ContentPart::from).collect(),
            is_error: answer.is_error,
            loads: answer.loads,
            item: answer.item,
        }
    }
}
