//! Writes a request in the Chat format.

use haft_json::escape::string;
use haft_json::members::Writer;

use crate::body::{extra, same_dialect};
use crate::chat::{choice, content, echo};
use crate::dialect::Dialect;
use crate::error::WireError;
use crate::message::{Message, ToolOutput};
use crate::request::Request;

/// The members that are written from the request itself. `max_tokens` is the old name of one of them, the only one that some providers
/// know: a host may add it if the request sets no limit.
const OWN: [&str; 8] = [
    "model",
    "messages",
    "tools",
    "tool_choice",
    "parallel_tool_calls",
    "max_completion_tokens",
    "stream",
    "stream_options",
];

pub(crate) fn write(request: &Request<'_>) -> Result<Vec<u8>, WireError> {
    same_dialect(Dialect::OpenAiChat, request.tools)?;
    let tools = request.tools.json();
    let mut out = Vec::with_capacity(tools.len() + request.system.len() + 4096);
    let mut body = Writer::begin(&mut out);
    string(body.key("model"), request.model);
    messages(body.key("messages"), request)?;
    if !tools.is_empty() {
        body.key("tools").extend_from_slice(tools);
    }
    choice::write(&mut body, request.choice, request.tools)?;
    if !request.parallel && !tools.is_empty() {
        body.key("parallel_tool_calls").extend_from_slice(b"false");
    }
    let mut own = OWN.to_vec();
    if let Some(most) = request.max_tokens {
        body.key("max_completion_tokens")
            .extend_from_slice(most.to_string().as_bytes());
        own.push("max_tokens");
    }
    if request.stream {
        body.key("stream").extend_from_slice(b"true");
        body.key("stream_options")
            .extend_from_slice(br#"{"include_usage":true}"#);
    }
    extra(Dialect::OpenAiChat, &mut body, &own, request.extra)?;
    body.end();
    Ok(out)
}

fn messages(out: &mut Vec<u8>, request: &Request<'_>) -> Result<(), WireError> {
    out.push(b'[');
    let first = out.len();
    if !request.system.is_empty() {
        text(out, "system", request.system);
    }
    for message in request.messages {
        let before = out.len();
        if before > first {
            out.push(b',');
        }
        let is_written = match message {
            Message::User(parts) => {
                let mut member = Writer::begin(out);
                string(member.key("role"), "user");
                content::user(member.key("content"), parts)?;
                member.end();
                true
            }
            Message::Host(note) => {
                text(out, "system", note);
                true
            }
            Message::Model(turn) => echo::turn(out, turn, request.tools),
            Message::Results(answers) => results(out, answers)?,
        };
        if !is_written {
            out.truncate(before);
        }
    }
    out.push(b']');
    Ok(())
}

fn text(out: &mut Vec<u8>, role: &str, text: &str) {
    let mut member = Writer::begin(out);
    string(member.key("role"), role);
    string(member.key("content"), text);
    member.end();
}

/// Writes a message for each answer and, after them all, one with the parts that they cannot hold.
fn results(out: &mut Vec<u8>, answers: &[ToolOutput]) -> Result<bool, WireError> {
    let mut follows = Vec::new();
    let before = out.len();
    for answer in answers.iter().filter(|answer| !answer.is_approval()) {
        if out.len() > before {
            out.push(b',');
        }
        let mut member = Writer::begin(out);
        string(member.key("role"), "tool");
        string(member.key("tool_call_id"), &answer.call.id);
        string(
            member.key("content"),
            &content::answer(answer, &mut follows),
        );
        member.end();
    }
    if !follows.is_empty() {
        out.push(b',');
        let mut member = Writer::begin(out);
        string(member.key("role"), "user");
        content::user(member.key("content"), &follows)?;
        member.end();
    }
    Ok(out.len() > before)
}
