//! `HeaderArgument`: arguments that are repeated in headers, marked `x-mcp-header` in a tool's schema (2026-07-28, transports).
//!
//! Intermediaries between haft and the server may route by these headers without reading the message. A tool with an invalid mark
//! is left out, since what to send for it is undefined.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use haft::text::clip;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

/// The name of the mark in a schema.
const MARK_KEY: &str = "x-mcp-header";
/// Maximum depth of schemas to search; no argument is deeper.
const MAX_DEPTH: usize = 64;

/// An argument that is repeated in a header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct HeaderArgument {
    /// The name of the header.
    header: String,
    /// The argument's path: member names, outermost first.
    path: Vec<String>,
}

/// Returns a tool's marks, from its description by the server.
///
/// # Errors
/// A mark is invalid.
pub(crate) fn marks(tool: &RawValue) -> Result<Vec<HeaderArgument>, String> {
    if !tool.get().contains(MARK_KEY) {
        return Ok(Vec::new());
    }
    let tool: Map<String, Value> = serde_json::from_str(tool.get()).map_err(|e| e.to_string())?;
    let mut search = HeaderArgumentSearch::default();
    if let Some(schema) = tool.get("inputSchema") {
        search.look(schema, true)?;
    }
    Ok(search.found)
}

/// Returns the headers for these arguments. An argument that is null or absent has none.
pub(crate) fn mirrored_headers(marks: &[HeaderArgument], arguments: &str) -> Vec<(String, String)> {
    let header =
        |mark: &HeaderArgument| Some((mark.header.clone(), argument(arguments, &mark.path)?));
    marks.iter().filter_map(header).collect()
}

/// Returns an argument as header text; numbers stay as written.
fn argument(arguments: &str, path: &[String]) -> Option<String> {
    let Some((name, deeper)) = path.split_first() else {
        return match arguments.bytes().next()? {
            b'"' => serde_json::from_str(arguments).ok(),
            b'{' | b'[' | b'n' => None,
            _ => Some(arguments.to_owned()),
        };
    };
    let members: HashMap<Cow<'_, str>, &RawValue> = serde_json::from_str(arguments).ok()?;
    argument(members.get(name.as_str())?.get(), deeper)
}

#[derive(Default)]
struct HeaderArgumentSearch {
    found: Vec<HeaderArgument>,
    names: HashSet<String>,
    path: Vec<String>,
    depth: usize,
}

impl HeaderArgumentSearch {
    /// Searches a schema. `reached`: its arguments can be reached by member names alone, from the outermost object.
    fn look(&mut self, schema: &Value, reached: bool) -> Result<(), String> {
        if self.depth > MAX_DEPTH {
            return Err(format!("its schema is over {MAX_DEPTH} levels deep"));
        }
        self.depth += 1;
        match schema {
            Value::Object(members) => self.members(members, reached)?,
            Value::Array(items) => {
                for item in items {
                    self.look(item, false)?;
                }
            }
            _ => {}
        }
        self.depth -= 1;
        Ok(())
    }

    fn members(&mut self, members: &Map<String, Value>, reached: bool) -> Result<(), String> {
        if let Some(mark) = members.get(MARK_KEY) {
            self.take(mark, members, reached)?;
        }
        for (name, value) in members {
            match (name.as_str(), value) {
                // Values, not schemas.
                ("const" | "default" | "enum" | "examples", _) => {}
                ("properties", Value::Object(fields)) => {
                    for (field, schema) in fields {
                        self.path.push(field.clone());
                        self.look(schema, reached)?;
                        self.path.pop();
                    }
                }
                _ => self.look(value, false)?,
            }
        }
        Ok(())
    }

    fn take(
        &mut self,
        mark: &Value,
        members: &Map<String, Value>,
        reached: bool,
    ) -> Result<(), String> {
        let shown = clip(&mark.to_string(), 100).into_owned();
        let wrong = |why: &str| Err(format!("its mark {MARK_KEY} {shown} {why}"));
        let Some(name) = mark.as_str() else {
            return wrong("is not text");
        };
        if name.is_empty() || !name.bytes().all(is_token) {
            return wrong("is not the name of a header");
        }
        if !reached || self.path.is_empty() {
            return wrong("stands where no argument is found by its name");
        }
        let kind = members.get("type").and_then(Value::as_str);
        if !matches!(kind, Some("string" | "integer" | "boolean")) {
            return wrong(
                "is on an argument that is neither a text, a whole number nor a truth value",
            );
        }
        if !self.names.insert(name.to_ascii_lowercase()) {
            return wrong("appears twice");
        }
        self.found.push(HeaderArgument {
            header: format!("mcp-param-{}", name.to_ascii_lowercase()),
            path: self.path.clone(),
        });
        Ok(())
    }
}

/// Returns whether a byte may occur in a header's name (RFC 9110, 5.6.2).
fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(properties: &Value) -> Result<Vec<HeaderArgument>, String> {
        let tool =
            json!({"name": "t", "inputSchema": {"type": "object", "properties": properties}});
        marks(&serde_json::value::to_raw_value(&tool).unwrap())
    }

    #[test]
    fn a_mark_is_taken_where_it_is_valid_and_its_tool_left_out_where_not() {
        let text = |mark: Value| json!({"a": {"type": "string", "x-mcp-header": mark}});
        let marked = json!({"type": "string", "x-mcp-header": "X"});
        for (properties, expect) in [
            (text(json!("Region")), Ok(1)),
            (
                json!({"a": {"type": "object", "properties": {"b": marked}}}),
                Ok(1),
            ),
            (
                json!({"a": {"type": "string", "default": {"x-mcp-header": 1}}}),
                Ok(0),
            ),
            (json!({"x-mcp-header": {"type": "string"}}), Ok(0)),
            (text(json!("")), Err("not the name of a header")),
            (text(json!("My Region")), Err("not the name of a header")),
            (
                text(json!("Region:Primary")),
                Err("not the name of a header"),
            ),
            (text(json!("Région")), Err("not the name of a header")),
            (text(json!("Region\t1")), Err("not the name of a header")),
            (text(json!(1)), Err("is not text")),
            (
                json!({"a": marked, "b": {"type": "string", "x-mcp-header": "x"}}),
                Err("appears twice"),
            ),
            (
                json!({"a": {"type": "number", "x-mcp-header": "X"}}),
                Err("neither a text"),
            ),
            (
                json!({"a": {"type": ["string", "null"], "x-mcp-header": "X"}}),
                Err("neither a text"),
            ),
            (
                json!({"a": {"type": "array", "items": marked}}),
                Err("found by its name"),
            ),
            (json!({"a": {"anyOf": [marked]}}), Err("found by its name")),
            (
                json!({"a": {"type": "object", "$defs": {"properties": {"b": marked}}}}),
                Err("found by its name"),
            ),
        ] {
            match (read(&properties), expect) {
                (Ok(found), Ok(count)) => assert_eq!(found.len(), count, "{properties}"),
                (Err(why), Err(part)) => assert!(why.contains(part), "{properties}: {why}"),
                (found, expect) => panic!("{properties}: {found:?}, not {expect:?}"),
            }
        }
    }

    #[test]
    fn what_is_marked_is_repeated_and_nothing_else() {
        let field = |kind, mark| json!({"type": kind, "x-mcp-header": mark});
        let marks = read(&json!({
            "region": field("string", "Region"), "count": field("integer", "Count"),
            "deep": {"type": "object", "properties": {"on": field("boolean", "On")}},
            "query": {"type": "string"},
        }));
        let marks = marks.unwrap();
        for (arguments, expect) in [
            (
                r#"{"region":"eu","count":12345678901234567890123,"deep":{"on":false},"query":"q"}"#,
                vec![
                    "mcp-param-count=12345678901234567890123",
                    "mcp-param-on=false",
                    "mcp-param-region=eu",
                ],
            ),
            (r#"{"region":null,"deep":{},"count":[1]}"#, vec![]),
            (r#"{"region":"","deep":1}"#, vec!["mcp-param-region="]),
        ] {
            let mut found: Vec<String> = mirrored_headers(&marks, arguments)
                .into_iter()
                .map(|(name, value)| format!("{name}={value}"))
                .collect();
            found.sort();
            assert_eq!(found, expect, "{arguments}");
        }
    }
}
