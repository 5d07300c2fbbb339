//! Resources and prompts of servers behind haft: listed without starting the servers, read and got by judged and recorded calls.

use std::sync::Arc;

use haft::audit::EventKind;
use haft::call::ToolCall;
use haft::error::ErrorKind;
use haft::future::BoxFuture;
use haft::result::{Outcome, Status};
use haft::testing::MemoryAudit;
use haft::toolset::registry::ToolRegistry;
use haft::{Executor, Policy, Profile, Session};
use haft_mcp::client::pipe::{LONGEST, PipeWire, ServerProcess};
use haft_mcp::client::{ClientError, Wire};
use haft_mcp::offer::{Offer as _, OfferEntry, OfferRequest, Reference};
use haft_mcp::upstream::{Connector, Gateway, Upstream, UpstreamTerms, internal_tools};
use parking_lot::Mutex;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream};

/// A server with resources on two pages, a template, prompts and completion. It notes the params that it receives.
#[derive(Debug, Clone, Default)]
struct Shelf {
    more: Option<&'static str>,
    /// What it lists on the first page once it was pinned, instead.
    later: Arc<Mutex<Option<&'static str>>>,
    opened: Arc<Mutex<usize>>,
    asked: Arc<Mutex<Vec<String>>>,
}

struct Inside;

impl ServerProcess for Inside {
    fn stderr_tail(&self) -> String {
        String::new()
    }

    fn end(&self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }
}

impl Connector for Shelf {
    fn open(&self) -> BoxFuture<'_, Result<Arc<dyn Wire>, ClientError>> {
        *self.opened.lock() += 1;
        let (input, theirs) = tokio::io::duplex(1 << 16);
        let (out, output) = tokio::io::duplex(1 << 16);
        tokio::spawn(serve(self.clone(), theirs, out));
        let wire = PipeWire::new(input, output, Box::new(Inside), LONGEST);
        Box::pin(std::future::ready(Ok(Arc::new(wire) as Arc<dyn Wire>)))
    }
}

/// The result of a read, with an integer that no double can hold.
const READ: &str = r#"{"x":12345678901234567890123,"contents":[{"uri":"shelf://a","text":"a","y":[1.0]}],"_meta":{"z":1,"a":2}}"#;

async fn serve(shelf: Shelf, input: DuplexStream, mut output: DuplexStream) {
    let mut lines = BufReader::new(input).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        let message: Value = serde_json::from_str(&line).unwrap();
        let (Some(method), Some(id)) = (message["method"].as_str(), message.get("id")) else {
            continue;
        };
        let params = message["params"].clone();
        let answer = match method {
            "initialize" => json!({"protocolVersion": "2025-11-25", "capabilities": {"resources": {}, "prompts": {}, "completions": {}}, "serverInfo": {"name": "shelf", "version": "1"}}).to_string(),
            "resources/list" if params["cursor"] == "2" => {
                let more = shelf.more.unwrap_or("shelf://b");
                format!(r#"{{"resources":[{{"z":1e2,"uri":"{more}","name":"b"}},{{"name":"none"}}]}}"#)
            }
            "resources/list" if shelf.later.lock().is_some() => {
                let later = shelf.later.lock().unwrap_or_default();
                format!(r#"{{"resources":[{{"uri":"{later}","name":"not the owner"}}]}}"#)
            }
            "resources/list" => r#"{"resources":[{"z":12345678901234567890123,"uri":"shelf://a","name":"a"}],"nextCursor":"2"}"#.to_owned(),
            "resources/templates/list" => r#"{"resourceTemplates":[{"uriTemplate":"item://{id}/data","name":"t","x":1}]}"#.to_owned(),
            "prompts/list" => r#"{"prompts":[{"x":1.0,"name":"greet","arguments":[{"name":"who"}]}]}"#.to_owned(),
            "resources/read" | "prompts/get" | "completion/complete" => {
                shelf.asked.lock().push(format!("{method} {params}"));
                match (method, params["uri"].as_str()) {
                    ("resources/read", Some("shelf://none" | "item://none/data")) => {
                        let error = json!({"code": -32002, "message": "no such resource"});
                        let line = format!("{}\n", json!({"jsonrpc": "2.0", "id": id, "error": error}));
                        output.write_all(line.as_bytes()).await.unwrap();
                        continue;
                    }
                    ("resources/read", _) => READ.to_owned(),
                    ("prompts/get", _) => r#"{"messages":[],"q":1}"#.to_owned(),
                    _ => r#"{"completion":{"values":["x"],"total":12345678901234567890123}}"#.to_owned(),
                }
            }
            _ => {
                let error = json!({"code": -32601, "message": "unknown"});
                let line = format!("{}\n", json!({"jsonrpc": "2.0", "id": id, "error": error}));
                output.write_all(line.as_bytes()).await.unwrap();
                continue;
            }
        };
        let line = format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{answer}}}\n");
        if output.write_all(line.as_bytes()).await.is_err() {
            return;
        }
    }
}

/// A gateway over these servers, named `a`, `b`, …, and the executor of its calls.
struct Scene {
    gateway: Gateway,
    executor: Executor,
    session: Session,
    audit: Arc<MemoryAudit>,
}

impl Scene {
    async fn new(shelves: &[Shelf], policy: Policy) -> Self {
        let (mut servers, registry) = (Vec::new(), ToolRegistry::new());
        for (shelf, name) in shelves.iter().zip(["a", "b"]) {
            let terms = UpstreamTerms::default();
            let manifest = Upstream::look("shelf".into(), shelf, terms.limits).await;
            let manifest = haft_mcp::upstream::Manifest::parse(&manifest.unwrap().to_text());
            *shelf.opened.lock() = 0;
            let server = Upstream::new(name, manifest.unwrap(), Arc::new(shelf.clone()), terms);
            let server = Arc::new(server);
            registry.add_all(internal_tools(&server)).unwrap();
            servers.push(server);
        }
        let audit = Arc::new(MemoryAudit::new());
        let executor = Executor::new(policy)
            .with_internal_tools(Arc::new(registry))
            .with_audit(Arc::clone(&audit) as _);
        Self {
            gateway: Gateway::new(move || servers.clone()),
            executor,
            session: Session::new(ToolRegistry::new()),
            audit,
        }
    }

    async fn wants(&self, wanted: OfferRequest) -> Option<Outcome> {
        let call: ToolCall = self.gateway.call(&self.session, &wanted).await?;
        Some(self.executor.execute_internal(&self.session, call).await)
    }

    /// Returns the tools of the calls that have ended.
    fn ended(&self) -> Vec<String> {
        let events = self.audit.events();
        let ended = events.iter().filter_map(|event| match &event.what {
            EventKind::CallEnded(call, _) => Some(call.tool.as_str().to_owned()),
            _ => None,
        });
        ended.collect()
    }

    async fn reads(&self, uri: &str) -> Option<Outcome> {
        self.wants(OfferRequest::Read {
            uri: uri.to_owned(),
        })
        .await
    }
}

fn allowing() -> Policy {
    let policy = Policy::builder(Profile::Workspace);
    policy.allow("a.*").allow("b.*").build().unwrap()
}

fn pairs(entries: &[OfferEntry]) -> Vec<(&str, &str)> {
    entries
        .iter()
        .map(|entry| (&*entry.key, entry.json.get()))
        .collect()
}

#[tokio::test]
async fn lists_start_no_server_and_addresses_name_theirs_only_where_they_must() {
    let shelves = [
        Shelf::default(),
        Shelf {
            more: Some("skill://pdf/SKILL.md"),
            ..Shelf::default()
        },
    ];
    let scene = Scene::new(&shelves, allowing()).await;
    let resources = scene.gateway.resources(&scene.session).await.unwrap();
    assert_eq!(
        pairs(&resources),
        [
            (
                "shelf://a",
                r#"{"z":12345678901234567890123,"uri":"shelf://a","name":"a"}"#
            ),
            ("shelf://b", r#"{"z":1e2,"uri":"shelf://b","name":"b"}"#),
            (
                "mcp://b/shelf://a",
                r#"{"z":12345678901234567890123,"uri":"mcp://b/shelf://a","name":"a"}"#
            ),
            (
                "mcp://b/skill://pdf/SKILL.md",
                r#"{"z":1e2,"uri":"mcp://b/skill://pdf/SKILL.md","name":"b"}"#
            ),
        ]
    );
    let prompts = scene.gateway.prompts(&scene.session).await.unwrap();
    assert_eq!(
        prompts[0].json.get(),
        r#"{"x":1.0,"name":"a.greet","arguments":[{"name":"who"}]}"#
    );
    assert_eq!(prompts[1].key, "b.greet");
    let templates = scene.gateway.templates(&scene.session).await.unwrap();
    assert_eq!(templates[1].key, "mcp://b/item://{id}/data");
    assert_eq!(
        (*shelves[0].opened.lock(), *shelves[1].opened.lock()),
        (0, 0)
    );
    let kinds = scene.gateway.kinds(&scene.session);
    assert!(kinds.resources && kinds.prompts && kinds.completions);
}

#[tokio::test]
async fn what_is_wanted_reaches_its_server_under_the_servers_own_names_and_comes_back_byte_for_byte()
 {
    let shelves = [
        Shelf::default(),
        Shelf {
            more: Some("only://b"),
            ..Shelf::default()
        },
    ];
    let scene = Scene::new(&shelves, allowing()).await;
    for (uri, at) in [
        ("shelf://a", Some((0, "shelf://a"))),
        ("mcp://b/shelf://a", Some((1, "shelf://a"))),
        ("only://b", Some((1, "only://b"))),
        ("item://7/data", Some((0, "item://7/data"))),
        ("mcp://b/anything at all", Some((1, "anything at all"))),
        ("mcp://c/shelf://a", None),
        ("other://x", None),
    ] {
        let outcome = scene.reads(uri).await;
        let Some((nth, own)) = at else {
            assert!(outcome.is_none(), "{uri}: {outcome:?}");
            continue;
        };
        let outcome = outcome.unwrap();
        assert_eq!(
            outcome.data.as_ref().unwrap().get(),
            READ,
            "{uri}: {outcome:?}"
        );
        let asked = shelves[nth].asked.lock().pop();
        let expect = format!(r#""uri":"{own}""#);
        assert!(
            asked.as_ref().is_some_and(|asked| asked.contains(&expect)),
            "{uri}: {asked:?}"
        );
    }
    let reads = scene.ended().into_iter();
    let reads = reads.filter(|tool| tool.ends_with("resources.read"));
    assert_eq!(reads.count(), 5);
}

#[tokio::test]
async fn prompts_and_completions_are_calls_with_a_record_under_the_servers_own_names() {
    let shelves = [Shelf::default(), Shelf::default()];
    let scene = Scene::new(&shelves, allowing()).await;
    let prompt = OfferRequest::Prompt {
        name: "b.greet".into(),
        arguments: r#"{"who":"Ada"}"#.into(),
    };
    let got = scene.wants(prompt).await.unwrap();
    assert_eq!(got.data.unwrap().get(), r#"{"messages":[],"q":1}"#);
    let asked = shelves[1].asked.lock().pop().unwrap();
    assert!(
        asked.contains(r#""name":"greet""#) && asked.contains(r#""who":"Ada""#),
        "{asked}"
    );
    let params = r#"{"ref":{"type":"ref/prompt","name":"a.greet","t":1},"argument":{"name":"who","value":"A"}}"#;
    let complete = OfferRequest::Complete {
        reference: Reference::Prompt("a.greet".into()),
        params: RawValue::from_string(params.to_owned()).unwrap(),
    };
    let got = scene.wants(complete).await.unwrap();
    assert_eq!(
        got.data.unwrap().get(),
        r#"{"completion":{"values":["x"],"total":12345678901234567890123}}"#
    );
    let asked = shelves[0].asked.lock().pop().unwrap();
    assert!(asked.contains(r#""name":"greet""#), "{asked}");
    let ended = scene.ended();
    for tool in ["b.prompts.get", "a.completion.complete"] {
        assert!(ended.iter().any(|name| name == tool), "{tool}: {ended:?}");
    }
}

#[tokio::test]
async fn a_resource_is_read_where_rules_let_it_and_one_that_is_not_there_is_not_found() {
    let shelf = Shelf::default();
    let scene = Scene::new(std::slice::from_ref(&shelf), Policy::workspace()).await;
    let denied = scene.reads("shelf://a").await.unwrap();
    assert_eq!(denied.status, Status::Denied, "{denied:?}");
    assert_eq!(*shelf.opened.lock(), 0, "the server was not even started");
    let scene = Scene::new(std::slice::from_ref(&shelf), allowing()).await;
    let missing = scene.reads("shelf://none").await.unwrap();
    assert_eq!(
        missing.error.map(|error| error.kind),
        Some(ErrorKind::NotFound)
    );
}

#[tokio::test]
async fn a_page_that_two_servers_name_is_read_from_neither_under_that_address() {
    let page = Shelf {
        more: Some("ui://app/page"),
        ..Shelf::default()
    };
    let scene = Scene::new(&[page.clone(), page.clone()], allowing()).await;
    assert!(scene.reads("ui://app/page").await.is_none());
    assert!(scene.reads("mcp://b/ui://app/page").await.is_some());
    let scene = Scene::new(&[page, Shelf::default()], allowing()).await;
    assert!(scene.reads("ui://app/page").await.is_some());
}

#[tokio::test]
async fn n4_what_a_server_lists_since_it_was_pinned_displaces_no_address_of_another() {
    let (mine, other) = (
        Shelf::default(),
        Shelf {
            more: Some("only://b"),
            ..Shelf::default()
        },
    );
    let scene = Scene::new(&[mine.clone(), other.clone()], allowing()).await;
    // A connected server is asked for its present list.
    scene.reads("shelf://a").await.unwrap();
    for (later, listed, read_from) in [
        ("only://b", "mcp://a/only://b", 1),
        ("new://a", "mcp://a/new://a", 0),
        ("shelf://b", "shelf://b", 0),
    ] {
        *mine.later.lock() = Some(later);
        let resources = scene.gateway.resources(&scene.session).await.unwrap();
        let theirs = |entry: &&OfferEntry| entry.json.get().contains("not the owner");
        let keys: Vec<_> = resources
            .iter()
            .filter(theirs)
            .map(|entry| &*entry.key)
            .collect();
        assert_eq!(keys, [listed], "{later}");
        // What the list calls by this address is what a read of it gets.
        let address = if read_from == 1 { later } else { listed };
        let shelf = [&mine, &other][read_from];
        let asked = shelf.asked.lock().len();
        scene.reads(address).await.unwrap();
        assert_eq!(shelf.asked.lock().len(), asked + 1, "{later}");
    }
}
