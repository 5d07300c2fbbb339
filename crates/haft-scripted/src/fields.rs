//! Accessors for members of JSON objects, used to read requests.

use serde_json::{Map, Value};

/// Returns a member as text, if it is a string.
pub(crate) fn text<'v>(value: &'v Value, key: &str) -> Option<&'v str> {
    value.get(key).and_then(Value::as_str)
}

/// Returns a member as a list; empty if it is not one.
pub(crate) fn list<'v>(value: &'v Value, key: &str) -> &'v [Value] {
    value
        .get(key)
        .and_then(Value::as_array)
        .map_or(&[], Vec::as_slice)
}

/// Returns a member, unless it is absent or null.
pub(crate) fn member<'v>(value: &'v Value, key: &str) -> Option<&'v Value> {
    value.get(key).filter(|member| !member.is_null())
}

/// Returns a member in either spelling: Gemini accepts `functionCall` and `function_call`.
pub(crate) fn either<'v>(value: &'v Value, camel: &str) -> Option<&'v Value> {
    member(value, camel).or_else(|| member(value, &snake(camel)))
}

/// Converts `functionCall` to `function_call`.
pub(crate) fn snake(camel: &str) -> String {
    let mut snake = String::with_capacity(camel.len() + 4);
    for c in camel.chars() {
        if c.is_ascii_uppercase() {
            snake.push('_');
        }
        snake.push(c.to_ascii_lowercase());
    }
    snake
}

/// Returns the first member that is not in the list.
pub(crate) fn unknown<'v>(object: &'v Map<String, Value>, known: &[&str]) -> Option<&'v str> {
    object
        .keys()
        .map(String::as_str)
        .find(|key| !known.contains(key))
}

/// Returns all texts inside a value, one per line: what a user would read of it.
pub(crate) fn texts(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(items) => join(items.iter()),
        Value::Object(members) => join(members.values()),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

fn join<'v>(values: impl Iterator<Item = &'v Value>) -> String {
    let texts: Vec<String> = values.map(texts).filter(|text| !text.is_empty()).collect();
    texts.join("\n")
}

/// Returns a content as text: a string, or the texts of its parts.
pub(crate) fn content(value: Option<&Value>) -> String {
    match value {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(parts)) => {
            let texts: Vec<&str> = parts.iter().filter_map(|part| text(part, "text")).collect();
            texts.join("\n")
        }
        _ => String::new(),
    }
}
