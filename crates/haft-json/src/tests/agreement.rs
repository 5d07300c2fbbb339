//! Property: the single pass and the full validator give the same verdict.

use proptest::prelude::*;
use serde_json::{Map, Value, json};

use crate::schema::Schema;

/// Choices drawn from random bytes: the same bytes give the same schema and text, and they shrink well.
struct Tape<'b>(std::slice::Iter<'b, u8>);

impl Tape<'_> {
    fn below(&mut self, n: usize) -> usize {
        usize::from(self.0.next().copied().unwrap_or_default()) % n
    }

    fn pick<T: Clone>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())].clone()
    }
}

const NAMES: [&str; 5] = ["a", "b", "ab", "é", "a\"b"];
const TYPES: [&str; 7] = [
    "null", "boolean", "integer", "number", "string", "array", "object",
];

fn scalar(tape: &mut Tape<'_>) -> Value {
    tape.pick(&[
        json!(null),
        json!(true),
        json!(false),
        json!(0),
        json!(1),
        json!(-3),
        json!(""),
        json!("a"),
        json!("aé"),
        json!(10_000_000_000_i64),
        json!(1.0),
        json!(1.5),
        json!(u64::MAX),
    ])
}

fn bound(tape: &mut Tape<'_>) -> Value {
    tape.pick(&[
        json!(0),
        json!(1),
        json!(2.5),
        json!(-1),
        json!(10),
        json!(0.1),
        json!(i64::MAX),
        json!(1e300),
    ])
}

fn schema(tape: &mut Tape<'_>, depth: usize) -> Value {
    let mut map = Map::new();
    match tape.below(12) {
        0 => return json!(tape.below(4) > 0),
        1 => return json!({"$ref": tape.pick(&["#/$defs/one", "#/$defs/two"]), "title": "t"}),
        2 if depth < 3 => {
            let key = tape.pick(&["anyOf", "oneOf"]);
            return json!({key: [schema(tape, depth + 1), {"type": "null"}], "default": null});
        }
        3 => {
            return json!({"oneOf": [{"const": "a", "description": "first"}, {"type": "string", "enum": ["b", "é"]}]});
        }
        4 => drop(map.insert(
            "enum".into(),
            json!([scalar(tape), scalar(tape), scalar(tape)]),
        )),
        5 => drop(map.insert("const".into(), scalar(tape))),
        6 => drop(map.insert("type".into(), json!([tape.pick(&TYPES), "null"]))),
        7 => {}
        _ => drop(map.insert("type".into(), json!(tape.pick(&TYPES)))),
    }
    for _ in 0..tape.below(4) {
        let (key, value) = keyword(tape, depth);
        map.insert(key.into(), value);
    }
    Value::Object(map)
}

fn keyword(tape: &mut Tape<'_>, depth: usize) -> (&'static str, Value) {
    let n = tape.below(4);
    match tape.below(if depth < 3 { 17 } else { 12 }) {
        0 => ("minimum", bound(tape)),
        1 => ("maximum", bound(tape)),
        2 => ("exclusiveMinimum", bound(tape)),
        3 => ("exclusiveMaximum", bound(tape)),
        4 => ("multipleOf", json!(n + 1)),
        5 => ("minLength", json!(n)),
        6 => ("maxLength", json!(n)),
        7 => ("minItems", json!(n)),
        8 => ("maxItems", json!(n)),
        9 => ("uniqueItems", json!(n > 0)),
        10 => (tape.pick(&["minProperties", "maxProperties"]), json!(n)),
        11 => (
            tape.pick(&["description", "format", "x-note"]),
            json!("email"),
        ),
        12 | 13 => {
            let properties =
                (0..=n).map(|_| (tape.pick(&NAMES).to_owned(), schema(tape, depth + 1)));
            ("properties", Value::Object(properties.collect()))
        }
        14 => {
            let mut names: Vec<&str> = (0..n).map(|_| tape.pick(&NAMES)).collect();
            names.sort_unstable();
            names.dedup();
            ("required", json!(names))
        }
        15 => ("additionalProperties", schema(tape, depth + 1)),
        _ => ("items", schema(tape, depth + 1)),
    }
}

const SCALARS: [&str; 26] = [
    "null",
    "true",
    "false",
    "0",
    "-0",
    "1",
    "2",
    "-3",
    "1.0",
    "1.5",
    "0.1",
    "2.5",
    "1e1",
    "10",
    "1e300",
    "-1e-7",
    "9007199254740993",
    "9223372036854775807",
    "9223372036854775808",
    "123456789012345678901234567890",
    r#""""#,
    r#""a""#,
    r#""\u0061""#,
    r#""aé""#,
    r#""\ud83d\ude00""#,
    r#""abcd""#,
];
const KEYS: [&str; 7] = [
    r#""a""#,
    r#""b""#,
    r#""ab""#,
    r#""é""#,
    r#""a\"b""#,
    r#""\u0062""#,
    r#""c""#,
];

fn text(tape: &mut Tape<'_>, depth: usize) -> String {
    match tape.below(if depth < 4 { 10 } else { 4 }) {
        4..=5 => {
            let items: Vec<String> = (0..tape.below(4)).map(|_| text(tape, depth + 1)).collect();
            format!("[{}]", items.join(","))
        }
        6..=9 => {
            let mut member = |_| format!("{}: {}", tape.pick(&KEYS), text(tape, depth + 1));
            let members: Vec<String> = (0..3).map(&mut member).collect();
            let count = tape.below(4);
            format!("{{{}}}", members[..count].join(" ,"))
        }
        _ => tape.pick(&SCALARS).to_owned(),
    }
}

/// Generates a text that mostly follows the schema, so that deeply nested places are reached.
fn guided(tape: &mut Tape<'_>, root: &Value, schema: &Value, depth: usize) -> String {
    if tape.below(8) == 0 || depth > 5 {
        return text(tape, depth);
    }
    if let Some(target) = schema.get("$ref").and_then(Value::as_str) {
        return guided(tape, root, &root["$defs"][&target[8..]], depth + 1);
    }
    if let Some(branches) = schema.get("anyOf").or(schema.get("oneOf")) {
        let branch = tape.below(2);
        return guided(tape, root, &branches[branch], depth + 1);
    }
    if let Some(one) = schema.get("const") {
        return one.to_string();
    }
    if let Some(Value::Array(options)) = schema.get("enum") {
        return tape.pick(options).to_string();
    }
    if let Some(Value::Object(properties)) = schema.get("properties") {
        let members: Vec<String> = properties
            .iter()
            .map(|(name, inner)| {
                format!("{}:{}", json!(name), guided(tape, root, inner, depth + 1))
            })
            .collect();
        return format!("{{{}}}", members.join(", "));
    }
    match schema.get("type").and_then(Value::as_str) {
        Some("object") => "{}".into(),
        Some("array") => {
            let any = json!(true);
            let items = schema.get("items").unwrap_or(&any);
            let count = tape.below(4);
            let items: Vec<String> = (0..count)
                .map(|_| guided(tape, root, items, depth + 1))
                .collect();
            format!("[{}]", items.join(","))
        }
        Some("string") => tape.pick(&SCALARS[20..]).to_owned(),
        Some("integer" | "number") => tape.pick(&SCALARS[3..20]).to_owned(),
        _ => text(tape, depth),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]
    #[test]
    fn both_roads_agree(bytes in prop::collection::vec(any::<u8>(), 0..160)) {
        let mut tape = Tape(bytes.iter());
        let mut root = schema(&mut tape, 0);
        if let Value::Object(map) = &mut root {
            let defs = json!({"one": schema(&mut tape, 2), "two": schema(&mut tape, 1)});
            map.insert("$defs".into(), defs);
        }
        let Ok(compiled) = Schema::compile(&root) else { return Ok(()) };
        for _ in 0..4 {
            let text = guided(&mut tape, &root, &root, 0);
            let (single, slow) = compiled.verdicts(&text);
            if let Some(single) = single {
                prop_assert_eq!(single, slow, "{} against {}", text, root);
            }
            prop_assert_eq!(compiled.check_value(&text).is_ok(), slow);
        }
    }
}

/// The generators reach both verdicts on the single pass often enough to be meaningful.
#[test]
fn the_generators_reach_both_verdicts() {
    let (mut yes, mut no) = (0, 0);
    for seed in 0..2_000_u32 {
        let bytes: Vec<u8> = (0..160_u32)
            .map(|n| {
                (seed * 7_919 + n * 104_729)
                    .wrapping_mul(2_654_435_761)
                    .to_be_bytes()[1]
            })
            .collect();
        let mut tape = Tape(bytes.iter());
        let mut root = schema(&mut tape, 0);
        if let Value::Object(map) = &mut root {
            map.insert(
                "$defs".into(),
                json!({"one": {"type": "string"}, "two": {"type": "object"}}),
            );
        }
        let Ok(compiled) = Schema::compile(&root) else {
            continue;
        };
        match compiled.verdicts(&guided(&mut tape, &root, &root, 0)).0 {
            Some(true) => yes += 1,
            Some(false) => no += 1,
            None => {}
        }
    }
    assert!(yes > 200 && no > 200, "{yes} valid, {no} invalid");
}
