//! Headers that repeat a tool's arguments (2026-07-28): `Mcp-Param-NAME` repeats the argument marked `x-mcp-header: NAME`.
//!
//! Intermediaries may have acted on the header alone, so one that differs from the body is refused.

use std::collections::HashMap;

use http::HeaderMap;
use serde_json::Value;

use super::route::{decoded, mismatch, one};
use crate::wire::RpcError;

/// Maximum depth at which marks are looked for.
const MAX_DEPTH: usize = 16;

/// Checks a call's headers against its arguments, for a tool with this schema. Ignores marks that cannot be reached from the top
/// by `properties` alone.
pub(crate) fn check(headers: &HeaderMap, schema: &Value, arguments: &str) -> Result<(), RpcError> {
    let mut marks = Vec::new();
    collect(schema, &mut Vec::new(), &mut marks);
    if marks.is_empty() {
        return Ok(());
    }
    let text = if arguments.is_empty() {
        "{}"
    } else {
        arguments
    };
    // The executor refuses unreadable arguments, and records the call.
    let Ok(arguments) = serde_json::from_str::<HashMap<String, Value>>(text) else {
        return Ok(());
    };
    marks
        .iter()
        .try_for_each(|mark| mark.check(headers, &arguments))
}

/// An argument that a header repeats.
struct MirroredArgument<'a> {
    header: &'a str,
    path: Vec<&'a str>,
}

fn collect<'a>(schema: &'a Value, path: &mut Vec<&'a str>, marks: &mut Vec<MirroredArgument<'a>>) {
    if path.len() >= MAX_DEPTH {
        return;
    }
    let properties = schema.get("properties").and_then(Value::as_object);
    for (name, property) in properties.into_iter().flatten() {
        path.push(name);
        if let Some(header) = property.get("x-mcp-header").and_then(Value::as_str) {
            let path = path.clone();
            marks.push(MirroredArgument { header, path });
        }
        collect(property, path, marks);
        path.pop();
    }
}

impl MirroredArgument<'_> {
    fn check(
        &self,
        headers: &HeaderMap,
        arguments: &HashMap<String, Value>,
    ) -> Result<(), RpcError> {
        let name = format!("mcp-param-{}", self.header).to_ascii_lowercase();
        let given = one(headers, &name)?;
        let mut path = self.path.iter();
        let mut value = path.next().and_then(|name| arguments.get(*name));
        for name in path {
            value = value.and_then(|value| value.get(name));
        }
        let shown = self.path.join(".");
        match (given, value.filter(|value| !value.is_null())) {
            (None, None) => Ok(()),
            (None, Some(_)) => Err(mismatch(format!(
                "the header Mcp-Param-{} is missing: send what the argument {shown} says",
                self.header
            ))),
            (Some(given), Some(value))
                if decoded(given).is_some_and(|given| equals_value(&given, value)) =>
            {
                Ok(())
            }
            (Some(_), _) => Err(mismatch(format!(
                "the header Mcp-Param-{} is not what the argument {shown} says",
                self.header
            ))),
        }
    }
}

/// Returns whether a header's text equals this value; numbers are equal regardless of their spelling.
fn equals_value(given: &str, value: &Value) -> bool {
    match value {
        Value::String(text) => given == text,
        Value::Bool(yes) => given == if *yes { "true" } else { "false" },
        Value::Number(number) => {
            let number = number.to_string();
            let both = || Some((given.parse::<f64>().ok()?, number.parse::<f64>().ok()?));
            given == number
                || both().is_some_and(|(given, number)| given.to_bits() == number.to_bits())
        }
        Value::Null | Value::Array(_) | Value::Object(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_header_says_what_the_marked_argument_says_or_the_call_is_refused() {
        let schema = json!({"type": "object", "properties": {
            "region": {"type": "string", "x-mcp-header": "Region"},
            "size": {"type": "object", "properties": {"n": {"type": "integer", "x-mcp-header": "N"}}},
            "list": {"type": "array", "items": {"properties": {"no": {"x-mcp-header": "No"}}}},
        }});
        for (headers, arguments, expect) in [
            (&[][..], r#"{"list":[{"no":"x"}]}"#, true),
            (&[], r#"{"region":null}"#, true),
            (&[], r#"{"region":"eu"}"#, false),
            (&[("mcp-param-region", "eu")], r#"{"region":"eu"}"#, true),
            (&[("mcp-param-region", "eu")], r#"{"region":"us"}"#, false),
            (&[("mcp-param-region", "eu")], "", false),
            (
                &[("mcp-param-region", "=?base64?SGVsbG8=?=")],
                r#"{"region":"Hello"}"#,
                true,
            ),
            (
                &[("mcp-param-region", "=?base64?SGVsbG8?=")],
                r#"{"region":"Hello"}"#,
                false,
            ),
            (
                &[("mcp-param-region", "eu"), ("mcp-param-region", "eu")],
                r#"{"region":"eu"}"#,
                false,
            ),
            (&[("mcp-param-n", "42")], r#"{"size":{"n":42.0}}"#, true),
            (&[("mcp-param-n", "42")], r#"{"size":{"n":43}}"#, false),
            (&[("mcp-param-n", "42")], "[]", true),
        ] {
            let mut map = HeaderMap::new();
            for (name, value) in headers {
                map.append(http::HeaderName::from_static(name), value.parse().unwrap());
            }
            let checked = check(&map, &schema, arguments);
            assert_eq!(checked.is_ok(), expect, "{headers:?} {arguments}");
        }
    }
}
