//! Documents for `haft-search`: the parts of a tool or skill that are indexed.

use haft_search::Document;
use serde_json::Value;

use crate::skill::Skill;
use crate::spec::ToolSpec;

/// Maximum depth of nested parameters that are indexed.
const MAX_DEPTH: usize = 4;

/// Number of bytes of a description that are indexed: later text is detail, which would match too many other words.
const MAX_DESCRIPTION: usize = 1_000;

/// Creates the document of a tool: name and aliases, then the most descriptive texts first and the parameters last. Tags are the
/// words that users search for, so they count twice.
pub fn of_tool(spec: &ToolSpec) -> Document<'_> {
    let texts = [&spec.title, &spec.category].into_iter().flatten();
    let mut document = Document::new(spec.name.as_str())
        .with_aliases(&spec.aliases)
        .with_texts(spec.tags.iter().map(String::as_str))
        .with_texts(spec.tags.iter().map(String::as_str))
        .with_texts(texts.map(String::as_str))
        .with_text(truncate_description(&spec.description));
    parameters(&spec.input_schema, MAX_DEPTH, &mut document);
    document
}

/// Creates the document of a skill.
pub fn of_skill(skill: &Skill) -> Document<'_> {
    let front = skill.front();
    let texts = [&front.when_to_use, &front.category].into_iter().flatten();
    Document::new(skill.name())
        .with_aliases(&front.aliases)
        .with_texts(front.tags.iter().map(String::as_str))
        .with_texts(texts.map(String::as_str))
        .with_text(skill.description())
}

fn truncate_description(text: &str) -> &str {
    &text[..text.floor_char_boundary(MAX_DESCRIPTION)]
}

/// Adds the names and descriptions of an object schema's properties, recursively.
fn parameters<'a>(schema: &'a Value, depth: usize, document: &mut Document<'a>) {
    if depth == 0 {
        return;
    }
    let properties = schema.get("properties").and_then(Value::as_object);
    for (name, property) in properties.into_iter().flatten() {
        document.push_text(name);
        if let Some(text) = property.get("description").and_then(Value::as_str) {
            document.push_text(text);
        }
        parameters(property, depth - 1, document);
    }
    if let Some(items) = schema.get("items") {
        parameters(items, depth - 1, document);
    }
}
