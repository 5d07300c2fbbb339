//! Reads replies as a client of each dialect does, complete or from events.

use haft_scripted::Dialect;
use serde_json::{Value, json};

use crate::client::{Answer, Made, Read};

/// Reads a reply in any dialect, streamed or not.
pub(crate) fn read(dialect: Dialect, stream: bool, answer: &Answer) -> Read {
    assert_eq!(answer.status, 200, "{dialect}: {}", answer.text());
    assert!(answer.is_whole, "{dialect}: {}", answer.text());
    match (dialect, stream) {
        (Dialect::OpenAiChat, false) => chat(&answer.json()),
        (Dialect::OpenAiChat, true) => chat(&chat_chunks(&answer.events())),
        (Dialect::OpenAiResponses, false) => responses(&answer.json()),
        (Dialect::OpenAiResponses, true) => responses(&responses_events(&answer.events())),
        (Dialect::Anthropic, false) => messages(&answer.json()),
        (Dialect::Anthropic, true) => messages(&messages_events(&answer.events())),
        (Dialect::Gemini, false) => gemini(&[answer.json()]),
        (Dialect::Gemini, true) => gemini(&answer.events()),
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn chat(body: &Value) -> Read {
    assert_eq!(body["object"], "chat.completion");
    let message = &body["choices"][0]["message"];
    let calls = message["tool_calls"]
        .as_array()
        .cloned()
        .unwrap_or_default();
    Read {
        text: text(&message["content"]),
        thinking: text(&message["reasoning_content"]),
        calls: calls
            .iter()
            .map(|call| Made {
                id: text(&call["id"]),
                name: text(&call["function"]["name"]),
                arguments: text(&call["function"]["arguments"]),
            })
            .collect(),
        stop: text(&body["choices"][0]["finish_reason"]),
        input_tokens: body["usage"]["prompt_tokens"].as_u64().unwrap(),
        output_tokens: body["usage"]["completion_tokens"].as_u64().unwrap(),
        raw: message.clone(),
    }
}

/// Merges the chunks into the complete body.
fn chat_chunks(events: &[Value]) -> Value {
    assert_eq!(events.last(), Some(&json!("[DONE]")));
    let mut message = json!({"role": "assistant"});
    let mut calls: Vec<Value> = Vec::new();
    let (mut stop, mut usage) = (Value::Null, Value::Null);
    for chunk in &events[..events.len() - 1] {
        assert_eq!(chunk["object"], "chat.completion.chunk");
        usage = chunk["usage"].clone();
        let Some(choice) = chunk["choices"].get(0) else {
            continue;
        };
        let delta = &choice["delta"];
        stop = choice["finish_reason"].clone();
        for key in ["content", "reasoning_content"] {
            if let Some(piece) = delta[key].as_str() {
                message[key] = format!("{}{piece}", text(&message[key])).into();
            }
        }
        for call in delta["tool_calls"].as_array().into_iter().flatten() {
            let at = usize::try_from(call["index"].as_u64().unwrap()).unwrap();
            if at == calls.len() {
                calls.push(
                    json!({"id": call["id"], "type": "function", "function": call["function"]}),
                );
            } else {
                let whole = &mut calls[at]["function"]["arguments"];
                *whole = format!("{}{}", text(whole), text(&call["function"]["arguments"])).into();
            }
        }
    }
    if !calls.is_empty() {
        message["tool_calls"] = calls.into();
    }
    json!({"object": "chat.completion", "choices": [{"message": message, "finish_reason": stop}], "usage": usage})
}

fn responses(body: &Value) -> Read {
    assert_eq!(body["object"], "response");
    let mut read = Read {
        stop: text(&body["status"]),
        input_tokens: body["usage"]["input_tokens"].as_u64().unwrap(),
        output_tokens: body["usage"]["output_tokens"].as_u64().unwrap(),
        raw: body["output"].clone(),
        ..Read::default()
    };
    for item in body["output"].as_array().unwrap() {
        match item["type"].as_str().unwrap() {
            "message" => read.text += &text(&item["content"][0]["text"]),
            "reasoning" => read.thinking += &text(&item["summary"][0]["text"]),
            "function_call" => read.calls.push(Made {
                id: text(&item["call_id"]),
                name: text(&item["name"]),
                arguments: text(&item["arguments"]),
            }),
            other => panic!("{other}"),
        }
    }
    read
}

/// Returns the response of the last event; its deltas must add up to it.
fn responses_events(events: &[Value]) -> Value {
    let mut texts = Vec::new();
    for (number, event) in events.iter().enumerate() {
        assert_eq!(event["sequence_number"], json!(number), "{event}");
        let at = usize::try_from(event["output_index"].as_u64().unwrap_or_default()).unwrap();
        let kind = event["type"].as_str().unwrap();
        if kind == "response.output_item.added" {
            texts.push(String::new());
        } else if let Some(delta) = event["delta"].as_str() {
            texts[at] += delta;
        }
    }
    let response = events.last().unwrap()["response"].clone();
    for (item, text) in response["output"].as_array().unwrap().iter().zip(texts) {
        let own = [
            &item["content"][0]["text"],
            &item["summary"][0]["text"],
            &item["arguments"],
        ];
        assert!(own.contains(&&json!(text)), "{item}: {text}");
    }
    response
}

fn messages(body: &Value) -> Read {
    assert_eq!(body["type"], "message");
    let mut read = Read {
        stop: text(&body["stop_reason"]),
        input_tokens: body["usage"]["input_tokens"].as_u64().unwrap(),
        output_tokens: body["usage"]["output_tokens"].as_u64().unwrap(),
        raw: json!({"role": "assistant", "content": body["content"]}),
        ..Read::default()
    };
    for block in body["content"].as_array().unwrap() {
        match block["type"].as_str().unwrap() {
            "text" => read.text += &text(&block["text"]),
            "thinking" => read.thinking += &text(&block["thinking"]),
            "tool_use" => read.calls.push(Made {
                id: text(&block["id"]),
                name: text(&block["name"]),
                arguments: block["input"].to_string(),
            }),
            other => panic!("{other}"),
        }
    }
    read
}

/// Merges the events into the complete message.
fn messages_events(events: &[Value]) -> Value {
    let mut message = events[0]["message"].clone();
    let mut input = String::new();
    for event in &events[1..] {
        let at = usize::try_from(event["index"].as_u64().unwrap_or_default()).unwrap();
        let delta = &event["delta"];
        match event["type"].as_str().unwrap() {
            "content_block_start" => {
                message["content"]
                    .as_array_mut()
                    .unwrap()
                    .push(event["content_block"].clone());
                input.clear();
            }
            "content_block_delta" => {
                for key in ["text", "thinking", "signature"] {
                    if let Some(piece) = delta[key].as_str() {
                        let whole = &mut message["content"][at][key];
                        *whole = format!("{}{piece}", text(whole)).into();
                    }
                }
                input += delta["partial_json"].as_str().unwrap_or_default();
            }
            "content_block_stop" if !input.is_empty() => {
                message["content"][at]["input"] = serde_json::from_str(&input).unwrap();
            }
            "message_delta" => {
                message["stop_reason"] = delta["stop_reason"].clone();
                message["usage"] = event["usage"].clone();
            }
            _ => {}
        }
    }
    assert_eq!(events.last().unwrap()["type"], "message_stop");
    message
}

fn gemini(chunks: &[Value]) -> Read {
    let last = chunks.last().unwrap();
    let mut read = Read {
        stop: text(&last["candidates"][0]["finishReason"]),
        input_tokens: last["usageMetadata"]["promptTokenCount"].as_u64().unwrap(),
        output_tokens: ["candidatesTokenCount", "thoughtsTokenCount"]
            .map(|key| last["usageMetadata"][key].as_u64().unwrap())
            .iter()
            .sum(),
        ..Read::default()
    };
    let mut parts: Vec<Value> = Vec::new();
    for part in chunks.iter().flat_map(|chunk| {
        chunk["candidates"][0]["content"]["parts"]
            .as_array()
            .unwrap()
    }) {
        match (part["text"].as_str(), part["thought"] == true) {
            (Some(text), true) => read.thinking += text,
            (Some(text), false) => read.text += text,
            (None, _) => read.calls.push(Made {
                id: text(&part["functionCall"]["id"]),
                name: text(&part["functionCall"]["name"]),
                arguments: part["functionCall"]["args"].to_string(),
            }),
        }
        if part["text"] != "" {
            parts.push(part.clone());
        }
    }
    read.raw = json!({"role": "model", "parts": parts});
    read
}
