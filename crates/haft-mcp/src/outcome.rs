//! Conversion of an `Outcome` to the result of `tools/call`.

use std::borrow::Cow;

use haft::call::{CallId, RunId};
use haft::error::ErrorKind;
use haft::result::{Artifact, Content, Outcome, Status, TracedCall};
use serde::Serialize;
use serde_json::value::RawValue;

use crate::asking::InputRequest;
use crate::era::Era;
use crate::own::artifact_uri;
use crate::required;
use crate::then::Then;
use crate::wire::reply;

mod original;

/// The result of `tools/call`.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct CallResult<'a> {
    content: Vec<Block<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    structured_content: Option<&'a RawValue>,
    is_error: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    result_type: Option<&'static str>,
    #[serde(rename = "_meta")]
    meta: CallMeta<'a>,
}

#[derive(Serialize)]
struct CallMeta<'a> {
    haft: Trace<'a>,
    #[serde(
        rename = "io.modelcontextprotocol/serverInfo",
        skip_serializing_if = "Option::is_none"
    )]
    server: Option<&'a RawValue>,
}

/// Where to find the call afterwards.
#[derive(Serialize)]
struct Trace<'a> {
    run: &'a RunId,
    call: &'a CallId,
    status: Status,
    /// Why it failed, as a word (contract §3), so that programs need not read the text.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<ErrorKind>,
    #[serde(skip_serializing_if = "Option::is_none")]
    approval: Option<&'a str>,
    /// The calls of a chain.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    calls: &'a [TracedCall],
}

/// A content block in MCP's format.
#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Block<'a> {
    Text {
        text: Cow<'a, str>,
    },
    #[serde(rename_all = "camelCase")]
    Image {
        data: &'a str,
        mime_type: &'a str,
    },
    #[serde(rename_all = "camelCase")]
    Audio {
        data: &'a str,
        mime_type: &'a str,
    },
    Resource {
        resource: Embedded<'a>,
    },
    ResourceLink(Link<'a>),
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Embedded<'a> {
    uri: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    mime_type: Option<&'a str>,
    text: &'a str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Link<'a> {
    uri: String,
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    mime_type: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    size: Option<u64>,
}

/// Writes the result. A call that failed is a result too, with `isError`, never a protocol error.
pub(crate) fn write(
    out: &mut Vec<u8>,
    outcome: &Outcome,
    then: &Then,
    era: Era,
    server: &RawValue,
) {
    let modern = era.is_modern();
    let meta = CallMeta {
        haft: Trace {
            run: &outcome.run,
            call: &outcome.call,
            status: outcome.status,
            error: outcome.error.as_ref().map(|error| error.kind),
            approval: outcome.approval.as_deref(),
            calls: &outcome.calls,
        },
        server: modern.then_some(server),
    };
    if let Then::Ask(asked, state) = then {
        return required::write(out, asked, state, &meta);
    }
    let sent = outcome.original.as_ref();
    if let Some(sent) = sent.filter(|sent| !sent.is_refusal) {
        return original::write(out, outcome, sent, &meta, era);
    }
    let mut content = blocks(outcome, era);
    if let Then::Decide(place) = then {
        content.push(say(format!("A person decides at {place}")));
    }
    let result = CallResult {
        content,
        structured_content: outcome.data.as_deref(),
        is_error: !outcome.is_ok(),
        result_type: modern.then_some("complete"),
        meta,
    };
    reply::json(out, &result);
}

/// Writes the answer to a call that continues while its client asks the user (2026-07-28).
pub(crate) fn write_asks(
    out: &mut Vec<u8>,
    requests: &[InputRequest],
    state: &str,
    run: &RunId,
    server: &RawValue,
) {
    #[derive(Serialize)]
    struct Meta<'a> {
        haft: Of<'a>,
        #[serde(rename = "io.modelcontextprotocol/serverInfo")]
        server: &'a RawValue,
    }
    #[derive(Serialize)]
    struct Of<'a> {
        run: &'a RunId,
    }
    let haft = Of { run };
    required::write(out, requests, state, &Meta { haft, server });
}

fn blocks(outcome: &Outcome, era: Era) -> Vec<Block<'_>> {
    let mut blocks = Vec::with_capacity(outcome.content.len() + outcome.artifacts.len() + 1);
    let content = outcome.content.iter();
    // The failure comes first, with its kind; an executor may have put the same words in the content.
    let failure = failure_text(outcome);
    let content = content.filter(
        |c| !matches!((c, &failure), (Content::Text { text }, Some(failure)) if text == failure),
    );
    blocks.extend(content.map(|content| content_block(content, era)));
    if let Some(text) = failure {
        let text = match &outcome.error {
            Some(error) => format!("{}: {text}", error.kind.as_str()),
            None => text,
        };
        blocks.insert(0, say(text));
    }
    // Clients without structured content, and many models' harnesses, read only the text. A script's text is its output, so its
    // result is added.
    let unsaid = blocks.is_empty() || !outcome.calls.is_empty();
    if unsaid && let Some(data) = &outcome.data {
        blocks.push(Block::Text {
            text: data.get().into(),
        });
    }
    let links = outcome.artifacts.iter();
    blocks.extend(links.map(|artifact| artifact_block(outcome, artifact, era)));
    blocks
}

/// Returns the message and advice of a call that failed.
fn failure_text(outcome: &Outcome) -> Option<String> {
    if outcome.is_ok() {
        return None;
    }
    let Some(failure) = &outcome.error else {
        return Some(outcome.summary.clone());
    };
    Some(match &failure.advice {
        Some(advice) => format!("{}\n{advice}", failure.message),
        None => failure.message.clone(),
    })
}

fn content_block(content: &Content, era: Era) -> Block<'_> {
    match content {
        Content::Text { text } => Block::Text { text: text.into() },
        Content::Image { data, mime_type } => Block::Image { data, mime_type },
        Content::Audio { data, mime_type } if era.has_audio() => Block::Audio { data, mime_type },
        Content::Audio { mime_type, .. } => say(format!("[sound, {mime_type}]")),
        Content::Resource {
            uri,
            text,
            mime_type,
        } => Block::Resource {
            resource: Embedded {
                uri,
                mime_type: mime_type.as_deref(),
                text,
            },
        },
        Content::ResourceLink {
            uri,
            name,
            mime_type,
            bytes,
        } => link(
            Link {
                uri: uri.clone(),
                name,
                mime_type: mime_type.as_deref(),
                size: *bytes,
            },
            era,
        ),
    }
}

fn artifact_block<'a>(outcome: &'a Outcome, artifact: &'a Artifact, era: Era) -> Block<'a> {
    let found = Link {
        uri: artifact_uri(&outcome.run, &artifact.reference),
        name: &artifact.reference,
        mime_type: Some(&artifact.media_type),
        size: Some(artifact.bytes),
    };
    link(found, era)
}

fn link(found: Link<'_>, era: Era) -> Block<'_> {
    if era.has_resource_links() {
        return Block::ResourceLink(found);
    }
    say(format!("[resource {}: {}]", found.name, found.uri))
}

fn say<'a>(text: String) -> Block<'a> {
    Block::Text { text: text.into() }
}

#[cfg(test)]
mod tests;
