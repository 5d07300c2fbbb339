//! `Document`: what the index reads of a tool or a skill.

use serde_json::Value;

use crate::skill::Skill;
use crate::spec::ToolSpec;
use crate::toolset::search::words::{clipped, terms};

/// Bytes of one text that are read.
const MAX_TEXT: usize = 16 * 1024;
/// Terms of one document that are indexed.
const MAX_TERMS: usize = 1_024;
/// How deep parameters within parameters are read.
const MAX_DEPTH: usize = 4;

/// What the index reads of a tool or a skill. Cheap to make: it borrows.
#[derive(Debug, Clone, Copy)]
pub struct Document<'a> {
    /// Its name; it counts twice, and a query that is the name finds it first.
    pub name: &'a str,
    /// A name for people.
    pub title: Option<&'a str>,
    /// Other names.
    pub aliases: &'a [String],
    /// Words that go with it.
    pub tags: &'a [String],
    /// Its category.
    pub category: Option<&'a str>,
    /// What it does.
    pub description: &'a str,
    /// A JSON Schema, whose parameters' names and descriptions are read.
    pub parameters: Option<&'a Value>,
}

impl<'a> Document<'a> {
    /// A document with a name and a description alone.
    pub fn new(name: &'a str, description: &'a str) -> Self {
        Self {
            name,
            title: None,
            aliases: &[],
            tags: &[],
            category: None,
            description,
            parameters: None,
        }
    }

    /// A tool's.
    pub fn of_tool(spec: &'a ToolSpec) -> Self {
        Self {
            name: spec.name.as_str(),
            title: spec.title.as_deref(),
            aliases: &spec.aliases,
            tags: &spec.tags,
            category: spec.category.as_deref(),
            description: &spec.description,
            parameters: Some(&spec.input_schema),
        }
    }

    /// A skill's.
    pub fn of_skill(skill: &'a Skill) -> Self {
        let front = skill.front();
        Self {
            aliases: &front.aliases,
            tags: &front.tags,
            category: front.category.as_deref(),
            title: front.when_to_use.as_deref(),
            ..Self::new(skill.name(), skill.description())
        }
    }

    /// Calls `each` with its terms: a bounded number, the telling ones first.
    pub fn terms(&self, mut each: impl FnMut(&str)) {
        let mut left = MAX_TERMS;
        let mut read = |text: &str| {
            if left == 0 {
                return;
            }
            terms(clipped(text, MAX_TEXT), |term| {
                if left > 0 {
                    left -= 1;
                    each(term);
                }
            });
        };
        read(self.name);
        read(self.name);
        let labels = self.aliases.iter().chain(self.tags).map(String::as_str);
        for text in labels.chain(self.title).chain(self.category) {
            read(text);
        }
        read(self.description);
        if let Some(schema) = self.parameters {
            parameters(schema, MAX_DEPTH, &mut read);
        }
    }
}

/// Names and descriptions of an object schema's properties, and of theirs.
fn parameters(schema: &Value, depth: usize, read: &mut impl FnMut(&str)) {
    if depth == 0 {
        return;
    }
    let properties = schema.get("properties").and_then(Value::as_object);
    for (name, property) in properties.into_iter().flatten() {
        read(name);
        if let Some(text) = property.get("description").and_then(Value::as_str) {
            read(text);
        }
        parameters(property, depth - 1, read);
    }
    if let Some(items) = schema.get("items") {
        parameters(items, depth - 1, read);
    }
}
