//! Property: types deserialize as with `serde_json`.
#![expect(dead_code, reason = "what was read is compared as `Debug` shows it")]

use std::collections::BTreeMap;
use std::fmt::Debug;

use proptest::prelude::*;
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::de::{direct, from_scanned};
use crate::scan::scan;
use crate::tests::any_value;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Choice {
    One,
    Two(i32),
    Three(u8, String),
    Four { a: bool },
    Five(Box<Choice>),
}

#[derive(Debug, Deserialize)]
#[serde(tag = "kind")]
enum Kind {
    A { a: f64 },
    B,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Either {
    Number(i64),
    Text(String),
    Many(Vec<Either>),
}

#[derive(Debug, Deserialize)]
struct Unit;

#[derive(Debug, Deserialize)]
struct New(u16);

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Strict {
    a: u8,
    #[serde(default)]
    b: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Open {
    a: Value,
    #[serde(flatten)]
    rest: BTreeMap<String, Value>,
}

#[derive(Debug, Deserialize)]
struct Mixed {
    a: Option<Choice>,
    b: Option<Kind>,
    c: Option<(i8, f64, char)>,
    d: Option<Vec<New>>,
    e: Option<BTreeMap<u32, bool>>,
    f: Option<BTreeMap<String, Option<bool>>>,
    g: Option<Box<RawValue>>,
    h: Option<Either>,
    i: Option<i128>,
    j: Option<[u64; 2]>,
    k: Option<Unit>,
    l: Option<f32>,
}

/// Checks that value or error are the same as with `serde_json`; returns whether this reader read the text alone.
fn agree<T: DeserializeOwned + Debug>(text: &str) -> bool {
    let wanted = serde_json::from_str::<T>(text).map_err(|e| e.to_string());
    let got = from_scanned::<T>(text).map_err(|e| e.to_string());
    assert_eq!(format!("{got:?}"), format!("{wanted:?}"), "{text}");
    direct::<T>(text).is_ok()
}

fn agree_on_all(text: &str) {
    assert!(agree::<Value>(text), "{text}");
    agree::<Strict>(text);
    agree::<Open>(text);
    agree::<Mixed>(text);
    agree::<Choice>(text);
    agree::<Kind>(text);
    agree::<Either>(text);
    agree::<New>(text);
    agree::<Unit>(text);
    agree::<Vec<Option<f64>>>(text);
    agree::<BTreeMap<i8, Value>>(text);
    agree::<(u8, String)>(text);
    agree::<f32>(text);
    agree::<char>(text);
    agree::<u128>(text);
    agree::<serde::de::IgnoredAny>(text);
}

/// Generates values close to what the types accept.
fn near() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        any_value(),
        prop::sample::select(vec![
            json!(null),
            json!("one"),
            json!({"two": 2}),
            json!({"two": "2"}),
            json!({"three": [3, "c"]}),
            json!({"three": [3, "c", 1]}),
            json!({"four": {"a": true}}),
            json!({"five": {"five": "one"}}),
            json!({"one": null}),
            json!({"one": 1}),
            json!({"two": 2, "one": null}),
            json!({"kind": "A", "a": 1.5}),
            json!({"kind": "B", "c": []}),
            json!([1, 2.5, "x"]),
            json!([1, 2.5, "xy"]),
            json!([1, 2, "x", 4]),
            json!([65535, 0]),
            json!([65536]),
            json!({"1": true, "-1": false}),
            json!({"true": 1}),
            json!({"a": null}),
            json!([1, ["a", []]]),
            json!([1, 2]),
            json!(-0.0),
            json!(u64::MAX),
            json!(i64::MIN),
            json!(1e300),
        ]),
    ];
    let names = prop::sample::select(vec![
        "a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l", "z",
    ]);
    prop_oneof![
        leaf.clone(),
        prop::collection::btree_map(names, leaf, 0..6)
            .prop_map(|map| map.into_iter().map(|(k, v)| (k.to_owned(), v)).collect()),
    ]
}

#[test]
fn each_shape_is_read_without_serde_json() {
    assert!(agree::<Mixed>(
        r#"{"a":{"three":[3,"\u0063"]},"b":{"kind":"A","a":1},"c":[-1,2.5,"x"],"d":[1,2],"f":{"x":null},"h":[1,"b"],
        "j":[1,18446744073709551615],"k":null,"unknown":{"a":[1,{"b":"]"}]}}"#
    ));
    assert!(agree::<Choice>(r#" {"five" : {"four" : {"a" : false}}} "#));
    assert!(agree::<Strict>(r#"{"b":"\ud83d\ude00","a":7}"#));
    assert!(agree::<Open>(r#"{"a":[],"x":1,"y":-0}"#));
}

#[test]
fn what_is_left_to_serde_json_is_read_by_it() {
    for text in [
        r#"{"g":{"a": [1]}}"#,
        r#"{"i":170141183460469231731687303715884105727}"#,
        r#"{"e":{"7":true}}"#,
        r#"{"l":0.1}"#,
    ] {
        assert!(!agree::<Mixed>(text), "{text}");
    }
    // Invalid texts, which the scan would refuse.
    for text in [
        "[1,]",
        "[1 2]",
        "{\"a\":1,}",
        "1 2",
        "",
        "{\"a\"}",
        "[",
        "[,1]",
    ] {
        agree::<Value>(text);
        agree::<Vec<u8>>(text);
    }
}

#[test]
fn deep_nesting_is_no_matter_of_the_stack() {
    let deep = format!("{}null{}", "[".repeat(100_000), "]".repeat(100_000));
    assert!(!agree::<Value>(&deep));
    let deep = r#"{"five":"#.repeat(100_000);
    assert!(!agree::<Choice>(&deep));
    let deepest = format!("{}{}", "[".repeat(64), "]".repeat(64));
    assert!(scan(&deepest).is_ok() && agree::<Value>(&deepest));
}

#[test]
fn borrowed_text_is_borrowed() {
    let text = r#"["plain"]"#;
    assert_eq!(from_scanned::<Vec<&str>>(text).unwrap(), ["plain"]);
    let escaped = r#"["\u0061"]"#;
    assert!(from_scanned::<Vec<&str>>(escaped).is_err());
    assert!(serde_json::from_str::<Vec<&str>>(escaped).is_err());
}

proptest! {
    #[test]
    fn every_type_is_read_alike(value in near()) {
        agree_on_all(&value.to_string());
        agree_on_all(&serde_json::to_string_pretty(&value).unwrap());
    }
}
