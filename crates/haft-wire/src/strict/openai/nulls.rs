//! The way back from the strict subset: removes nulls that represent absent properties.

use std::borrow::Cow;

use serde_json::value::RawValue;

use crate::strict::tree::SchemaTree;

/// Maximum number of references followed in a row.
const FOLLOWED: usize = 16;
/// Maximum number of steps through a value.
const STEPS: usize = 20_000;

/// Returns the arguments without the nulls that represent absent properties. A strict schema makes every property required, and turns
/// an optional one into a union with `null`: such a null is removed if the tool's own schema does not allow it. Everything else in the
/// arguments is unchanged, to the byte if nothing is removed.
///
/// ```
/// use haft_wire::strict::openai::without_nulls;
/// use serde_json::value::RawValue;
///
/// let schema = RawValue::from_string(r#"{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"integer"}},"required":["a"]}"#.to_owned())?;
/// assert_eq!(without_nulls(&schema, r#"{"a":"x","b":null}"#), r#"{"a":"x"}"#);
/// # Ok::<(), serde_json::Error>(())
/// ```
pub fn without_nulls<'a>(schema: &RawValue, arguments: &'a str) -> Cow<'a, str> {
    if memchr::memmem::find(arguments.as_bytes(), b"null").is_none() {
        return Cow::Borrowed(arguments);
    }
    let raw: Option<&RawValue> = serde_json::from_str(arguments).ok();
    let read = raw.and_then(SchemaTree::read).zip(SchemaTree::read(schema));
    let Some((mut value, schema)) = read else {
        return Cow::Borrowed(arguments);
    };
    let before = value.clone();
    let mut dropping = NullRemover {
        root: &schema,
        steps: STEPS,
    };
    let is_whole = dropping.walk(&mut value, &schema).is_some();
    if value == before || !is_whole {
        return Cow::Borrowed(arguments);
    }
    Cow::Owned(value.json())
}

/// Follows a schema's references.
fn followed<'s>(schema: &'s SchemaTree, root: &'s SchemaTree) -> &'s SchemaTree {
    let mut schema = schema;
    for _ in 0..FOLLOWED {
        let reference = schema.get("$ref").and_then(SchemaTree::text);
        match reference.and_then(|reference| root.target(reference)) {
            Some(target) => schema = target,
            None => break,
        }
    }
    schema
}

/// Adds the schemas that may apply to a value, each once.
fn branches<'s>(schema: &'s SchemaTree, root: &'s SchemaTree, all: &mut Vec<&'s SchemaTree>) {
    let schema = followed(schema, root);
    if all.iter().any(|known| std::ptr::eq(*known, schema)) {
        return;
    }
    all.push(schema);
    for name in ["anyOf", "oneOf", "allOf"] {
        for one in schema.get(name).map(SchemaTree::items).unwrap_or_default() {
            branches(one, root, all);
        }
    }
}

/// Returns whether a schema allows `null`. One that says nothing about types does.
fn takes_null(schema: &SchemaTree, root: &SchemaTree) -> bool {
    let mut all = Vec::new();
    branches(schema, root, &mut all);
    all.into_iter().any(|one| {
        let says = ["type", "anyOf", "oneOf", "allOf", "$ref", "enum", "const"];
        let is_open = one
            .members()
            .iter()
            .all(|(name, _)| !says.contains(&name.as_str()));
        let values = one.get("enum").map(SchemaTree::items).unwrap_or_default();
        let of_enum = values.iter().any(|one| one.is("null"));
        let of_const = one.get("const").is_some_and(|one| one.is("null"));
        is_open || of_enum || of_const || one.types().contains(&"null")
    })
}

/// Removes nulls, in a limited number of steps: a schema may cause a value to be examined repeatedly.
struct NullRemover<'s> {
    root: &'s SchemaTree,
    steps: usize,
}

impl<'s> NullRemover<'s> {
    /// Returns `None` if it takes too many steps.
    fn walk(&mut self, value: &mut SchemaTree, schema: &'s SchemaTree) -> Option<()> {
        self.steps = self.steps.checked_sub(1)?;
        let mut all = Vec::new();
        branches(schema, self.root, &mut all);
        match value {
            SchemaTree::Object(members) => {
                let mut kept = Vec::with_capacity(members.len());
                for (name, mut value) in std::mem::take(members) {
                    let properties: Vec<_> =
                        all.iter().filter_map(|one| property(one, &name)).collect();
                    let stays = |(schema, is_required): &(&SchemaTree, bool)| {
                        *is_required || takes_null(schema, self.root)
                    };
                    if value.is("null") && !properties.is_empty() && !properties.iter().any(stays) {
                        continue;
                    }
                    for (schema, _) in properties {
                        self.walk(&mut value, schema)?;
                    }
                    kept.push((name, value));
                }
                *members = kept;
            }
            SchemaTree::List(values) => {
                for schema in all.iter().filter_map(|one| one.get("items")) {
                    for value in &mut *values {
                        self.walk(value, schema)?;
                    }
                }
            }
            SchemaTree::Text(_) | SchemaTree::Word(_) => {}
        }
        Some(())
    }
}

/// Returns the schema of a property, and whether it is required.
fn property<'s>(schema: &'s SchemaTree, name: &str) -> Option<(&'s SchemaTree, bool)> {
    let property = schema.get("properties")?.get(name)?;
    let required = schema
        .get("required")
        .map(SchemaTree::items)
        .unwrap_or_default();
    Some((
        property,
        required.iter().any(|one| one.text() == Some(name)),
    ))
}
