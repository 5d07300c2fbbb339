//! A schema as `tools/list` shows it: the same constraints in fewer bytes, since every client sends the whole list to its model.

use serde_json::{Map, Value};

/// What a schema describes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SchemaRole {
    /// Arguments, which a model writes: descriptions stay.
    Input,
    /// A result, whose names explain themselves: descriptions and defaults are removed.
    Output,
}

/// Formats that only state the width of a number: `type` and the bounds tell the caller enough.
const WIDTH_FORMATS: [&str; 12] = [
    "uint", "uint8", "uint16", "uint32", "uint64", "int", "int8", "int16", "int32", "int64",
    "float", "double",
];

/// Returns the schema without what neither a model nor a validator needs.
pub(super) fn compact(schema: &Value, role: SchemaRole) -> Value {
    let mut shown = reduce(schema, role);
    // A description like "What `read_file` takes" only repeats the tool's own.
    if let Value::Object(map) = &mut shown {
        map.remove("description");
    }
    shown
}

fn reduce(schema: &Value, role: SchemaRole) -> Value {
    let Value::Object(map) = schema else {
        return schema.clone();
    };
    let mut out = Map::new();
    let words = words(map);
    for (key, value) in map {
        match (key.as_str(), value) {
            ("description" | "default", _) if role == SchemaRole::Output => {}
            ("default", Value::Null) => {}
            ("minimum", Value::Number(zero))
                if role == SchemaRole::Output && zero.as_f64() == Some(0.0) => {}
            ("format", Value::String(format)) if WIDTH_FORMATS.contains(&format.as_str()) => {}
            ("oneOf", _) if words.is_some() => {}
            // Keys are member names here: a member may be called `default`.
            ("properties" | "$defs" | "patternProperties", Value::Object(members)) => {
                let members = members.iter();
                let members = members.map(|(name, member)| (name.clone(), reduce(member, role)));
                out.insert(key.clone(), Value::Object(members.collect()));
            }
            // Values, not schemas.
            ("const" | "enum" | "default" | "examples", _) => {
                out.insert(key.clone(), value.clone());
            }
            (_, Value::Array(items)) => {
                let items = items.iter().map(|item| reduce(item, role));
                out.insert(key.clone(), items.collect());
            }
            _ => {
                out.insert(key.clone(), reduce(value, role));
            }
        }
    }
    if let Some(words) = words {
        out.insert("type".into(), "string".into());
        out.insert("enum".into(), words.into());
    }
    Value::Object(out)
}

/// Returns the strings of a `oneOf` that only lists strings with descriptions: an `enum` expresses the same.
fn words(map: &Map<String, Value>) -> Option<Vec<Value>> {
    let choices = map.get("oneOf")?.as_array()?;
    if choices.is_empty() || map.contains_key("enum") {
        return None;
    }
    let word = |choice: &Value| {
        let choice = choice.as_object()?;
        let plain = choice
            .keys()
            .all(|key| matches!(key.as_str(), "const" | "type" | "description"));
        choice
            .get("const")
            .filter(|word| plain && word.is_string())
            .cloned()
    };
    choices.iter().map(word).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{SchemaRole, compact};

    #[test]
    fn constraints_stay_and_what_explains_itself_goes() {
        let schema = json!({
            "description": "What `x` takes.", "type": "object", "required": ["a"],
            "properties": {
                "a": {"description": "How.", "oneOf": [
                    {"const": "one", "description": "One.", "type": "string"},
                    {"const": "two", "description": "Two.", "type": "string"}]},
                "default": {"default": null, "description": "D.", "format": "uint64", "minimum": 0, "type": "integer"},
                "m": {"default": {"description": "kept"}, "type": "object", "additionalProperties": {"format": "date", "type": "string"}},
                "u": {"anyOf": [{"type": "string"}, {"items": {"format": "uint", "type": "integer"}, "type": "array"}]},
                "n": {"oneOf": [{"const": 1}, {"const": "x", "pattern": "y"}]}
            }
        });
        let input = json!({
            "type": "object", "required": ["a"],
            "properties": {
                "a": {"description": "How.", "enum": ["one", "two"], "type": "string"},
                "default": {"description": "D.", "minimum": 0, "type": "integer"},
                "m": {"default": {"description": "kept"}, "type": "object", "additionalProperties": {"format": "date", "type": "string"}},
                "u": {"anyOf": [{"type": "string"}, {"items": {"type": "integer"}, "type": "array"}]},
                "n": {"oneOf": [{"const": 1}, {"const": "x", "pattern": "y"}]}
            }
        });
        assert_eq!(compact(&schema, SchemaRole::Input), input);
        let output = json!({
            "type": "object", "required": ["a"],
            "properties": {
                "a": {"enum": ["one", "two"], "type": "string"},
                "default": {"type": "integer"},
                "m": {"type": "object", "additionalProperties": {"format": "date", "type": "string"}},
                "u": {"anyOf": [{"type": "string"}, {"items": {"type": "integer"}, "type": "array"}]},
                "n": {"oneOf": [{"const": 1}, {"const": "x", "pattern": "y"}]}
            }
        });
        assert_eq!(compact(&schema, SchemaRole::Output), output);
    }
}
