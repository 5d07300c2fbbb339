//! Writes a model's turn as it is sent back to a provider that uses Responses.

use haft_json::escape::string;
use haft_json::members::Writer;

use crate::declarations::Declarations;
use crate::dialect::Dialect;
use crate::loose::compact;
use crate::reply::{Call, CallKind, Turn, TurnItem};

/// Writes the items of a turn, separated by commas; nothing if there are none.
pub(crate) fn turn(out: &mut Vec<u8>, turn: &Turn, tools: &Declarations) {
    if turn.dialect == Dialect::OpenAiResponses {
        let list = compact(turn.raw.get());
        let inner = list
            .strip_prefix('[')
            .and_then(|list| list.strip_suffix(']'));
        if let Some(inner) = inner {
            out.extend_from_slice(inner.as_bytes());
            return;
        }
    }
    let begun = out.len();
    let next = |out: &mut Vec<u8>| {
        if out.len() > begun {
            out.push(b',');
        }
    };
    for item in &turn.items {
        if let TurnItem::Text(text) | TurnItem::Refusal(text) = item {
            next(out);
            let mut member = Writer::begin(out);
            string(member.key("role"), "assistant");
            string(member.key("content"), text);
            member.end();
        }
    }
    // Calls come together, after the text: a provider accepts no text between a call and its result.
    for one in turn.calls() {
        next(out);
        call(out, one, tools);
    }
}

fn call(out: &mut Vec<u8>, call: &Call, tools: &Declarations) {
    let (kind, text) = match call.kind {
        CallKind::Freeform => ("custom_tool_call", "input"),
        _ => ("function_call", "arguments"),
    };
    let names = &tools.names;
    let name = names.carried(
        Dialect::OpenAiResponses,
        call.namespace.as_deref(),
        &call.name,
    );
    let mut member = Writer::begin(out);
    string(member.key("type"), kind);
    string(member.key("call_id"), &call.id);
    string(member.key("name"), &name);
    string(member.key(text), &call.arguments);
    member.end();
}
