//! The level of log messages that a server of the handshake era is set to: the most verbose that a caller wanted, once.

use std::sync::Arc;

use haft::caller::LogLevel;
use haft::future::BoxFuture;
use haft_mcp::client::pipe::{LONGEST, PipeWire, ServerProcess};
use haft_mcp::client::{Client, ClientLimits, OwnCapabilities, Respond, Responder};
use parking_lot::Mutex;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};

struct Inside;

impl ServerProcess for Inside {
    fn stderr_tail(&self) -> String {
        String::new()
    }

    fn end(&self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }
}

/// A caller that wants messages from this level on.
struct Wants(Option<LogLevel>);

impl Respond for Wants {
    fn respond<'a>(
        &'a self,
        _: &'a str,
        _: Option<&'a RawValue>,
    ) -> BoxFuture<'a, Result<Box<RawValue>, String>> {
        Box::pin(std::future::ready(Err("nothing is answered".to_owned())))
    }

    fn log(&self) -> Option<LogLevel> {
        self.0
    }
}

/// The server's requests after its greeting, in order: methods, and levels.
type Heard = Arc<Mutex<Vec<String>>>;

/// Connects to a server of the handshake era with these capabilities, which rejects levels with `refuses`.
async fn connected(capabilities: Value, refuses: bool) -> (Client, Heard) {
    let (input, theirs) = tokio::io::duplex(1 << 16);
    let (mut out, output) = tokio::io::duplex(1 << 16);
    let heard = Heard::default();
    let noted = Arc::clone(&heard);
    tokio::spawn(async move {
        let mut lines = BufReader::new(theirs).lines();
        while let Ok(Some(line)) = lines.next_line().await {
            let message: Value = serde_json::from_str(&line).unwrap();
            let id = &message["id"];
            let refused =
                json!({"jsonrpc": "2.0", "id": id, "error": {"code": -32601, "message": "no"}});
            let answer = match message["method"].as_str().unwrap() {
                "initialize" => {
                    json!({"jsonrpc": "2.0", "id": id, "result": {"protocolVersion": "2025-11-25",
                    "capabilities": capabilities, "serverInfo": {"name": "old", "version": "1"}}})
                }
                "logging/setLevel" => {
                    let level = message["params"]["level"].as_str().unwrap();
                    noted.lock().push(level.to_owned());
                    if refuses {
                        refused
                    } else {
                        json!({"jsonrpc": "2.0", "id": id, "result": {}})
                    }
                }
                "tools/call" => {
                    noted.lock().push("call".to_owned());
                    json!({"jsonrpc": "2.0", "id": id, "result": {"content": []}})
                }
                _ if id.is_null() => continue,
                _ => refused,
            };
            out.write_all(format!("{answer}\n").as_bytes())
                .await
                .unwrap();
        }
    });
    let wire = PipeWire::new(input, output, Box::new(Inside), LONGEST);
    let client = Client::connect(Arc::new(wire), None, ClientLimits::default()).await;
    (client.unwrap(), heard)
}

async fn call(client: &Client, level: Option<LogLevel>) {
    let responder = Responder::new(OwnCapabilities::default(), Arc::new(Wants(level)));
    let called = client
        .call_tool_with("t", "{}", None, Some(responder))
        .await;
    called.unwrap();
}

#[tokio::test]
async fn a_server_is_told_the_mildest_level_that_a_caller_wants_and_never_a_graver_one() {
    use LogLevel::{Debug, Error, Info};
    let logging = || json!({"tools": {}, "logging": {}});
    for (capabilities, refuses, levels, expect) in [
        (
            logging(),
            false,
            vec![None, Some(Error), Some(Error), Some(Debug), Some(Info)],
            vec!["call", "error", "call", "call", "debug", "call", "call"],
        ),
        // A server that rejects levels is not asked repeatedly, and the call is made all the same.
        (
            logging(),
            true,
            vec![Some(Info), Some(Info)],
            vec!["info", "call", "call"],
        ),
        (json!({"tools": {}}), false, vec![Some(Debug)], vec!["call"]),
    ] {
        let (client, heard) = connected(capabilities, refuses).await;
        for level in levels {
            call(&client, level).await;
        }
        assert_eq!(*heard.lock(), expect);
    }
}
