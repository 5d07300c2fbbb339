//! `KEY=VALUE` arguments, parsed according to a tool's schema: a number if the tool takes a number, text if it takes text.

use haft_app::problem::Problem;
use serde_json::{Map, Value};

/// Converts pairs to arguments. `KEY:=JSON` takes any value, `KEY.NAME=VALUE` a member of an object; a list may repeat its key.
/// A value that does not fit stays text: the executor reports what the tool takes.
pub(crate) fn to_json(pairs: &[String], schema: Option<&Value>) -> Result<String, Problem> {
    let mut out = Map::new();
    for pair in pairs {
        let Some((key, text)) = pair.split_once('=') else {
            return Err(Problem::usage(format!("`{pair}` is not KEY=VALUE")).advise(
                "write path=README.md, or KEY:=JSON for any value, or --args JSON for all of them",
            ));
        };
        let (key, is_json) = match key.strip_suffix(':') {
            Some(key) => (key, true),
            None => (key, false),
        };
        if key.is_empty() {
            return Err(Problem::usage(format!("`{pair}` names no argument")));
        }
        let (key, member) = split(key, schema);
        let own = property(schema, key);
        let own = match member {
            Some(name) => member_schema(own, name),
            None => own,
        };
        let value = if is_json {
            serde_json::from_str(text).map_err(|e| {
                Problem::usage(format!("`{pair}`: the value is not JSON: {e}"))
                    .advise("`:=` takes JSON: edits:='[…]', all:=true; `=` takes text as it is")
            })?
        } else {
            read(text, own)
        };
        match member {
            Some(name) => {
                let object = out.entry(key).or_insert_with(|| Map::new().into());
                let Value::Object(object) = object else {
                    return Err(twice(key));
                };
                if object.insert(name.to_owned(), value).is_some() {
                    return Err(twice(&format!("{key}.{name}")));
                }
            }
            None => add(&mut out, key, value, own)?,
        }
    }
    Ok(Value::Object(out).to_string())
}

fn twice(key: &str) -> Problem {
    Problem::usage(format!("the argument `{key}` is given twice"))
}

fn add(
    out: &mut Map<String, Value>,
    key: &str,
    value: Value,
    schema: Option<&Value>,
) -> Result<(), Problem> {
    match (out.get_mut(key), value) {
        (None, value) => {
            out.insert(key.to_owned(), value);
            Ok(())
        }
        (Some(Value::Array(list)), Value::Array(more)) if takes(schema, "array") => {
            list.extend(more);
            Ok(())
        }
        _ => Err(twice(key)),
    }
}

/// Splits a dotted key if the tool has an object with that name and no argument with the whole name.
fn split<'a>(key: &'a str, schema: Option<&Value>) -> (&'a str, Option<&'a str>) {
    if property(schema, key).is_some() {
        return (key, None);
    }
    match key.split_once('.') {
        Some((head, name)) if takes(property(schema, head), "object") => (head, Some(name)),
        _ => (key, None),
    }
}

fn property<'a>(schema: Option<&'a Value>, name: &str) -> Option<&'a Value> {
    schema?.get("properties")?.get(name)
}

fn member_schema<'a>(schema: Option<&'a Value>, name: &str) -> Option<&'a Value> {
    property(schema, name).or_else(|| schema?.get("additionalProperties"))
}

/// Returns whether a schema allows a type, including by `anyOf` and `oneOf`.
fn takes(schema: Option<&Value>, kind: &str) -> bool {
    let Some(schema) = schema else {
        return false;
    };
    let own = match schema.get("type") {
        Some(Value::String(own)) => own == kind,
        Some(Value::Array(kinds)) => kinds.iter().any(|own| own == kind),
        _ => false,
    };
    let choices = ["anyOf", "oneOf"]
        .into_iter()
        .filter_map(|name| schema.get(name)?.as_array());
    own || choices.flatten().any(|choice| {
        takes(Some(choice), kind) || (kind == "string" && choice["const"].is_string())
    })
}

/// Parses text according to the schema.
fn read(text: &str, schema: Option<&Value>) -> Value {
    let plain = || Value::String(text.to_owned());
    let json = |fits: fn(&Value) -> bool| serde_json::from_str(text).ok().filter(fits);
    if takes(schema, "array") && !takes(schema, "string") {
        let items = schema.and_then(|schema| schema.get("items"));
        return json(Value::is_array).unwrap_or_else(|| Value::Array(vec![read(text, items)]));
    }
    if takes(schema, "object") && !takes(schema, "string") {
        return json(Value::is_object).unwrap_or_else(plain);
    }
    let number = takes(schema, "integer") || takes(schema, "number");
    if number && let Some(number) = json(Value::is_number) {
        return number;
    }
    if takes(schema, "boolean")
        && let Some(flag) = json(Value::is_boolean)
    {
        return flag;
    }
    if takes(schema, "null") && text == "null" && !takes(schema, "string") {
        return Value::Null;
    }
    // A schema without a type takes any JSON value.
    match schema {
        Some(Value::Object(map)) if !map.contains_key("type") && !has_choices(map) => {
            serde_json::from_str(text).unwrap_or_else(|_| plain())
        }
        _ => plain(),
    }
}

fn has_choices(map: &Map<String, Value>) -> bool {
    ["anyOf", "oneOf", "enum", "const"]
        .iter()
        .any(|name| map.contains_key(*name))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::to_json;

    fn schema() -> Value {
        json!({"properties": {
            "path": {"type": "string"},
            "limit": {"type": "integer"},
            "all": {"type": "boolean"},
            "argv": {"type": "array", "items": {"type": "string"}},
            "sizes": {"type": "array", "items": {"type": "integer"}},
            "env": {"type": "object", "additionalProperties": {"type": "string"}},
            "a.b": {"type": "integer"},
            "mode": {"oneOf": [{"const": "x", "type": "string"}]},
            "names": {"anyOf": [{"type": "string"}, {"type": "array"}]},
            "any": {"description": "whatever"},
        }})
    }

    #[test]
    fn each_value_is_read_as_the_schema_has_it() {
        let rows = [
            ("path=5", json!({"path": "5"})),
            ("path=", json!({"path": ""})),
            ("path=a=b", json!({"path": "a=b"})),
            ("limit=5", json!({"limit": 5})),
            ("limit=many", json!({"limit": "many"})),
            ("all=true", json!({"all": true})),
            ("argv=ls argv=-l", json!({"argv": ["ls", "-l"]})),
            ("argv=[\"a\",\"b\"]", json!({"argv": ["a", "b"]})),
            ("sizes=1 sizes=2", json!({"sizes": [1, 2]})),
            ("env.A=1 env.B=x", json!({"env": {"A": "1", "B": "x"}})),
            ("env={\"A\":\"1\"}", json!({"env": {"A": "1"}})),
            ("a.b=1", json!({"a.b": 1})),
            ("mode=x", json!({"mode": "x"})),
            ("names=[1", json!({"names": "[1"})),
            ("any=5", json!({"any": 5})),
            ("any=five", json!({"any": "five"})),
            ("unknown=5", json!({"unknown": "5"})),
            ("path:=[1,null]", json!({"path": [1, null]})),
        ];
        for (typed, expect) in rows {
            let pairs: Vec<String> = typed.split(' ').map(str::to_owned).collect();
            let made: Value =
                serde_json::from_str(&to_json(&pairs, Some(&schema())).unwrap()).unwrap();
            assert_eq!(made, expect, "{typed}");
        }
        for (typed, says) in [
            ("path", "is not KEY=VALUE"),
            ("=x", "names no argument"),
            ("path=a path=b", "given twice"),
            ("limit:=many", "is not JSON"),
            ("env.A=1 env.A=2", "given twice"),
        ] {
            let pairs: Vec<String> = typed.split(' ').map(str::to_owned).collect();
            let problem = to_json(&pairs, Some(&schema())).unwrap_err();
            assert!(problem.to_string().contains(says), "{typed}: {problem}");
        }
    }
}
