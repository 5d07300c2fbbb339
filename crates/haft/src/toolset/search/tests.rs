//! Searches of tools: recorded requests, what can be found, categories.
#![expect(
    clippy::cast_precision_loss,
    reason = "counts of words and requests, far below 2^52"
)]

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::path::Path;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Value, json};

use super::*;
use crate::spec::ToolName;
use crate::toolset::ToolBackend;

/// Number of lines in the files; fewer is a failure.
const TOOLS: usize = 1_287;
const QUERIES: usize = 1_175;

#[derive(Debug, Deserialize)]
struct Tool {
    name: String,
    description: String,
    parameters: Value,
}

#[derive(Debug, Deserialize)]
struct Request {
    query: String,
    tools: Vec<String>,
}

fn lines<T: for<'a> Deserialize<'a>>(folder: &Path, name: &str) -> Vec<T> {
    let path = folder.join("tool-search").join(name);
    let text = std::fs::read_to_string(path).expect("HAFT_DATA holds tool-search");
    let read = |line| serde_json::from_str(line).unwrap();
    text.lines().map(read).collect()
}

fn spec(name: &str, description: &str, schema: Value) -> ToolSpec {
    ToolSpec::new(ToolName::new(name).unwrap(), description, schema)
}

fn snapshot(specs: impl IntoIterator<Item = ToolSpec>) -> ToolsetSnapshot {
    let schema = crate::json::schema::Schema::compile(&json!(true)).unwrap();
    let schema = Arc::new(schema);
    let entry = |spec| {
        Arc::new(ToolEntry {
            spec: Arc::new(spec),
            run: ToolBackend::Hosted,
            input: Arc::clone(&schema),
            output: None,
            bound: None,
            hash: std::sync::OnceLock::new(),
            fragment: std::sync::OnceLock::new(),
        })
    };
    ToolsetSnapshot::new(1, specs.into_iter().map(entry))
}

fn names(found: &[SearchHit<'_>]) -> Vec<String> {
    let name = |found: &SearchHit<'_>| found.entry.spec().name.to_string();
    found.iter().map(name).collect()
}

#[test]
fn recorded_requests_find_their_tools() {
    let Some(folder) = std::env::var_os("HAFT_DATA") else {
        eprintln!("SKIPPED: HAFT_DATA is not set, the recorded tool searches are not run");
        return;
    };
    let folder = Path::new(&folder);
    let tools: Vec<Tool> = lines(folder, "tools.jsonl");
    let requests: Vec<Request> = lines(folder, "queries.jsonl");
    assert!(tools.len() >= TOOLS && requests.len() >= QUERIES);
    let known: HashSet<&str> = tools.iter().map(|tool| tool.name.as_str()).collect();
    let specs = tools
        .iter()
        .map(|tool| spec(&tool.name, &tool.description, tool.parameters.clone()));
    let snapshot = snapshot(specs);
    assert_eq!(snapshot.entries().len(), known.len());
    let mut recall = 0.0;
    for request in &requests {
        let found: HashSet<String> = names(&snapshot.search(&request.query, None, 10))
            .into_iter()
            .collect();
        let wanted: HashSet<&String> = request.tools.iter().collect();
        let right = wanted.iter().filter(|name| found.contains(**name)).count();
        recall += right as f64 / wanted.len() as f64;
    }
    let recall = recall / requests.len() as f64;
    eprintln!(
        "recall@10 {recall:.4} over {} requests, index of {} KiB",
        requests.len(),
        snapshot.index().bytes() / 1024
    );
    assert!(recall >= 0.88, "{recall}");
}

#[test]
fn of_a_hundred_and_fifty_tools_the_right_one_is_among_the_first_five() {
    let Some(folder) = std::env::var_os("HAFT_DATA") else {
        eprintln!("SKIPPED: HAFT_DATA is not set, the recorded tool searches are not run");
        return;
    };
    let folder = Path::new(&folder);
    let tools: Vec<Tool> = lines(folder, "tools.jsonl");
    let requests: Vec<Request> = lines(folder, "queries.jsonl");
    // The first requests with a single tool each, and their tools: always the same.
    let mut wanted = BTreeSet::new();
    let asked: Vec<&Request> = requests
        .iter()
        .filter(|request| {
            let one = request.tools.len() == 1;
            one && (wanted.len() < 150 || wanted.contains(&request.tools[0])) && {
                wanted.insert(request.tools[0].clone());
                true
            }
        })
        .collect();
    let of = tools.iter().filter(|tool| wanted.contains(&tool.name));
    let specs = of.map(|tool| spec(&tool.name, &tool.description, tool.parameters.clone()));
    let snapshot = snapshot(specs);
    assert_eq!(snapshot.entries().len(), 150);
    let found = |request: &&&Request| {
        names(&snapshot.search(&request.query, None, 5)).contains(&request.tools[0])
    };
    let right = asked.iter().filter(found).count();
    let recall = right as f64 / asked.len() as f64;
    eprintln!("recall@5 {recall:.4} over {} requests", asked.len());
    assert!(asked.len() >= 150 && recall >= 0.95, "{recall}");
}

fn check(query: &str, expect: &[&str]) {
    let object = |properties: Value| json!({"type": "object", "properties": properties});
    let mut weather = spec(
        "weather.current",
        "What the sky does now",
        object(json!({"city": {"type": "string", "description": "Place name"}})),
    );
    weather.aliases = vec!["forecast".into()];
    weather.category = Some("web".into());
    let nested = object(
        json!({"filter": {"type": "array", "items": {"type": "object",
        "properties": {"postcode": {"type": "string"}}}}}),
    );
    let exposed = |name, exposure| ToolSpec {
        exposure,
        ..spec(name, "looks at the sky, too", json!({}))
    };
    let specs = [
        weather,
        spec("getBMI", "body mass", json!({})),
        spec("getbmi", "body mass", json!({})),
        spec("find_users", "Finds people", nested),
        spec("tenki", "現在の天気を調べる", json!({})),
        exposed("sky_deferred", Exposure::Deferred),
        exposed("sky_hidden", Exposure::Hidden),
        exposed("sky_unlisted", Exposure::Unlisted),
    ];
    let found = snapshot(specs);
    assert_eq!(names(&found.search(query, None, 3)), expect, "{query:?}");
}

#[test]
fn names_aliases_parameters_and_other_scripts_are_found_and_what_is_not_shown_is_not() {
    check("getBMI", &["getBMI", "getbmi"]);
    check("getbmi", &["getbmi", "getBMI"]);
    check(" GETBMI\n", &["getbmi", "getBMI"]);
    check("forecast", &["weather.current"]);
    check("city", &["weather.current"]);
    check("what is a place?", &["weather.current"]);
    check("postcodes", &["find_users"]);
    check("user", &["find_users"]);
    check("天気", &["tenki"]);
    check("今の天気は？", &["tenki"]);
    check("sky", &["sky_deferred", "weather.current"]);
    check("sky_hidden", &["sky_deferred", "weather.current"]);
    for nothing in ["", " \n", "?!…—", "zzz", "\u{0}", "the of and"] {
        check(nothing, &[]);
    }
}

#[test]
fn a_category_is_browsed_and_narrows_a_search() {
    let of = |name: &str, category: Option<&str>| ToolSpec {
        category: category.map(str::to_owned),
        ..spec(name, "reads things", json!({}))
    };
    let tools = snapshot([
        of("a", Some("files")),
        of("b", None),
        of("c", Some("files")),
    ]);
    let counts = BTreeMap::from([("files", 2), (OTHER, 1)]);
    assert_eq!(tools.categories(), counts);
    let found = |category| names(&tools.search("reads", category, 9));
    assert_eq!(found(None), ["a", "b", "c"]);
    assert_eq!(found(Some("files")), ["a", "c"]);
    assert_eq!(found(Some(OTHER)), ["b"]);
    assert!(found(Some("nope")).is_empty());
    // Expanding a tool changes no text, so the index is kept.
    let again = tools.with_listed(&BTreeSet::default());
    assert!(std::ptr::eq(tools.index(), again.index()));
}
