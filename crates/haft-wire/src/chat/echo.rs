//! Writes a model's turn as it is sent back to a provider that uses Chat.

use haft_json::escape::string;
use haft_json::members::Writer;
use serde_json::value::RawValue;

use crate::declarations::Declarations;
use crate::dialect::Dialect;
use crate::loose::{Members, compact, list};
use crate::reply::{Call, CallKind, Turn, TurnItem};

/// Members of answers that no request has: providers refuse some of them.
const OF_ANSWERS: [&str; 4] = ["annotations", "executed_tools", "channel", "index"];

/// Writes the turn as a message; returns `false` if there is nothing to write.
pub(crate) fn turn(out: &mut Vec<u8>, turn: &Turn, tools: &Declarations) -> bool {
    if turn.dialect == Dialect::OpenAiChat {
        let begun = out.len();
        if message(out, &turn.raw).is_ok() {
            return true;
        }
        out.truncate(begun);
    }
    rendered(out, turn, tools)
}

/// Returns whether a value is empty: some providers send every possible member.
fn is_empty(value: &RawValue) -> bool {
    let text = compact(value.get());
    let nothing = ["null", "\"\"", "[]", "{}"].contains(&&*text);
    nothing
        || matches!(
            &*text,
            r#"{"arguments":"","name":""}"#
                | r#"{"name":"","arguments":""}"#
                | r#"{"input":"","name":""}"#
                | r#"{"name":"","input":""}"#
        )
}

/// Writes the message as it was sent, without the members of answers.
fn message(out: &mut Vec<u8>, raw: &RawValue) -> Result<(), serde_json::Error> {
    let members = Members::of(raw)?;
    let mut body = Writer::begin(out);
    string(body.key("role"), "assistant");
    if members.get("content").is_none() {
        body.key("content").extend_from_slice(b"null");
    }
    for (name, value) in &members.0 {
        match name.as_ref() {
            "role" => {}
            "content" => copy(&mut body, name, value),
            "tool_calls" if is_empty(value) => {}
            "tool_calls" => calls(body.key("tool_calls"), value)?,
            "audio" => audio(&mut body, value)?,
            name if OF_ANSWERS.contains(&name) => {}
            // A provider that sent a reasoning member, even an empty one, wants it back.
            "reasoning_content" if value.get() != "null" => copy(&mut body, name, value),
            _ if is_empty(value) => {}
            name => copy(&mut body, name, value),
        }
    }
    body.end();
    Ok(())
}

fn copy(body: &mut Writer<'_>, name: &str, value: &RawValue) {
    let plain = |byte: u8| byte.is_ascii_graphic() && !matches!(byte, b'"' | b'\\');
    if name.bytes().all(plain) {
        body.key(name)
            .extend_from_slice(compact(value.get()).as_bytes());
    }
}

/// Writes a reference by id to audio that the model produced.
fn audio(body: &mut Writer<'_>, value: &RawValue) -> Result<(), serde_json::Error> {
    let id = Members::of(value)?.loose("id")?;
    if !id.text().is_empty() {
        let mut member = Writer::begin(body.key("audio"));
        string(member.key("id"), id.text());
        member.end();
    }
    Ok(())
}

/// Writes the calls with everything that a provider attached to each, such as a thought signature.
fn calls(out: &mut Vec<u8>, raw: &RawValue) -> Result<(), serde_json::Error> {
    out.push(b'[');
    for (at, one) in list(raw)?.into_iter().enumerate() {
        if at > 0 {
            out.push(b',');
        }
        let members = Members::of(one)?;
        let mut body = Writer::begin(out);
        if members.get("type").is_none_or(is_empty) {
            string(body.key("type"), "function");
        }
        for (name, value) in &members.0 {
            match name.as_ref() {
                "index" => {}
                "function" if !is_empty(value) => function(body.key("function"), value)?,
                _ if is_empty(value) => {}
                name => copy(&mut body, name, value),
            }
        }
        body.end();
    }
    out.push(b']');
    Ok(())
}

/// Writes a function call; the arguments are a string, even if none were sent.
fn function(out: &mut Vec<u8>, raw: &RawValue) -> Result<(), serde_json::Error> {
    let members = Members::of(raw)?;
    let mut body = Writer::begin(out);
    string(body.key("name"), members.loose("name")?.text());
    let arguments = members.loose("arguments")?;
    string(
        body.key("arguments"),
        Some(arguments.words())
            .filter(|text| !text.is_empty())
            .unwrap_or("{}"),
    );
    for (name, value) in &members.0 {
        if !matches!(name.as_ref(), "name" | "arguments") && !is_empty(value) {
            copy(&mut body, name, value);
        }
    }
    body.end();
    Ok(())
}

/// Writes the texts and calls of a turn of another dialect, or of a message that cannot be read.
fn rendered(out: &mut Vec<u8>, turn: &Turn, tools: &Declarations) -> bool {
    let texts: Vec<&str> = turn
        .items
        .iter()
        .filter_map(|item| match item {
            TurnItem::Text(text) | TurnItem::Refusal(text) => Some(text.as_str()),
            _ => None,
        })
        .collect();
    let text = texts.concat();
    let mut calls = turn.calls().peekable();
    if text.is_empty() && calls.peek().is_none() {
        return false;
    }
    let mut body = Writer::begin(out);
    string(body.key("role"), "assistant");
    if text.is_empty() {
        body.key("content").extend_from_slice(b"null");
    } else {
        string(body.key("content"), &text);
    }
    if calls.peek().is_some() {
        let list = body.key("tool_calls");
        list.push(b'[');
        for (at, one) in calls.enumerate() {
            if at > 0 {
                list.push(b',');
            }
            call(list, one, tools);
        }
        list.push(b']');
    }
    body.end();
    true
}

fn call(out: &mut Vec<u8>, call: &Call, tools: &Declarations) {
    let (kind, text) = match call.kind {
        CallKind::Freeform => ("custom", "input"),
        _ => ("function", "arguments"),
    };
    let name = tools
        .names
        .carried(Dialect::OpenAiChat, call.namespace.as_deref(), &call.name);
    let mut body = Writer::begin(out);
    string(body.key("id"), &call.id);
    string(body.key("type"), kind);
    let mut inner = Writer::begin(body.key(kind));
    string(inner.key("name"), &name);
    string(inner.key(text), &call.arguments);
    inner.end();
    body.end();
}
