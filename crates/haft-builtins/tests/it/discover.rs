//! Finding and expanding tools through the executor; embeddings from a real server.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use haft::skill::set::{SkillFilter, SkillRoot, SkillSet};
use haft::testing::TestTool;
use haft::toolset::registry::ToolRegistry;
use haft::toolset::view::ToolsetExt;
use haft::{
    ErrorKind, Executor, Exposure, Outcome, Policy, Session, ToolCall, ToolSpec, TypedTool,
};
use haft_builtins::discover::embeddings::HttpEmbedder;
use haft_builtins::discover::{DiscoverOptions, ToolExpandTools, ToolSearch};
use haft_builtins::web::http::Http;
use serde_json::{Value, json};

use crate::scene::data;

struct Discovery {
    executor: Executor,
    session: Session,
}

fn tool(name: &str, description: &str, category: &str, exposure: Exposure) -> ToolSpec {
    ToolSpec {
        description: description.into(),
        category: (!category.is_empty()).then(|| category.to_owned()),
        exposure,
        ..TestTool::echo(name)
    }
}

fn registry(options: &DiscoverOptions) -> ToolRegistry {
    let specs = [
        tool(
            "mail.send",
            "Sends a letter to somebody",
            "mail",
            Exposure::Deferred,
        ),
        tool("mail.find", "Finds letters", "mail", Exposure::Deferred),
        tool("clock", "Tells the time", "", Exposure::Listed),
        tool("quiet", "Tells the time silently", "", Exposure::Unlisted),
        tool("gone", "Tells the time no more", "", Exposure::Hidden),
    ];
    let tools = specs.map(|spec| TestTool::of(spec).arc());
    let own = [
        ToolSearch::new(options).into_tool().unwrap(),
        ToolExpandTools.into_tool().unwrap(),
    ];
    let registry = ToolRegistry::new();
    registry.add_all(tools.into_iter().chain(own)).unwrap();
    registry
}

impl Discovery {
    fn new(options: &DiscoverOptions) -> Self {
        Self {
            executor: Executor::new(Policy::read_only()),
            session: Session::new(registry(options)),
        }
    }

    async fn call(&self, tool: &str, arguments: Value) -> Outcome {
        let call = ToolCall::new(tool, arguments.to_string());
        self.executor.execute(&self.session, call).await
    }

    async fn search(&self, arguments: Value) -> Value {
        let outcome = self.call("tool_search", arguments.clone()).await;
        assert!(outcome.is_ok(), "{arguments}: {:?}", outcome.error);
        data(&outcome)
    }

    async fn names(&self, arguments: Value) -> Vec<String> {
        let found = self.search(arguments).await;
        let tools = found["tools"].as_array().unwrap().iter();
        tools
            .map(|tool| tool["name"].as_str().unwrap().to_owned())
            .collect()
    }

    async fn expand(&self, names: Value) -> Value {
        let outcome = self
            .call("tool_expand_tools", json!({ "tool_names": names }))
            .await;
        assert!(outcome.is_ok(), "{:?}", outcome.error);
        data(&outcome)
    }
}

#[tokio::test]
async fn tools_are_found_by_words_browsed_by_category_and_counted() {
    let here = Discovery::new(&DiscoverOptions::default());
    let rows = [
        (
            json!({"query": "send a letter"}),
            vec!["mail.send", "mail.find"],
        ),
        (json!({"query": "letter", "limit": 1}), vec!["mail.find"]),
        (json!({"query": "time"}), vec!["clock"]),
        (
            json!({"query": "Mail.Send"}),
            vec!["mail.send", "mail.find"],
        ),
        (json!({"query": "letter", "category": "other"}), vec![]),
        (json!({"category": "mail"}), vec!["mail.find", "mail.send"]),
        (
            json!({"query": " ", "category": "mail", "limit": 1}),
            vec!["mail.find"],
        ),
        (json!({"query": "?!… \u{0}"}), vec![]),
        (json!({}), vec![]),
    ];
    for (arguments, expect) in rows {
        assert_eq!(here.names(arguments.clone()).await, expect, "{arguments}");
    }
    let all = here.search(json!({})).await;
    let counts = json!([{"category": "discover", "tools": 2}, {"category": "mail", "tools": 2}, {"category": "other", "tools": 1}]);
    assert_eq!(all["categories"], counts);
    let mail = here.search(json!({"category": "mail", "limit": 1})).await;
    assert_eq!(
        (&mail["total"], &mail["tools"][0]["deferred"]),
        (&json!(2), &json!(true))
    );
    let whole = here
        .search(json!({"query": "clock", "format": "schema"}))
        .await;
    assert_eq!(whole["tools"][0]["input_schema"]["type"], "object");
    assert!(all["tools"].as_array().unwrap().is_empty());
}

#[tokio::test]
async fn bad_searches_are_refused_and_say_what_there_is() {
    let here = Discovery::new(&DiscoverOptions::default());
    let rows = [
        (
            json!({"query": "x".repeat(1 << 20)}),
            ErrorKind::InvalidArguments,
            "2000",
        ),
        (
            json!({"query": "x", "limit": 0}),
            ErrorKind::InvalidArguments,
            "/limit",
        ),
        (
            json!({"query": "x", "limit": 101}),
            ErrorKind::InvalidArguments,
            "/limit",
        ),
        (
            json!({"query": "x", "format": "xml"}),
            ErrorKind::InvalidArguments,
            "/format",
        ),
        (
            json!({"category": "nope"}),
            ErrorKind::NotFound,
            "discover, mail, other",
        ),
    ];
    for (arguments, kind, says) in rows {
        let outcome = here.call("tool_search", arguments).await;
        let error = outcome.error.unwrap();
        let words = format!("{} {}", error.message, error.advice.unwrap_or_default());
        assert_eq!(error.kind, kind, "{words}");
        assert!(words.contains(says), "{words}");
    }
}

#[tokio::test]
async fn expanding_is_partial_and_answers_in_the_exact_words() {
    let here = Discovery::new(&DiscoverOptions::default());
    let refused = here.call("mail.send", json!({})).await.error.unwrap();
    assert_eq!(refused.kind, ErrorKind::Unavailable);
    let reply = here
        .expand(json!([
            " mail.send",
            "unknown_tool",
            "clock",
            "quiet",
            "gone",
            "tool_expand_tools",
            "mail.send"
        ]))
        .await;
    let expect = json!({
        "success": true,
        "expanded_tools": ["mail.send"],
        "invalid_tools": ["unknown_tool", "quiet", "gone"],
        "already_selected_tools": ["clock", "tool_expand_tools"],
        "available_expandable_tools": ["mail.find"],
    });
    assert_eq!(reply, expect);
    assert!(here.call("mail.send", json!({})).await.is_ok());
    // The tool was already selected: nothing was added.
    let reply = here.expand(json!("mail.send")).await;
    assert_eq!(
        (&reply["success"], &reply["already_selected_tools"]),
        (&json!(false), &json!(["mail.send"]))
    );
    let reply = here.expand(json!("mail.find")).await;
    assert_eq!(
        (&reply["success"], &reply["available_expandable_tools"]),
        (&json!(true), &json!([]))
    );
    for (names, kind) in [
        (json!(7), None),
        (json!([[]]), Some(ErrorKind::InvalidArguments)),
        (json!([]), None),
    ] {
        let outcome = here
            .call("tool_expand_tools", json!({ "tool_names": names }))
            .await;
        assert_eq!(outcome.error.map(|e| e.kind), kind, "{names}");
    }
}

#[tokio::test]
async fn a_view_hides_what_it_leaves_out_and_many_deferred_tools_stay_bounded() {
    let view = registry(&DiscoverOptions::default()).except(["mail.send"]);
    let here = Discovery {
        executor: Executor::new(Policy::read_only()),
        session: Session::new(view),
    };
    assert_eq!(
        here.names(json!({"query": "send letter"})).await,
        ["mail.find"]
    );
    assert_eq!(
        here.expand(json!("mail.send")).await["invalid_tools"],
        json!(["mail.send"])
    );

    let many = registry(&DiscoverOptions::default());
    let described = "d".repeat(300);
    let deferred = (0..10_000).map(|n| {
        let name = format!("t{n:0>127}");
        TestTool::of(tool(&name, &described, "many", Exposure::Deferred)).arc()
    });
    many.add_all(deferred).unwrap();
    let here = Discovery {
        executor: Executor::new(Policy::read_only()),
        session: Session::new(many),
    };
    let outcome = here
        .call("tool_expand_tools", json!({"tool_names": "nope"}))
        .await;
    assert!(outcome.artifacts.is_empty(), "it fits inline");
    assert_eq!(
        data(&outcome)["available_expandable_tools"]
            .as_array()
            .map(Vec::len),
        Some(65)
    );
    let outcome = here
        .call("tool_search", json!({"category": "many", "limit": 100}))
        .await;
    assert_eq!(data(&outcome)["total"], 10_000);
}

#[tokio::test]
async fn skills_are_found_beside_tools_unless_only_people_may_load_them() {
    let dir = tempfile::tempdir().unwrap();
    for (name, more) in [
        ("letters", ""),
        ("private", "disable-model-invocation: true\n"),
    ] {
        let folder = dir.path().join(name);
        std::fs::create_dir(&folder).unwrap();
        let text = format!(
            "---\nname: {name}\ndescription: How to write a letter.\n{more}---\nBegin with a greeting.\n"
        );
        std::fs::write(folder.join("SKILL.md"), text).unwrap();
    }
    let set = SkillSet::new(vec![SkillRoot::user(dir.path())], SkillFilter::default());
    let options = DiscoverOptions {
        skills: Some(Arc::new(set)),
        ..DiscoverOptions::default()
    };
    let here = Discovery::new(&options);
    let found = here.search(json!({"query": "write letters"})).await;
    assert!(found.get("skills").is_none(), "nobody could load it");
    let tools = registry(&options);
    tools
        .add_all([TestTool::of(TestTool::echo("load_skill")).arc()])
        .unwrap();
    let here = Discovery {
        session: Session::new(tools),
        ..here
    };
    let found = here.search(json!({"query": "write letters"})).await;
    let skills = found["skills"].as_array().unwrap();
    assert_eq!(skills.len(), 1, "{found}");
    assert_eq!(skills[0]["name"], "letters");
    std::fs::remove_dir_all(dir.path().join("letters")).unwrap();
    assert!(
        here.search(json!({"query": "write letters"}))
            .await
            .get("skills")
            .is_none()
    );
}

/// An embeddings service that counts characters and their neighbours, and treats two synonyms as one word.
struct Service {
    url: String,
    asked: Arc<AtomicUsize>,
}

impl Service {
    fn start(broken: fn(usize) -> bool) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/v1/embeddings", listener.local_addr().unwrap());
        let asked = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&asked);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let number = count.fetch_add(1, Ordering::SeqCst);
                answer(stream.unwrap(), broken(number));
            }
        });
        Self { url, asked }
    }
}

fn answer(stream: TcpStream, broken: bool) {
    let mut reader = BufReader::new(stream);
    let (mut length, mut key) = (0, String::new());
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        let lower = line.trim().to_ascii_lowercase();
        if let Some(value) = lower.strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
        if let Some(value) = lower.strip_prefix("authorization:") {
            value.trim().clone_into(&mut key);
        }
        if lower.is_empty() {
            break;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    let asked: Value = serde_json::from_slice(&body).unwrap();
    assert_eq!(
        (asked["model"].as_str(), key.as_str()),
        (Some("grams"), "bearer secret")
    );
    let texts = asked["input"].as_array().unwrap().iter().enumerate();
    let vector = |(index, text): (usize, &Value)| json!({"index": index, "embedding": grams(text.as_str().unwrap())});
    // Out of order, as the protocol allows.
    let items: Vec<Value> = texts.map(vector).rev().collect();
    let (status, body) = if broken {
        ("500 No", "{}".to_owned())
    } else {
        ("200 OK", json!({ "data": items }).to_string())
    };
    let head = format!(
        "HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
        body.len()
    );
    let mut stream = reader.into_inner();
    stream.write_all(head.as_bytes()).unwrap();
    stream.write_all(body.as_bytes()).unwrap();
}

fn grams(text: &str) -> Vec<f32> {
    let text = text.to_lowercase().replace("epistle", "letter");
    let mut vector = vec![0.0_f32; 256];
    for three in text.as_bytes().windows(3) {
        let place = three
            .iter()
            .fold(7_usize, |h, b| h.wrapping_mul(31) ^ usize::from(*b));
        vector[place % 256] += 1.0;
    }
    vector
}

fn by_meaning(service: &Service) -> DiscoverOptions {
    let embedder = HttpEmbedder::new(Http::trusted(), &service.url, "grams").with_api_key("secret");
    DiscoverOptions {
        embedder: Some(Arc::new(embedder)),
        ..DiscoverOptions::default()
    }
}

/// Searches until the tools' vectors are there.
async fn until_found(here: &Discovery, query: &str) -> Vec<String> {
    for _ in 0..500 {
        let names = here.names(json!({ "query": query })).await;
        if !names.is_empty() {
            return names;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("no vectors came")
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_meant_is_found_where_no_word_is_shared() {
    let service = Service::start(|_| false);
    let words = Discovery::new(&DiscoverOptions::default());
    assert!(words.names(json!({"query": "epistle"})).await.is_empty());
    let here = Discovery::new(&by_meaning(&service));
    let names = until_found(&here, "epistle").await;
    assert!(names[0].starts_with("mail."), "{names:?}");
    // Hidden tools have no vectors, an exact name wins, and the tools are embedded once.
    assert!(!names.iter().any(|name| name == "quiet" || name == "gone"));
    assert_eq!(here.names(json!({"query": "clock"})).await[0], "clock");
    let before = service.asked.load(Ordering::SeqCst);
    here.expand(json!("mail.send")).await;
    here.names(json!({"query": "epistle"})).await;
    assert_eq!(service.asked.load(Ordering::SeqCst), before + 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_that_fails_leaves_the_words_and_is_told_once() {
    // Every request fails except the first, which is for the tools.
    let service = Service::start(|number| number > 0);
    let here = Discovery::new(&by_meaning(&service));
    let search = || here.call("tool_search", json!({"query": "letter"}));
    let mut told = 0;
    for _ in 0..200 {
        let outcome = search().await;
        assert_eq!(data(&outcome)["tools"].as_array().map(Vec::len), Some(2));
        let text = serde_json::to_string(&outcome.content).unwrap();
        told += usize::from(text.contains("by words alone"));
        if service.asked.load(Ordering::SeqCst) > 1 && told > 0 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    for _ in 0..3 {
        let text = serde_json::to_string(&search().await.content).unwrap();
        told += usize::from(text.contains("by words alone"));
    }
    assert_eq!(told, 1);
    assert_eq!(service.asked.load(Ordering::SeqCst), 2);
}
