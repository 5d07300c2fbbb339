//! Anthropic's subset of JSON Schema: what is outside moves into the description; what cannot move is a reason against `strict`.
//!
//! The rules are those of the provider's own libraries (`transform_schema`) and of its page on structured outputs.

use std::collections::{BTreeMap, BTreeSet};

use haft_json::escape::string;
use haft_json::members::{Member, Writer, members};
use serde::Deserialize;
use serde_json::value::RawValue;

/// A schema in the subset.
#[derive(Debug, Default)]
pub(crate) struct CompiledSchema {
    pub(crate) json: Vec<u8>,
    /// JSON pointers to what moved into a description or was dropped.
    pub(crate) moved: Vec<String>,
    /// The number of optional arguments.
    pub(crate) optional: usize,
    /// The number of arguments with more than one type.
    pub(crate) unions: usize,
}

/// Why a schema cannot be enforced.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct SchemaRefusal {
    /// The place in the schema: a JSON pointer.
    pub(crate) at: String,
    pub(crate) why: String,
}

/// Maximum depth of a schema that is compiled.
const DEEPEST: usize = 32;
const FORMATS: [&str; 9] = [
    "date-time",
    "time",
    "date",
    "duration",
    "email",
    "hostname",
    "uri",
    "ipv4",
    "ipv6",
];

/// Compiles the schema of a function's arguments.
///
/// # Errors
/// If the subset cannot express it.
pub(crate) fn compile(schema: &RawValue) -> Result<CompiledSchema, SchemaRefusal> {
    let mut compiler = AnthropicCompiler::default();
    let mut json = Vec::with_capacity(schema.get().len() + 64);
    compiler.node(schema, "", 0, &mut json)?;
    compiler.refuse_recursion()?;
    compiler.compiled.json = json;
    Ok(compiler.compiled)
}

#[derive(Debug, Default)]
struct AnthropicCompiler {
    compiled: CompiledSchema,
    /// The definition being read; empty outside of one.
    within: String,
    /// The definitions that each definition refers to.
    refers: BTreeMap<String, BTreeSet<String>>,
}

/// A schema, with its members sorted by how they are handled.
#[derive(Debug)]
struct SchemaNode<'a> {
    types: Vec<String>,
    kept: Vec<Member<'a>>,
    rest: Vec<Member<'a>>,
    description: Option<String>,
}

fn refuse<T>(at: &str, why: impl Into<String>) -> Result<T, SchemaRefusal> {
    Err(SchemaRefusal {
        at: at.to_owned(),
        why: why.into(),
    })
}

fn read<'a, T: Deserialize<'a>>(value: &'a RawValue, at: &str) -> Result<T, SchemaRefusal> {
    serde_json::from_str(value.get())
        .or_else(|error| refuse(at, format!("cannot be read: {error}")))
}

/// Appends a name to a JSON pointer.
fn step(at: &str, name: &str) -> String {
    format!("{at}/{}", name.replace('~', "~0").replace('/', "~1"))
}

fn name_of(member: Member<'_>) -> String {
    serde_json::from_str(member.key()).unwrap_or_default()
}

impl AnthropicCompiler {
    fn node(
        &mut self,
        schema: &RawValue,
        at: &str,
        depth: usize,
        out: &mut Vec<u8>,
    ) -> Result<(), SchemaRefusal> {
        if depth > DEEPEST {
            return refuse(at, format!("nests deeper than {DEEPEST} schemas"));
        }
        let Ok(all) = members(schema.get()) else {
            return refuse(at, "is not an object that describes a type");
        };
        if let Some(link) = all.iter().find(|member| member.is("$ref")) {
            return self.reference(*link, &all, at, out);
        }
        let mut node = sort(&all, at)?;
        let any = node.kept.iter().any(|m| m.is("anyOf") || m.is("oneOf"));
        if any || node.types.len() > 1 {
            self.compiled.unions += 1;
        }
        let is_object = node.types.iter().any(|kind| kind == "object");
        if is_object {
            refuse_free(&node, &all, at, depth)?;
        }
        for member in &node.rest {
            self.compiled.moved.push(step(at, &name_of(*member)));
        }
        let mut object = Writer::begin(out);
        for member in std::mem::take(&mut node.kept) {
            self.member(member, at, depth, &mut object)?;
        }
        if is_object {
            if !all.iter().any(|member| member.is("properties")) {
                object.key("properties").extend_from_slice(b"{}");
            }
            object
                .key("additionalProperties")
                .extend_from_slice(b"false");
            self.compiled.optional += optional(&all, at)?;
        }
        if let Some(text) = described(&node) {
            string(object.key("description"), &text);
        }
        object.end();
        Ok(())
    }

    /// Writes a member that the subset has, with the schemas in it.
    fn member(
        &mut self,
        member: Member<'_>,
        at: &str,
        depth: usize,
        object: &mut Writer<'_>,
    ) -> Result<(), SchemaRefusal> {
        let name = name_of(member);
        let below = step(at, &name);
        match name.as_str() {
            "properties" => self.map(member.value(), &below, depth, object.key("properties")),
            "$defs" | "definitions" => {
                let outer = std::mem::take(&mut self.within);
                self.definitions(member.value(), &below, depth, object.key("$defs"))?;
                self.within = outer;
                Ok(())
            }
            "items" => self.node(member.value(), &below, depth + 1, object.key("items")),
            "anyOf" | "oneOf" => self.list(member.value(), &below, depth, object.key("anyOf")),
            "allOf" => self.list(member.value(), &below, depth, object.key("allOf")),
            _ => {
                object.copy(member);
                Ok(())
            }
        }
    }

    fn map(
        &mut self,
        map: &RawValue,
        at: &str,
        depth: usize,
        out: &mut Vec<u8>,
    ) -> Result<(), SchemaRefusal> {
        let Ok(all) = members(map.get()) else {
            return refuse(at, "is not an object");
        };
        out.push(b'{');
        for (index, member) in all.iter().enumerate() {
            if index > 0 {
                out.push(b',');
            }
            out.extend_from_slice(member.key().as_bytes());
            out.push(b':');
            self.node(member.value(), &step(at, &name_of(*member)), depth + 1, out)?;
        }
        out.push(b'}');
        Ok(())
    }

    fn definitions(
        &mut self,
        map: &RawValue,
        at: &str,
        depth: usize,
        out: &mut Vec<u8>,
    ) -> Result<(), SchemaRefusal> {
        let Ok(all) = members(map.get()) else {
            return refuse(at, "is not an object");
        };
        let mut object = Writer::begin(out);
        for member in all {
            let name = name_of(member);
            if !name
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.'))
            {
                return refuse(
                    &step(at, &name),
                    "has a name that no `$ref` can hold as it is",
                );
            }
            self.within.clone_from(&name);
            self.node(
                member.value(),
                &step(at, &name),
                depth + 1,
                object.key(&name),
            )?;
        }
        object.end();
        Ok(())
    }

    fn list(
        &mut self,
        list: &RawValue,
        at: &str,
        depth: usize,
        out: &mut Vec<u8>,
    ) -> Result<(), SchemaRefusal> {
        let all: Vec<&RawValue> = read(list, at)?;
        out.push(b'[');
        for (index, one) in all.into_iter().enumerate() {
            if index > 0 {
                out.push(b',');
            }
            self.node(one, &format!("{at}/{index}"), depth + 1, out)?;
        }
        out.push(b']');
        Ok(())
    }

    /// Writes a `$ref`, which must be the only member in the subset.
    fn reference(
        &mut self,
        link: Member<'_>,
        all: &[Member<'_>],
        at: &str,
        out: &mut Vec<u8>,
    ) -> Result<(), SchemaRefusal> {
        let target: String = read(link.value(), at)?;
        let name = target
            .strip_prefix("#/$defs/")
            .or_else(|| target.strip_prefix("#/definitions/"))
            .filter(|name| !name.contains(['/', '%', '~']));
        let Some(name) = name else {
            return refuse(
                &step(at, "$ref"),
                format!("refers to {target:?}; only `#/$defs/NAME` can be held to"),
            );
        };
        let from = self.refers.entry(self.within.clone()).or_default();
        from.insert(name.to_owned());
        for member in all.iter().filter(|member| !member.is("$ref")) {
            self.compiled.moved.push(step(at, &name_of(*member)));
        }
        let mut object = Writer::begin(out);
        string(object.key("$ref"), &format!("#/$defs/{name}"));
        object.end();
        Ok(())
    }

    fn refuse_recursion(&self) -> Result<(), SchemaRefusal> {
        for start in self.refers.keys().filter(|name| !name.is_empty()) {
            let mut seen = BTreeSet::new();
            let mut next = vec![start];
            while let Some(name) = next.pop() {
                for target in self.refers.get(name).into_iter().flatten() {
                    if target == start {
                        return refuse(&step("/$defs", start), "refers to itself");
                    }
                    if seen.insert(target) {
                        next.push(target);
                    }
                }
            }
        }
        Ok(())
    }
}

/// Sorts the members of a schema into those that the subset has and the rest.
fn sort<'a>(all: &[Member<'a>], at: &str) -> Result<SchemaNode<'a>, SchemaRefusal> {
    let mut node = SchemaNode {
        types: Vec::new(),
        kept: Vec::new(),
        rest: Vec::new(),
        description: None,
    };
    let mut is_typed = false;
    let has = |name: &str| all.iter().any(|member| member.is(name));
    if has("anyOf") && has("oneOf") {
        return refuse(at, "has both `anyOf` and `oneOf`");
    }
    for member in all {
        let name = name_of(*member);
        let keeps = match name.as_str() {
            "type" => {
                node.types = read::<Vec<String>>(member.value(), at)
                    .or_else(|_| read(member.value(), at).map(|one| vec![one]))?;
                is_typed = true;
                true
            }
            "anyOf" | "oneOf" | "allOf" => {
                is_typed = true;
                true
            }
            "properties" | "required" | "$defs" | "definitions" | "items" | "title" | "const" => {
                true
            }
            "enum" => {
                let values: Vec<&RawValue> = read(member.value(), at)?;
                !values
                    .iter()
                    .any(|value| value.get().starts_with(['{', '[']))
            }
            "format" => read::<String>(member.value(), at)
                .is_ok_and(|format| format == "uuid" || FORMATS.contains(&format.as_str())),
            "minItems" => matches!(member.value().get(), "0" | "1"),
            "pattern" => read::<String>(member.value(), at).is_ok_and(|pattern| is_plain(&pattern)),
            "description" => {
                node.description = read(member.value(), at)?;
                continue;
            }
            // Always written as `false`.
            "additionalProperties" if matches!(member.value().get(), "false" | "true") => continue,
            // States which JSON Schema it is, and its location: nothing about the arguments.
            "$schema" | "$id" => continue,
            _ => false,
        };
        let side = if keeps {
            &mut node.kept
        } else {
            &mut node.rest
        };
        side.push(*member);
    }
    if !is_typed {
        return refuse(at, "has no `type`, `anyOf`, `oneOf` or `allOf`");
    }
    Ok(node)
}

/// Returns whether the provider supports a pattern: no look-around, no backreference, no word boundary, no counted repeat.
fn is_plain(pattern: &str) -> bool {
    let mut escaped = false;
    for c in pattern.chars() {
        if escaped && c.is_ascii_alphanumeric() && !"dDwWsSnrt".contains(c) {
            return false;
        }
        escaped = c == '\\' && !escaped;
    }
    !pattern.contains("(?") && !pattern.contains('{')
}

/// Refuses an object with arbitrary names: it would always be empty once other names are forbidden.
fn refuse_free(
    node: &SchemaNode<'_>,
    all: &[Member<'_>],
    at: &str,
    depth: usize,
) -> Result<(), SchemaRefusal> {
    let free = |name: &str| node.rest.iter().any(|member| member.is(name));
    if free("additionalProperties") || free("patternProperties") {
        return refuse(at, "is an object whose names are free");
    }
    let closed = |member: &Member<'_>| {
        member.is("properties")
            || member.is("additionalProperties") && member.value().get() == "false"
    };
    if depth > 0 && !all.iter().any(closed) {
        return refuse(at, "is an object whose names are free");
    }
    Ok(())
}

/// Returns how many of an object's members are optional.
fn optional(all: &[Member<'_>], at: &str) -> Result<usize, SchemaRefusal> {
    let value = |name: &str| all.iter().find(|member| member.is(name)).map(Member::value);
    let required: Vec<String> = match value("required") {
        Some(required) => read(required, at)?,
        None => Vec::new(),
    };
    let properties = match value("properties") {
        Some(properties) => members(properties.get()).unwrap_or_default(),
        None => Vec::new(),
    };
    let is_required = |member: &&Member<'_>| required.iter().any(|name| member.is(name));
    Ok(properties.len() - properties.iter().filter(is_required).count())
}

/// Returns the description, followed by what is not in the subset.
fn described(node: &SchemaNode<'_>) -> Option<String> {
    if node.rest.is_empty() {
        return node.description.clone();
    }
    let rest: Vec<String> = node
        .rest
        .iter()
        .map(|member| format!("{}: {}", name_of(*member), member.value().get()))
        .collect();
    let rest = format!("{{{}}}", rest.join(", "));
    Some(match &node.description {
        Some(text) if !text.is_empty() => format!("{text}\n\n{rest}"),
        _ => rest,
    })
}
