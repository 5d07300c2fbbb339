//! Describes violations in words that a model can act on.

use std::fmt;

use jsonschema::error::{TypeKind, ValidationErrorKind};
use jsonschema::{ValidationError, Validator};
use serde_json::Value;

/// Maximum number of violations reported at once.
pub const MAX_VIOLATIONS: usize = 50;

/// A problem with a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// JSON pointer of the value; empty for the whole value.
    pub path: String,
    /// What is wrong, with the name of the property.
    pub message: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.path.is_empty() {
            return f.write_str(&self.message);
        }
        write!(f, "{}: {}", self.path, self.message)
    }
}

impl Violation {
    /// Creates a violation of the whole value.
    pub(super) fn root(message: impl fmt::Display) -> Self {
        Self {
            path: String::new(),
            message: clip(&message.to_string(), MAX_TEXT),
        }
    }
}

/// Maximum length of a value shown in a message, in bytes.
const MAX_VALUE: usize = 80;
/// Maximum length of a message, in bytes.
const MAX_TEXT: usize = 300;
/// Maximum number of enum options shown.
const MAX_OPTIONS: usize = 20;

/// Lists all violations of an instance that is known to be invalid.
pub(super) fn list(validator: &Validator, schema: &Value, instance: &Value) -> Vec<Violation> {
    let mut all = Vec::new();
    for error in validator.iter_errors(instance).take(MAX_VIOLATIONS) {
        describe(schema, &error, &mut all);
    }
    all.truncate(MAX_VIOLATIONS);
    if all.is_empty() {
        all.push(Violation::root("does not match the schema"));
    }
    all
}

fn describe(schema: &Value, error: &ValidationError<'_>, all: &mut Vec<Violation>) {
    let path = error.instance_path().as_str();
    let name = name(path);
    let got = render_value(error.instance());
    let mut add = |message: String| {
        all.push(Violation {
            path: path.to_owned(),
            message: clip(&message, MAX_TEXT),
        });
    };
    match error.kind() {
        ValidationErrorKind::Required { property } => {
            add(format!(
                "missing required property {}",
                render_value(property)
            ));
        }
        ValidationErrorKind::AdditionalProperties { unexpected }
        | ValidationErrorKind::UnevaluatedProperties { unexpected } => {
            let known = known(schema, error.schema_path().as_str());
            for property in unexpected.iter().take(MAX_VIOLATIONS) {
                add(unknown(property, &known));
            }
        }
        ValidationErrorKind::Type { kind } => {
            let kinds = match kind {
                TypeKind::Single(kind) => with_article(kind.as_str()),
                TypeKind::Multiple(kinds) => {
                    let kinds: Vec<_> = kinds.iter().map(|k| with_article(k.as_str())).collect();
                    kinds.join(" or ")
                }
            };
            add(format!("{name} must be {kinds}, got {got}"));
        }
        ValidationErrorKind::Enum { options } => {
            add(format!(
                "{name} must be {}, got {got}",
                list_options(options)
            ));
        }
        ValidationErrorKind::Constant { expected_value } => {
            add(format!(
                "{name} must be {}, got {got}",
                render_value(expected_value)
            ));
        }
        kind => add(bounds(kind, &name, &got).unwrap_or_else(|| other(error, &name, &got))),
    }
}

/// Describes the violation of a keyword with a limit.
fn bounds(kind: &ValidationErrorKind, name: &str, got: &str) -> Option<String> {
    Some(match kind {
        ValidationErrorKind::Minimum { limit } => {
            format!("{name} must be at least {limit}, got {got}")
        }
        ValidationErrorKind::Maximum { limit } => {
            format!("{name} must be at most {limit}, got {got}")
        }
        ValidationErrorKind::ExclusiveMinimum { limit } => {
            format!("{name} must be more than {limit}, got {got}")
        }
        ValidationErrorKind::ExclusiveMaximum { limit } => {
            format!("{name} must be less than {limit}, got {got}")
        }
        ValidationErrorKind::MultipleOf { multiple_of } => {
            format!("{name} must be a multiple of {multiple_of}, got {got}")
        }
        ValidationErrorKind::MinLength { limit } => {
            format!("{name} must have at least {limit} characters, got {got}")
        }
        ValidationErrorKind::MaxLength { limit } => {
            format!("{name} must have at most {limit} characters, got {got}")
        }
        ValidationErrorKind::MinItems { limit } => {
            format!("{name} must have at least {limit} items, got {got}")
        }
        ValidationErrorKind::MaxItems { limit } => {
            format!("{name} must have at most {limit} items, got {got}")
        }
        ValidationErrorKind::MinProperties { limit } => {
            format!("{name} must have at least {limit} properties, got {got}")
        }
        ValidationErrorKind::MaxProperties { limit } => {
            format!("{name} must have at most {limit} properties, got {got}")
        }
        ValidationErrorKind::Pattern { pattern } => {
            format!("{name} must match {}, got {got}", clip(pattern, MAX_VALUE))
        }
        ValidationErrorKind::UniqueItems => format!("{name} must not hold the same item twice"),
        ValidationErrorKind::FalseSchema => format!("{name} is not allowed here"),
        _ => return None,
    })
}

/// Describes the violation of a keyword with branches, and all others.
fn other(error: &ValidationError<'_>, name: &str, got: &str) -> String {
    match error.kind() {
        ValidationErrorKind::AnyOf { context } | ValidationErrorKind::OneOfNotValid { context } => {
            let reasons: Vec<String> = context
                .iter()
                .filter_map(|branch| branch.first())
                .take(4)
                .map(|error| clip(&error.to_string(), MAX_VALUE))
                .collect();
            let reasons = reasons.join("; ");
            format!(
                "{name} matches none of the {} allowed forms: {reasons}",
                context.len()
            )
        }
        ValidationErrorKind::OneOfMultipleValid { .. } => {
            format!(
                "{name} matches more than one of the forms of which only one is allowed, got {got}"
            )
        }
        _ => error.to_string(),
    }
}

/// Returns what a message calls a value: its property name, "item N", or "the value".
fn name(path: &str) -> String {
    let Some((_, last)) = path.rsplit_once('/') else {
        return "the value".into();
    };
    let last = last.replace("~1", "/").replace("~0", "~");
    if !last.is_empty() && last.bytes().all(|b| b.is_ascii_digit()) {
        return format!("item {last}");
    }
    clip(&format!("{last:?}"), MAX_VALUE)
}

fn unknown(property: &str, known: &[&str]) -> String {
    let best = known
        .iter()
        .map(|name| (strsim::jaro_winkler(&clip(property, MAX_VALUE), name), name))
        .filter(|(score, _)| *score >= 0.75)
        .max_by(|a, b| a.0.total_cmp(&b.0));
    let property = clip(&format!("{property:?}"), MAX_VALUE);
    match best {
        Some((_, name)) => format!("unknown property {property}, did you mean {name:?}?"),
        None if known.is_empty() => format!("unknown property {property}; none are allowed"),
        None => {
            let names: Vec<String> = known
                .iter()
                .take(MAX_OPTIONS)
                .map(|n| format!("{n:?}"))
                .collect();
            format!(
                "unknown property {property}; known are {}",
                names.join(", ")
            )
        }
    }
}

/// Returns the properties defined beside the keyword at this place of the schema.
fn known<'s>(schema: &'s Value, keyword: &str) -> Vec<&'s str> {
    let home = keyword.rsplit_once('/').map_or("", |(home, _)| home);
    let properties = schema.pointer(home).and_then(|home| home.get("properties"));
    let names = properties.and_then(Value::as_object);
    names
        .map(|names| names.keys().map(String::as_str).collect())
        .unwrap_or_default()
}

fn list_options(options: &Value) -> String {
    let Value::Array(options) = options else {
        return render_value(options);
    };
    let mut names: Vec<String> = options.iter().take(MAX_OPTIONS).map(render_value).collect();
    if options.len() > MAX_OPTIONS {
        names.push(format!("{} more", options.len() - MAX_OPTIONS));
    }
    match names.as_slice() {
        [one] => one.clone(),
        _ => format!("one of {}", names.join(", ")),
    }
}

fn with_article(kind: &str) -> String {
    match kind {
        "null" => "null".into(),
        "integer" | "array" | "object" => format!("an {kind}"),
        _ => format!("a {kind}"),
    }
}

/// Formats a value as compact JSON, truncated; arrays and objects only by their size.
fn render_value(value: &Value) -> String {
    match value {
        Value::Array(items) => format!("an array of {} items", items.len()),
        Value::Object(map) => format!("an object of {} properties", map.len()),
        Value::String(text) => {
            let short = clip(text, MAX_VALUE);
            serde_json::to_string(&short).unwrap_or_default()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => value.to_string(),
    }
}

/// Truncates a text to `max` bytes at a character boundary.
pub(super) fn clip(text: &str, max: usize) -> String {
    if text.len() <= max {
        return text.to_owned();
    }
    format!(
        "{}…",
        text.get(..text.floor_char_boundary(max))
            .unwrap_or_default()
    )
}
