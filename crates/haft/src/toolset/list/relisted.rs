//! A tool of an MCP server as haft lists it: the server's own listing, under the tool's name in haft.

use bytes::Bytes;
use serde::Serialize;

use crate::json::amend::Amended;
use crate::json::members::{Member, members};
use crate::spec::{Listing, SpecMember, ToolSpec};
use crate::toolset::list::{is_object, object_schema};

/// The member of `_meta` reserved for haft: no server may set it.
const OWN_MEMBER: &str = "haft";

/// Returns the listing under the spec's name. Members that the host changed have the spec's value; all others stay byte for byte.
/// `None` if the listing is not an object.
pub(super) fn relist(spec: &ToolSpec, listing: &Listing) -> Option<Bytes> {
    let mut tool = Amended::read(listing.text()).ok()?;
    let found = tool.members().to_vec();
    let is_again = |nth: usize, name: &str| found[..nth].iter().any(|one| one.is(name));
    for (nth, member) in found.iter().enumerate() {
        if member.is("name") {
            // Parsers disagree on duplicate members, so only one is kept.
            if is_again(nth, "name") {
                tool.remove(nth);
            } else {
                tool.say(nth, spec.name.as_str());
            }
            continue;
        }
        match SpecMember::ALL.into_iter().find(|d| member.is(d.as_str())) {
            Some(described) if !listing.holds(described, spec) => {
                match value(described, spec).filter(|_| !is_again(nth, described.as_str())) {
                    Some(value) => *tool.replace(nth) = value,
                    None => tool.remove(nth),
                }
            }
            Some(SpecMember::InputSchema) => input_schema(&mut tool, nth, spec),
            None if member.is("_meta") => meta(&mut tool, nth, *member),
            _ => {}
        }
    }
    if !found.iter().any(|member| member.is("name")) {
        json(tool.add("name"), spec.name.as_str());
    }
    for described in SpecMember::ALL {
        let name = described.as_str();
        // The protocol requires a schema of arguments.
        let wanted = !listing.holds(described, spec) || described == SpecMember::InputSchema;
        if wanted
            && !found.iter().any(|member| member.is(name))
            && let Some(value) = value(described, spec)
        {
            tool.add(name).extend_from_slice(&value);
        }
    }
    Some(tool.to_text().into())
}

/// Adds type `object` to a schema of arguments that does not have it: arguments are always an object.
fn input_schema(tool: &mut Amended<'_>, nth: usize, spec: &ToolSpec) {
    if is_object(&spec.input_schema) {
        return;
    }
    let schema = tool.members()[nth].value().get();
    let typed = members(schema).is_ok_and(|inner| inner.iter().any(|one| one.is("type")));
    let out = tool.replace(nth);
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

/// Removes from `_meta` the member that only haft may set.
fn meta(tool: &mut Amended<'_>, nth: usize, member: Member<'_>) {
    if let Ok(mut inner) = Amended::read(member.value().get())
        && inner.position(OWN_MEMBER).is_some()
    {
        inner.retain(|one| !one.is(OWN_MEMBER));
        inner.write(tool.replace(nth));
    }
}

/// Returns the spec's value of a member as JSON; `None` if it has none.
fn value(described: SpecMember, spec: &ToolSpec) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    match described {
        SpecMember::Title => json(&mut out, spec.title.as_ref()?),
        SpecMember::Description => json(&mut out, &spec.description),
        SpecMember::InputSchema => json(&mut out, &object_schema(&spec.input_schema)),
        SpecMember::OutputSchema => {
            json(
                &mut out,
                spec.output_schema.as_deref().filter(|s| is_object(s))?,
            );
        }
        SpecMember::Annotations => json(&mut out, &spec.annotations),
    }
    Some(out)
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

    /// Returns a spec parsed from a server's listing.
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
            // Only haft sets its own member.
            (
                r#"{"name":"one","name":"two","inputSchema":{"type":"object"},"_meta":{"x":1,"haft":{"v":1}}}"#,
                r#"{"name":"far.one","inputSchema":{"type":"object"},"_meta":{"x":1}}"#,
            ),
            // Strict clients refuse the whole list over a schema without type `object`.
            (
                r#"{"name":"one","inputSchema":{ "properties":{"n":{"maximum":1E+2}}}}"#,
                r#"{"name":"far.one","inputSchema":{"type":"object", "properties":{"n":{"maximum":1E+2}}}}"#,
            ),
            (
                r#"{"name":"one","inputSchema":{}}"#,
                r#"{"name":"far.one","inputSchema":{"type":"object"}}"#,
            ),
            // Whitespace stays, and so does an unchanged name.
            (
                "{ \"name\" : \"one\" ,\n \"description\":\t\"d\", \"_meta\": { \"haft\":1 , \"x\": 1 }, \"inputSchema\":{ \"type\" : \"object\" } }",
                "{ \"name\" : \"far.one\" ,\n \"description\":\t\"d\", \"_meta\": { \"x\": 1 }, \"inputSchema\":{ \"type\" : \"object\" } }",
            ),
            (
                r#"{ "name" : "far\u002eone", "inputSchema": {"type":"object"} }"#,
                r#"{ "name" : "far\u002eone", "inputSchema": {"type":"object"} }"#,
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
            r#"{"odd":1,"description":"mine","title":"t","name":"far.one","inputSchema":{"type":"object","b":1,"a":2}}"#
        );
        changed.input_schema = Arc::new(json!({"type": "object"}));
        assert_eq!(
            to_text(&changed),
            r#"{"odd":1,"description":"mine","title":"t","name":"far.one","inputSchema":{"type":"object"}}"#
        );
        changed.title = None;
        changed.annotations.read_only_hint = Some(true);
        assert_eq!(
            to_text(&changed),
            r#"{"odd":1,"description":"mine","name":"far.one","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}}"#
        );
    }
}
