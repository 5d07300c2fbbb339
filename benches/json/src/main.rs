//! Arguments of a call and a long list read as JSON: strict scan, scan and schema in one pass, digest; the peers build a tree.

use std::fmt::Write;
use std::hint::black_box;

use haft_json::canonical::args_digest;
use haft_json::scan::scan_object;
use haft_json::schema::Schema;
use measure::{Row, Step, cpu_ms, fact, interleave, rounds};
use serde_json::{Value, json};

/// A call of a search tool with seven properties.
const ARGUMENTS: &str = r#"{"query": "fn main handler", "path": "crates/core/src", "mode": "content", "limit": 50, "ignore_case": true, "types": ["rust", "toml"], "context": {"before": 2, "after": 3}}"#;

/// Number of items in the list: about 1 MB.
const ITEMS: usize = 15_000;

fn schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "query": {"type": "string", "minLength": 1, "maxLength": 200},
            "path": {"type": "string", "maxLength": 4096},
            "mode": {"enum": ["content", "files", "count"]},
            "limit": {"type": "integer", "minimum": 1, "maximum": 1000},
            "ignore_case": {"type": "boolean"},
            "types": {"type": "array", "items": {"type": "string"}},
            "context": {"type": "object", "properties": {"before": {"type": "integer"}, "after": {"type": "integer"}}},
            "list": {"type": "array", "items": {"type": "object", "properties": {"id": {"type": "integer"}}}}
        },
        "required": ["query"],
        "additionalProperties": false
    })
}

/// Returns arguments with a long list.
fn long() -> String {
    let mut text = r#"{"query":"q","list":["#.to_owned();
    for id in 0..ITEMS {
        let comma = if id == 0 { "" } else { "," };
        write!(
            text,
            r#"{comma}{{"id":{id},"name":"käse {id}","ok":{},"price":{}.25}}"#,
            id % 2 == 0,
            id % 97
        )
        .expect("a String");
    }
    text + "]}"
}

fn main() {
    let source = schema();
    let schema = Schema::compile(&source).expect("the schema is fine");
    let peer = jsonschema::validator_for(&source).expect("the schema is fine");
    assert!(schema.is_single_pass());
    let long = long();
    fact("long arguments", format!("{} bytes", long.len()));
    let rounds = rounds(15);
    for (name, text, times) in [("arguments", ARGUMENTS, 20_000), ("long list", &*long, 10)] {
        assert!(
            schema.admit(text, false).is_ok() && peer.is_valid(&read(text)),
            "{name}"
        );
        let steps = vec![
            step(&format!("haft-json/scan/{name}"), times, move || {
                scan_object(text).is_ok()
            }),
            step(&format!("haft-json/scan and schema/{name}"), times, || {
                schema.admit(text, true).is_ok()
            }),
            step(&format!("haft-json/digest/{name}"), times, move || {
                args_digest(text)
            }),
            step(&format!("serde_json/value/{name}"), times, move || {
                read(text)
            }),
            step(&format!("serde_json and jsonschema/{name}"), times, || {
                peer.is_valid(&read(text))
            }),
        ];
        interleave(rounds, steps);
    }
}

fn read(text: &str) -> Value {
    serde_json::from_str(text).expect("sound JSON")
}

/// Measures the CPU time of one run, in microseconds.
fn step<'a, T>(name: &str, times: u32, run: impl Fn() -> T + 'a) -> Step<'a> {
    let work = move || {
        let all = cpu_ms(|| (0..times).for_each(|_| drop(black_box(run()))));
        all.0 * 1e3 / f64::from(times)
    };
    (Row::new(name, "us"), Box::new(work))
}
