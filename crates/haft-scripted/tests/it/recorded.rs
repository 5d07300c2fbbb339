//! Requests that real providers accepted are accepted here, too: the checks are not stricter than theirs.
//!
//! The recordings are below `HAFT_DATA`; without it the test is skipped with a message.

use std::path::Path;

use haft_scripted::{Dialect, Scenario, serve};
use serde_json::{Value, json};

use crate::client::{headers, send};

fn dialect(word: &str) -> Dialect {
    match word {
        "openai-chat" => Dialect::OpenAiChat,
        "openai-responses" => Dialect::OpenAiResponses,
        "anthropic-messages" => Dialect::Anthropic,
        "gemini-generate" => Dialect::Gemini,
        other => panic!("{other}"),
    }
}

#[tokio::test]
async fn what_a_provider_took_is_taken() {
    let Some(data) = std::env::var_os("HAFT_DATA") else {
        eprintln!("SKIPPED: HAFT_DATA is not set; the recorded exchanges were not looked at");
        return;
    };
    let scenario =
        "title = \"t\"\nfollow = \"requests\"\nend = \"ok\"\n[[turns]]\nsay = [{ text = \"ok\" }]";
    let server = serve(Scenario::from_toml(scenario).unwrap()).await.unwrap();
    let mut taken = 0;
    let mut faults = Vec::new();
    for folder in std::fs::read_dir(Path::new(&data).join("provider-exchanges")).unwrap() {
        let folder = folder.unwrap().path();
        if !folder.is_dir() {
            continue;
        }
        for file in std::fs::read_dir(folder).unwrap() {
            let file = file.unwrap().path();
            let recording: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
            let dialect = dialect(recording["dialect"].as_str().unwrap());
            let provider = recording["provider"].as_str().unwrap();
            if !["openai", "anthropic", "gemini"].contains(&provider) {
                continue;
            }
            let name = file.file_stem().unwrap().to_str().unwrap();
            for exchange in recording["exchanges"].as_array().unwrap() {
                match take(server.address(), dialect, exchange, name).await {
                    Some(Ok(())) => taken += 1,
                    Some(Err(fault)) => faults.push(fault),
                    None => {}
                }
            }
        }
    }
    assert!(
        faults.is_empty(),
        "{} of {taken}:\n{}",
        faults.len(),
        faults.join("\n")
    );
    assert!(taken > 150, "{taken}");
}

/// Sends a recorded request; `None` for one that is skipped.
async fn take(
    address: std::net::SocketAddr,
    dialect: Dialect,
    exchange: &Value,
    name: &str,
) -> Option<Result<(), String>> {
    let mut body = exchange["request"]["body"].clone();
    if exchange["response"]["status"] != 200 || !body.is_object() {
        return None;
    }
    // The replies to the recorded requests are not known here.
    if body.get("previous_response_id").is_some() {
        return None;
    }
    // The answer is a text, whatever the request forces the model to do.
    for key in ["tool_choice", "toolConfig"] {
        body.as_object_mut().unwrap().remove(key);
    }
    if dialect == Dialect::OpenAiChat && body["stream"] != true {
        body["stream"] = json!(false);
    }
    let path = match dialect {
        Dialect::Gemini => exchange["request"]["path"].as_str().unwrap().to_owned(),
        _ => dialect.path("", false),
    };
    if dialect == Dialect::Gemini && !path.starts_with("/v1beta/models/") {
        return None;
    }
    let answer = send(address, &path, headers(dialect), &body.to_string()).await;
    let fault = || {
        format!(
            "{name}: {}",
            answer.text().chars().take(400).collect::<String>()
        )
    };
    Some(if answer.status == 200 {
        Ok(())
    } else {
        Err(fault())
    })
}
