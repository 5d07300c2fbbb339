//! Clients of the stateless era while an approval is pending: the reply asks, and they come back with a sealed state.

use std::sync::Arc;
use std::time::Duration;

use haft::Decision;
use haft::approval::inbox::RequestStatus;
use haft::call::Principal;
use haft_mcp::http::{Access, McpService};
use haft_mcp::opener::OperatorMarker;
use haft_mcp::server::ServerLimits;
use http::Method;
use serde_json::{Value, json};

use crate::support::http_client::{MODERN, Reply, reply, request, send};
use crate::support::small_tools::SmallOpener;
use crate::support::{serving, until_async};

/// The requests of one caller.
#[derive(Clone)]
struct Caller {
    service: McpService,
    opener: Arc<SmallOpener>,
    who: &'static str,
    client: &'static str,
    operator: bool,
    elicitation: Value,
}

impl Caller {
    fn new(limits: ServerLimits) -> Self {
        let opener = Arc::new(SmallOpener::asking());
        let service = serving(limits, &opener).http(Access::checked_before());
        Self {
            service,
            opener,
            who: "ada",
            client: "c",
            operator: false,
            elicitation: json!({"form": {}, "url": {}}),
        }
    }

    /// Writes to this path, with what the client sends back.
    async fn write(&self, path: &str, back: Value) -> Reply {
        self.call("write_file", json!({"path": path, "content": "x"}), back)
            .await
    }

    async fn call(&self, tool: &str, arguments: Value, back: Value) -> Reply {
        let mut params = json!({
            "name": tool, "arguments": arguments,
            "_meta": {
                "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                "io.modelcontextprotocol/clientInfo": {"name": self.client, "version": "1"},
                "io.modelcontextprotocol/clientCapabilities": {"elicitation": self.elicitation}
            }
        });
        for (name, value) in back.as_object().into_iter().flatten() {
            params[name] = value.clone();
        }
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
        let headers = [MODERN, ("mcp-method", "tools/call"), ("mcp-name", tool)];
        let mut request = request(Method::POST, &headers, body.to_string());
        request.extensions_mut().insert(Principal::local(self.who));
        if self.operator {
            request.extensions_mut().insert(OperatorMarker);
        }
        reply(send(&self.service, request).await).await
    }

    async fn approve(&self) {
        let id = self.opener.request().await.request.id;
        let yes = Decision::approve("eve", "console");
        self.opener
            .executor
            .inbox()
            .decide(&id, &yes)
            .await
            .unwrap();
    }
}

/// Returns what a client sends back after its user did this.
fn back(asked: &Value, said: Value) -> Value {
    let requests = asked["result"]["inputRequests"].as_object().unwrap();
    let responses: serde_json::Map<_, _> = requests
        .keys()
        .map(|key| (key.clone(), said.clone()))
        .collect();
    json!({"requestState": asked["result"]["requestState"], "inputResponses": responses})
}

fn accept() -> Value {
    json!({"action": "accept"})
}

fn briefly() -> ServerLimits {
    let hold = Duration::from_millis(20);
    ServerLimits {
        hold,
        ..ServerLimits::default()
    }
}

#[tokio::test]
async fn a_call_that_waits_is_answered_with_what_to_ask_and_gives_its_result_when_it_comes_back() {
    let caller = Caller::new(ServerLimits::default());
    let asked = caller.write("a.txt", Value::Null).await.json();
    let result = &asked["result"];
    assert_eq!(result["resultType"], json!("input_required"));
    let entry = caller.opener.request().await;
    let id = &entry.request.id;
    assert!(!entry.attended, "nobody waits for it now");
    let expect = json!({"method": "elicitation/create", "params": {
        "mode": "url", "message": "write_file (high): somewhere.txt", "url": format!("http://127.0.0.1:7420/waiting/{id}")
    }});
    assert_eq!(result["inputRequests"], json!({id.as_str(): expect}));
    assert_eq!(result["_meta"]["haft"]["approval"], json!(id));
    let coming = tokio::spawn({
        let (caller, back) = (caller.clone(), back(&asked, accept()));
        async move { caller.write("a.txt", back).await.json() }
    });
    // It waits again before there is a decision.
    let inbox = caller.opener.executor.inbox();
    while !inbox.get(id).await.unwrap().unwrap().attended {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    caller.approve().await;
    let done = coming.await.unwrap();
    assert_eq!(done["result"]["resultType"], json!("complete"), "{done}");
    assert_eq!(done["result"]["isError"], json!(false));
    // The same state again: it is used up, so haft asks anew and nothing runs.
    let replayed = caller.write("a.txt", back(&asked, accept())).await.json();
    assert_eq!(
        replayed["result"]["resultType"],
        json!("input_required"),
        "{replayed}"
    );
    assert_ne!(replayed["result"]["inputRequests"], result["inputRequests"]);
    assert_eq!(caller.opener.count("started"), 1);
}

#[tokio::test]
async fn a_client_that_comes_back_too_early_is_asked_again_or_told_to_wait() {
    for (said, asks_again) in [
        (accept(), true),
        (json!({"action": "decline"}), false),
        (json!({"action": "cancel"}), false),
        (Value::Null, false),
    ] {
        let caller = Caller::new(briefly());
        let asked = caller.write("a.txt", Value::Null).await.json();
        let again = caller
            .write("a.txt", back(&asked, said.clone()))
            .await
            .json();
        let kind = if asks_again {
            "input_required"
        } else {
            "complete"
        };
        assert_eq!(again["result"]["resultType"], json!(kind), "{said} {again}");
        // Whatever the client's user did, nothing is decided.
        assert_eq!(caller.opener.request().await.status, RequestStatus::Pending);
        caller.approve().await;
        let done = caller.write("a.txt", back(&asked, accept())).await.json();
        assert_eq!(done["result"]["isError"], json!(false), "{done}");
        assert_eq!(caller.opener.count("started"), 1);
    }
}

#[tokio::test]
async fn a_state_that_is_not_this_callers_for_this_call_is_refused() {
    let caller = Caller::new(briefly());
    let asked = caller.write("a.txt", Value::Null).await.json();
    let good = back(&asked, accept());
    let mut forged = good.clone();
    let text = good["requestState"].as_str().unwrap();
    forged["requestState"] = format!("{}A", &text[..text.len() - 1]).into();
    if forged == good {
        forged["requestState"] = format!("{}B", &text[..text.len() - 1]).into();
    }
    let stranger = Caller {
        who: "bob",
        ..caller.clone()
    };
    caller.approve().await;
    for (who, path, back) in [
        (&caller, "a.txt", forged),
        (&caller, "b.txt", good.clone()),
        (&stranger, "a.txt", good.clone()),
        (&caller, "a.txt", json!({"requestState": "nonsense"})),
        (&caller, "a.txt", json!({"requestState": 7})),
        (&caller, "a.txt", json!({"inputResponses": [1]})),
    ] {
        let refused = who.write(path, back.clone()).await;
        assert_eq!(refused.verdict(), (400, -32602), "{back} {refused:?}");
    }
    assert_eq!(caller.opener.count("started"), 0);
    assert_eq!(
        caller.write("a.txt", good).await.json()["result"]["isError"],
        json!(false)
    );
}

/// client, operator's token, tool → how haft asks, and whether a filled form decides
#[tokio::test]
async fn a_form_decides_for_a_trusted_client_with_the_operators_token_alone() {
    for (client, operator, tool, mode) in [
        ("trusty", true, "write_file", "form"),
        ("trusty", false, "write_file", "url"),
        ("other", true, "write_file", "url"),
        ("trusty", true, "destroy", "url"),
    ] {
        let row = format!("{client} {operator} {tool}");
        let caller = Caller {
            client,
            operator,
            ..Caller::new(briefly())
        };
        let arguments = if tool == "destroy" {
            json!({})
        } else {
            json!({"path": "a", "content": "x"})
        };
        let asked = caller
            .call(tool, arguments.clone(), Value::Null)
            .await
            .json();
        let requests = asked["result"]["inputRequests"].as_object().unwrap();
        let params = &requests.values().next().unwrap()["params"];
        assert_eq!(params["mode"], json!(mode), "{row}");
        let said = json!({"action": "accept", "content": {"decision": "approve"}});
        // A client that comes back without the operator's token has decided nothing.
        let without = Caller {
            operator: false,
            ..caller.clone()
        };
        without
            .call(tool, arguments.clone(), back(&asked, said.clone()))
            .await;
        assert_eq!(
            caller.opener.request().await.status,
            RequestStatus::Pending,
            "{row}"
        );
        let done = caller
            .call(tool, arguments, back(&asked, said))
            .await
            .json();
        let decided = mode == "form";
        assert_eq!(
            done["result"]["isError"] == json!(false),
            decided,
            "{row} {done}"
        );
        assert_eq!(
            caller.opener.count("started"),
            usize::from(decided),
            "{row}"
        );
    }
}

#[tokio::test]
async fn a_question_is_asked_by_form_and_its_answers_come_back() {
    let caller = Caller::new(briefly());
    let asked = caller.call("question", json!({}), Value::Null).await.json();
    assert_eq!(
        asked["result"]["resultType"],
        json!("input_required"),
        "{asked}"
    );
    let wrong = json!({"action": "accept", "content": {"colour": "green"}});
    let again = caller
        .call("question", json!({}), back(&asked, wrong))
        .await
        .json();
    assert_ne!(again["result"]["isError"], json!(false), "{again}");
    let right = json!({"action": "accept", "content": {"colour": "blue"}});
    let done = caller
        .call("question", json!({}), back(&asked, right))
        .await
        .json();
    assert_eq!(
        done["result"]["structuredContent"],
        json!({"colour": "blue"}),
        "{done}"
    );
}

#[tokio::test]
async fn a_client_that_cannot_ask_is_told_how_to_come_back() {
    let caller = Caller {
        elicitation: Value::Null,
        ..Caller::new(briefly())
    };
    let late = caller.write("a.txt", Value::Null).await.json();
    assert_eq!(late["result"]["resultType"], json!("complete"));
    assert_eq!(late["result"]["isError"], json!(true));
    let id = caller.opener.request().await.request.id;
    assert!(
        late["result"]["content"]
            .to_string()
            .contains(&format!("/waiting/{id}")),
        "{late}"
    );
    caller.approve().await;
    let done = caller.write("a.txt", Value::Null).await.json();
    assert_eq!(done["result"]["isError"], json!(false), "{done}");
}

#[tokio::test]
async fn a_state_holds_after_a_restart_and_nothing_is_asked_twice() {
    let before = Caller::new(briefly());
    let asked = before.write("a.txt", Value::Null).await.json();
    let opener = Arc::new(before.opener.restarted());
    let after = Caller {
        service: serving(briefly(), &opener).http(Access::checked_before()),
        opener,
        ..before
    };
    let early = after.write("a.txt", back(&asked, accept())).await.json();
    assert_eq!(
        early["result"]["inputRequests"],
        asked["result"]["inputRequests"]
    );
    after.approve().await;
    let done = after.write("a.txt", back(&asked, accept())).await.json();
    assert_eq!(done["result"]["isError"], json!(false), "{done}");
    assert_ne!(
        done["result"]["_meta"]["haft"]["run"],
        asked["result"]["_meta"]["haft"]["run"]
    );
    let opener = Arc::clone(&after.opener);
    until_async(|| opener.count("started") == 1).await;
}
