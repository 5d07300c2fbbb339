//! Checks declared names and schemas as the providers check them.

use serde_json::{Map, Value};

use crate::fields::{list, text};
use crate::refusal::ProviderError;

/// Maximum length of a name, by OpenAI's and Anthropic's rule.
const LONGEST_NAME: usize = 64;

/// Returns whether a name matches `[A-Za-z0-9_-]{1,64}`.
pub(crate) fn is_name(name: &str) -> bool {
    let letter = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    !name.is_empty() && name.len() <= LONGEST_NAME && name.chars().all(letter)
}

/// Returns the name of a tool for OpenAI.
pub(crate) fn openai_name(tool: &Value, place: &str) -> Result<String, ProviderError> {
    let place = format!("{place}.name");
    let Some(name) = text(tool, "name") else {
        let words = format!("Missing required parameter: '{place}'.");
        return Err(ProviderError::invalid(words)
            .at(place)
            .code("missing_required_parameter"));
    };
    if is_name(name) {
        return Ok(name.to_owned());
    }
    let (words, code) = if name.len() > LONGEST_NAME {
        let length = name.len();
        (
            format!(
                "Invalid '{place}': string too long. Expected a string with maximum length {LONGEST_NAME}, but got a string with length {length} instead."
            ),
            "string_above_max_length",
        )
    } else {
        (
            format!(
                "Invalid '{place}': string does not match pattern. Expected a string that matches the pattern '^[a-zA-Z0-9_-]+$'."
            ),
            "invalid_value",
        )
    };
    Err(ProviderError::invalid(words).at(place).code(code))
}

/// Checks the parameters of a function for OpenAI.
pub(crate) fn openai(function: &Value, place: &str) -> Result<(), ProviderError> {
    let name = text(function, "name").unwrap_or_default();
    let strict = function.get("strict") == Some(&Value::Bool(true));
    let refuse = |words: String| {
        ProviderError::invalid(format!("Invalid schema for function '{name}': {words}"))
            .at(format!("{place}.parameters"))
            .code("invalid_function_parameters")
    };
    let Some(schema) = function
        .get("parameters")
        .filter(|schema| !schema.is_null())
    else {
        return if strict {
            Err(refuse(
                "In strict mode 'parameters' is required.".to_owned(),
            ))
        } else {
            Ok(())
        };
    };
    if text(schema, "type") != Some("object") {
        let kind = schema
            .get("type")
            .map_or("None".to_owned(), Value::to_string);
        return Err(refuse(format!(
            "schema must be a JSON Schema of 'type: \"object\"', got 'type: {kind}'."
        )));
    }
    if strict {
        walk(schema, &mut Vec::new(), &openai_strict).map_err(refuse)?;
    }
    Ok(())
}

/// Checks one schema for OpenAI's strict mode.
fn openai_strict(schema: &Map<String, Value>, path: &[String]) -> Result<(), String> {
    const REFUSED: [&str; 7] = [
        "allOf",
        "not",
        "if",
        "then",
        "else",
        "dependentRequired",
        "dependentSchemas",
    ];
    let context = || format!("In context=({}), ", quote_path(path));
    if let Some(key) = REFUSED.into_iter().find(|key| schema.contains_key(*key)) {
        return Err(format!("{}'{key}' is not permitted.", context()));
    }
    if path.is_empty() && schema.contains_key("anyOf") {
        return Err(format!(
            "{}'anyOf' is not permitted at the top level.",
            context()
        ));
    }
    if !is_object(schema) {
        return Ok(());
    }
    if schema.get("additionalProperties") != Some(&Value::Bool(false)) {
        return Err(format!(
            "{}'additionalProperties' is required to be supplied and to be false.",
            context()
        ));
    }
    let required = schema.get("required").and_then(Value::as_array);
    let required: Vec<&str> = required
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    let mut names = properties(schema);
    match names.find(|name| !required.contains(&name.as_str())) {
        Some(name) => Err(format!(
            "{}'required' is required to be supplied and to be an array including every key in properties. Missing '{name}'.",
            context()
        )),
        None => Ok(()),
    }
}

/// Checks a tool's schema for Anthropic.
pub(crate) fn anthropic(tool: &Value, place: &str) -> Result<(), ProviderError> {
    let Some(schema) = tool.get("input_schema").filter(|schema| schema.is_object()) else {
        return Err(ProviderError::invalid(format!(
            "{place}.input_schema: Field required"
        )));
    };
    match text(schema, "type") {
        Some("object") => {}
        Some(_) => {
            let words = format!("{place}.input_schema.type: Input should be 'object'");
            return Err(ProviderError::invalid(words));
        }
        None => {
            let words = format!("{place}.input_schema.type: Field required");
            return Err(ProviderError::invalid(words));
        }
    }
    if tool.get("strict") == Some(&Value::Bool(true)) {
        walk(schema, &mut Vec::new(), &anthropic_strict)
            .map_err(|words| ProviderError::invalid(format!("{place}: {words}")))?;
    }
    Ok(())
}

/// Checks one schema for Anthropic's strict mode.
fn anthropic_strict(schema: &Map<String, Value>, _: &[String]) -> Result<(), String> {
    const REFUSED: [&str; 7] = [
        "minimum",
        "maximum",
        "exclusiveMinimum",
        "exclusiveMaximum",
        "multipleOf",
        "minLength",
        "maxLength",
    ];
    let kind = schema.get("type").and_then(Value::as_str).unwrap_or("any");
    if let Some(key) = REFUSED.into_iter().find(|key| schema.contains_key(*key)) {
        return Err(format!(
            "For '{kind}' type, property '{key}' is not supported"
        ));
    }
    if schema
        .get("minItems")
        .and_then(Value::as_u64)
        .is_some_and(|least| least > 1)
    {
        return Err(
            "For 'array' type, 'minItems' values other than 0 or 1 are not supported".to_owned(),
        );
    }
    if is_object(schema) && schema.get("additionalProperties") != Some(&Value::Bool(false)) {
        return Err(
            "For 'object' type, 'additionalProperties' must be explicitly set to false".to_owned(),
        );
    }
    Ok(())
}

fn is_object(schema: &Map<String, Value>) -> bool {
    match schema.get("type") {
        Some(Value::String(kind)) => kind == "object",
        Some(Value::Array(kinds)) => kinds.iter().any(|kind| kind == "object"),
        _ => schema.contains_key("properties"),
    }
}

fn properties(schema: &Map<String, Value>) -> impl Iterator<Item = &String> {
    let properties = schema.get("properties").and_then(Value::as_object);
    properties.into_iter().flat_map(Map::keys)
}

fn quote_path(path: &[String]) -> String {
    let parts: Vec<String> = path.iter().map(|part| format!("'{part}'")).collect();
    parts.join(", ")
}

/// Visits a schema and all nested ones.
fn walk(
    schema: &Value,
    path: &mut Vec<String>,
    look: &impl Fn(&Map<String, Value>, &[String]) -> Result<(), String>,
) -> Result<(), String> {
    let Some(members) = schema.as_object() else {
        return Ok(());
    };
    look(members, path)?;
    for key in ["properties", "$defs", "definitions"] {
        let inner = members.get(key).and_then(Value::as_object);
        for (name, schema) in inner.into_iter().flatten() {
            path.extend([key.to_owned(), name.clone()]);
            walk(schema, path, look)?;
            path.truncate(path.len() - 2);
        }
    }
    for key in ["anyOf", "oneOf", "allOf", "prefixItems"] {
        for (at, schema) in list(schema, key).iter().enumerate() {
            path.extend([key.to_owned(), at.to_string()]);
            walk(schema, path, look)?;
            path.truncate(path.len() - 2);
        }
    }
    if let Some(items) = members.get("items") {
        path.push("items".to_owned());
        walk(items, path, look)?;
        path.pop();
    }
    Ok(())
}

/// Returns whether a name is valid for Gemini: a letter or `_`, then at most 127 of `[A-Za-z0-9_.:-]`.
pub(crate) fn is_gemini_name(name: &str) -> bool {
    let first = name.chars().next();
    let begins = first.is_some_and(|c| c.is_ascii_alphabetic() || c == '_');
    let letter = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | ':' | '-');
    begins && name.len() <= 128 && name.chars().all(letter)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn strict_schemas_are_held_to_each_providers_subset() {
        let whole = json!({"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"], "additionalProperties": false});
        let open =
            json!({"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]});
        let optional = json!({"type": "object", "properties": {"a": {"type": "integer"}}, "additionalProperties": false});
        let bounded = json!({"type": "object", "properties": {"a": {"type": "integer", "minimum": 1}}, "required": ["a"], "additionalProperties": false});
        let nested = json!({"type": "object", "properties": {"a": {"type": "array", "items": {"type": "object"}}}, "required": ["a"], "additionalProperties": false});
        let rows = [
            (&whole, None, None),
            (
                &open,
                Some("'additionalProperties' is required"),
                Some("must be explicitly set to false"),
            ),
            (&optional, Some("Missing 'a'"), None),
            (&bounded, None, Some("'minimum' is not supported")),
            (
                &nested,
                Some("In context=('properties', 'a', 'items')"),
                Some("must be explicitly set to false"),
            ),
        ];
        for (schema, openai_words, anthropic_words) in rows {
            let function = json!({"name": "f", "strict": true, "parameters": schema});
            let refused = openai(&function, "tools[0]")
                .err()
                .map(|refusal| refusal.message);
            check(refused, openai_words, schema);
            let tool = json!({"name": "f", "strict": true, "input_schema": schema});
            let refused = anthropic(&tool, "tools.0.custom")
                .err()
                .map(|refusal| refusal.message);
            check(refused, anthropic_words, schema);
        }
    }

    fn check(refused: Option<String>, expect: Option<&str>, schema: &Value) {
        match (refused, expect) {
            (None, None) => {}
            (Some(words), Some(part)) if words.contains(part) => {}
            (refused, _) => panic!("{schema}: {refused:?}, expected {expect:?}"),
        }
    }
}
