//! The recorded URL cases: fetched or refused as expected, without a connection to a forbidden address (`docs/reference/ssrf.md`).

use std::collections::HashMap;
use std::net::IpAddr;
use std::path::Path;
use std::sync::Arc;

use parking_lot::Mutex;
use serde::Deserialize;

use crate::town::{PUBLIC, Town, moved, page};

/// Number of lines in the file; fewer is a failure.
const CASES: usize = 166;

const FETCHED: &str = "allowed-scheme-and-host";

#[derive(Debug, Deserialize)]
struct Case {
    id: String,
    url: String,
    resolves_to: Option<Answers>,
    #[serde(default)]
    redirects: Vec<String>,
    expect: String,
    #[serde(default)]
    also_ok: Vec<String>,
    why: String,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Answers {
    One(Vec<String>),
    Turns(Vec<Vec<String>>),
    Names(HashMap<String, Vec<String>>),
}

fn answers(town: &Town, case: &Case) {
    let list = |texts: &[String]| texts.to_vec();
    let host = case.url.split("://").nth(1).unwrap_or_default();
    let host = host.split(['/', ':']).next().unwrap_or_default();
    let turns = |turns: Vec<Vec<String>>, host: &str| {
        let turns: Vec<Vec<&str>> = turns
            .iter()
            .map(|turn| turn.iter().map(String::as_str).collect())
            .collect();
        let turns: Vec<&[&str]> = turns.iter().map(Vec::as_slice).collect();
        town.answers(host, &turns);
    };
    match &case.resolves_to {
        None => {}
        Some(Answers::One(one)) => turns(vec![list(one)], host),
        Some(Answers::Turns(all)) => turns(all.clone(), host),
        Some(Answers::Names(names)) => {
            for (name, one) in names {
                turns(vec![list(one)], name);
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn recorded_urls_are_fetched_or_refused_as_expected() {
    let Some(folder) = std::env::var_os("HAFT_DATA") else {
        eprintln!("SKIPPED: HAFT_DATA is not set, the URL cases are not run");
        return;
    };
    let file = Path::new(&folder).join("ssrf/given.jsonl");
    let text = std::fs::read_to_string(&file).unwrap();
    let cases: Vec<Case> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert!(cases.len() >= CASES, "{} cases", cases.len());
    let redirects: Arc<Mutex<Vec<String>>> = Arc::default();
    let mut wrong = Vec::new();
    for case in &cases {
        let left = Arc::clone(&redirects);
        *left.lock() = case.redirects.iter().rev().cloned().collect();
        let town = Town::new(move |_| match left.lock().pop() {
            Some(location) => moved(&location),
            None => page("text/plain", "here"),
        })
        .await;
        answers(&town, case);
        let got = town.http().get(&case.url, &[]).await;
        let word = if got.is_ok() { FETCHED } else { "refused" };
        if word != case.expect && !case.also_ok.iter().any(|also| also == word) {
            wrong.push(format!(
                "{} {}: {word}, {} ({got:?})",
                case.id, case.url, case.why
            ));
        }
        let connected = town.connected();
        // A URL that is itself refused causes no connection; one that is refused later only connects to allowed addresses.
        if case.expect != FETCHED && case.redirects.is_empty() && got.is_err() {
            assert!(connected.is_empty(), "{}: {connected:?}", case.id);
        }
        let named: IpAddr = PUBLIC.parse().unwrap();
        if case.expect != FETCHED {
            assert!(
                connected.iter().all(|to| to.ip() == named),
                "{}: {connected:?}",
                case.id
            );
        }
        if got.is_ok() {
            assert!(!connected.is_empty(), "{}", case.id);
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
