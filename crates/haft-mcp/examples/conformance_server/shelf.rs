//! `Shelf`: the suite's resources and prompts. Each read and each prompt is a call of an internal tool.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use haft::call::ToolCall;
use haft::caller::RequestKind;
use haft::error::HostFailure;
use haft::future::BoxFuture;
use haft::session::Session;
use haft::spec::NameError;
use haft::{CallContext, Tool, ToolError, ToolResult, TypedTool, tool};
use haft_mcp::offer::{Offer, OfferChange, OfferEntry, OfferKinds, OfferRequest};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::sync::broadcast;

use super::asks::{ask, caller, form};
use super::contents::DOT;

/// An entry with unknown members in an unusual order.
pub(crate) const ODD: &str = r#"{"z":12345678901234567890123,"uri":"test://odd","description":"Has members of its own","name":"Odd","a":[1.50]}"#;
const TEMPLATE: &str = "test://template/{id}/data";

/// The resources and prompts.
#[derive(Debug)]
pub(crate) struct Shelf {
    changes: broadcast::Sender<OfferChange>,
    /// Whether there is an extra prompt.
    extra: AtomicBool,
}

impl Shelf {
    pub(crate) fn new() -> Self {
        Self {
            changes: broadcast::Sender::new(64),
            extra: AtomicBool::new(false),
        }
    }

    /// Adds the extra prompt or removes it.
    pub(crate) fn change_prompts(&self) {
        self.extra.fetch_xor(true, Ordering::Relaxed);
        // There may be no listener.
        let _ = self.changes.send(OfferChange::Prompts);
    }

    /// Reports that a resource changed.
    pub(crate) fn touch(&self, uri: &str) {
        // There may be no listener.
        let _ = self.changes.send(OfferChange::Updated(uri.into()));
    }

    /// Returns the internal tools.
    pub(crate) fn tools() -> Result<Vec<Arc<dyn Tool>>, NameError> {
        Ok(vec![
            read_resource {}.into_tool()?,
            get_prompt {}.into_tool()?,
            complete {}.into_tool()?,
            watch {}.into_tool()?,
        ])
    }
}

fn entries<const N: usize>(key: &str, all: [Value; N]) -> Result<Vec<OfferEntry>, HostFailure> {
    let entry = |value: Value| {
        let name = value[key].as_str().unwrap_or_default().to_owned();
        let json = serde_json::value::to_raw_value(&value).map_err(HostFailure::of)?;
        Ok(OfferEntry {
            key: name,
            json: json.into(),
        })
    };
    all.into_iter().map(entry).collect()
}

impl Offer for Shelf {
    fn kinds(&self, _: &Session) -> OfferKinds {
        OfferKinds {
            resources: true,
            subscriptions: true,
            prompts: true,
            completions: true,
        }
    }

    fn resources<'a>(
        &'a self,
        _: &'a Session,
    ) -> BoxFuture<'a, Result<Vec<OfferEntry>, HostFailure>> {
        let all = [
            json!({"uri": "test://static-text", "name": "Static text", "description": "A text", "mimeType": "text/plain"}),
            json!({"uri": "test://static-binary", "name": "Static picture", "description": "A picture", "mimeType": "image/png"}),
            json!({"uri": "test://watched-resource", "name": "Watched", "description": "A text to watch", "mimeType": "text/plain"}),
        ];
        Box::pin(async move {
            let mut all = entries("uri", all)?;
            let odd = RawValue::from_string(ODD.to_owned()).map_err(HostFailure::of)?;
            all.push(OfferEntry {
                key: "test://odd".to_owned(),
                json: odd.into(),
            });
            Ok(all)
        })
    }

    fn templates<'a>(
        &'a self,
        _: &'a Session,
    ) -> BoxFuture<'a, Result<Vec<OfferEntry>, HostFailure>> {
        let all = [
            json!({"uriTemplate": TEMPLATE, "name": "Data by id", "description": "Data of an id", "mimeType": "application/json"}),
        ];
        Box::pin(async move { entries("uriTemplate", all) })
    }

    fn prompts<'a>(
        &'a self,
        _: &'a Session,
    ) -> BoxFuture<'a, Result<Vec<OfferEntry>, HostFailure>> {
        let argument =
            |name: &str| json!({"name": name, "description": "An argument", "required": true});
        let all = [
            json!({"name": "test_simple_prompt", "description": "A prompt"}),
            json!({"name": "test_prompt_with_arguments", "description": "A prompt of two arguments", "arguments": [argument("arg1"), argument("arg2")]}),
            json!({"name": "test_prompt_with_embedded_resource", "description": "A prompt with a resource", "arguments": [argument("resourceUri")]}),
            json!({"name": "test_prompt_with_image", "description": "A prompt with a picture"}),
            json!({"name": "test_input_required_result_prompt", "description": "A prompt that asks"}),
        ];
        let extra =
            json!({"name": "test_passing_prompt", "description": "A prompt that comes and goes"});
        let extra = self.extra.load(Ordering::Relaxed).then_some(extra);
        Box::pin(async move {
            let mut all = entries("name", all)?;
            if let Some(extra) = extra {
                all.extend(entries("name", [extra])?);
            }
            Ok(all)
        })
    }

    fn call<'a>(
        &'a self,
        _: &'a Session,
        wanted: &'a OfferRequest,
    ) -> BoxFuture<'a, Option<ToolCall>> {
        let (tool, arguments) = match wanted {
            OfferRequest::Read { uri } => ("read_resource", json!({"uri": uri})),
            OfferRequest::Prompt { name, arguments } => {
                let given = serde_json::from_str::<Value>(arguments).unwrap_or_else(|_| json!({}));
                ("get_prompt", json!({"name": name, "given": given}))
            }
            OfferRequest::Complete { params, .. } => {
                let params = serde_json::from_str::<Value>(params.get()).unwrap_or_default();
                ("complete", json!({"value": params["argument"]["value"]}))
            }
            OfferRequest::Subscribe { uri } => ("watch", json!({"uri": uri})),
        };
        let call = ToolCall::new(tool, arguments.to_string());
        Box::pin(async move { Some(call) })
    }

    fn changes(&self, _: &Session) -> Option<broadcast::Receiver<OfferChange>> {
        Some(self.changes.subscribe())
    }
}

/// Read one of the shelf's resources.
#[tool(concurrency_safe)]
fn read_resource(uri: String) -> haft::Result<ToolResult> {
    let with = |mime: &str, member: &str, value: &str| {
        ToolResult::data(&json!({"contents": [{"uri": uri, "mimeType": mime, member: value}]}))
    };
    let id = uri.strip_prefix("test://template/");
    let id = id.and_then(|rest| rest.strip_suffix("/data"));
    match (uri.as_str(), id) {
        ("test://static-text", _) => with(
            "text/plain",
            "text",
            "This is the content of the static text resource.",
        ),
        ("test://odd", _) => {
            let raw = r#"{"z":12345678901234567890123,"contents":[{"uri":"test://odd","text":"odd","b":1.50}]}"#;
            let data = RawValue::from_string(raw.to_owned());
            let data = data.map_err(|e| ToolError::failed("not JSON").with_source(e))?;
            Ok(ToolResult {
                data: Some(data),
                ..ToolResult::default()
            })
        }
        ("test://watched-resource", _) => with("text/plain", "text", "Watched."),
        ("test://static-binary", _) => with("image/png", "blob", DOT),
        (_, Some(id)) => {
            let data =
                json!({"id": id, "templateTest": true, "data": format!("Data for ID: {id}")});
            with("application/json", "text", &data.to_string())
        }
        _ => Err(ToolError::not_found(format!("no resource {uri}"))),
    }
}

fn user(content: &Value) -> Value {
    json!({"role": "user", "content": content})
}

fn text(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

/// Get one of the shelf's prompts.
#[tool(concurrency_safe)]
async fn get_prompt(
    name: String,
    given: serde_json::Map<String, Value>,
    context: &CallContext,
) -> haft::Result<ToolResult> {
    let argument = |name: &str| {
        let value = given.get(name).and_then(Value::as_str);
        value.ok_or_else(|| ToolError::invalid_arguments(format!("the argument {name} is missing")))
    };
    let messages = match name.as_str() {
        "test_simple_prompt" | "test_passing_prompt" => {
            vec![user(&text("This is a simple prompt for testing."))]
        }
        "test_prompt_with_arguments" => {
            let (one, two) = (argument("arg1")?, argument("arg2")?);
            let said = format!("Prompt with arguments: arg1='{one}', arg2='{two}'");
            vec![user(&text(&said))]
        }
        "test_prompt_with_embedded_resource" => {
            let uri = argument("resourceUri")?;
            let resource = json!({"uri": uri, "mimeType": "text/plain", "text": "Embedded resource content for testing."});
            vec![
                user(&json!({"type": "resource", "resource": resource})),
                user(&text("Please process the embedded resource above.")),
            ]
        }
        "test_prompt_with_image" => vec![
            user(&json!({"type": "image", "data": DOT, "mimeType": "image/png"})),
            user(&text("Please analyze the image above.")),
        ],
        "test_input_required_result_prompt" => {
            let fields = json!({"context": {"type": "string"}});
            let question = form("What context should the prompt use?", &fields);
            let answer = ask(
                &caller(context)?,
                "user_context",
                RequestKind::Form,
                question,
            )
            .await?;
            vec![user(&text(&format!(
                "Use this context: {}",
                answer["content"]["context"]
            )))]
        }
        _ => return Err(ToolError::not_found(format!("no prompt {name}"))),
    };
    ToolResult::data(&json!({"messages": messages}))
}

/// Complete an argument.
#[tool(concurrency_safe)]
fn complete(value: String) -> haft::Result<ToolResult> {
    let all = ["paris", "park", "party", "test"];
    let values: Vec<&str> = all
        .into_iter()
        .filter(|word| word.starts_with(&value))
        .collect();
    let total = values.len();
    ToolResult::data(&json!({"completion": {"values": values, "total": total, "hasMore": false}}))
}

/// Watch one of the shelf's resources.
#[tool(concurrency_safe)]
fn watch(uri: String) -> haft::Result<ToolResult> {
    if uri.starts_with("test://") {
        return Ok(ToolResult::default());
    }
    Err(ToolError::not_found(format!("no resource {uri}")))
}
