//! A result of a server behind haft, sent on as it came: what haft changed, what the client's revision lacks, and what haft says of
//! the call itself are all that differs.

use haft::json::members::{Member, Writer, members};
use haft::result::{Original, Outcome};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::{Block, CallMeta, blocks, say};
use crate::era::{Era, Revision};
use crate::wire::reply;

/// Members of `_meta` in which haft speaks, and no server in its name.
const OWN: [&str; 2] = ["haft", "io.modelcontextprotocol/serverInfo"];

/// Writes the result with haft's `_meta` in it.
pub(super) fn write(
    out: &mut Vec<u8>,
    outcome: &Outcome,
    sent: &Original,
    meta: &CallMeta<'_>,
    era: Era,
) {
    let sent_members = members(sent.result.get()).unwrap_or_default();
    let mut writer = Writer::begin(out);
    let said = |name: &str| sent_members.iter().any(|member| member.is(name));
    for member in &sent_members {
        let value = member.value();
        if member.is("content") {
            content(writer.key("content"), outcome, sent, value, era);
        } else if member.is("structuredContent") {
            if let Some(data) = structured(outcome, sent, value, era) {
                writer
                    .key("structuredContent")
                    .extend_from_slice(data.get().as_bytes());
            }
        } else if member.is("_meta") {
            merged(writer.key("_meta"), value, meta);
        } else if !member.is("resultType") || era.is_modern() {
            // It was read as complete before it came here.
            writer.copy(*member);
        }
    }
    if !said("content") {
        reply::json(writer.key("content"), &blocks(outcome, era));
    }
    if era.is_modern() && !said("resultType") {
        reply::json(writer.key("resultType"), "complete");
    }
    if !said("_meta") {
        reply::json(writer.key("_meta"), meta);
    }
    writer.end();
}

/// The content: as it was sent, but for blocks that the client's revision does not have.
fn content(out: &mut Vec<u8>, outcome: &Outcome, sent: &Original, value: &RawValue, era: Era) {
    if !sent.content {
        return reply::json(out, &blocks(outcome, era));
    }
    let empty = value.get().trim_start_matches('[').trim_start() == "]";
    if empty && outcome.data.is_some() && !era.has_structured_content() {
        return reply::json(out, &blocks(outcome, era));
    }
    if era.has_audio() && era.has_resource_links() {
        return out.extend_from_slice(value.get().as_bytes());
    }
    let sent_blocks: Vec<&RawValue> = serde_json::from_str(value.get()).unwrap_or_default();
    out.push(b'[');
    for (nth, block) in sent_blocks.into_iter().enumerate() {
        if nth > 0 {
            out.push(b',');
        }
        match replacement(block, era) {
            Some(text) => reply::json(out, &text),
            None => out.extend_from_slice(block.get().as_bytes()),
        }
    }
    out.push(b']');
}

/// What stands for a block that came into the protocol after the client's revision. A kind that is in no revision passes: its
/// server sends it to every client.
fn replacement(block: &RawValue, era: Era) -> Option<Block<'static>> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Seen {
        #[serde(rename = "type")]
        kind: String,
        #[serde(default)]
        mime_type: String,
        #[serde(default)]
        name: String,
        #[serde(default)]
        uri: String,
    }
    let seen: Seen = serde_json::from_str(block.get()).ok()?;
    match seen.kind.as_str() {
        "audio" if !era.has_audio() => Some(say(format!("[sound, {}]", seen.mime_type))),
        "resource_link" if !era.has_resource_links() => {
            Some(say(format!("[resource {}: {}]", seen.name, seen.uri)))
        }
        _ => None,
    }
}

/// The structured content. Until 2025-11-25 it is an object: another value is a member of one.
fn structured<'a>(
    outcome: &'a Outcome,
    sent: &Original,
    value: &'a RawValue,
    era: Era,
) -> Option<&'a RawValue> {
    let fits = era.is_modern() || value.get().starts_with('{');
    if sent.data && fits {
        return Some(value);
    }
    outcome.data.as_deref()
}

/// The server's `_meta` with what haft says.
fn merged(out: &mut Vec<u8>, value: &RawValue, meta: &CallMeta<'_>) {
    let theirs = members(value.get()).unwrap_or_default();
    let mut writer = Writer::begin(out);
    let is_own = |member: &Member<'_>| OWN.iter().any(|name| member.is(name));
    for member in theirs.into_iter().filter(|member| !is_own(member)) {
        writer.copy(member);
    }
    reply::json(writer.key("haft"), &meta.haft);
    if let Some(server) = meta.server {
        reply::json(writer.key("io.modelcontextprotocol/serverInfo"), server);
    }
    writer.end();
}

impl Era {
    /// Whether results may hold structured content.
    fn has_structured_content(self) -> bool {
        self >= Revision::V2025_06_18
    }
}

#[cfg(test)]
mod tests {
    use haft::call::{CallId, RunId};
    use haft::json::members::members;
    use haft::result::{Original, Outcome, Status};
    use proptest::prelude::*;
    use serde_json::value::RawValue;

    use crate::era::{Era, Revision};
    use crate::then::Then;

    fn raw(text: &str) -> Box<RawValue> {
        RawValue::from_string(text.to_owned()).unwrap()
    }

    /// A value of JSON in a spelling that no writer here would choose.
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
        fn every_member_that_is_not_hafts_own_stays_as_it_is_written(
            found in prop::collection::vec(("x-[a-z]{1,6}", value()), 0..6),
            meta in prop::collection::vec(("y-[a-z]{1,6}", value()), 0..4),
            block in value(),
            modern: bool,
        ) {
            let joined = |all: &[(String, String)]| {
                let all = all.iter().map(|(name, value)| format!("\"{name}\": {value}"));
                all.collect::<Vec<_>>().join(",")
            };
            let comma = if found.is_empty() { "" } else { "," };
            let content = format!("[{{\"type\":\"odd\",\"of\": {block}}}]");
            let sent = format!(
                "{{{}{comma}\"_meta\":{{{}}},\"content\":{content}}}",
                joined(&found),
                joined(&meta)
            );
            let mut outcome = Outcome::new(RunId::new("r"), CallId::new("c"), "t", Status::Ok);
            outcome.original = Some(Original::new(raw(&sent)));
            let era = if modern { Era::Modern } else { Era::Legacy(Revision::LATEST) };
            let mut out = Vec::new();
            super::super::write(&mut out, &outcome, &Then::Nothing, era, &raw("{}"));
            let text = String::from_utf8(out).unwrap();
            let pairs = |text: &str| -> Vec<(String, String)> {
                let all = members(text).unwrap();
                all.iter().map(|m| (m.key().to_owned(), m.value().get().to_owned())).collect()
            };
            let (mut before, mut after) = (pairs(&sent), pairs(&text));
            let at = before.iter().position(|(key, _)| key == "\"_meta\"").unwrap();
            let (theirs, all) = (before.remove(at).1, after.remove(at).1);
            let theirs = pairs(&theirs);
            prop_assert_eq!(&pairs(&all)[..theirs.len()], &theirs[..]);
            after.retain(|(key, _)| key != "\"resultType\"");
            prop_assert_eq!(before, after);
        }
    }
}
