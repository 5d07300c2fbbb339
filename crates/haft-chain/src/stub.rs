//! The typed stub: what a script may call, one line per tool.

use std::fmt::Write as _;

use haft::spec::ToolSpec;
use haft::toolset::ToolsetSnapshot;
use serde_json::Value;

use crate::tool::CATEGORY;

/// Maximum number of tools listed; `tool_search` finds the others.
const MAX_TOOLS: usize = 100;
/// Maximum number of pieces of one tool's line, as [`pieces`] counts them; what is not needed for a call is left out first.
/// It keeps the lines of the standard tools at 40 tokens (o200k), which a test checks.
const MAX_PIECES: usize = 33;
/// Maximum length in bytes of a tool's name with its required arguments, which are shown even if they have more than
/// [`MAX_PIECES`] pieces; what is longer is cut off.
const MAX_LINE: usize = 400;
/// The number of letters of a word that make about one token.
const LETTERS: usize = 8;
/// Maximum length of the first sentence, in bytes.
const MAX_SENTENCE: usize = 60;
/// Python keywords, which cannot be argument names; with a trailing `_` they can.
const KEYWORDS: [&str; 35] = [
    "False", "None", "True", "and", "as", "assert", "async", "await", "break", "class", "continue",
    "def", "del", "elif", "else", "except", "finally", "for", "from", "global", "if", "import",
    "in", "is", "lambda", "nonlocal", "not", "or", "pass", "raise", "return", "try", "while",
    "with", "yield",
];

/// Returns one line per listed tool: `name(arg: str, n: int = 400) -> {fields}  # what it does`.
pub fn stub(tools: &ToolsetSnapshot) -> String {
    let callable = |spec: &ToolSpec| spec.category.as_deref() != Some(CATEGORY);
    let listed = tools.listed().filter(|entry| entry.is_local());
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

/// Returns a tool's line: as much of it as fits, arguments before results before description.
fn line(spec: &ToolSpec) -> String {
    let fits = |line: &str| pieces(line) <= MAX_PIECES;
    let (needed, optional) = arguments(spec);
    let mut call = format!("{}({}", callable(spec.name.as_str()), needed.join(", "));
    if call.len() > MAX_LINE {
        call.truncate(call.floor_char_boundary(MAX_LINE));
        return format!("{call}…)");
    }
    let first = needed.is_empty();
    let mut shown = 0;
    for argument in &optional {
        let separator = if first && shown == 0 { "" } else { ", " };
        let longer = format!("{call}{separator}{argument}");
        // Leave room for the sign that there are more.
        if !fits(&format!("{longer}, …)")) {
            break;
        }
        call = longer;
        shown += 1;
    }
    if shown < optional.len() {
        call.push_str(if first && shown == 0 { "…" } else { ", …" });
    }
    let mut line = format!("{call})");
    let fields = spec
        .output_schema
        .as_ref()
        .and_then(|schema| schema.get("properties")?.as_object());
    let names: Vec<&str> = fields.map_or_else(Vec::new, |f| f.keys().map(String::as_str).collect());
    for count in (1..=names.len()).rev() {
        let more = if count < names.len() { ",…" } else { "" };
        let given = names.get(..count).unwrap_or_default().join(",");
        let longer = format!("{line} -> {{{given}{more}}}");
        if fits(&longer) {
            line = longer;
            break;
        }
    }
    let longer = format!("{line}  # {}", sentence(&spec.description));
    if fits(&longer) && !spec.description.is_empty() {
        return longer;
    }
    line
}

/// Estimates the number of tokens of a text like these. Every command of a host describes its tools, but few count tokens:
/// the table of a real tokenizer would cost each of them the time and memory of unpacking it.
fn pieces(text: &str) -> usize {
    let (mut pieces, mut letters, mut marks) = (0, 0, 0);
    for character in text.chars() {
        if character.is_alphanumeric() {
            // A word includes the one mark or space before it.
            pieces += if letters == 0 {
                (marks / 2).max(usize::from(marks > 1))
            } else {
                0
            };
            pieces += usize::from(letters % LETTERS == 0);
            (letters, marks) = (letters + 1, 0);
        } else {
            marks += if character.is_ascii() { 1 } else { 2 };
            letters = 0;
        }
    }
    pieces + marks.div_ceil(2)
}

/// Returns the expression by which a script calls a tool of this name.
fn callable(name: &str) -> String {
    let plain = |part: &str| {
        let first = part
            .bytes()
            .next()
            .is_some_and(|b| b.is_ascii_alphabetic() || b == b'_');
        first && !part.contains('-') && !KEYWORDS.contains(&part)
    };
    if name.split('.').all(plain) {
        name.to_owned()
    } else {
        format!("[{name:?}]")
    }
}

/// Returns the required arguments of a call, and the others.
fn arguments(spec: &ToolSpec) -> (Vec<String>, Vec<String>) {
    let schema = &spec.input_schema;
    let required = schema.get("required").and_then(Value::as_array);
    let needed = |name: &str| {
        let mut required = required.into_iter().flatten();
        required.any(|known| known.as_str() == Some(name))
    };
    let properties = schema.get("properties").and_then(Value::as_object);
    let (mut must, mut may) = (Vec::new(), Vec::new());
    for (name, schema) in properties.into_iter().flatten() {
        if needed(name) {
            must.push(argument(name, schema, true));
        } else {
            may.push(argument(name, schema, false));
        }
    }
    (must, may)
}

fn argument(name: &str, schema: &Value, required: bool) -> String {
    let kind = kind(schema, 0);
    let name = if KEYWORDS.contains(&name) {
        format!("{name}_")
    } else {
        name.to_owned()
    };
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

/// Returns a schema's type in Python notation.
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

/// Returns the first sentence of a description, on one line.
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
    use serde_json::{Map, json};

    fn check(name: &str, description: &str, schema: Value, expect: &str) {
        let spec = ToolSpec::new(ToolName::new(name).unwrap(), description, schema);
        assert_eq!(line(&spec), expect);
    }

    #[test]
    fn a_line_says_what_a_call_needs() {
        let schema = json!({
            "properties": {
                "from": {"type": "string"},
                "n": {"type": ["integer", "null"], "default": 400},
                "all": {"type": "boolean", "default": false},
                "mode": {"enum": ["a", "b"]},
            },
            "required": ["from"],
        });
        check(
            "copy",
            "Copy a file. Twice.",
            schema,
            r#"copy(from_: str, all: bool = False, mode: "a"|"b" = …, n: int = 400)  # Copy a file"#,
        );
        let edits = json!({"properties": {"edits": {"type": "array", "items": {"type": "object",
            "properties": {"find": {}, "replace": {}}}}}, "required": ["edits"]});
        check("edit", "", edits, "edit(edits: list[{find,replace}])");
        check("a.b", "", json!({}), "a.b()");
        check("a-b", "x", json!({}), "[\"a-b\"]()  # x");
        check("a.from", "x", json!({}), "[\"a.from\"]()  # x");
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
        let required: Vec<&String> = properties.keys().collect();
        let spec = |schema| {
            let name = ToolName::new("large").unwrap();
            ToolSpec::new(name, "long ".repeat(500), schema)
        };
        let optional = line(&spec(json!({"properties": properties})));
        let tokens = haft::tokens::standard().fits(&optional, 50);
        assert!(tokens.is_some(), "{optional}");
        let needed = spec(json!({"properties": properties, "required": required}));
        assert!(line(&needed).len() <= MAX_LINE + 8);
    }
}
