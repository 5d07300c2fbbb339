//! Change notifications of servers behind haft reach the subscribed clients, in every combination of eras.

use std::sync::Arc;

use haft::future::BoxFuture;
use haft::toolset::registry::ToolRegistry;
use haft::{Policy, Profile};
use haft_mcp::client::pipe::{LONGEST, PipeWire, ServerProcess};
use haft_mcp::client::{ClientError, Wire};
use haft_mcp::upstream::{Connector, Gateway, Manifest, Upstream, UpstreamTerms, internal_tools};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream};
use tokio::sync::mpsc;

use crate::support::front::Front;
use crate::support::small_tools::SmallOpener;
use crate::support::{initialize, modern, until_async};

/// A server whose resources change when a test says so. It notes its subscriptions.
#[derive(Debug, Clone)]
struct Feed {
    modern: bool,
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    opened: usize,
    asked: Vec<String>,
    /// Messages to its client; `None` once it has closed.
    out: Option<mpsc::UnboundedSender<Value>>,
    /// The open streams of changes, with their subscriptions.
    streams: Vec<(Value, Value)>,
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

impl Connector for Feed {
    fn open(&self) -> BoxFuture<'_, Result<Arc<dyn Wire>, ClientError>> {
        let (input, theirs) = tokio::io::duplex(1 << 16);
        let (output, ours) = tokio::io::duplex(1 << 16);
        let (out, lines) = mpsc::unbounded_channel();
        {
            let mut state = self.state.lock();
            state.opened += 1;
            state.out = Some(out);
            state.streams.clear();
        }
        tokio::spawn(serve(self.clone(), theirs));
        tokio::spawn(write(lines, output));
        let wire = PipeWire::new(input, ours, Box::new(Inside), LONGEST);
        Box::pin(std::future::ready(Ok(Arc::new(wire) as Arc<dyn Wire>)))
    }
}

async fn write(mut lines: mpsc::UnboundedReceiver<Value>, mut output: DuplexStream) {
    while let Some(message) = lines.recv().await {
        let line = format!("{message}\n");
        if output.write_all(line.as_bytes()).await.is_err() {
            return;
        }
    }
}

async fn serve(feed: Feed, input: DuplexStream) {
    let mut lines = BufReader::new(input).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        let message: Value = serde_json::from_str(&line).unwrap();
        feed.hear(&message);
    }
}

const STREAM: &str = "io.modelcontextprotocol/subscriptionId";

impl Feed {
    fn new(modern: bool) -> Self {
        Self {
            modern,
            state: Arc::default(),
        }
    }

    fn say(&self, message: Value) {
        if let Some(out) = &self.state.lock().out {
            let _gone = out.send(message);
        }
    }

    fn hear(&self, message: &Value) {
        let (id, params) = (&message["id"], &message["params"]);
        let uri = params["uri"].as_str().unwrap_or_default();
        let capabilities = json!({"resources": {"subscribe": true, "listChanged": true}, "prompts": {"listChanged": true}});
        let result = match (message["method"].as_str(), self.modern) {
            (Some("initialize"), false) => {
                json!({"protocolVersion": "2025-11-25", "capabilities": capabilities, "serverInfo": {"name": "feed", "version": "1"}})
            }
            (Some("server/discover"), true) => {
                json!({"supportedVersions": ["2026-07-28"], "capabilities": capabilities})
            }
            (Some("resources/list"), _) => json!({"resources": [{"uri": "feed://a", "name": "a"}]}),
            (Some("resources/templates/list"), _) => json!({"resourceTemplates": []}),
            (Some("prompts/list"), _) => json!({"prompts": []}),
            (Some("resources/read"), _) => json!({"contents": []}),
            (Some("resources/subscribe"), false) if uri.ends_with("none") => {
                let error = json!({"code": -32002, "message": "no such resource"});
                return self.say(json!({"jsonrpc": "2.0", "id": id, "error": error}));
            }
            (Some(method @ ("resources/subscribe" | "resources/unsubscribe")), false) => {
                self.state.lock().asked.push(format!("{method} {uri}"));
                json!({})
            }
            (Some("subscriptions/listen"), true) => {
                return self.opens(id, &params["notifications"]);
            }
            (Some("notifications/cancelled"), _) => return self.closes(&params["requestId"]),
            (Some(_), _) if !id.is_null() => {
                let error = json!({"code": -32601, "message": "unknown"});
                return self.say(json!({"jsonrpc": "2.0", "id": id, "error": error}));
            }
            _ => return,
        };
        self.say(json!({"jsonrpc": "2.0", "id": id, "result": result}));
    }

    fn opens(&self, id: &Value, wanted: &Value) {
        let mut told = wanted.clone();
        let uris = told.get_mut("resourceSubscriptions");
        if let Some(uris) = uris.and_then(Value::as_array_mut) {
            uris.retain(|uri| !uri.as_str().unwrap().ends_with("none"));
            self.state
                .lock()
                .asked
                .push(format!("listen {}", json!(uris)));
        }
        let params = json!({"notifications": told, "_meta": {STREAM: id}});
        self.state.lock().streams.push((id.clone(), told));
        self.say(json!({"jsonrpc": "2.0", "method": "notifications/subscriptions/acknowledged", "params": params}));
    }

    fn closes(&self, id: &Value) {
        let mut state = self.state.lock();
        let nth = state.streams.iter().position(|(stream, _)| stream == id);
        if let Some(nth) = nth {
            let (_, told) = state.streams.remove(nth);
            let uris = &told["resourceSubscriptions"];
            state.asked.push(format!("ended {uris}"));
        }
    }

    /// Reports this change on every stream that subscribed to it, or on its only line.
    fn tells(&self, method: &str, wanted: &str, uri: Option<&str>) {
        let message = |stream: Option<&Value>| {
            let mut params = json!({});
            if let Some(uri) = uri {
                params["uri"] = uri.into();
            }
            if let Some(stream) = stream {
                params["_meta"] = json!({STREAM: stream});
            }
            json!({"jsonrpc": "2.0", "method": format!("notifications/{method}"), "params": params})
        };
        if !self.modern {
            return self.say(message(None));
        }
        let streams = self.state.lock().streams.clone();
        for (id, told) in &streams {
            let of = &told[wanted];
            let uris = of.as_array();
            let is_told = uris.is_some_and(|uris| uris.iter().any(|one| one.as_str() == uri));
            if *of == true || is_told {
                self.say(message(Some(id)));
            }
        }
    }

    fn updated(&self, uri: &str) {
        self.tells("resources/updated", "resourceSubscriptions", Some(uri));
    }

    fn follows_nothing(&self) -> bool {
        let state = self.state.lock();
        let count = |word: &str| {
            state
                .asked
                .iter()
                .filter(|asked| asked.starts_with(word))
                .count()
        };
        let is_list = |told: &Value| told.get("resourceSubscriptions").is_none();
        state.streams.iter().all(|(_, told)| is_list(told))
            && count("resources/subscribe") == count("resources/unsubscribe")
    }

    fn requests(&self) -> Vec<String> {
        self.state.lock().asked.clone()
    }
}

/// haft in front of the server as pinned; the test can pin it anew.
struct Scene {
    opener: Arc<SmallOpener>,
    server: Arc<Mutex<Arc<Upstream>>>,
    manifest: Manifest,
    feed: Feed,
}

impl Scene {
    async fn new(feed: &Feed, policy: Policy) -> Self {
        let terms = UpstreamTerms::default();
        let manifest = Upstream::look("feed".into(), feed, terms.limits).await;
        // The pinned manifest is read back from a file.
        let manifest = Manifest::parse(&manifest.unwrap().to_text()).unwrap();
        *feed.state.lock() = State::default();
        let upstream = Arc::new(Upstream::new(
            "far",
            manifest.clone(),
            Arc::new(feed.clone()),
            terms,
        ));
        let internal = ToolRegistry::new();
        internal.add_all(internal_tools(&upstream)).unwrap();
        let server = Arc::new(Mutex::new(upstream));
        let now = Arc::clone(&server);
        let gateway = Gateway::new(move || vec![Arc::clone(&*now.lock())]);
        let opener = SmallOpener::offering(policy, Arc::new(gateway), Arc::new(internal));
        Self {
            opener: Arc::new(opener),
            server,
            manifest,
            feed: feed.clone(),
        }
    }

    async fn client(&self, modern: bool) -> Client {
        let mut front = Front::to(&self.opener);
        if !modern {
            let hello = front.ask(&initialize("2025-11-25")).await;
            let resources = &hello["result"]["capabilities"]["resources"];
            assert_eq!(resources["subscribe"], true, "{hello}");
        }
        Client { front, modern }
    }
}

fn allowing() -> Policy {
    let policy = Policy::builder(Profile::Workspace);
    policy.allow("far.resources.read").build().unwrap()
}

struct Client {
    front: Front,
    modern: bool,
}

impl Client {
    /// Subscribes to a resource; returns the error's code, if any.
    async fn follows(&mut self, uri: &str) -> Option<i64> {
        if self.modern {
            let more = format!(
                r#","notifications":{{"resourceSubscriptions":["{uri}"],"resourcesListChanged":true,"promptsListChanged":true}}"#
            );
            let told = self
                .front
                .ask(&modern("7", "subscriptions/listen", &more))
                .await;
            let told = &told["params"]["notifications"]["resourceSubscriptions"];
            return (*told != json!([uri])).then_some(0);
        }
        let params = json!({"uri": uri});
        let message =
            json!({"jsonrpc": "2.0", "id": 7, "method": "resources/subscribe", "params": params});
        let answer = self.front.ask(&message.to_string()).await;
        answer["error"]["code"].as_i64()
    }

    async fn ends(&mut self, uri: &str) {
        if self.modern {
            let params = json!({"requestId": 7});
            let message =
                json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params});
            return self.front.send(&message.to_string()).await;
        }
        let params = json!({"uri": uri});
        let message =
            json!({"jsonrpc": "2.0", "id": 8, "method": "resources/unsubscribe", "params": params});
        let answer = self.front.ask(&message.to_string()).await;
        assert_eq!(answer["result"], json!({}), "{answer}");
    }

    /// Returns the method of the next notification, and the URI that it names.
    async fn hears(&mut self) -> (String, String) {
        let message = self.front.receive().await;
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        if self.modern {
            assert_eq!(message["params"]["_meta"][STREAM], 7, "{message}");
        }
        (text(&message["method"]), text(&message["params"]["uri"]))
    }

    async fn hears_of(&mut self, uri: &str) {
        let (method, told) = self.hears().await;
        assert_eq!(
            (method.as_str(), told.as_str()),
            ("notifications/resources/updated", uri)
        );
    }
}

const PAIRS: [(bool, bool); 4] = [(true, true), (true, false), (false, true), (false, false)];

#[tokio::test]
async fn a_resource_is_asked_for_once_for_all_its_clients_who_alone_hear_of_it() {
    for (server, client) in PAIRS {
        let feed = Feed::new(server);
        let scene = Scene::new(&feed, allowing()).await;
        let mut a = scene.client(client).await;
        let mut b = scene.client(client).await;
        let mut other = scene.client(client).await;
        assert_eq!(a.follows("feed://a").await, None);
        assert_eq!(b.follows("feed://a").await, None);
        // The URI that names the server is another one for the same resource.
        assert_eq!(other.follows("mcp://far/feed://b").await, None);
        let asked = feed.requests();
        let once = asked.iter().filter(|asked| {
            let begins = asked.starts_with("listen") || asked.starts_with("resources/subscribe");
            begins && asked.contains("feed://a") && !asked.contains("feed://b")
        });
        assert_eq!(once.count(), 1, "server modern {server}: {asked:?}");
        feed.updated("feed://a");
        feed.updated("feed://b");
        a.hears_of("feed://a").await;
        b.hears_of("feed://a").await;
        other.hears_of("mcp://far/feed://b").await;
        // The subscription lasts until the last client ends it.
        a.ends("feed://a").await;
        feed.updated("feed://a");
        b.hears_of("feed://a").await;
        drop(b);
        drop(other);
        until_async(|| feed.follows_nothing()).await;
        let calls = scene.opener.calls();
        assert!(
            calls.iter().all(|(tool, _)| tool == "far.resources.read"),
            "{calls:?}"
        );
        assert_eq!(calls.len(), 3, "each of them was judged: {calls:?}");
    }
}

#[tokio::test]
async fn what_broke_off_is_followed_again_and_may_have_changed_meanwhile() {
    for (server, client) in PAIRS {
        let feed = Feed::new(server);
        let scene = Scene::new(&feed, allowing()).await;
        let mut a = scene.client(client).await;
        assert_eq!(a.follows("feed://a").await, None);
        feed.state.lock().out = None;
        a.hears_of("feed://a").await;
        assert_eq!(feed.state.lock().opened, 2);
        feed.updated("feed://a");
        a.hears_of("feed://a").await;
        // A new pin means a new connection to the same server.
        let before = {
            let mut server = scene.server.lock();
            let terms = UpstreamTerms::default();
            let open = Arc::new(scene.feed.clone());
            let now = Arc::new(Upstream::new("far", scene.manifest.clone(), open, terms));
            now.succeeds(&server);
            std::mem::replace(&mut *server, now)
        };
        before.retire(std::time::Duration::ZERO).await;
        a.hears_of("feed://a").await;
        assert_eq!(feed.state.lock().opened, 3);
        feed.updated("feed://a");
        a.hears_of("feed://a").await;
    }
}

#[tokio::test]
async fn nothing_is_followed_that_is_not_there_or_that_rules_do_not_let_be_read() {
    for (server, client) in PAIRS {
        let feed = Feed::new(server);
        let scene = Scene::new(&feed, allowing()).await;
        let mut a = scene.client(client).await;
        let none = a.follows("feed://none").await;
        assert!(
            none.is_some(),
            "server modern {server}, client modern {client}"
        );
        if !server && !client {
            assert_eq!(none, Some(-32002));
        }
        let feed = Feed::new(server);
        let scene = Scene::new(&feed, Policy::workspace()).await;
        let mut a = scene.client(client).await;
        assert!(a.follows("feed://a").await.is_some());
        assert_eq!(
            feed.state.lock().opened,
            0,
            "the server was not even started"
        );
    }
}

#[tokio::test]
async fn lists_that_change_and_parts_of_a_resource_are_told_of() {
    for (server, client) in PAIRS {
        let feed = Feed::new(server);
        let scene = Scene::new(&feed, allowing()).await;
        let mut a = scene.client(client).await;
        assert_eq!(a.follows("feed://a").await, None);
        if server {
            let lists = |feed: &Feed| feed.state.lock().streams.len() == 2;
            until_async(|| lists(&feed)).await;
        }
        feed.tells("resources/list_changed", "resourcesListChanged", None);
        feed.tells("prompts/list_changed", "promptsListChanged", None);
        let mut heard = [a.hears().await.0, a.hears().await.0];
        heard.sort();
        assert_eq!(
            heard,
            [
                "notifications/prompts/list_changed",
                "notifications/resources/list_changed"
            ]
        );
        if !server {
            feed.updated("feed://a/part");
            a.hears_of("feed://a").await;
        }
    }
}
