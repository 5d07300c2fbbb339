//! Recorded exchanges: every reply is read, and contains what the record contains.

use std::path::Path;

use haft_wire::{Dialect, Reply, ReplyLimits, StopReason, TurnItem, WireError};
use serde::Deserialize;
use serde_json::Value;

/// One conversation.
#[derive(Debug, Deserialize)]
pub(crate) struct Recorded {
    #[serde(skip)]
    pub(crate) file: String,
    pub(crate) exchanges: Vec<Exchange>,
}

/// A request and its response.
#[derive(Debug, Deserialize)]
pub(crate) struct Exchange {
    pub(crate) request: Request,
    pub(crate) response: Response,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Request {
    pub(crate) body: Value,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Response {
    pub(crate) status: u16,
    pub(crate) body: Option<Value>,
    pub(crate) sse: Option<String>,
}

/// Returns the recordings of a dialect; none, with a message, without the folder that contains them.
pub(crate) fn recordings(dialect: Dialect) -> Vec<Recorded> {
    let Some(folder) = std::env::var_os("HAFT_DATA") else {
        eprintln!(
            "SKIPPED: HAFT_DATA is not set, the recorded exchanges of {dialect} are not read"
        );
        return Vec::new();
    };
    let folder = Path::new(&folder)
        .join("provider-exchanges")
        .join(dialect.as_str());
    let mut all = Vec::new();
    for entry in std::fs::read_dir(&folder).unwrap() {
        let path = entry.unwrap().path();
        let text = std::fs::read_to_string(&path).unwrap();
        let mut one: Recorded = serde_json::from_str(&text).unwrap();
        one.file = path.file_name().unwrap().to_string_lossy().into_owned();
        all.push(one);
    }
    all.sort_by(|a, b| a.file.cmp(&b.file));
    assert!(all.len() >= 35, "{} recordings", all.len());
    all
}

impl Exchange {
    /// Returns what haft reads from the answer.
    pub(crate) fn reply(&self, dialect: Dialect) -> Result<Reply, WireError> {
        if let Some(sse) = &self.response.sse {
            let mut reader = dialect.reader(ReplyLimits::default());
            reader.push(sse.as_bytes(), &mut Vec::new())?;
            return reader.finish();
        }
        let body = self.response.body.as_ref().unwrap().to_string();
        dialect.read(body.as_bytes(), ReplyLimits::default())
    }

    /// Returns the events of the answer as JSON.
    fn events(&self) -> Vec<Value> {
        let lines = self.response.sse.as_deref().unwrap_or_default().lines();
        let data = lines.filter_map(|line| line.strip_prefix("data: "));
        data.filter(|data| *data != "[DONE]")
            .map(|data| serde_json::from_str(data).unwrap())
            .collect()
    }

    fn is_error(&self) -> bool {
        self.response.status >= 400
            || self
                .events()
                .iter()
                .any(|event| event.get("error").is_some())
    }
}

/// The content of a Chat reply, taken from the record itself: calls (id, name, arguments), text, thinking, stop reason.
#[derive(Debug, Default, PartialEq)]
struct Chat {
    calls: Vec<[String; 3]>,
    text: String,
    thoughts: String,
    finish: String,
    tokens: (u64, u64),
}

fn text(value: &Value, name: &str) -> String {
    value[name].as_str().unwrap_or_default().to_owned()
}

impl Chat {
    fn of(exchange: &Exchange) -> Self {
        let mut chat = Self::default();
        if let Some(body) = &exchange.response.body {
            let choice = &body["choices"][0];
            chat.message(&choice["message"]);
            chat.finish = text(choice, "finish_reason");
            chat.usage(&body["usage"]);
        }
        for event in exchange.events() {
            chat.usage(&event["usage"]);
            chat.usage(&event["x_groq"]["usage"]);
            let Some(choice) = event["choices"].get(0) else {
                continue;
            };
            chat.message(&choice["delta"]);
            if choice["finish_reason"].is_string() {
                chat.finish = text(choice, "finish_reason");
            }
        }
        for call in &mut chat.calls {
            if call[2].is_empty() {
                "{}".clone_into(&mut call[2]);
            }
        }
        chat
    }

    fn message(&mut self, message: &Value) {
        self.text += &text(message, "content");
        let thoughts = text(message, "reasoning_content");
        self.thoughts += &if thoughts.is_empty() {
            text(message, "reasoning")
        } else {
            thoughts
        };
        for (at, call) in message["tool_calls"]
            .as_array()
            .into_iter()
            .flatten()
            .enumerate()
        {
            let at = call["index"]
                .as_u64()
                .map_or(at, |index| usize::try_from(index).unwrap());
            if self.calls.len() <= at {
                self.calls.resize(at + 1, Default::default());
            }
            self.calls[at][0] += &text(call, "id");
            self.calls[at][1] += &text(&call["function"], "name");
            self.calls[at][2] += &text(&call["function"], "arguments");
        }
    }

    fn usage(&mut self, usage: &Value) {
        if let (Some(input), Some(output)) = (
            usage["prompt_tokens"].as_u64(),
            usage["completion_tokens"].as_u64(),
        ) {
            self.tokens = (input, output);
        }
    }
}

#[test]
fn every_recorded_reply_of_chat_is_read() {
    let mut hosted = 0;
    let mut executed = 0;
    for recorded in recordings(Dialect::OpenAiChat) {
        for exchange in &recorded.exchanges {
            let name = &recorded.file;
            let reply = exchange.reply(Dialect::OpenAiChat);
            if exchange.is_error() {
                assert!(
                    matches!(reply, Err(WireError::Provider { .. })),
                    "{name}: {reply:?}"
                );
                continue;
            }
            let reply = reply.unwrap_or_else(|error| panic!("{name}: {error}"));
            let expect = Chat::of(exchange);
            let calls = reply
                .turn
                .calls()
                .map(|call| [call.id.clone(), call.name.clone(), call.arguments.clone()]);
            let mut read = Chat {
                calls: calls.collect(),
                text: reply.turn.text(),
                tokens: (reply.usage.input, reply.usage.output),
                finish: expect.finish.clone(),
                ..Chat::default()
            };
            for item in &reply.turn.items {
                match item {
                    TurnItem::Thinking(text) => read.thoughts += text,
                    TurnItem::Hosted { .. } => hosted += 1,
                    TurnItem::Unknown { .. } => panic!("{name}: {item:?}"),
                    _ => {}
                }
            }
            assert_eq!(read, expect, "{name}");
            let stop = if expect.calls.is_empty() {
                StopReason::End
            } else {
                StopReason::Calls
            };
            assert_eq!(reply.stop, stop, "{name}: {}", expect.finish);
            let raw: Value = serde_json::from_str(reply.turn.raw.get()).unwrap();
            if let Some(body) = &exchange.response.body {
                let message = &body["choices"][0]["message"];
                executed += message["executed_tools"].as_array().map_or(0, Vec::len);
                assert_eq!(raw, *message, "{name}");
            }
        }
    }
    assert_eq!(hosted, executed, "tools that a provider ran itself");
}

/// Returns the output items of a record: those of the complete response at the end of a stream.
fn output(exchange: &Exchange) -> Vec<Value> {
    let whole = exchange.response.body.clone();
    let streamed = || {
        exchange
            .events()
            .into_iter()
            .find(|event| event["type"] == "response.completed")
    };
    let response = whole.unwrap_or_else(|| streamed().unwrap()["response"].clone());
    response["output"].as_array().unwrap().clone()
}

/// Adds what an item means to a host: its type, its ids, its content.
fn expected(item: &Value, all: &mut Vec<Vec<String>>) {
    let kind = item["type"].as_str().unwrap();
    let words = |names: &[&str]| {
        names
            .iter()
            .map(|name| text(item, name))
            .collect::<Vec<_>>()
    };
    match kind {
        "message" => {
            for part in item["content"].as_array().unwrap() {
                all.push(vec!["text".to_owned(), text(part, "text")]);
            }
        }
        "reasoning" => {
            let list = |name: &str| item[name].as_array().cloned().unwrap_or_default();
            let parts = if list("content").is_empty() {
                list("summary")
            } else {
                list("content")
            };
            let texts: Vec<String> = parts.iter().map(|part| text(part, "text")).collect();
            if !texts.is_empty() {
                all.push(vec!["thinking".to_owned(), texts.join("\n\n")]);
            }
        }
        "function_call" => all.push(words(&["call_id", "id", "name", "namespace", "arguments"])),
        "tool_search_call" if item["execution"] == "client" => {
            let mut call = words(&["call_id", "id"]);
            call.extend([
                "tool_search".to_owned(),
                String::new(),
                item["arguments"].to_string(),
            ]);
            all.push(call);
        }
        kind => all.push(vec!["hosted".to_owned(), kind.to_owned()]),
    }
}

#[test]
fn every_recorded_reply_of_responses_is_read() {
    for recorded in recordings(Dialect::OpenAiResponses) {
        for exchange in &recorded.exchanges {
            let name = &recorded.file;
            let reply = exchange.reply(Dialect::OpenAiResponses);
            if exchange.is_error() {
                assert!(
                    matches!(reply, Err(WireError::Provider { .. })),
                    "{name}: {reply:?}"
                );
                continue;
            }
            let reply = reply.unwrap_or_else(|error| panic!("{name}: {error}"));
            let mut expect = Vec::new();
            for item in output(exchange) {
                expected(&item, &mut expect);
            }
            let read = reply.turn.items.iter().map(|item| match item {
                TurnItem::Text(text) => vec!["text".to_owned(), text.clone()],
                TurnItem::Thinking(text) => vec!["thinking".to_owned(), text.clone()],
                TurnItem::Hosted { kind, .. } => vec!["hosted".to_owned(), kind.clone()],
                TurnItem::Call(call) => {
                    let item = call.item.clone().unwrap_or_default();
                    let namespace = call.namespace.clone().unwrap_or_default();
                    vec![
                        call.id.clone(),
                        item,
                        call.name.clone(),
                        namespace,
                        call.arguments.clone(),
                    ]
                }
                item => panic!("{name}: {item:?}"),
            });
            let read: Vec<Vec<String>> = read.collect();
            assert_eq!(read, expect, "{name}");
            let raw: Value = serde_json::from_str(reply.turn.raw.get()).unwrap();
            assert_eq!(raw, Value::Array(output(exchange)), "{name}");
            assert!(reply.usage.input > 0 && reply.usage.output > 0, "{name}");
            let calls = reply.turn.calls().count();
            assert_eq!(reply.stop == StopReason::Calls, calls > 0, "{name}");
        }
    }
}

#[test]
fn recorded_streams_are_the_same_however_they_are_cut() {
    for dialect in [Dialect::OpenAiChat, Dialect::OpenAiResponses] {
        for recorded in recordings(dialect) {
            for exchange in &recorded.exchanges {
                let Some(sse) = &exchange.response.sse else {
                    continue;
                };
                let (whole, deltas) = crate::streamed::cut(dialect, sse, &[sse.len()]);
                for size in [1, 2, 3, 17, 4096] {
                    let cut = crate::streamed::cut(dialect, sse, &[size]);
                    assert_eq!(
                        cut,
                        (whole.clone(), deltas.clone()),
                        "{} by {size}",
                        recorded.file
                    );
                }
            }
        }
    }
}
