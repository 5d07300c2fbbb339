//! Members that are null where the protocol says they may be absent: a server's result without them.
//!
//! Many servers write null for what they do not have. This is the one place where that is undone, for every result; what a tool says in
//! structured content, `_meta` and the values of a schema stays as it was sent.

use haft::json::members::{Member, members};
use memchr::memmem;
use serde_json::value::RawValue;

/// Maximum depth to which members are looked at: each level is read anew, and no type of the protocol is deeper.
const MAX_DEPTH: usize = 24;

/// What a value belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    /// A type of the protocol.
    Protocol,
    /// A JSON Schema.
    Schema,
    /// An object of schemas by name.
    Schemas,
    /// Data, of which haft knows nothing.
    Data,
}

/// Members of the protocol's types that hold further types of it. What else there is, is data: members that haft does not know too.
const TYPES: [&str; 19] = [
    "annotations",
    "completion",
    "content",
    "contents",
    "error",
    "execution",
    "icons",
    "inputRequests",
    "messages",
    "params",
    "prompts",
    "resource",
    "resourceTemplates",
    "resources",
    "result",
    "serverInfo",
    "supportedVersions",
    "tools",
    "values",
];
/// Members of the protocol's types that hold a schema.
const SCHEMAS: [&str; 3] = ["inputSchema", "outputSchema", "requestedSchema"];
/// Keywords of a schema that hold data.
const VALUES: [&str; 4] = ["default", "const", "enum", "examples"];
/// Keywords of a schema that hold an object of schemas.
const SCHEMAS_BY_NAME: [&str; 5] = [
    "properties",
    "patternProperties",
    "$defs",
    "definitions",
    "dependentSchemas",
];

impl Part {
    /// Returns what a member's value belongs to.
    fn of(self, member: &Member<'_>) -> Self {
        let is = |names: &[&str]| names.iter().any(|name| member.is(name));
        // A prompt's arguments are a list of the protocol's, a call's are data.
        let is_prompt = member.is("arguments") && member.value().get().starts_with('[');
        match self {
            Self::Protocol if is(&SCHEMAS) => Self::Schema,
            Self::Protocol if is(&TYPES) || is_prompt => Self::Protocol,
            Self::Schema if is(&VALUES) || member.key().starts_with("\"x-") => Self::Data,
            Self::Schema if is(&SCHEMAS_BY_NAME) => Self::Schemas,
            Self::Schema | Self::Schemas => Self::Schema,
            Self::Protocol | Self::Data => Self::Data,
        }
    }
}

/// Returns a result without members that are null; `None` if it has none.
pub(crate) fn without_nulls(result: &RawValue) -> Option<Box<RawValue>> {
    let mut out = Vec::new();
    if !amend(Part::Protocol, result, MAX_DEPTH, &mut out) {
        return None;
    }
    RawValue::from_string(String::from_utf8(out).ok()?).ok()
}

/// Writes a value without members that are null, down to this depth; returns whether it had any.
fn amend(part: Part, value: &RawValue, depth: usize, out: &mut Vec<u8>) -> bool {
    let text = value.get().as_bytes();
    let begin = out.len();
    let may_change = depth > 0 && part != Part::Data && memmem::find(text, b"null").is_some();
    let is_changed = match text.first() {
        Some(b'{') if may_change => object(part, value, depth - 1, out),
        Some(b'[') if may_change => list(part, value, depth - 1, out),
        _ => false,
    };
    if !is_changed {
        // The bytes stay as they were sent.
        out.truncate(begin);
        out.extend_from_slice(text);
    }
    is_changed
}

fn object(part: Part, value: &RawValue, depth: usize, out: &mut Vec<u8>) -> bool {
    let (mut is_changed, mut is_first) = (false, true);
    out.push(b'{');
    for member in members(value.get()).unwrap_or_default() {
        let inner = part.of(&member);
        // `default: null` and the like are values.
        let is_value = part == Part::Schema && inner == Part::Data;
        let is_null = member.value().get() == "null" && !is_value;
        is_changed |= is_null;
        if is_null && part != Part::Schemas {
            continue;
        }
        if !std::mem::take(&mut is_first) {
            out.push(b',');
        }
        out.extend_from_slice(member.key().as_bytes());
        out.push(b':');
        if is_null {
            // An argument that is described by nothing may be anything.
            out.extend_from_slice(b"{}");
        } else {
            is_changed |= amend(inner, member.value(), depth, out);
        }
    }
    out.push(b'}');
    is_changed
}

fn list(part: Part, value: &RawValue, depth: usize, out: &mut Vec<u8>) -> bool {
    let (mut is_changed, mut is_first) = (false, true);
    out.push(b'[');
    for one in serde_json::from_str::<Vec<&RawValue>>(value.get()).unwrap_or_default() {
        if one.get() == "null" {
            is_changed = true;
            continue;
        }
        if !std::mem::take(&mut is_first) {
            out.push(b',');
        }
        is_changed |= amend(part, one, depth, out);
    }
    out.push(b']');
    is_changed
}

#[cfg(test)]
mod tests {
    use serde_json::value::RawValue;

    use super::without_nulls;

    #[test]
    fn members_that_are_null_go_and_data_stays() {
        let rows = [
            (r#"{ "a" : 1.0 }"#, None),
            (
                r#"{"nextCursor":null,"tools":[ {"a":1} ]}"#,
                Some(r#"{"tools":[ {"a":1} ]}"#),
            ),
            (
                r#"{"content":null,"structuredContent":{"a":null}}"#,
                Some(r#"{"structuredContent":{"a":null}}"#),
            ),
            (
                r#"{"structuredContent":{"a":null},"_meta":{"b":null}}"#,
                None,
            ),
            (r#"{"structuredContent":null,"_meta":null}"#, Some("{}")),
            (
                r#"{"content":[null,{"type":"text","text":"null","annotations":null}]}"#,
                Some(r#"{"content":[{"type":"text","text":"null"}]}"#),
            ),
            (
                r#"{"inputSchema":{"properties":null,"required":null}}"#,
                Some(r#"{"inputSchema":{}}"#),
            ),
            (
                r#"{"inputSchema":{"properties":{"default":{"default":null,"enum":[null,1]}}}}"#,
                None,
            ),
            (
                r#"{"inputSchema":{"properties":{"a":null,"b":{"description":null,"const":null}}}}"#,
                Some(r#"{"inputSchema":{"properties":{"a":{},"b":{"const":null}}}}"#),
            ),
            (
                r#"{"prompts":[{"arguments":[{"name":"n","required":null}]}]}"#,
                Some(r#"{"prompts":[{"arguments":[{"name":"n"}]}]}"#),
            ),
            (r#"{"arguments":{"a":null}}"#, None),
            (
                r#"{ "tools":[{"x-new":{"a":null}}], "capabilities":{"tools":null}}"#,
                None,
            ),
            (r#"{"inputSchema":{"x-new":{"a":null}}}"#, None),
            ("null", None),
            ("[null,1]", Some("[1]")),
        ];
        for (sent, expect) in rows {
            let raw = RawValue::from_string(sent.to_owned()).unwrap();
            let found = without_nulls(&raw);
            assert_eq!(found.as_ref().map(|raw| raw.get()), expect, "{sent}");
        }
    }
}
