//! Results of a server behind haft, passed on unchanged except for what haft modified, what the client's revision lacks, and what
//! haft adds about the call.

use haft::json::amend::Amended;
use haft::result::{OriginalResult, Outcome};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::{CallMeta, ContentBlock, blocks, say};
use crate::era::{Era, Revision};
use crate::wire::reply;

/// Members of `_meta` that only haft sets; a server's are removed.
const OWN_MEMBERS: [&str; 2] = ["haft", "io.modelcontextprotocol/serverInfo"];

/// Writes the result, including haft's `_meta`.
pub(super) fn write(
    out: &mut Vec<u8>,
    outcome: &Outcome,
    sent: &OriginalResult,
    meta: &CallMeta<'_>,
    era: Era,
) {
    // A result that is not an object contains nothing that a client could read.
    let read = Amended::read(sent.result.get()).or_else(|_| Amended::read("{}"));
    let Ok(mut result) = read else {
        return;
    };
    for (nth, member) in result.members().to_vec().iter().enumerate() {
        let value = member.value();
        if member.is("content") {
            if let Some(content) = content(outcome, sent, value, era) {
                *result.replace(nth) = content;
            }
        } else if member.is("structuredContent") {
            match structured_content(outcome, sent, value, era) {
                StructuredContent::AsSent => {}
                StructuredContent::Is(data) => {
                    let data = data.get().as_bytes();
                    result.replace(nth).extend_from_slice(data);
                }
                StructuredContent::Nothing => result.remove(nth),
            }
        } else if member.is("_meta") {
            *result.replace(nth) = merged(value, meta);
        } else if member.is("resultType") && !era.is_modern() {
            // haft has already handled it as a complete result.
            result.remove(nth);
        }
    }
    if result.position("content").is_none() {
        reply::json(result.add("content"), &blocks(outcome, era));
    }
    if era.is_modern() && result.position("resultType").is_none() {
        reply::json(result.add("resultType"), "complete");
    }
    if result.position("_meta").is_none() {
        reply::json(result.add("_meta"), meta);
    }
    result.write(out);
}

/// Returns the content if it differs from what was sent: haft cut it, or the client's revision lacks some blocks.
fn content(
    outcome: &Outcome,
    sent: &OriginalResult,
    value: &RawValue,
    era: Era,
) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    let empty = value.get().trim_start_matches('[').trim_start() == "]";
    let unsaid = empty && outcome.data.is_some() && !era.has_structured_content();
    if !sent.content || unsaid {
        reply::json(&mut out, &blocks(outcome, era));
        return Some(out);
    }
    let fitting = fitting(value, era);
    let Some(notes) = outcome.render().notes_text() else {
        return fitting;
    };
    // What haft adds comes last, as a block of its own.
    let list = fitting.unwrap_or_else(|| value.get().into());
    let kept = list.trim_ascii_end().strip_suffix(b"]")?;
    out.extend_from_slice(kept);
    if !empty {
        out.push(b',');
    }
    reply::json(&mut out, &say(notes));
    out.push(b']');
    Some(out)
}

/// Returns the content with blocks that the client's revision lacks replaced, if there are any.
fn fitting(value: &RawValue, era: Era) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    if era.has_audio() && era.has_resource_links() {
        return None;
    }
    let sent_blocks: Vec<&RawValue> = serde_json::from_str(value.get()).unwrap_or_default();
    let mut from = 0;
    for block in sent_blocks {
        if let Some(text) = replacement(block, era) {
            // Blocks are slices of the value, so what is between them can be copied.
            let at = block.get().as_ptr().addr() - value.get().as_ptr().addr();
            out.extend_from_slice(value.get().as_bytes().get(from..at).unwrap_or_default());
            reply::json(&mut out, &text);
            from = at + block.get().len();
        }
    }
    if from == 0 {
        return None;
    }
    out.extend_from_slice(value.get().as_bytes().get(from..).unwrap_or_default());
    Some(out)
}

/// Returns a replacement for a block that is newer than the client's revision. A kind that is in no revision passes: its server
/// sends it to every client.
fn replacement(block: &RawValue, era: Era) -> Option<ContentBlock<'static>> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct BlockMembers {
        #[serde(rename = "type")]
        kind: String,
        #[serde(default)]
        mime_type: String,
        #[serde(default)]
        name: String,
        #[serde(default)]
        uri: String,
    }
    let seen: BlockMembers = serde_json::from_str(block.get()).ok()?;
    match seen.kind.as_str() {
        "audio" if !era.has_audio() => Some(say(format!("[sound, {}]", seen.mime_type))),
        "resource_link" if !era.has_resource_links() => {
            Some(say(format!("[resource {}: {}]", seen.name, seen.uri)))
        }
        _ => None,
    }
}

/// What to do with structured content.
enum StructuredContent<'a> {
    AsSent,
    Is(&'a RawValue),
    Nothing,
}

/// Decides about structured content. Until 2025-11-25 it is an object: another value becomes a member of one.
fn structured_content<'a>(
    outcome: &'a Outcome,
    sent: &OriginalResult,
    value: &RawValue,
    era: Era,
) -> StructuredContent<'a> {
    let fits = era.is_modern() || value.get().starts_with('{');
    match outcome.data.as_deref() {
        _ if sent.data && fits => StructuredContent::AsSent,
        Some(data) => StructuredContent::Is(data),
        None => StructuredContent::Nothing,
    }
}

/// Returns the server's `_meta` with haft's members.
fn merged(value: &RawValue, meta: &CallMeta<'_>) -> Vec<u8> {
    let mut out = Vec::new();
    let Ok(mut theirs) = Amended::read(value.get()) else {
        reply::json(&mut out, meta);
        return out;
    };
    theirs.retain(|member| !OWN_MEMBERS.iter().any(|name| member.is(name)));
    reply::json(theirs.add("haft"), &meta.haft);
    if let Some(server) = meta.server {
        reply::json(theirs.add("io.modelcontextprotocol/serverInfo"), server);
    }
    theirs.write(&mut out);
    out
}

impl Era {
    /// Returns whether results may have structured content.
    fn has_structured_content(self) -> bool {
        self >= Revision::V2025_06_18
    }
}

#[cfg(test)]
mod tests {
    use haft::call::{CallId, RunId};
    use haft::result::{OriginalResult, Outcome, Status};
    use proptest::prelude::*;
    use serde_json::value::RawValue;

    use crate::call_follow_up::CallFollowUp;
    use crate::era::{Era, Revision};

    fn raw(text: &str) -> Box<RawValue> {
        RawValue::from_string(text.to_owned()).unwrap()
    }

    /// A JSON value in a spelling that no writer here would choose.
    fn value() -> impl Strategy<Value = String> {
        let leaf = prop_oneof![
            "-?[1-9][0-9]{0,30}",
            "[0-9]\\.[0-9]{1,3}[eE][+-]?[0-9]{1,2}",
            Just(r#""\u0061\/\t""#.to_owned()),
            "\"[a-zé ]{0,8}\"",
            Just("null".to_owned()),
        ];
        leaf.prop_recursive(3, 16, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4)
                    .prop_map(|items| format!("[ {} ]", items.join(" ,"))),
                prop::collection::vec(("[a-z]{1,4}", inner), 0..4).prop_map(|members| {
                    let members = members
                        .iter()
                        .map(|(name, value)| format!("\"{name}\" :{value}"));
                    format!("{{ {}}}", members.collect::<Vec<_>>().join(", "))
                }),
            ]
        })
    }

    proptest! {
        #[test]
        fn every_byte_that_is_not_hafts_own_stays_as_it_is_written(
            found in prop::collection::vec(("x-[a-z]{1,6}", value()), 0..6),
            meta in prop::collection::vec(("y-[a-z]{1,6}", value()), 1..4),
            block in value(),
            modern: bool,
        ) {
            let joined = |all: &[(String, String)]| {
                let all = all.iter().map(|(name, value)| format!("\"{name}\" : {value}"));
                all.collect::<Vec<_>>().join(" ,\t")
            };
            let comma = if found.is_empty() { "" } else { " ," };
            let head = format!("{{ {}{comma} \"_meta\" : {{ {}", joined(&found), joined(&meta));
            let tail = format!(" }} , \"content\" :[{{\"type\":\"odd\",\"of\": {block}}} ]");
            let mut outcome = Outcome::new(RunId::new("r"), CallId::new("c"), "t", Status::Ok);
            outcome.original = Some(OriginalResult::new(raw(&format!("{head}{tail} }}"))));
            let era = if modern { Era::Modern } else { Era::Legacy(Revision::LATEST) };
            let mut out = Vec::new();
            super::super::write(&mut out, &outcome, &CallFollowUp::Nothing, era, &raw("{}"));
            let text = String::from_utf8(out).unwrap();
            let kind = if modern { ",\"resultType\":\"complete\"" } else { "" };
            let begins = format!("{head},\"haft\":{{");
            let ends = format!("{tail}{kind} }}");
            prop_assert!(text.starts_with(&begins), "{} {}", text, begins);
            prop_assert!(text.ends_with(&ends), "{} {}", text, ends);
        }
    }
}
