//! Converts a schema to OpenAI's subset, or says why that is not possible.

use crate::strict::tree::SchemaTree;

/// What was lost of a schema at a place, or why it is outside the subset.
#[derive(Debug)]
pub(super) struct SchemaNote {
    /// A JSON pointer.
    pub(super) at: String,
    pub(super) what: String,
}

/// The limits given in OpenAI's documentation, February 2026.
const LEVELS: usize = 10;
const PROPERTIES: usize = 5_000;
const ENUMS: usize = 1_000;
const CHARS: usize = 120_000;
/// An enum of texts with more values than the first number may have at most the second number of characters in total.
const LONG_ENUM: (usize, usize) = (250, 15_000);

/// Formats that the provider enforces.
const FORMATS: [&str; 9] = [
    "date-time",
    "time",
    "date",
    "duration",
    "email",
    "hostname",
    "ipv4",
    "ipv6",
    "uuid",
];

/// Keywords that are kept unchanged.
const AS_IS: [&str; 11] = [
    "type",
    "description",
    "title",
    "pattern",
    "multipleOf",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "minItems",
    "maxItems",
];

/// Keywords that only restrict or explain a value: the model reads them in the description, the host checks them.
const DESCRIBED: [&str; 9] = [
    "minLength",
    "maxLength",
    "uniqueItems",
    "minProperties",
    "maxProperties",
    "default",
    "examples",
    "example",
    "format",
];

/// Keywords that say nothing about a value.
const SILENT: [&str; 8] = [
    "$schema",
    "$id",
    "$comment",
    "$anchor",
    "readOnly",
    "writeOnly",
    "deprecated",
    "nullable",
];

/// Maximum number of nested schemas examined: inlined references can multiply.
const NODES: usize = 20_000;

type Result<T> = std::result::Result<T, SchemaNote>;

/// Converts the schema of a function's arguments to the subset, with notes on what was lost.
///
/// # Errors
/// If that would change its meaning, or it exceeds a limit.
pub(super) fn compile(schema: &SchemaTree) -> Result<(SchemaTree, Vec<SchemaNote>)> {
    let mut compiling = OpenAiCompiler {
        root: schema,
        notes: Vec::new(),
        properties: 0,
        enums: 0,
        chars: 0,
        nodes: 0,
        inlining: Vec::new(),
    };
    let refuse = |what: &str| Err(note("", what));
    let mut begin = schema.clone();
    if let Some(reference) = schema.get("$ref").and_then(SchemaTree::text) {
        begin = compiling.inline(schema, reference, "")?;
    }
    if begin.types() != ["object"] {
        return refuse("the root is not an object");
    }
    for keyword in ["anyOf", "oneOf", "allOf", "enum", "const", "not"] {
        if begin.get(keyword).is_some() {
            return refuse(&format!("the root has {keyword}"));
        }
    }
    let compiled = compiling.node(&begin, SchemaPosition { at: "", level: 1 })?;
    for (is, most, what) in [
        (compiling.properties, PROPERTIES, "properties"),
        (compiling.enums, ENUMS, "values of enums"),
        (
            compiling.chars,
            CHARS,
            "characters of names and values of enums",
        ),
    ] {
        if is > most {
            return refuse(&format!("it has {is} {what}, and {most} are the most"));
        }
    }
    Ok((compiled, compiling.notes))
}

fn note(at: &str, what: impl Into<String>) -> SchemaNote {
    SchemaNote {
        at: at.to_owned(),
        what: what.into(),
    }
}

/// Appends a name to a JSON pointer.
fn below(at: &str, name: &str) -> String {
    format!("{at}/{}", name.replace('~', "~0").replace('/', "~1"))
}

/// The place of a schema: its JSON pointer, and its nesting level of objects.
#[derive(Debug, Clone, Copy)]
struct SchemaPosition<'p> {
    at: &'p str,
    level: usize,
}

struct OpenAiCompiler<'s> {
    root: &'s SchemaTree,
    notes: Vec<SchemaNote>,
    properties: usize,
    enums: usize,
    chars: usize,
    nodes: usize,
    /// The references being inlined.
    inlining: Vec<String>,
}

impl OpenAiCompiler<'_> {
    /// Converts one schema.
    fn node(&mut self, schema: &SchemaTree, place: SchemaPosition<'_>) -> Result<SchemaTree> {
        let SchemaPosition { at, level } = place;
        self.nodes += 1;
        if self.nodes > NODES {
            return Err(note(at, format!("it holds more than {NODES} schemas")));
        }
        if level > LEVELS {
            return Err(note(
                at,
                format!("it is nested more than {LEVELS} levels deep"),
            ));
        }
        let SchemaTree::Object(members) = schema else {
            return Err(note(at, "it lets any value or none pass"));
        };
        if let Some(reference) = schema.get("$ref").and_then(SchemaTree::text) {
            return self.reference(schema, reference, place);
        }
        if let Some([only]) = schema.get("allOf").map(SchemaTree::items) {
            let merged = over(members.iter().filter(|(name, _)| name != "allOf"), only);
            return self.node(&merged, place);
        }
        let mut out: Vec<(String, SchemaTree)> = Vec::new();
        let mut described: Vec<String> = Vec::new();
        for (name, _) in members {
            if let Some(value) = self.keyword(schema, name, place, &mut described)? {
                let name = if name == "oneOf" { "anyOf" } else { name };
                out.push((name.to_owned(), value));
            }
        }
        complete(schema, &mut out, at)?;
        if !described.is_empty() {
            describe(&mut out, &described);
        }
        Ok(SchemaTree::Object(out))
    }

    /// Converts one keyword of a schema; `None` if it is dropped.
    fn keyword(
        &mut self,
        schema: &SchemaTree,
        name: &str,
        place: SchemaPosition<'_>,
        described: &mut Vec<String>,
    ) -> Result<Option<SchemaTree>> {
        let level = place.level;
        let here = below(place.at, name);
        let Some(value) = schema.get(name) else {
            return Ok(None);
        };
        Ok(Some(match name {
            "properties" => self.properties(schema, value, &here, level)?,
            "required" => return Ok(None),
            "additionalProperties" | "unevaluatedProperties" => {
                if value.is("false") {
                    return Ok(None);
                }
                return Err(note(&here, "members beside its properties may be there"));
            }
            "items" => self.node(value, SchemaPosition { at: &here, level })?,
            "anyOf" | "oneOf" => self.either(name, value, SchemaPosition { at: &here, level })?,
            "$defs" | "definitions" => {
                let mut all = Vec::new();
                for (name, one) in value.members() {
                    self.chars += name.chars().count();
                    all.push((
                        name.clone(),
                        self.node(
                            one,
                            SchemaPosition {
                                at: &below(&here, name),
                                level,
                            },
                        )?,
                    ));
                }
                SchemaTree::Object(all)
            }
            "enum" => self.values(value.items(), value, &here)?,
            "const" => self.values(std::slice::from_ref(value), value, &here)?,
            "format" if value.text().is_some_and(|word| FORMATS.contains(&word)) => value.clone(),
            _ if AS_IS.contains(&name) => value.clone(),
            "default" if value.is("null") => return Ok(None),
            _ if DESCRIBED.contains(&name) => {
                self.notes
                    .push(note(&here, format!("{name} is only in the description")));
                described.push(format!("{name}: {}", value.json()));
                return Ok(None);
            }
            _ if SILENT.contains(&name) || name.starts_with("x-") => return Ok(None),
            _ => return Err(note(&here, format!("{name} cannot be expressed"))),
        }))
    }

    /// Converts alternative schemas.
    fn either(
        &mut self,
        name: &str,
        value: &SchemaTree,
        place: SchemaPosition<'_>,
    ) -> Result<SchemaTree> {
        if name == "oneOf" {
            let what = "oneOf becomes anyOf: it is not enforced that only one fits";
            self.notes.push(note(place.at, what));
        }
        let mut all = Vec::new();
        for (number, one) in value.items().iter().enumerate() {
            let at = below(place.at, &number.to_string());
            all.push(self.node(
                one,
                SchemaPosition {
                    at: &at,
                    level: place.level,
                },
            )?);
        }
        Ok(SchemaTree::List(all))
    }

    /// Converts the properties of an object: all become required, and those that were optional may be null.
    fn properties(
        &mut self,
        schema: &SchemaTree,
        value: &SchemaTree,
        at: &str,
        level: usize,
    ) -> Result<SchemaTree> {
        let required: Vec<&str> = schema
            .get("required")
            .map(SchemaTree::items)
            .unwrap_or_default()
            .iter()
            .filter_map(SchemaTree::text)
            .collect();
        let mut all = Vec::new();
        for (name, one) in value.members() {
            self.properties += 1;
            self.chars += name.chars().count();
            // A level is an object inside an object, whatever lists are between them.
            let compiled = self.node(
                one,
                SchemaPosition {
                    at: &below(at, name),
                    level: level + usize::from(is_object(one, self.root)),
                },
            )?;
            let compiled = if required.contains(&name.as_str()) {
                compiled
            } else {
                nullable(compiled)
            };
            all.push((name.clone(), compiled));
        }
        Ok(SchemaTree::Object(all))
    }

    /// Counts the values of an enum, and refuses one that is too long.
    fn values(&mut self, all: &[SchemaTree], value: &SchemaTree, at: &str) -> Result<SchemaTree> {
        self.enums += all.len();
        let chars: usize = all
            .iter()
            .map(|one| {
                one.text()
                    .map_or_else(|| one.json().len(), |text| text.chars().count())
            })
            .sum();
        self.chars += chars;
        let (many, most) = LONG_ENUM;
        if all.len() > many && chars > most {
            let what = format!(
                "its {} values have {chars} characters, and {most} are the most",
                all.len()
            );
            return Err(note(at, what));
        }
        Ok(value.clone())
    }

    /// Converts a reference: it is kept if it is the only member, else inlined, because no other member may be next to it.
    fn reference(
        &mut self,
        schema: &SchemaTree,
        reference: &str,
        place: SchemaPosition<'_>,
    ) -> Result<SchemaTree> {
        let at = place.at;
        let alone = SchemaTree::Object(vec![(
            "$ref".to_owned(),
            SchemaTree::Text(reference.to_owned()),
        )]);
        if self.root.target(reference).is_none() {
            return Err(note(at, format!("{reference} is not followed")));
        }
        let says = |name: &str| name != "$ref" && !SILENT.contains(&name);
        let beside: Vec<&str> = schema
            .members()
            .iter()
            .map(|(name, _)| name.as_str())
            .filter(|name| says(name))
            .collect();
        if beside.is_empty() {
            return Ok(alone);
        }
        if self.inlining.iter().any(|one| one == reference) {
            let only_words = beside
                .iter()
                .all(|name| matches!(*name, "description" | "title" | "default" | "examples"));
            if !only_words {
                return Err(note(at, format!("{reference} leads back to itself")));
            }
            self.notes.push(note(
                at,
                format!("{} beside a reference to itself", beside.join(", ")),
            ));
            return Ok(alone);
        }
        let merged = self.inline(schema, reference, at)?;
        self.inlining.push(reference.to_owned());
        let compiled = self.node(&merged, place);
        self.inlining.pop();
        compiled
    }

    /// Returns the target of a reference, overridden by the members next to it.
    fn inline(&self, schema: &SchemaTree, reference: &str, at: &str) -> Result<SchemaTree> {
        let target = self.root.target(reference);
        let target = target.ok_or_else(|| note(at, format!("{reference} is not followed")))?;
        let beside = schema.members().iter().filter(|(name, _)| name != "$ref");
        Ok(over(beside, target))
    }
}

/// Adds what every schema and every object must state.
fn complete(schema: &SchemaTree, out: &mut Vec<(String, SchemaTree)>, at: &str) -> Result<()> {
    let mut types = schema.types();
    if types.is_empty() && schema.get("properties").is_some() {
        types.push("object");
        out.insert(
            0,
            ("type".to_owned(), SchemaTree::Text("object".to_owned())),
        );
    }
    let values = match (schema.get("enum"), schema.get("const")) {
        (Some(SchemaTree::List(all)), _) => all.as_slice(),
        (_, Some(one)) => std::slice::from_ref(one),
        _ => &[],
    };
    if types.is_empty() && !values.is_empty() {
        let mut sorts: Vec<&str> = values.iter().map(SchemaTree::sort).collect();
        sorts.sort_unstable();
        sorts.dedup();
        out.insert(0, ("type".to_owned(), one_or_list(&sorts)));
    } else if types.is_empty() && schema.get("anyOf").or(schema.get("oneOf")).is_none() {
        return Err(note(at, "it lets a value of any type pass"));
    }
    if types.contains(&"array") && schema.get("items").is_none() {
        return Err(note(at, "it lets a list of anything pass"));
    }
    if types.contains(&"object") {
        let is_closed = schema
            .get("additionalProperties")
            .is_some_and(|value| value.is("false"));
        let properties = schema
            .get("properties")
            .map(SchemaTree::members)
            .unwrap_or_default();
        if properties.is_empty() && !is_closed {
            return Err(note(at, "it lets an object with any members pass"));
        }
        if schema.get("properties").is_none() {
            out.push(("properties".to_owned(), SchemaTree::Object(Vec::new())));
        }
        let names = properties
            .iter()
            .map(|(name, _)| SchemaTree::Text(name.clone()));
        out.push(("required".to_owned(), SchemaTree::List(names.collect())));
        out.push((
            "additionalProperties".to_owned(),
            SchemaTree::Word("false".to_owned()),
        ));
    }
    Ok(())
}

/// Returns a schema's members, overridden by others.
fn over<'m>(
    members: impl Iterator<Item = &'m (String, SchemaTree)>,
    target: &SchemaTree,
) -> SchemaTree {
    let mut merged = target.members().to_vec();
    for (name, value) in members {
        merged.retain(|(known, _)| known != name);
        merged.push((name.clone(), value.clone()));
    }
    SchemaTree::Object(merged)
}

/// Returns whether a schema describes an object, itself or through a reference, an alternative or the items of a list.
fn is_object(schema: &SchemaTree, root: &SchemaTree) -> bool {
    let target = schema
        .get("$ref")
        .and_then(SchemaTree::text)
        .and_then(|reference| root.target(reference));
    let schema = target.unwrap_or(schema);
    let within = |name| {
        schema
            .get(name)
            .is_some_and(|inner| inner.types().contains(&"object"))
    };
    schema.types().contains(&"object")
        || within("items")
        || ["anyOf", "oneOf"].iter().any(|name| {
            let all = schema.get(name).map(SchemaTree::items).unwrap_or_default();
            all.iter().any(|one| one.types().contains(&"object"))
        })
}

fn one_or_list(sorts: &[&str]) -> SchemaTree {
    match sorts {
        [one] => SchemaTree::Text((*one).to_owned()),
        all => SchemaTree::List(
            all.iter()
                .map(|one| SchemaTree::Text((*one).to_owned()))
                .collect(),
        ),
    }
}

/// Returns the same schema, extended to allow `null`.
fn nullable(schema: SchemaTree) -> SchemaTree {
    let null = || {
        SchemaTree::Object(vec![(
            "type".to_owned(),
            SchemaTree::Text("null".to_owned()),
        )])
    };
    let SchemaTree::Object(mut members) = schema else {
        return schema;
    };
    let has = |name: &str| members.iter().any(|(known, _)| known == name);
    if has("$ref") || has("const") {
        let all = vec![SchemaTree::Object(members), null()];
        return SchemaTree::Object(vec![("anyOf".to_owned(), SchemaTree::List(all))]);
    }
    let has_any_of = has("anyOf");
    for (name, value) in &mut members {
        match (name.as_str(), &mut *value) {
            ("type", SchemaTree::Text(one)) if one != "null" => {
                *value = one_or_list(&[one.as_str(), "null"]);
            }
            ("type", SchemaTree::List(all))
                if !all.iter().any(|one| one.text() == Some("null")) =>
            {
                all.push(SchemaTree::Text("null".to_owned()));
            }
            ("enum", SchemaTree::List(all)) if !all.iter().any(|one| one.is("null")) => {
                all.push(SchemaTree::Word("null".to_owned()));
            }
            ("anyOf", SchemaTree::List(all))
                if has_any_of && !all.iter().any(|one| one.types().contains(&"null")) =>
            {
                all.push(null());
            }
            _ => {}
        }
    }
    SchemaTree::Object(members)
}

/// Adds inexpressible keywords to the description.
fn describe(members: &mut Vec<(String, SchemaTree)>, described: &[String]) {
    let more = format!("({})", described.join(", "));
    let own = members.iter_mut().find(|(name, _)| name == "description");
    match own {
        Some((_, SchemaTree::Text(text))) => {
            text.push(' ');
            text.push_str(&more);
        }
        _ => members.push(("description".to_owned(), SchemaTree::Text(more))),
    }
}
