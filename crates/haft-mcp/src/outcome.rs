//! Conversion of an `Outcome` to the result of `tools/call`.

use std::borrow::Cow;

use haft::call::{CallId, RunId};
use haft::error::ErrorKind;
use haft::result::{Artifact, Content, Outcome, Status, TracedCall};
use serde::Serialize;
use serde_json::value::RawValue;

use crate::call_follow_up::CallFollowUp;
use crate::client_caller::InputRequest;
use crate::era::Era;
use crate::own::artifact_uri;
use crate::required;
use crate::wire::reply;

mod original;

/// The result of `tools/call`.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct CallResult<'a> {
    content: Vec<ContentBlock<'a>>,
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
    /// Why the call did not succeed, as a word (contract §3), so that programs need not read the text.
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
enum ContentBlock<'a> {
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
        resource: EmbeddedResource<'a>,
    },
    ResourceLink(ResourceLink<'a>),
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct EmbeddedResource<'a> {
    uri: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    mime_type: Option<&'a str>,
    text: &'a str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ResourceLink<'a> {
    uri: String,
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    mime_type: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    size: Option<u64>,
}

/// Writes the result. A call that did not succeed, because it failed, was denied or still waits for approval, is a result too,
/// with `isError`, never a protocol error.
pub(crate) fn write(
    out: &mut Vec<u8>,
    outcome: &Outcome,
    then: &CallFollowUp,
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
    if let CallFollowUp::Ask(asked, state) = then {
        return required::write(out, asked, state, &meta);
    }
    let sent = outcome.original.as_ref();
    if let Some(sent) = sent.filter(|sent| !sent.is_refusal) {
        return original::write(out, outcome, sent, &meta, era);
    }
    let mut content = blocks(outcome, era);
    if let CallFollowUp::Decide(place) = then {
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
    struct InputRequiredMeta<'a> {
        haft: RunMeta<'a>,
        #[serde(rename = "io.modelcontextprotocol/serverInfo")]
        server: &'a RawValue,
    }
    #[derive(Serialize)]
    struct RunMeta<'a> {
        run: &'a RunId,
    }
    let haft = RunMeta { run };
    required::write(out, requests, state, &InputRequiredMeta { haft, server });
}

/// Returns the blocks: everything there is to read in one text, then what the client gets in its own form.
fn blocks(outcome: &Outcome, era: Era) -> Vec<ContentBlock<'_>> {
    let mut blocks = Vec::with_capacity(outcome.content.len() + outcome.artifacts.len() + 1);
    // Clients without structured content, and many models' harnesses, read only the text.
    let text = outcome
        .render_beside(|content| beside(content, era).is_some())
        .to_text();
    if !text.is_empty() {
        blocks.push(say(text));
    }
    let content = outcome.content.iter();
    blocks.extend(content.filter_map(|content| beside(content, era)));
    let links = outcome.artifacts.iter();
    blocks.extend(links.filter_map(|artifact| artifact_block(outcome, artifact, era)));
    blocks
}

/// Returns the block of a piece of content that stands beside the text, if the client's revision has such blocks.
fn beside(content: &Content, era: Era) -> Option<ContentBlock<'_>> {
    Some(match content {
        Content::Image { data, mime_type } => ContentBlock::Image { data, mime_type },
        Content::Audio { data, mime_type } if era.has_audio() => {
            ContentBlock::Audio { data, mime_type }
        }
        Content::Resource {
            uri,
            text,
            mime_type,
        } => ContentBlock::Resource {
            resource: EmbeddedResource {
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
        } if era.has_resource_links() => ContentBlock::ResourceLink(ResourceLink {
            uri: uri.clone(),
            name,
            mime_type: mime_type.as_deref(),
            size: *bytes,
        }),
        Content::Text { .. } | Content::Audio { .. } | Content::ResourceLink { .. } => return None,
    })
}

/// Returns a link to an artifact, which the text names, too.
fn artifact_block<'a>(
    outcome: &'a Outcome,
    artifact: &'a Artifact,
    era: Era,
) -> Option<ContentBlock<'a>> {
    era.has_resource_links().then(|| {
        ContentBlock::ResourceLink(ResourceLink {
            uri: artifact_uri(&outcome.run, &artifact.reference),
            name: &artifact.reference,
            mime_type: Some(&artifact.media_type),
            size: Some(artifact.bytes),
        })
    })
}

fn say<'a>(text: String) -> ContentBlock<'a> {
    ContentBlock::Text { text: text.into() }
}

#[cfg(test)]
mod tests;
