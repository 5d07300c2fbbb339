//! A tool of an MCP server as haft lists it: what its server says of it, under the name that it has here.

use bytes::Bytes;
use serde::Serialize;

use crate::json::members::{Member, Writer, members};
use crate::spec::{Described, Listing, ToolSpec};
use crate::toolset::list::{is_object, object_schema};

/// The member of `_meta` in which haft speaks: no server does in its name.
const OWN: &str = "haft";

/// The listing under the spec's name, every member that the host made otherwise as the spec has it, and all others byte for
/// byte. `None` where the listing is no object.
pub(super) fn relisted(spec: &ToolSpec, listing: &Listing) -> Option<Bytes> {
    let members = members(listing.text()).ok()?;
    let mut out = Vec::with_capacity(listing.text().len() + 64);
    let mut writer = Writer::begin(&mut out);
    let mut named = false;
    for member in &members {
        if member.is("name") {
            // One that comes twice is read in two ways: it comes once.
            if !std::mem::replace(&mut named, true) {
                json(writer.key("name"), spec.name.as_str());
            }
            continue;
        }
        match Described::ALL.into_iter().find(|d| member.is(d.as_str())) {
            Some(described) if !listing.holds(described, spec) => {}
            Some(Described::InputSchema) => input_schema(&mut writer, *member, spec),
            None if member.is("_meta") => meta(&mut writer, *member),
            _ => writer.copy(*member),
        }
    }
    if !named {
        json(writer.key("name"), spec.name.as_str());
    }
    for described in Described::ALL {
        let said = members.iter().any(|member| member.is(described.as_str()));
        if !listing.holds(described, spec) {
            from_spec(&mut writer, described, spec);
        } else if !said && described == Described::InputSchema {
            // The protocol wants one.
            json(
                writer.key("inputSchema"),
                &object_schema(&spec.input_schema),
            );
        }
    }
    writer.end();
    Some(out.into())
}

/// A schema of arguments, which are always an object: where the server does not say so, it is said.
fn input_schema(writer: &mut Writer<'_>, member: Member<'_>, spec: &ToolSpec) {
    if is_object(&spec.input_schema) {
        return writer.copy(member);
    }
    let schema = member.value().get();
    let typed = members(schema).is_ok_and(|inner| inner.iter().any(|one| one.is("type")));
    let out = writer.key("inputSchema");
    match schema.strip_prefix('{') {
        Some(rest) if !typed => {
            let comma = if rest.trim_start() == "}" { "" } else { "," };
            out.extend_from_slice(b"{\"type\":\"object\"");
            out.extend_from_slice(comma.as_bytes());
            out.extend_from_slice(rest.as_bytes());
        }
        _ => json(out, &object_schema(&spec.input_schema)),
    }
}

/// `_meta` without what only haft may say.
fn meta(writer: &mut Writer<'_>, member: Member<'_>) {
    let inner = members(member.value().get()).unwrap_or_default();
    if !inner.iter().any(|one| one.is(OWN)) {
        return writer.copy(member);
    }
    let mut kept = Writer::begin(writer.key("_meta"));
    for one in inner.into_iter().filter(|one| !one.is(OWN)) {
        kept.copy(one);
    }
    kept.end();
}

fn from_spec(writer: &mut Writer<'_>, described: Described, spec: &ToolSpec) {
    match described {
        Described::Title => {
            if let Some(title) = &spec.title {
                json(writer.key("title"), title);
            }
        }
        Described::Description => json(writer.key("description"), &spec.description),
        Described::InputSchema => {
            json(
                writer.key("inputSchema"),
                &object_schema(&spec.input_schema),
            );
        }
        Described::OutputSchema => {
            if let Some(schema) = spec.output_schema.as_deref().filter(|s| is_object(s)) {
                json(writer.key("outputSchema"), schema);
            }
        }
        Described::Annotations => json(writer.key("annotations"), &spec.annotations),
    }
}

fn json<T: Serialize + ?Sized>(out: &mut Vec<u8>, value: &T) {
    // Writing to memory does not fail, and these values have only string keys.
    let _in_memory = serde_json::to_writer(out, value);
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::{Value, json};

    use crate::spec::{Listing, ToolName, ToolSpec};
    use crate::toolset::list::mcp_tool;

    /// A spec as the listing of a server is read.
    fn spec(text: &str) -> ToolSpec {
        let read: Value = serde_json::from_str(text).unwrap();
        let schema = read.get("inputSchema").cloned();
        let mut spec = ToolSpec::new(
            ToolName::new("far.one").unwrap(),
            read["description"].as_str().unwrap_or_default(),
            schema.unwrap_or_else(|| json!({"type": "object"})),
        );
        spec.title = read["title"].as_str().map(str::to_owned);
        spec.listing = Some(Arc::new(Listing::new(text, &spec)));
        spec
    }

    fn to_text(spec: &ToolSpec) -> String {
        String::from_utf8(mcp_tool(spec).to_vec()).unwrap()
    }

    #[test]
    fn all_but_the_name_stays_byte_for_byte() {
        for (text, expect) in [
            (
                r#"{"z":[1.0,2],"name":"one","execution":{"taskSupport":"optional"},"inputSchema":{"type":"object","x-n":12345678901234567890123,"a":0},"icons":[{"src":"data:,"}],"_meta":{"b":1,"a":2}}"#,
                r#"{"z":[1.0,2],"name":"far.one","execution":{"taskSupport":"optional"},"inputSchema":{"type":"object","x-n":12345678901234567890123,"a":0},"icons":[{"src":"data:,"}],"_meta":{"b":1,"a":2}}"#,
            ),
            // What haft says is said by haft alone.
            (
                r#"{"name":"one","name":"two","inputSchema":{"type":"object"},"_meta":{"x":1,"haft":{"v":1}}}"#,
                r#"{"name":"far.one","inputSchema":{"type":"object"},"_meta":{"x":1}}"#,
            ),
            // Strict clients refuse a whole list over a schema that is of no object.
            (
                r#"{"name":"one","inputSchema":{ "properties":{"n":{"maximum":1E+2}}}}"#,
                r#"{"name":"far.one","inputSchema":{"type":"object", "properties":{"n":{"maximum":1E+2}}}}"#,
            ),
            (
                r#"{"name":"one","inputSchema":{}}"#,
                r#"{"name":"far.one","inputSchema":{"type":"object"}}"#,
            ),
            (
                r#"{"name":"one","description":"d"}"#,
                r#"{"name":"far.one","description":"d","inputSchema":{"type":"object"}}"#,
            ),
        ] {
            assert_eq!(to_text(&spec(text)), expect);
        }
    }

    #[test]
    fn what_the_host_made_otherwise_is_said_as_the_host_says_it() {
        let mut changed = spec(
            r#"{"odd":1,"description":"d","title":"t","name":"one","inputSchema":{"type":"object","b":1,"a":2}}"#,
        );
        changed.description = "mine".into();
        assert_eq!(
            to_text(&changed),
            r#"{"odd":1,"title":"t","name":"far.one","inputSchema":{"type":"object","b":1,"a":2},"description":"mine"}"#
        );
        changed.input_schema = Arc::new(json!({"type": "object"}));
        assert_eq!(
            to_text(&changed),
            r#"{"odd":1,"title":"t","name":"far.one","description":"mine","inputSchema":{"type":"object"}}"#
        );
    }
}
