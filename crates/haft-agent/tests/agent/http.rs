//! A model behind HTTP: what is sent, when it is sent again, and how invalid answers are reported.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use haft_agent::http_model::retry::Retry;
use haft_agent::http_model::timeouts::Timeouts;
use haft_agent::{HttpModel, HttpSettings, Model, ModelError, ModelEvent, ModelRequest};
use haft_wire::request::ToolChoice;
use haft_wire::{Declarations, Dialect, Message, Reply, ReplyLimits};
use parking_lot::Mutex;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

/// The key of the tests: it must not appear anywhere.
const KEY: &str = "sk-hush-7f3a";

/// The server's reaction to a request.
#[derive(Debug, Clone)]
enum Does {
    /// Sends these bytes and closes.
    Says(String),
    /// Answers with these bytes, and accepts another request.
    Keeps(String),
    /// Closes without a response.
    Closes,
    /// Answers with these bytes, and then hangs.
    Hangs(String),
}

/// A server on the loopback that plays one reaction after another, and records the requests.
struct Server {
    url: String,
    requests: Arc<Mutex<Vec<String>>>,
}

impl Server {
    async fn start(script: Vec<Does>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/v1", listener.local_addr().unwrap());
        let requests: Arc<Mutex<Vec<String>>> = Arc::default();
        let seen = Arc::clone(&requests);
        let mut script: VecDeque<Does> = script.into();
        tokio::spawn(async move {
            let mut hung = Vec::new();
            while let Ok((mut stream, _)) = listener.accept().await {
                while let Some(request) = read(&mut stream).await {
                    seen.lock().push(request);
                    match script.pop_front() {
                        Some(Does::Says(answer)) => {
                            let _ = stream.write_all(answer.as_bytes()).await;
                            break;
                        }
                        Some(Does::Keeps(answer)) => {
                            let _ = stream.write_all(answer.as_bytes()).await;
                        }
                        Some(Does::Hangs(answer)) => {
                            let _ = stream.write_all(answer.as_bytes()).await;
                            hung.push(stream);
                            break;
                        }
                        Some(Does::Closes) | None => break,
                    }
                }
            }
        });
        Self { url, requests }
    }

    fn model(&self, change: impl FnOnce(&mut HttpSettings)) -> HttpModel {
        let mut settings = HttpSettings {
            base_url: Some(self.url.clone()),
            retry: Retry {
                attempts: 3,
                first: Duration::from_millis(2),
                longest: Duration::from_secs(1),
            },
            ..HttpSettings::default()
        };
        change(&mut settings);
        let name = "compatible:tiny".parse().unwrap();
        HttpModel::new(&name, settings, |variable| {
            (variable == "COMPATIBLE_API_KEY").then(|| KEY.to_owned())
        })
        .unwrap()
    }
}

/// Reads a request with its body; `None` if the client has closed.
async fn read(stream: &mut TcpStream) -> Option<String> {
    let mut bytes = Vec::new();
    loop {
        if let Some(head) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            let text = String::from_utf8_lossy(&bytes[..head]).to_lowercase();
            let length = text.split("content-length: ").nth(1)?;
            let length: usize = length.split("\r\n").next()?.parse().ok()?;
            if bytes.len() >= head + 4 + length {
                return String::from_utf8(bytes).ok();
            }
        }
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    }
}

fn json(status: &str, headers: &str, body: &str) -> String {
    let length = body.len();
    format!(
        "HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n{headers}\r\n{body}"
    )
}

const REPLY: &str = r#"{"id":"r","model":"tiny","choices":[{"index":0,"message":{"role":"assistant","content":"hello"},"finish_reason":"stop"}],"usage":{"prompt_tokens":3,"completion_tokens":1}}"#;

fn hello() -> String {
    json("200 OK", "", REPLY)
}

/// Returns the beginning of a stream, with its first piece of text.
fn begun() -> String {
    format!(
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n{}",
        piece("hel")
    )
}

fn piece(text: &str) -> String {
    format!(
        "data: {{\"id\":\"r\",\"choices\":[{{\"index\":0,\"delta\":{{\"content\":\"{text}\"}}}}]}}\n\n"
    )
}

fn whole() -> String {
    let end = "data: {\"id\":\"r\",\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";
    format!("{}{}{end}", begun(), piece("lo"))
}

async fn ask(model: &HttpModel) -> (Result<Reply, ModelError>, Vec<ModelEvent>) {
    let tools = Declarations::none(Dialect::OpenAiChat);
    let messages = [Message::user("say hello")];
    let request = ModelRequest {
        system: "",
        messages: &messages,
        tools: &tools,
        choice: &ToolChoice::Auto,
        parallel: true,
        max_tokens: None,
        extra: &[],
    };
    let mut events = Vec::new();
    let reply = model.reply(request, &mut |event| events.push(event)).await;
    (reply, events)
}

type Row = (Vec<Does>, Result<(), &'static str>, usize);

#[expect(clippy::too_many_lines, reason = "it is a table")]
fn rows() -> Vec<Row> {
    use Does::{Closes, Says};
    let refused = |status: &str, body: &str| Says(json(status, "", body));
    vec![
        (vec![Says(hello())], Ok(()), 1),
        (vec![Says(whole())], Ok(()), 1),
        (
            vec![refused("429 Too Many Requests", "{}"), Says(hello())],
            Ok(()),
            2,
        ),
        (
            vec![refused("529 Overloaded", "{}"), Closes, Says(whole())],
            Ok(()),
            3,
        ),
        (
            vec![refused("503 Unavailable", "busy"); 5],
            Err("status 503: busy"),
            3,
        ),
        (
            vec![Closes, Closes, Closes, Says(hello())],
            Err("cannot reach the model"),
            3,
        ),
        (
            vec![refused(
                "401 Unauthorized",
                &format!(
                    r#"{{"error":{{"message":"no such key {KEY}","code":"invalid_api_key"}}}}"#
                ),
            )],
            Err("status 401: invalid_api_key: no such key [COMPATIBLE_API_KEY]"),
            1,
        ),
        (
            vec![refused(
                "429 Too Many Requests",
                r#"{"error":{"message":"pay","code":"insufficient_quota"}}"#,
            )],
            Err("insufficient_quota: pay"),
            1,
        ),
        (
            vec![Says(json(
                "429 Too Many Requests",
                "retry-after: 3600\r\n",
                "{}",
            ))],
            Err("status 429"),
            1,
        ),
        (vec![refused("302 Found", "")], Err("status 302"), 1),
        (
            vec![Says(json("200 OK", "", "<html>"))],
            Err("is not what openai-chat sends"),
            1,
        ),
        // What was shown of the first one does not count.
        (vec![Says(begun()), Says(whole())], Ok(()), 2),
        (
            vec![Says(begun()), Says(begun()), Says(begun())],
            Err("ended in the middle of a reply"),
            3,
        ),
    ]
}

#[tokio::test]
async fn what_may_pass_is_sent_again_and_what_may_not_is_not() {
    for (script, expect, requests) in rows() {
        let server = Server::start(script.clone()).await;
        let model = server.model(|_| {});
        let (reply, events) = ask(&model).await;
        assert_eq!(server.requests.lock().len(), requests, "{script:?}");
        match (&reply, expect) {
            (Ok(reply), Ok(())) => assert_eq!(reply.turn.text(), "hello"),
            (Err(error), Err(says)) => {
                let error = error.to_string();
                assert!(error.contains(says), "{script:?}: {error}");
                assert!(!error.contains(KEY), "{error}");
            }
            _ => panic!("{script:?}: {reply:?}"),
        }
        let retries = events
            .iter()
            .filter(|event| matches!(event, ModelEvent::Retry { .. }));
        assert_eq!(retries.count(), requests - 1);
        for (event, next) in events.iter().zip(&events[1.min(events.len())..]) {
            if let ModelEvent::Retry { discards, .. } = next {
                assert_eq!(
                    *discards,
                    matches!(event, ModelEvent::Delta(_)),
                    "{script:?}"
                );
            }
        }
        assert!(!format!("{model:?} {reply:?} {events:?}").contains(KEY));
    }
}

#[tokio::test]
async fn a_request_holds_the_key_in_its_header_and_goes_where_the_base_url_says() {
    let server = Server::start(vec![Does::Keeps(hello()), Does::Says(hello())]).await;
    let model = server.model(|settings| {
        settings.headers = vec![("x-team".to_owned(), "blue".to_owned())];
        settings.stream = false;
    });
    for _ in 0..2 {
        assert_eq!(ask(&model).await.0.unwrap().turn.text(), "hello");
    }
    let requests = server.requests.lock().clone();
    assert_eq!(requests.len(), 2);
    for request in requests {
        assert!(
            request.starts_with("POST /v1/chat/completions HTTP/1.1\r\n"),
            "{request}"
        );
        assert!(
            request.contains(&format!("authorization: Bearer {KEY}\r\n")),
            "{request}"
        );
        assert!(request.contains("x-team: blue\r\n"), "{request}");
        assert!(request.contains(r#""model":"tiny""#), "{request}");
    }
}

#[tokio::test]
async fn each_wait_has_its_limit_and_an_answer_its_bound() {
    let short = Duration::from_millis(50);
    let long = Duration::from_secs(60);
    let all = Timeouts {
        connect: long,
        first_byte: long,
        next_byte: long,
        whole: long,
        ..Timeouts::default()
    };
    let rows = [
        (
            Does::Hangs(String::new()),
            Timeouts {
                first_byte: short,
                ..all
            },
            "the first byte of the answer did not come",
            1,
        ),
        (
            Does::Hangs(begun()),
            Timeouts {
                next_byte: short,
                ..all
            },
            "the next byte of the answer did not come",
            3,
        ),
        (
            Does::Hangs(begun()),
            Timeouts {
                whole: short,
                ..all
            },
            "the whole answer did not come",
            1,
        ),
    ];
    for (does, timeouts, says, requests) in rows {
        let server = Server::start(vec![does; requests]).await;
        let model = server.model(|settings| settings.timeouts = timeouts);
        let error = ask(&model).await.0.unwrap_err().to_string();
        assert!(error.contains(says), "{error}");
        assert_eq!(server.requests.lock().len(), requests);
    }
    for answer in [hello(), whole()] {
        let server = Server::start(vec![Does::Says(answer)]).await;
        let model = server.model(|settings| {
            settings.limits = ReplyLimits {
                reply: 100,
                ..ReplyLimits::default()
            };
        });
        let error = ask(&model).await.0.unwrap_err();
        assert!(
            error.to_string().contains("over the limit of 100 bytes"),
            "{error}"
        );
    }
}

#[test]
fn what_cannot_be_asked_says_what_to_set() {
    let none = |_: &str| None;
    let key = |_: &str| Some(KEY.to_owned());
    let at = |url: &str| HttpSettings {
        base_url: Some(url.to_owned()),
        ..HttpSettings::default()
    };
    for (name, settings, says) in [
        (
            "openai:gpt-5",
            HttpSettings::default(),
            "no key for openai: set OPENAI_API_KEY",
        ),
        (
            "gemini:flash",
            HttpSettings::default(),
            "set GEMINI_API_KEY or GOOGLE_API_KEY",
        ),
        ("compatible:x", HttpSettings::default(), "needs a base URL"),
        (
            "compatible:x",
            at("nonsense"),
            "the base URL \"nonsense\" is not a URL",
        ),
    ] {
        let error = HttpModel::new(&name.parse().unwrap(), settings, none).unwrap_err();
        assert!(error.to_string().contains(says), "{name}: {error}");
    }
    let plain = at("http://models.example");
    let error = HttpModel::new(&"openai:gpt-5".parse().unwrap(), plain.clone(), key).unwrap_err();
    assert!(error.to_string().contains("unencrypted"), "{error}");
    // Without a key there is nothing to leak.
    assert!(HttpModel::new(&"compatible:x".parse().unwrap(), plain, none).is_ok());
    assert!(
        HttpModel::new(
            &"ollama:qwen3:8b".parse().unwrap(),
            HttpSettings::default(),
            none
        )
        .is_ok()
    );
    let odd = |_: &str| Some("two\nlines".to_owned());
    let error = HttpModel::new(
        &"openai:gpt-5".parse().unwrap(),
        HttpSettings::default(),
        odd,
    )
    .unwrap_err();
    assert!(
        error.to_string().contains("OPENAI_API_KEY is not a key"),
        "{error}"
    );
}

#[tokio::test]
async fn what_a_reply_cost_that_broke_off_is_counted_and_what_none_can_cost_is_refused() {
    use crate::support::{Log, agent_of};

    let usage = |tokens: u64| {
        format!(
            "data: {{\"id\":\"r\",\"choices\":[],\"usage\":{{\"prompt_tokens\":{tokens},\"completion_tokens\":2}}}}\n\n"
        )
    };
    let most = 1_000_000_000;
    for (answer, counted) in [
        (format!("{}{}", begun(), usage(7)), 9),
        (format!("{}{}data: {{\n\n", begun(), usage(7)), 9),
        (format!("{}{}", begun(), usage(most)), most + 2),
        (format!("{}{}", begun(), usage(most + 1)), 0),
        (begun(), 0),
        (
            whole().replace("data: [DONE]", &format!("{}data: [DONE]", usage(u64::MAX))),
            0,
        ),
    ] {
        let server = Server::start(vec![Does::Says(answer.clone())]).await;
        let mut agent = agent_of(server.model(|_| {}), &Log::default());
        let kept = Arc::new(haft_agent::conversation::MemoryConversation::new());
        agent = agent.keep_in(kept.clone()).await.unwrap();
        agent.run("go").await.unwrap_err();
        let again = agent_of(server.model(|_| {}), &Log::default());
        for agent in [agent, again.keep_in(kept).await.unwrap()] {
            assert_eq!(agent.spent().tokens(), counted, "{answer}");
        }
    }
}

#[tokio::test]
async fn a_refusal_that_does_not_end_is_not_waited_for_and_what_came_of_it_is_repeated() {
    let head = |length: usize| {
        format!(
            "HTTP/1.1 400 Bad Request\r\ncontent-type: text/plain\r\ncontent-length: {length}\r\n\r\n"
        )
    };
    let long = "x".repeat(70 << 10);
    for (body, says) in [
        ("no such", "status 400: no such"),
        ("", "status 400: it says no more"),
        (long.as_str(), "status 400: xxx"),
    ] {
        let answer = format!("{}{body}", head(1 << 20));
        let server = Server::start(vec![Does::Hangs(answer)]).await;
        // The other timeouts are longer than the test would run.
        let model = server.model(|settings| {
            settings.timeouts.refusal = Duration::from_millis(300);
        });
        let error = ask(&model).await.0.unwrap_err().to_string();
        assert!(error.contains(says), "{error}");
    }
}
