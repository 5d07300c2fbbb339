//! Requests of a server during a call: a separate request in the handshake era, a result that says what is missing in the
//! stateless one.

use std::sync::Arc;

use haft::future::BoxFuture;
use haft_mcp::client::pipe::{LONGEST, PipeWire, ServerProcess};
use haft_mcp::client::{
    Client, ClientError, ClientLimits, OwnCapabilities, Respond, Responder, default_values,
};
use parking_lot::Mutex;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};

use crate::support::until_async;

struct Inside;

impl ServerProcess for Inside {
    fn stderr_tail(&self) -> String {
        String::new()
    }

    fn end(&self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }
}

const FORM: &str = r#"{"message":"Who?","requestedSchema":{"type":"object","properties":{"name":{"type":"string","default":"ann"},"age":{"type":"integer"}}}}"#;

/// A server of an era; each call first sends this request, and its result is the answer.
struct Server {
    modern: bool,
    asks: &'static str,
    /// The messages that it read, except greetings.
    seen: Arc<Mutex<Vec<Value>>>,
}

impl Server {
    fn answers(&self, message: &Value) -> Vec<Value> {
        let reply =
            |result: Value| vec![json!({"jsonrpc": "2.0", "id": message["id"], "result": result})];
        let text =
            |value: &Value| json!({"content": [{"type": "text", "text": value.to_string()}]});
        match message["method"].as_str().unwrap_or_default() {
            "server/discover" if self.modern => {
                reply(json!({"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}}))
            }
            "initialize" => reply(
                json!({"protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
                                         "serverInfo": {"name": "old", "version": "1"}}),
            ),
            "server/discover" => {
                let error = json!({"code": -32601, "message": "no"});
                vec![json!({"jsonrpc": "2.0", "id": message["id"], "error": error})]
            }
            "tools/call" if self.modern => match message["params"].get("inputResponses") {
                Some(answers) => reply(text(answers)),
                None => reply(json!({
                    "resultType": "input_required",
                    "inputRequests": {"q": {"method": self.asks, "params": serde_json::from_str::<Value>(FORM).unwrap()}},
                    "requestState": "{\"odd\":  1}",
                })),
            },
            "tools/call" => {
                let params: Value = serde_json::from_str(FORM).unwrap();
                vec![
                    json!({"jsonrpc": "2.0", "id": message["id"].to_string(), "method": self.asks, "params": params}),
                ]
            }
            // The answer to its request: the call of the request has ended.
            "" => {
                let id: Value = serde_json::from_str(message["id"].as_str().unwrap()).unwrap();
                let said = message.get("result").unwrap_or(&message["error"]);
                vec![json!({"jsonrpc": "2.0", "id": id, "result": text(said)})]
            }
            _ => Vec::new(),
        }
    }

    fn wire(self) -> Arc<PipeWire> {
        let (input, theirs) = tokio::io::duplex(1 << 16);
        let (mut out, output) = tokio::io::duplex(1 << 16);
        tokio::spawn(async move {
            let mut lines = BufReader::new(theirs).lines();
            while let Ok(Some(line)) = lines.next_line().await {
                let message: Value = serde_json::from_str(&line).unwrap();
                self.seen.lock().push(message.clone());
                for answer in self.answers(&message) {
                    let _gone = out.write_all(format!("{answer}\n").as_bytes()).await;
                }
            }
        });
        Arc::new(PipeWire::new(input, output, Box::new(Inside), LONGEST))
    }
}

/// Accepts the proposed values, or never answers.
#[derive(Default)]
struct Person {
    never: bool,
    /// Number of open requests.
    open: Arc<Mutex<usize>>,
}

struct Thinking(Arc<Mutex<usize>>);

impl Drop for Thinking {
    fn drop(&mut self) {
        *self.0.lock() -= 1;
    }
}

impl Respond for Person {
    fn respond<'a>(
        &'a self,
        _method: &'a str,
        params: Option<&'a RawValue>,
    ) -> BoxFuture<'a, Result<Box<RawValue>, String>> {
        *self.open.lock() += 1;
        let thinking = Thinking(Arc::clone(&self.open));
        Box::pin(async move {
            let _thinking = thinking;
            if self.never {
                std::future::pending::<()>().await;
            }
            let content = params.map(default_values).unwrap_or_default();
            to_raw_value(&json!({"action": "accept", "content": content}))
                .map_err(|e| e.to_string())
        })
    }
}

const FORMS: OwnCapabilities = OwnCapabilities {
    elicitation: true,
    sampling: false,
    roots: false,
};

async fn connect(modern: bool, asks: &'static str) -> (Client, Arc<Mutex<Vec<Value>>>) {
    let seen = Arc::<Mutex<Vec<Value>>>::default();
    let server = Server {
        modern,
        asks,
        seen: Arc::clone(&seen),
    };
    let limits = ClientLimits::default();
    let client = Client::connect_offering(server.wire(), None, limits, FORMS).await;
    (client.unwrap(), seen)
}

#[tokio::test]
async fn what_is_offered_is_answered_and_nothing_else() {
    let responder = || Some(Responder::new(FORMS, Arc::new(Person::default())));
    for modern in [false, true] {
        let (client, seen) = connect(modern, "elicitation/create").await;
        let reply =
            client.call_tool_with("t", r#"{"big":12345678901234567890123}"#, None, responder());
        let reply = reply.await.unwrap();
        let said = reply.content[0].get().replace('\\', "");
        assert!(
            said.contains(r#""action":"accept""#) && said.contains(r#"{"name":"ann"}"#),
            "{said}"
        );
        let calls: Vec<Value> = seen
            .lock()
            .iter()
            .filter(|m| m["method"] == "tools/call")
            .cloned()
            .collect();
        if modern {
            let [first, second] = &calls[..] else {
                panic!("{calls:?}");
            };
            assert_ne!(first["id"], second["id"]);
            assert_eq!(second["params"]["requestState"], "{\"odd\":  1}");
            assert_eq!(first["params"]["arguments"], second["params"]["arguments"]);
            let offered = "io.modelcontextprotocol/clientCapabilities";
            assert_eq!(
                first["params"]["_meta"][offered],
                json!({"elicitation": {}, "extensions": {"io.modelcontextprotocol/tasks": {}}})
            );
        }

        for (asks, responder) in [
            ("sampling/createMessage", responder()),
            ("roots/list", responder()),
            ("elicitation/create", None),
        ] {
            let (client, _) = connect(modern, asks).await;
            let said = match client.call_tool_with("t", "{}", None, responder).await {
                Ok(reply) => reply.content[0].get().to_owned(),
                Err(error) => error.to_string(),
            };
            assert!(said.contains("not offer"), "{asks}: {said}");
        }
    }
}

#[tokio::test]
async fn a_question_ends_with_its_call_and_is_for_one_call_alone() {
    let (client, _) = connect(false, "elicitation/create").await;
    let client = Arc::new(client);
    let (never, open) = (true, Arc::<Mutex<usize>>::default());
    let person = Arc::new(Person {
        never,
        open: Arc::clone(&open),
    });
    let responder = Responder::new(FORMS, person);
    let call = |responder: Responder| {
        let client = Arc::clone(&client);
        tokio::spawn(async move {
            client
                .call_tool_with("t", "{}", None, Some(responder))
                .await
        })
    };
    let first = call(responder.clone());
    until_async(|| *open.lock() == 1).await;
    // If two calls could be meant, the client offers neither.
    let second = call(responder.clone()).await.unwrap().unwrap();
    assert!(second.content[0].get().contains("not offer"), "{second:?}");
    first.abort();
    until_async(|| *open.lock() == 0).await;
}

#[tokio::test]
async fn an_answer_that_fails_ends_the_call() {
    struct Busy;
    impl Respond for Busy {
        fn respond<'a>(
            &'a self,
            _: &'a str,
            _: Option<&'a RawValue>,
        ) -> BoxFuture<'a, Result<Box<RawValue>, String>> {
            Box::pin(std::future::ready(Err("no time".to_owned())))
        }
    }
    let (client, _) = connect(true, "elicitation/create").await;
    let responder = Responder::new(FORMS, Arc::new(Busy));
    let error = client
        .call_tool_with("t", "{}", None, Some(responder))
        .await
        .unwrap_err();
    assert!(matches!(error, ClientError::Malformed(_)), "{error}");
    assert!(error.to_string().contains("no time"), "{error}");
}
