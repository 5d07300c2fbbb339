//! Compiles a schema to nodes; a schema that uses more than the common subset has none.

use std::collections::HashMap;

use serde_json::{Map, Value};

use super::node::{
    ANY, ARRAY, Additional, ArrayRule, BOOLEAN, Bound, INTEGER, Lengths, MAX_PROPERTIES, NULL,
    NUMBER, Node, NodeId, OBJECT, ObjectRule, Program, Range, STRING, Scalar, Types,
};

/// Maximum number of nodes in a program; the full validator checks larger schemas.
const MAX_NODES: usize = 2_000;

/// Keywords that do not affect validity in 2020-12 (`format` is an annotation there).
const ANNOTATIONS: [&str; 11] = [
    "title",
    "description",
    "default",
    "examples",
    "deprecated",
    "readOnly",
    "writeOnly",
    "$comment",
    "format",
    "$defs",
    "definitions",
];

/// The only dialect of the single pass.
pub(super) const DIALECT: &str = "https://json-schema.org/draft/2020-12/schema";

/// Returns the program of a schema, or `None` if it uses more than the subset.
pub(super) fn compile(schema: &Value) -> Option<Program> {
    let mut compiler = Compiler {
        root: schema,
        program: Program::default(),
        refs: HashMap::new(),
    };
    compiler.node(schema)?;
    compiler.settled().then_some(compiler.program)
}

struct Compiler<'s> {
    root: &'s Value,
    program: Program,
    refs: HashMap<&'s str, NodeId>,
}

impl<'s> Compiler<'s> {
    fn node(&mut self, schema: &'s Value) -> Option<NodeId> {
        let id = self.program.nodes.len();
        if id >= MAX_NODES {
            return None;
        }
        self.program.nodes.push(Node::of(ANY));
        let node = self.rules(schema, id == 0)?;
        *self.program.nodes.get_mut(id)? = node;
        Some(id)
    }

    /// Adds a node that only checks types.
    fn bare(&mut self, types: Types) -> NodeId {
        self.program.nodes.push(Node::of(types));
        self.program.nodes.len() - 1
    }

    fn rules(&mut self, schema: &'s Value, root: bool) -> Option<Node> {
        let map = match schema {
            Value::Bool(true) => return Some(Node::of(ANY)),
            Value::Bool(false) => return Some(Node::of(0)),
            Value::Object(map) => map,
            _ => return None,
        };
        let says = |key: &str| {
            let dialect = root && key == "$schema";
            !dialect && !ANNOTATIONS.contains(&key) && !key.starts_with("x-")
        };
        if root
            && map
                .get("$schema")
                .is_some_and(|d| d.as_str() != Some(DIALECT))
        {
            return None;
        }
        let keywords: Vec<&str> = map.keys().map(String::as_str).filter(|k| says(k)).collect();
        match keywords.as_slice() {
            ["$ref"] => self.reference(map.get("$ref")?.as_str()?),
            ["anyOf"] => self.choice(map.get("anyOf")?.as_array()?, false),
            ["oneOf"] => self.choice(map.get("oneOf")?.as_array()?, true),
            _ => self.keywords(map, &keywords),
        }
    }

    fn reference(&mut self, target: &'s str) -> Option<Node> {
        let id = if let Some(&id) = self.refs.get(target) {
            id
        } else {
            let schema = if target == "#" {
                self.refs.insert(target, 0);
                return Some(Node {
                    target: Some(0),
                    ..Node::of(ANY)
                });
            } else {
                let (home, name) = definition(target)?;
                self.root.get(home)?.get(name)?
            };
            self.refs.insert(target, self.program.nodes.len());
            self.node(schema)?
        };
        Some(Node {
            target: Some(id),
            ..Node::of(ANY)
        })
    }

    /// Compiles `X or null`, or a list of constants.
    fn choice(&mut self, branches: &'s [Value], exclusive: bool) -> Option<Node> {
        if let Some(scalars) = constants(branches) {
            return Some(Node {
                allowed: Some(scalars.into()),
                ..Node::of(ANY)
            });
        }
        let null = |schema: &Value| schema.get("type").and_then(Value::as_str) == Some("null");
        let [a, b] = branches else { return None };
        let (null, other) = match (null(a), null(b)) {
            (true, false) => (a, b),
            (false, true) => (b, a),
            _ => return None,
        };
        let bare = |key: &String| key == "type" || ANNOTATIONS.contains(&key.as_str());
        if !null.as_object()?.keys().all(bare) {
            return None;
        }
        let rules = self.rules(other, false)?;
        let takes_null = rules.target.is_some() || rules.null_passes || rules.types & NULL != 0;
        if exclusive && takes_null {
            return None;
        }
        Some(Node {
            null_passes: true,
            ..rules
        })
    }

    fn keywords(&mut self, map: &'s Map<String, Value>, keywords: &[&str]) -> Option<Node> {
        let mut node = Node::of(ANY);
        let mut lengths = Lengths {
            min: 0,
            max: u64::MAX,
        };
        let mut range = Range::default();
        let (mut has_lengths, mut has_range) = (false, false);
        let mut object = false;
        let mut array = false;
        for &keyword in keywords {
            let value = map.get(keyword)?;
            match keyword {
                "type" => node.types = types(value)?,
                "enum" if node.allowed.is_none() => {
                    node.allowed = Some(
                        value
                            .as_array()?
                            .iter()
                            .map(scalar)
                            .collect::<Option<_>>()?,
                    );
                }
                "const" if !map.contains_key("enum") => {
                    node.allowed = Some([scalar(value)?].into());
                }
                "minLength" => (lengths.min, has_lengths) = (value.as_u64()?, true),
                "maxLength" => (lengths.max, has_lengths) = (value.as_u64()?, true),
                "minimum" => (range.min, has_range) = (Some(bound(value)?), true),
                "maximum" => (range.max, has_range) = (Some(bound(value)?), true),
                "exclusiveMinimum" => (range.above, has_range) = (Some(bound(value)?), true),
                "exclusiveMaximum" => (range.below, has_range) = (Some(bound(value)?), true),
                "multipleOf" => {
                    let step = value.as_i64().filter(|step| (1..1 << 53).contains(step))?;
                    (range.multiple_of, has_range) = (Some(step), true);
                }
                "items" | "minItems" | "maxItems" | "uniqueItems" => array = true,
                "properties"
                | "required"
                | "additionalProperties"
                | "minProperties"
                | "maxProperties" => object = true,
                _ => return None,
            }
        }
        node.string = has_lengths.then_some(lengths);
        node.number = has_range.then_some(range);
        if array {
            node.array = Some(Box::new(self.array(map)?));
        }
        if object {
            node.object = Some(Box::new(self.object(map)?));
        }
        Some(node)
    }

    fn array(&mut self, map: &'s Map<String, Value>) -> Option<ArrayRule> {
        Some(ArrayRule {
            items: match map.get("items") {
                Some(items) => Some(self.node(items)?),
                None => None,
            },
            count: Lengths {
                min: count(map, "minItems", 0)?,
                max: count(map, "maxItems", u64::MAX)?,
            },
            unique: match map.get("uniqueItems") {
                Some(unique) => unique.as_bool()?,
                None => false,
            },
        })
    }

    fn object(&mut self, map: &'s Map<String, Value>) -> Option<ObjectRule> {
        let additional = match map.get("additionalProperties") {
            None | Some(Value::Bool(true)) => Additional::Any,
            Some(Value::Bool(false)) => Additional::None,
            Some(schema) => Additional::Node(self.node(schema)?),
        };
        let mut properties: Vec<(Box<str>, NodeId)> = Vec::new();
        if let Some(named) = map.get("properties") {
            for (name, schema) in named.as_object()? {
                properties.push((name.as_str().into(), self.node(schema)?));
            }
        }
        let mut required = 0_u128;
        if let Some(names) = map.get("required") {
            for name in names.as_array()? {
                let name = name.as_str()?;
                let known = properties.iter().position(|(known, _)| **known == *name);
                let number = if let Some(number) = known {
                    number
                } else {
                    let node = match additional {
                        Additional::Any => self.bare(ANY),
                        Additional::None => self.bare(0),
                        Additional::Node(node) => node,
                    };
                    properties.push((name.into(), node));
                    properties.len() - 1
                };
                required |= 1_u128.checked_shl(u32::try_from(number).ok()?)?;
            }
        }
        if properties.len() > MAX_PROPERTIES {
            return None;
        }
        let mut rule = ObjectRule::new(properties, additional);
        rule.required = required;
        rule.count = Lengths {
            min: count(map, "minProperties", 0)?,
            max: count(map, "maxProperties", u64::MAX)?,
        };
        Some(rule)
    }

    /// Whether every chain of references ends at a rule.
    fn settled(&self) -> bool {
        let nodes = &self.program.nodes;
        (0..nodes.len()).all(|start| {
            let mut id = start;
            for _ in 0..=nodes.len() {
                match nodes.get(id).and_then(|node| node.target) {
                    Some(next) => id = next,
                    None => return true,
                }
            }
            false
        })
    }
}

/// Splits a reference `#/$defs/NAME` without escapes.
pub(super) fn definition(reference: &str) -> Option<(&str, &str)> {
    let (home, name) = reference.strip_prefix("#/")?.split_once('/')?;
    let plain = !name.contains(['/', '~', '%']) && matches!(home, "$defs" | "definitions");
    plain.then_some((home, name))
}

fn count(map: &Map<String, Value>, keyword: &str, default: u64) -> Option<u64> {
    map.get(keyword).map_or(Some(default), Value::as_u64)
}

/// Reads a bound, which must be a 64-bit integer or a double.
fn bound(value: &Value) -> Option<Bound> {
    match (value.as_i64(), value.is_f64()) {
        (Some(integer), _) => Some(Bound::Integer(integer)),
        (None, true) => value.as_f64().map(Bound::Double),
        (None, false) => None,
    }
}

fn scalar(value: &Value) -> Option<Scalar> {
    match value {
        Value::Null => Some(Scalar::Null),
        Value::Bool(b) => Some(Scalar::Boolean(*b)),
        Value::String(s) => Some(Scalar::String(s.clone())),
        Value::Number(n) => n.as_i64().map(Scalar::Integer),
        Value::Array(_) | Value::Object(_) => None,
    }
}

/// Returns the constants if every branch consists only of constant strings, all different.
fn constants(branches: &[Value]) -> Option<Vec<Scalar>> {
    let mut all: Vec<Scalar> = Vec::new();
    for branch in branches {
        let map = branch.as_object()?;
        let known = |key: &String| {
            matches!(key.as_str(), "type" | "const" | "enum") || ANNOTATIONS.contains(&key.as_str())
        };
        if !map.keys().all(known) {
            return None;
        }
        if map
            .get("type")
            .is_some_and(|t| t.as_str() != Some("string"))
        {
            return None;
        }
        let options = match (map.get("const"), map.get("enum")) {
            (Some(one), None) => std::slice::from_ref(one),
            (None, Some(Value::Array(some))) => some.as_slice(),
            _ => return None,
        };
        for option in options {
            let scalar = Scalar::String(option.as_str()?.to_owned());
            if all.contains(&scalar) {
                return None;
            }
            all.push(scalar);
        }
    }
    (!all.is_empty()).then_some(all)
}

/// Returns the set of types of a `type` keyword.
pub(super) fn types(value: &Value) -> Option<Types> {
    let one = |value: &Value| match value.as_str()? {
        "null" => Some(NULL),
        "boolean" => Some(BOOLEAN),
        "integer" => Some(INTEGER),
        "number" => Some(NUMBER),
        "string" => Some(STRING),
        "array" => Some(ARRAY),
        "object" => Some(OBJECT),
        _ => None,
    };
    match value {
        Value::Array(several) => several.iter().try_fold(0, |set, v| Some(set | one(v)?)),
        single => one(single),
    }
}
