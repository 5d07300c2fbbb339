//! The typed stub: what a script may call, one line a tool.

use std::fmt::Write as _;

use haft::spec::ToolSpec;
use haft::toolset::Snapshot;
use serde_json::{Map, Value};

use crate::tool::CATEGORY;

/// Most tools that are named; the others are found by `tool_search`.
const MAX_TOOLS: usize = 100;
/// Longest line of one tool, in bytes: what is not needed for a call is left out first.
const MAX_LINE: usize = 150;
/// Longest first sentence, in bytes.
const MAX_SENTENCE: usize = 60;

/// One line for each listed tool: `name(arg: str, n: int = 400) -> {fields}  # what it does`.
pub fn stub(tools: &Snapshot) -> String {
    let callable = |spec: &ToolSpec| spec.category.as_deref() != Some(CATEGORY);
    let listed = tools.listed().filter(|entry| !entry.is_hosted());
    let specs: Vec<_> = listed
        .map(|entry| entry.spec())
        .filter(|spec| callable(spec))
        .collect();
    let mut text = String::new();
    for spec in specs.iter().take(MAX_TOOLS) {
        let _ = writeln!(text, "{}", line(spec));
    }
    if let Some(more) = specs.len().checked_sub(MAX_TOOLS).filter(|more| *more > 0) {
        let _ = writeln!(
            text,
            "# and {more} more: tools.tool_search(query=…) finds them"
        );
    }
    text
}

/// A tool's line: as much of it as fits, arguments before results before words.
fn line(spec: &ToolSpec) -> String {
    let name = spec.name.as_str();
    let plain = name.split('.').all(|part| {
        !part.is_empty() && !part.contains('-') && !part.starts_with(|c: char| c.is_ascii_digit())
    });
    let call = if plain {
        name.to_owned()
    } else {
        format!("[{name:?}]")
    };
    let empty = Map::new();
    let schema = &spec.input_schema;
    let properties = schema.get("properties").and_then(Value::as_object);
    let properties = properties.unwrap_or(&empty);
    let required: Vec<&str> = schema
        .get("required")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    let needed = |name: &str| required.contains(&name);
    let mut line = format!("{call}(");
    let shown = properties.iter().filter(|(name, _)| needed(name));
    let shown = shown.chain(properties.iter().filter(|(name, _)| !needed(name)));
    for (index, (name, schema)) in shown.enumerate() {
        let separator = if index == 0 { "" } else { ", " };
        let argument = argument(name, schema, needed(name));
        if line.len() + argument.len() > MAX_LINE - 30 && !needed(name) {
            let _ = write!(line, "{separator}…");
            break;
        }
        let _ = write!(line, "{separator}{argument}");
    }
    line.push(')');
    let fields = spec
        .output_schema
        .as_ref()
        .and_then(|schema| schema.get("properties")?.as_object());
    if let Some(fields) = fields.filter(|fields| !fields.is_empty()) {
        let names: Vec<&str> = fields.keys().map(String::as_str).take(6).collect();
        let fields = format!(" -> {{{}}}", names.join(","));
        if line.len() + fields.len() <= MAX_LINE {
            line.push_str(&fields);
        }
    }
    let sentence = sentence(&spec.description);
    if line.len() + sentence.len() + 4 <= MAX_LINE {
        let _ = write!(line, "  # {sentence}");
    }
    line
}

fn argument(name: &str, schema: &Value, required: bool) -> String {
    let kind = kind(schema, 0);
    match schema.get("default") {
        Some(Value::Null) | None if required => format!("{name}: {kind}"),
        Some(Value::Null) | None => format!("{name}: {kind} = …"),
        Some(default) => {
            let default = match default {
                Value::Bool(true) => "True".to_owned(),
                Value::Bool(false) => "False".to_owned(),
                other => other.to_string(),
            };
            format!("{name}: {kind} = {default}")
        }
    }
}

/// A schema's type in Python's words.
fn kind(schema: &Value, depth: usize) -> String {
    if let Some(values) = schema.get("enum").and_then(Value::as_array) {
        let values: Vec<String> = values.iter().take(6).map(Value::to_string).collect();
        return values.join("|");
    }
    if let Some(value) = schema.get("const") {
        return value.to_string();
    }
    let several = ["oneOf", "anyOf"];
    if let Some(kinds) = several.iter().find_map(|key| schema.get(key)?.as_array()) {
        let mut words: Vec<String> = kinds
            .iter()
            .filter(|one| one.get("type") != Some(&"null".into()))
            .map(|one| kind(one, depth + 1))
            .collect();
        words.dedup();
        return words.join("|");
    }
    let word = match schema.get("type") {
        Some(Value::String(word)) => word.as_str(),
        Some(Value::Array(words)) => words
            .iter()
            .filter_map(Value::as_str)
            .find(|word| *word != "null")
            .unwrap_or("any"),
        _ => "any",
    };
    match word {
        "string" => "str".to_owned(),
        "integer" => "int".to_owned(),
        "number" => "float".to_owned(),
        "boolean" => "bool".to_owned(),
        "array" if depth < 2 => {
            let item = schema
                .get("items")
                .map_or("any".to_owned(), |i| kind(i, depth + 1));
            format!("list[{item}]")
        }
        "array" => "list".to_owned(),
        "object" if depth == 1 => match schema.get("properties").and_then(Value::as_object) {
            Some(known) => {
                let names: Vec<&str> = known.keys().map(String::as_str).take(6).collect();
                format!("{{{}}}", names.join(","))
            }
            None => "dict".to_owned(),
        },
        "object" => "dict".to_owned(),
        other => other.to_owned(),
    }
}

/// The first sentence of a description, on one line.
fn sentence(description: &str) -> String {
    let line = description.trim().lines().next().unwrap_or_default();
    let end = line.find(". ").unwrap_or(line.len());
    let sentence = line.get(..end).unwrap_or(line).trim_end_matches('.');
    if sentence.len() <= MAX_SENTENCE {
        return sentence.to_owned();
    }
    let cut = sentence.floor_char_boundary(MAX_SENTENCE);
    let cut = sentence.get(..cut).unwrap_or_default();
    let whole = cut.rsplit_once(' ').map_or(cut, |(words, _)| words);
    format!("{whole}…")
}

#[cfg(test)]
mod tests {
    use super::*;
    use haft::spec::ToolName;
    use serde_json::json;

    fn check(name: &str, description: &str, schema: Value, expect: &str) {
        let spec = ToolSpec::new(ToolName::new(name).unwrap(), description, schema);
        assert_eq!(line(&spec), expect);
    }

    #[test]
    fn a_line_says_what_a_call_needs() {
        let schema = json!({
            "properties": {
                "mode": {"enum": ["a", "b"], "default": "a"},
                "path": {"type": "string"},
                "n": {"type": ["integer", "null"], "default": 400},
                "all": {"type": "boolean", "default": false},
                "edits": {"type": "array", "items": {"type": "object", "properties": {"find": {}, "replace": {}}}},
                "free": {"type": "string"},
            },
            "required": ["path", "edits"],
        });
        check(
            "edit",
            "Edit a file. Twice.",
            schema,
            r#"edit(edits: list[{find,replace}], path: str, all: bool = False, free: str = …, mode: "a"|"b" = "a", n: int = 400)  # Edit a file"#,
        );
        check("a.b", "", json!({}), "a.b()  # ");
        check("a-b", "x", json!({}), "[\"a-b\"]()  # x");
    }

    #[test]
    fn no_schema_makes_a_line_long() {
        let properties: Map<String, Value> = (0..200)
            .map(|n| {
                (
                    format!("argument_{n}"),
                    json!({"enum": ["one", "two", "three"]}),
                )
            })
            .collect();
        let name = ToolName::new("large").unwrap();
        let spec = ToolSpec::new(name, "long ".repeat(500), json!({"properties": properties}));
        assert!(line(&spec).len() <= MAX_LINE, "{}", line(&spec));
    }
}
