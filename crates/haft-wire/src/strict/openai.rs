//! The subset of JSON Schema that OpenAI can enforce, and the conversion of schemas to it.

mod compile;
mod nulls;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::declared::Function;
use crate::dialect::Dialect;
use crate::loose::compact;
use crate::strict::DeclarationLoss;
use crate::strict::openai::compile::compile;
use crate::strict::tree::SchemaTree;

pub use nulls::without_nulls;

/// The declared parameters of a function.
#[derive(Debug)]
pub(crate) struct Parameters {
    pub(crate) json: String,
    /// Whether the provider can enforce it.
    pub(crate) is_strict: bool,
    /// What was lost of the schema, or why it is not strict although it should be.
    pub(crate) lost: Vec<DeclarationLoss>,
}

impl Parameters {
    /// Returns the parameters of a function: in the strict subset if requested and possible, otherwise unchanged.
    pub(crate) fn of(function: &Function, tool: &str) -> Self {
        let plain = |lost| Self {
            json: with_properties(&function.parameters),
            is_strict: false,
            lost,
        };
        let lost = |at: String, what: String| DeclarationLoss {
            tool: tool.to_owned(),
            at,
            what,
        };
        if !function.strict {
            return plain(Vec::new());
        }
        let Some(schema) = SchemaTree::read(&function.parameters) else {
            let what = "declared without strict: the schema is not JSON, has a name twice in one object, or is nested too deeply";
            return plain(vec![lost(String::new(), what.to_owned())]);
        };
        match compile(&schema) {
            Ok((strict, notes)) => Self {
                json: strict.json(),
                is_strict: true,
                lost: notes
                    .into_iter()
                    .map(|note| lost(note.at, note.what))
                    .collect(),
            },
            Err(why) => plain(vec![lost(
                why.at,
                format!("declared without strict: {}", why.what),
            )]),
        }
    }
}

/// Returns a schema unchanged, with one exception: OpenAI refuses an object schema without `properties`.
fn with_properties(schema: &RawValue) -> String {
    let json = compact(schema.get());
    let Some(tree @ SchemaTree::Object(_)) = SchemaTree::read(schema) else {
        return json.into_owned();
    };
    if tree.types() != ["object"] || tree.get("properties").is_some() {
        return json.into_owned();
    }
    let mut members = tree.members().to_vec();
    members.push(("properties".to_owned(), SchemaTree::Object(Vec::new())));
    SchemaTree::Object(members).json()
}

/// Returns the report for a declaration of another dialect.
pub(crate) fn left_out(spec: &RawValue, dialect: Dialect) -> DeclarationLoss {
    #[derive(Deserialize)]
    struct SpecName {
        #[serde(rename = "type")]
        kind: Option<String>,
        name: Option<String>,
    }
    let words: Option<SpecName> = serde_json::from_str(spec.get()).ok();
    let name = words.and_then(|words| words.name.or(words.kind));
    DeclarationLoss {
        tool: name.unwrap_or_else(|| crate::error::quote(spec.get())),
        at: String::new(),
        what: format!("left out: it is a declaration of {dialect}"),
    }
}

#[cfg(test)]
mod tests;
