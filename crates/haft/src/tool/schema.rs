//! The JSON Schema of a type, as tools declare it.

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema};
use serde_json::Value;

/// Returns the settings for tool schemas: JSON Schema 2020-12, self-contained.
pub(super) fn schema_settings() -> SchemaSettings {
    SchemaSettings::draft2020_12().with(|s| {
        s.meta_schema = None;
        s.inline_subschemas = true;
    })
}

/// Returns the JSON Schema (2020-12, self-contained) of a type, as a tool's input schema. It rejects arguments that the type does
/// not name, unless the type collects them (`#[serde(flatten)]` on a map).
pub fn input_schema<T: JsonSchema>() -> Value {
    let generator = schema_settings().into_generator();
    let mut schema = generator.into_root_schema_for::<T>();
    schema.remove("title");
    if schema.get("type").is_none() {
        schema.insert("type".into(), "object".into());
    }
    if schema.get("properties").is_none() {
        schema.insert("properties".into(), Value::Object(serde_json::Map::new()));
    }
    if is_closed_by_default(&schema) {
        schema.insert("additionalProperties".into(), false.into());
    }
    schema.to_value()
}

/// Returns whether a schema names all its properties itself and does not mention others.
fn is_closed_by_default(schema: &Schema) -> bool {
    const OPEN: [&str; 8] = [
        "additionalProperties",
        "patternProperties",
        "unevaluatedProperties",
        "$ref",
        "allOf",
        "anyOf",
        "oneOf",
        "if",
    ];
    OPEN.iter().all(|key| schema.get(*key).is_none())
}
