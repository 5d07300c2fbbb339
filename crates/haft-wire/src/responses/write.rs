//! Writes a request in the Responses format.

use haft_json::escape::string;
use haft_json::members::Writer;

use crate::body::{extra, same_dialect};
use crate::dialect::Dialect;
use crate::error::WireError;
use crate::message::Message;
use crate::request::Request;
use crate::responses::{answer, choice, content, echo};

/// The members that are written from the request itself.
const OWN: [&str; 8] = [
    "model",
    "instructions",
    "input",
    "tools",
    "tool_choice",
    "parallel_tool_calls",
    "max_output_tokens",
    "stream",
];

pub(crate) fn write(request: &Request<'_>) -> Result<Vec<u8>, WireError> {
    same_dialect(Dialect::OpenAiResponses, request.tools)?;
    let tools = request.tools.json();
    let mut out = Vec::with_capacity(tools.len() + request.system.len() + 4096);
    let mut body = Writer::begin(&mut out);
    string(body.key("model"), request.model);
    if !request.system.is_empty() {
        string(body.key("instructions"), request.system);
    }
    input(body.key("input"), request)?;
    if !tools.is_empty() {
        body.key("tools").extend_from_slice(tools);
    }
    choice::write(&mut body, request.choice, request.tools)?;
    if !request.parallel && !tools.is_empty() {
        body.key("parallel_tool_calls").extend_from_slice(b"false");
    }
    if let Some(most) = request.max_tokens {
        body.key("max_output_tokens")
            .extend_from_slice(most.to_string().as_bytes());
    }
    if request.stream {
        body.key("stream").extend_from_slice(b"true");
    }
    extra(Dialect::OpenAiResponses, &mut body, &OWN, request.extra)?;
    body.end();
    Ok(out)
}

fn input(out: &mut Vec<u8>, request: &Request<'_>) -> Result<(), WireError> {
    out.push(b'[');
    for message in request.messages {
        match message {
            Message::User(parts) => {
                next(out);
                let mut member = Writer::begin(out);
                string(member.key("role"), "user");
                content::content(member.key("content"), parts)?;
                member.end();
            }
            Message::Host(note) => {
                next(out);
                let mut member = Writer::begin(out);
                string(member.key("role"), "developer");
                string(member.key("content"), note);
                member.end();
            }
            Message::Model(turn) => {
                let before = out.len();
                next(out);
                let begun = out.len();
                echo::turn(out, turn, request.tools);
                if out.len() == begun {
                    out.truncate(before);
                }
            }
            Message::Results(answers) => {
                for one in answers {
                    next(out);
                    answer::answer(out, one, request.tools)?;
                }
            }
        }
    }
    out.push(b']');
    Ok(())
}

/// Writes a comma, except before the first item.
fn next(out: &mut Vec<u8>) {
    if !matches!(out.last(), Some(b'[')) {
        out.push(b',');
    }
}
