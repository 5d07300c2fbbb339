//! The JSON Schema of haft.toml for editors, generated from the table of keys.

use serde_json::{Map, Value, json};

use crate::config::keys::{KEYS, SettingKey, SettingType};

/// Returns the schema (2020-12).
pub fn schema() -> Value {
    let mut root = object();
    root.insert(
        "$schema".into(),
        json!("https://json-schema.org/draft/2020-12/schema"),
    );
    root.insert("title".into(), json!("haft.toml"));
    for key in KEYS {
        let parts: Vec<&str> = key.path.split('.').collect();
        insert(&mut root, &parts, key);
    }
    Value::Object(root)
}

fn object() -> Map<String, Value> {
    let Value::Object(map) =
        json!({"type": "object", "properties": {}, "additionalProperties": false})
    else {
        return Map::new();
    };
    map
}

fn insert(at: &mut Map<String, Value>, parts: &[&str], key: &SettingKey) {
    match parts {
        [] => {}
        ["**"] => {
            at.insert("additionalProperties".into(), json!(true));
            at.insert("description".into(), json!(key.doc));
        }
        ["*", rest @ ..] => {
            let below = at.entry("additionalProperties").or_insert(json!(false));
            descend(below, rest, key);
        }
        [last] => {
            if let Some(Value::Object(properties)) = at.get_mut("properties") {
                properties.insert((*last).to_owned(), leaf(key));
            }
        }
        [first, rest @ ..] => {
            if let Some(Value::Object(properties)) = at.get_mut("properties") {
                descend(properties.entry(*first).or_insert(json!(false)), rest, key);
            }
        }
    }
}

fn descend(below: &mut Value, rest: &[&str], key: &SettingKey) {
    if !below.is_object() {
        *below = Value::Object(object());
    }
    if let Value::Object(map) = below {
        insert(map, rest, key);
    }
}

fn leaf(key: &SettingKey) -> Value {
    let rule = json!({
        "type": "object",
        "properties": {
            "rule": {"type": "string"}, "reason": {"type": "string"},
            "tool": {"type": "string"}, "arguments": {"type": "string"},
            "match": {"type": "array", "items": {"type": "string"}},
            "no_match": {"type": "array", "items": {"type": "string"}},
        },
        "required": ["rule"], "additionalProperties": false,
    });
    let mut schema = match key.kind {
        SettingType::Flag => json!({"type": "boolean"}),
        SettingType::Whole(least) => json!({"type": "integer", "minimum": least}),
        SettingType::Seconds => json!({"type": "number", "exclusiveMinimum": 0}),
        SettingType::Amount => json!({"type": "number", "minimum": 0}),
        SettingType::Text => json!({"type": "string"}),
        SettingType::Choice(words) => json!({"type": "string", "enum": words}),
        SettingType::Items => json!({"type": "array", "items": {"type": "string"}}),
        SettingType::Rules => {
            json!({"type": "array", "items": {"anyOf": [{"type": "string"}, rule]}})
        }
        SettingType::Map => json!({"type": "object", "additionalProperties": {"type": "string"}}),
        SettingType::Anything => json!({}),
    };
    if let Value::Object(map) = &mut schema {
        map.insert("description".into(), json!(key.doc));
        let default = toml::from_str::<toml::Table>(&format!("v = {}", key.default)).ok();
        if let Some(value) = default.as_ref().and_then(|table| table.get("v")) {
            map.insert("default".into(), json!(value));
        }
    }
    schema
}
