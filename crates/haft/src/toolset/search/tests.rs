//! The index beside BM25 as the books write it, on recorded tools and on bad input.
#![expect(
    clippy::cast_precision_loss,
    reason = "counts of words and requests, far below 2^52"
)]

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::path::Path;
use std::sync::Arc;

use proptest::prelude::*;
use serde::Deserialize;
use serde_json::{Value, json};

use super::*;
use crate::spec::ToolName;
use crate::toolset::Run;

/// Lines in the files; fewer is a failure.
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

fn snapshot(specs: impl IntoIterator<Item = ToolSpec>) -> Snapshot {
    let schema = crate::json::schema::Schema::compile(&json!(true)).unwrap();
    let schema = Arc::new(schema);
    let entry = |spec| {
        Arc::new(Entry {
            spec: Arc::new(spec),
            run: Run::Hosted,
            input: Arc::clone(&schema),
            output: None,
            bound: None,
            hash: std::sync::OnceLock::new(),
            fragment: std::sync::OnceLock::new(),
        })
    };
    Snapshot::new(1, specs.into_iter().map(entry))
}

fn names(found: &[Found<'_>]) -> Vec<String> {
    let name = |found: &Found<'_>| found.entry.spec().name.to_string();
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

/// BM25 by the formula, a map a document.
fn plain(documents: &[&str], query: &str) -> Vec<f64> {
    let of = |text: &str| {
        let mut found = Vec::new();
        words::terms(text, |term| found.push(term.to_owned()));
        found
    };
    // A document here is its name (twice) and nothing else.
    let documents: Vec<Vec<String>> = documents
        .iter()
        .map(|text| [of(text), of(text)].concat())
        .collect();
    let count = documents.len() as f64;
    let average = documents.iter().map(Vec::len).sum::<usize>() as f64 / count;
    let score = |document: &Vec<String>| {
        let mut score = 0.0;
        for term in of(query) {
            let having = documents.iter().filter(|d| d.contains(&term)).count() as f64;
            let idf = (1.0 + (count - having + 0.5) / (having + 0.5)).ln();
            let times = document.iter().filter(|t| **t == term).count() as f64;
            let length = document.len() as f64 / average.max(1.0);
            score += idf * times * 2.2 / (times + 1.2 * (0.25 + 0.75 * length));
        }
        score
    };
    documents.iter().map(score).collect()
}

proptest! {
    #[test]
    fn scores_are_those_of_plain_bm25_and_the_best_come_first(
        documents in proptest::collection::vec("[a-e_ ]{0,12}", 1..40),
        query in "[a-f ]{0,10}",
        limit in 0_usize..50,
    ) {
        // A label is no word: leave exact names out.
        let texts: Vec<String> = documents.iter().map(|d| format!("{d} zz")).collect();
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        let index = Index::new(texts.iter().map(|text| Document::new(text, "")).enumerate());
        let expect = plain(&texts, &query);
        let hits = index.search(&query, limit, |_| true);
        let fitting = expect.iter().filter(|score| **score > 0.0).count();
        prop_assert_eq!(hits.len(), fitting.min(limit));
        for hit in &hits {
            let wanted = expect[hit.document];
            prop_assert!((f64::from(hit.score) - wanted).abs() < 1e-3 * wanted.max(1.0));
        }
        prop_assert!(hits.is_sorted_by(|a, b| (b.score, a.document) <= (a.score, b.document) || a.score > b.score));
        if let Some(last) = hits.last().filter(|_| hits.len() == limit) {
            let better = expect.iter().filter(|s| **s > f64::from(last.score) + 1e-3).count();
            prop_assert!(better < limit);
        }
    }

    #[test]
    fn any_text_can_be_looked_for(text in "\\PC{0,200}", query in "\\PC{0,200}") {
        let index = Index::new([(3, Document::new("a_tool", &text))]);
        let hits = index.search(&query, 5, |_| true);
        prop_assert!(hits.iter().all(|hit| hit.document == 3 && hit.score > 0.0));
        let mut said = false;
        words::terms(&text, |_| said = true);
        prop_assert_eq!(!index.search(&text, 5, |_| true).is_empty(), said);
    }
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
fn ten_thousand_long_documents_and_a_huge_query_stay_bounded() {
    assert!(ToolName::new(&"n".repeat(300)).is_err());
    // A skill's name or a description may be that long: 300 characters without a gap, and with gaps.
    let documents: Vec<(String, String)> = (0..10_000)
        .map(|n| {
            (
                format!("{}{n}", "n".repeat(296)),
                format!("word{n} ").repeat(40),
            )
        })
        .collect();
    let of = |(place, (name, text)): (usize, &'static (String, String))| {
        (place, Document::new(name, text))
    };
    let documents: &'static [_] = documents.leak();
    let index = Index::new(documents.iter().enumerate().map(of));
    assert!(index.bytes() < 4 << 20, "{}", index.bytes());
    let hits = index.search("word77", 5, |_| true);
    assert_eq!(
        hits.iter().map(|hit| hit.document).collect::<Vec<_>>(),
        [77]
    );
    let words: Vec<String> = (0..130_000).map(|n| format!("word{n}")).collect();
    let huge = words.join(" ");
    assert!(huge.len() > 1 << 20);
    assert_eq!(index.search(&huge, usize::MAX, |_| true).len(), MAX_TERMS);
    assert_eq!(index.search(&"n".repeat(1 << 20), 5, |_| true).len(), 5);

    let long = "w ".repeat(1 << 20);
    let index = Index::new([
        (0, Document::new("one", &long)),
        (7, Document::new("two", "")),
    ]);
    assert!(index.bytes() < 4096);
    assert_eq!(index.search("two", 5, |_| true)[0].document, 7);
    assert!(Index::default().search("two", 5, |_| true).is_empty());
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
    // Expanding a tool changes no text: the index stays.
    let again = tools.with_listed(&BTreeSet::default());
    assert!(std::ptr::eq(tools.index(), again.index()));
}
