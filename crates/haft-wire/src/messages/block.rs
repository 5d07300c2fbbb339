//! A block of content, and its conversion to an item.

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::borrowed::BorrowedText;
use crate::reply::{Call, CallKind, TurnItem};

/// The members of a block that are read.
#[derive(Debug, Deserialize)]
pub(crate) struct MessagesBlock<'a> {
    #[serde(borrow, rename = "type")]
    pub(crate) kind: BorrowedText<'a>,
    #[serde(borrow, default)]
    text: Option<BorrowedText<'a>>,
    #[serde(borrow, default)]
    thinking: Option<BorrowedText<'a>>,
    #[serde(borrow, default)]
    id: Option<BorrowedText<'a>>,
    #[serde(borrow, default)]
    pub(crate) name: Option<BorrowedText<'a>>,
    #[serde(borrow, default)]
    input: Option<&'a RawValue>,
    #[serde(borrow, default)]
    toolset_name: Option<BorrowedText<'a>>,
    #[serde(borrow, default)]
    caller: Option<&'a RawValue>,
}

impl MessagesBlock<'_> {
    /// Returns whether it is a call that the host must answer.
    pub(crate) fn is_call(&self) -> bool {
        self.kind.0 == "tool_use"
    }

    /// Returns whether it is a text that the provider would refuse if it were sent back.
    pub(crate) fn is_blank(&self) -> bool {
        let blank = |text: &BorrowedText<'_>| text.0.trim().is_empty();
        self.kind.0 == "text" && self.text.as_ref().is_none_or(blank)
    }
}

/// Converts a block to an item. `arguments` are those of a call that arrived in pieces.
///
/// # Errors
/// If the block is a call without an id or name.
pub(crate) fn item(
    block: MessagesBlock<'_>,
    raw: &RawValue,
    arguments: Option<String>,
) -> Result<TurnItem, &'static str> {
    Ok(match block.kind.0.as_ref() {
        "text" => TurnItem::Text(BorrowedText::owned(block.text).unwrap_or_default()),
        "thinking" => TurnItem::Thinking(BorrowedText::owned(block.thinking).unwrap_or_default()),
        // The provider shows nothing of this thinking.
        "redacted_thinking" => TurnItem::Thinking(String::new()),
        "tool_use" => TurnItem::Call(Call {
            id: BorrowedText::owned(block.id)
                .filter(|id| !id.is_empty())
                .ok_or("a `tool_use` block without an `id`")?,
            item: None,
            kind: CallKind::Function,
            name: BorrowedText::owned(block.name).ok_or("a `tool_use` block without a `name`")?,
            namespace: None,
            toolset: BorrowedText::owned(block.toolset_name),
            caller: block
                .caller
                .filter(|caller| !is_direct(caller))
                .map(RawValue::to_owned),
            arguments: arguments
                .unwrap_or_else(|| block.input.map_or("{}", RawValue::get).to_owned()),
        }),
        kind @ ("server_tool_use" | "mcp_tool_use" | "container_upload") => {
            hosted(kind, block.name, raw)
        }
        kind if kind.ends_with("_tool_result") => hosted(kind, block.name, raw),
        kind => TurnItem::Unknown {
            kind: kind.to_owned(),
            raw: raw.to_owned(),
        },
    })
}

fn hosted(kind: &str, name: Option<BorrowedText<'_>>, raw: &RawValue) -> TurnItem {
    TurnItem::Hosted {
        kind: kind.to_owned(),
        name: BorrowedText::owned(name),
        raw: raw.to_owned(),
    }
}

/// Returns whether the model itself makes the call.
fn is_direct(caller: &RawValue) -> bool {
    #[derive(Deserialize)]
    struct BlockCaller<'a> {
        #[serde(borrow, rename = "type")]
        kind: BorrowedText<'a>,
    }
    serde_json::from_str(caller.get())
        .is_ok_and(|caller: BlockCaller<'_>| caller.kind.0 == "direct")
}
