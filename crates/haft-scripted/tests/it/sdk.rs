//! The providers' own Python SDKs complete a tool-calling turn with the server: they accept what it sends.
//!
//! `make needs` installs them below `HAFT_NEEDS`; without it the test is skipped with a message.

use std::path::PathBuf;

use haft_scripted::scenario::StreamCut;
use haft_scripted::{Dialect, Scenario, serve};
use serde_json::{Value, json};

const TURN: &str = r#"
title = "The weather in two cities"
[[turns]]
expect = { user = "Genève", tools = ["weather.now"] }
say = [
  { thinking = "Two cities – two calls." },
  { text = "I'll look both up: 🌡." },
  { call = { tool = "weather.now", arguments = { city = "Zürich", unit = "°C" } } },
  { call = { id = "geneva", tool = "weather.now", arguments = { city = "Genève" } } },
]
[[turns]]
expect.results = [{ call = "geneva", contains = "Genève: 15 degrees" }]
usage = { input = 40, output = 12 }
say = [{ text = "It is 15 degrees in Zürich – and in Genève, too." }]
"#;

/// Returns the interpreter with the SDKs, if installed.
fn python() -> Option<PathBuf> {
    let needs = std::env::var_os("HAFT_NEEDS").map(PathBuf::from);
    let python = needs.map(|needs| needs.join("providers/bin/python"));
    let python = python.filter(|python| python.exists());
    if python.is_none() {
        eprintln!("SKIPPED: providers is not below HAFT_NEEDS; `make needs` installs it");
    }
    python
}

/// Returns the client's output, one line for each turn that it completes.
#[expect(
    clippy::disallowed_methods,
    reason = "a client of the server, as a user starts it"
)]
fn client(python: PathBuf, turns: &[String]) -> Vec<Value> {
    let driver = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/clients/sdks.py");
    let mut command = std::process::Command::new(python);
    command.args(["-I", driver]).args(turns);
    // A proxy of this machine must not be between a client and a server on it.
    for name in ["http_proxy", "https_proxy", "all_proxy"] {
        command.env_remove(name).env_remove(name.to_uppercase());
    }
    let output = command.output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    let lines = output.stdout.split(|byte| *byte == b'\n');
    let lines = lines.filter(|line| !line.is_empty());
    lines
        .map(|line| serde_json::from_slice(line).unwrap())
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_official_sdks_hold_a_turn_in_each_dialect_streamed_and_not() {
    let Some(python) = python() else {
        return;
    };
    let ways = [
        ("whole", StreamCut::Random),
        ("stream", StreamCut::Random),
        ("stream", StreamCut::Bytes),
    ];
    let mut servers = Vec::new();
    let mut turns = Vec::new();
    for dialect in Dialect::ALL {
        for (way, cut) in ways {
            let scenario = Scenario::from_toml(TURN).unwrap().with_pieces(cut);
            let server = serve(scenario).await.unwrap();
            turns.extend([dialect.to_string(), way.to_owned(), server.url()]);
            servers.push((dialect, way, server));
        }
    }
    let held = tokio::task::spawn_blocking(move || client(python, &turns));
    let held = held.await.unwrap();
    assert_eq!(held.len(), servers.len());
    for ((dialect, way, server), held) in servers.iter().zip(held) {
        assert_eq!(server.problems(), [""; 0], "{dialect} {way}");
        assert!(server.is_over(), "{dialect} {way}");
        let name = match dialect {
            Dialect::Gemini => "weather.now",
            _ => "weather__now",
        };
        let expect = json!({
            "calls": [[name, {"city": "Zürich", "unit": "°C"}], [name, {"city": "Genève"}]],
            "text": "It is 15 degrees in Zürich – and in Genève, too.",
            "thinking": "Two cities – two calls.",
            "tokens": [40, 12],
        });
        assert_eq!(held, expect, "{dialect} {way}");
        let mut requests = server.requests().into_iter();
        let streamed = requests.all(|request| request.stream == (*way == "stream"));
        assert!(streamed, "{dialect} {way}");
    }
}
