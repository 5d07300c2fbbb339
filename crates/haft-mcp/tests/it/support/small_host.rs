//! A small host for tests and examples: a few tools over files in memory.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use haft::artifact::{ArtifactError, ArtifactInfo, ArtifactRef};
use haft::audit::BoxFuture;
use haft::call::{CallId, RunId, ToolCall};
use haft::error::ErrorKind;
use haft::result::{Artifact, Content, Failure, Outcome, Status};
use haft::spec::{ToolName, ToolSpec};
use haft_mcp::host::{ArtifactPart, ClientInfo, Host, HostFactory, OpenError, ProgressSink, Tools};
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};
use tokio::sync::watch;

/// What the text of `big` is.
pub(crate) const BIG: &str = "a large result\n";

/// Opens hosts that share one set of files.
#[derive(Debug, Clone)]
pub(crate) struct SmallFactory {
    pub(crate) read_only: bool,
    pub(crate) extra_tools: usize,
    /// The hosts opened, in order.
    pub(crate) opened: Arc<Mutex<Vec<Arc<SmallHost>>>>,
    /// What the clients said of themselves.
    pub(crate) clients: Arc<Mutex<Vec<ClientInfo>>>,
    files: Files,
}

type Files = Arc<Mutex<BTreeMap<String, String>>>;

#[derive(Debug)]
pub(crate) struct SmallHost {
    run: RunId,
    read_only: bool,
    tools: watch::Sender<Tools>,
    files: Files,
    calls: AtomicU64,
    pub(crate) running: AtomicUsize,
    pub(crate) cancelled: AtomicUsize,
    pub(crate) closed: AtomicBool,
    pub(crate) refusals: Mutex<Vec<String>>,
    /// Name and exact arguments of each call.
    pub(crate) seen: Mutex<Vec<(String, String)>>,
}

impl SmallFactory {
    pub(crate) fn new(read_only: bool) -> Self {
        let hello = [("hello.txt".to_owned(), "hello\nneedle here\n".to_owned())];
        Self {
            read_only,
            extra_tools: 0,
            opened: Arc::default(),
            clients: Arc::default(),
            files: Arc::new(Mutex::new(hello.into())),
        }
    }

    /// The host opened as the `n`th.
    pub(crate) fn host(&self, n: usize) -> Arc<SmallHost> {
        Arc::clone(&self.opened.lock().unwrap()[n])
    }
}

impl HostFactory for SmallFactory {
    fn open(&self, client: ClientInfo) -> BoxFuture<'_, Result<Arc<dyn Host>, OpenError>> {
        Box::pin(async move {
            self.clients.lock().unwrap().push(client);
            let mut opened = self.opened.lock().unwrap();
            let host = Arc::new(SmallHost {
                run: RunId::new(format!("run-{}", opened.len())),
                read_only: self.read_only,
                tools: watch::Sender::new(Tools {
                    version: 1,
                    specs: specs(self.extra_tools),
                }),
                files: Arc::clone(&self.files),
                calls: AtomicU64::new(0),
                running: AtomicUsize::new(0),
                cancelled: AtomicUsize::new(0),
                closed: AtomicBool::new(false),
                refusals: Mutex::default(),
                seen: Mutex::default(),
            });
            opened.push(Arc::clone(&host));
            Ok(host as Arc<dyn Host>)
        })
    }
}

fn spec(name: &str, description: &str, properties: Value) -> ToolSpec {
    let required: Vec<String> = properties.as_object().unwrap().keys().cloned().collect();
    let schema = json!({"type": "object", "properties": properties, "required": required});
    ToolSpec::new(ToolName::new(name).unwrap(), description, schema)
}

fn specs(extra: usize) -> Arc<[Arc<ToolSpec>]> {
    let text = json!({"type": "string"});
    let path = json!({"path": text});
    let mut echo = spec("echo", "Gives its arguments back", json!({}));
    echo.title = Some("Echo".into());
    echo.annotations.read_only_hint = Some(true);
    let mut read = spec("read_file", "Reads a file", path.clone());
    read.output_schema = Some(Arc::new(json!({
        "type": "object",
        "properties": {"path": text, "lines": {"type": "integer"}},
        "required": ["path", "lines"]
    })));
    let grep = spec("grep_files", "Searches files", json!({"pattern": text}));
    let write = spec(
        "write_file",
        "Writes a file",
        json!({"path": text, "content": text}),
    );
    let slow = spec(
        "slow",
        "Says how far it is, then ends",
        json!({"milliseconds": {"type": "integer"}}),
    );
    let big = spec("big", "Has a result kept aside", json!({}));
    let mut all = vec![echo, read, grep, write, slow, big];
    all.extend((0..extra).map(|n| spec(&format!("extra_{n:04}"), "One of many", json!({}))));
    all.into_iter().map(Arc::new).collect()
}

/// Counts a call as running until it ends, and as cancelled when it never did.
struct Running<'a>(&'a SmallHost, bool);

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.0.running.fetch_sub(1, Ordering::SeqCst);
        if !self.1 {
            self.0.cancelled.fetch_add(1, Ordering::SeqCst);
        }
    }
}

impl SmallHost {
    /// Lists one tool more.
    pub(crate) fn add_tool(&self) {
        self.tools.send_modify(|tools| {
            tools.version += 1;
            let mut specs = tools.specs.to_vec();
            specs.push(Arc::new(spec("late", "Came later", json!({}))));
            tools.specs = specs.into();
        });
    }

    fn outcome(&self, call: &ToolCall) -> Outcome {
        let number = self.calls.fetch_add(1, Ordering::SeqCst);
        Outcome {
            run: self.run.clone(),
            call: CallId::new(format!("call-{number}")),
            tool: call.name.clone(),
            origin: call.origin,
            status: Status::Ok,
            summary: String::new(),
            content: Vec::new(),
            data: None,
            artifacts: Vec::new(),
            error: None,
            calls: Vec::new(),
            strength: None,
            approval: None,
            duration: Duration::from_millis(1),
        }
    }

    fn fail(outcome: &mut Outcome, status: Status, kind: ErrorKind, texts: (String, &str)) {
        outcome.status = status;
        outcome.error = Some(Failure {
            kind,
            message: texts.0,
            advice: Some(texts.1.to_owned()),
        });
    }

    async fn perform(&self, call: &ToolCall, progress: &ProgressSink) -> Outcome {
        let arguments: Value = serde_json::from_str(&call.arguments).unwrap_or_default();
        let mut outcome = self.outcome(call);
        let text = |key: &str| arguments[key].as_str().unwrap_or_default().to_owned();
        match call.name.as_str() {
            "echo" => {
                outcome.data = RawValue::from_string(call.arguments.clone()).ok();
                outcome.content = vec![Content::text(call.arguments.clone())];
            }
            "read_file" => self.read_file(&mut outcome, &text("path")),
            "grep_files" => {
                let pattern = text("pattern");
                let files = self.files.lock().unwrap();
                let hits = files.iter().filter(|(_, text)| text.contains(&pattern));
                let hits: Vec<_> = hits.map(|(path, _)| json!({"path": path})).collect();
                outcome.data = to_raw_value(&json!({"matches": hits})).ok();
            }
            "write_file" if self.read_only => Self::fail(
                &mut outcome,
                Status::Denied,
                ErrorKind::Denied,
                (
                    "the profile read-only denies write_file".into(),
                    "serve with --profile trusted",
                ),
            ),
            "write_file" => {
                self.files
                    .lock()
                    .unwrap()
                    .insert(text("path"), text("content"));
                outcome.data = to_raw_value(&json!({"path": text("path")})).ok();
            }
            "slow" => {
                let each =
                    Duration::from_millis(arguments["milliseconds"].as_u64().unwrap_or(0) / 4);
                for step in 1..=4 {
                    tokio::time::sleep(each).await;
                    progress.send(&format!("step {step}"));
                }
                outcome.content = vec![Content::text("done")];
            }
            "big" => Self::keep_aside(&mut outcome),
            name => Self::fail(
                &mut outcome,
                Status::Error,
                ErrorKind::NotFound,
                (format!("no tool {name}"), "did you mean echo?"),
            ),
        }
        outcome
    }

    fn keep_aside(outcome: &mut Outcome) {
        let reference = ArtifactRef::of(BIG.as_bytes());
        outcome.content = vec![Content::text("kept aside")];
        outcome.artifacts = vec![Artifact {
            reference: reference.as_str().into(),
            media_type: "text/plain".into(),
            bytes: BIG.len() as u64,
            preview: String::new(),
        }];
    }

    fn read_file(&self, outcome: &mut Outcome, path: &str) {
        match self.files.lock().unwrap().get(path) {
            Some(text) => {
                let data = json!({"path": path, "lines": text.lines().count()});
                outcome.data = to_raw_value(&data).ok();
                outcome.content = vec![Content::text(text.clone())];
            }
            None => Self::fail(
                outcome,
                Status::Error,
                ErrorKind::NotFound,
                (format!("no file {path}"), "list the folder first"),
            ),
        }
    }
}

impl Host for SmallHost {
    fn run(&self) -> &RunId {
        &self.run
    }

    fn tools(&self) -> Tools {
        self.tools.borrow().clone()
    }

    fn changed(&self, seen: u64) -> BoxFuture<'_, u64> {
        let mut tools = self.tools.subscribe();
        Box::pin(async move { tools.wait_for(|t| t.version != seen).await.unwrap().version })
    }

    fn call(&self, call: ToolCall, progress: ProgressSink) -> BoxFuture<'_, Outcome> {
        Box::pin(async move {
            self.running.fetch_add(1, Ordering::SeqCst);
            let mut running = Running(self, false);
            let seen = (call.name.clone(), call.arguments.clone());
            self.seen.lock().unwrap().push(seen);
            let outcome = self.perform(&call, &progress).await;
            running.1 = true;
            outcome
        })
    }

    fn artifacts(&self) -> BoxFuture<'_, Result<Vec<ArtifactInfo>, ArtifactError>> {
        Box::pin(async { Ok(vec![self.big()]) })
    }

    fn read_artifact(
        &self,
        reference: ArtifactRef,
        range: Range<u64>,
    ) -> BoxFuture<'_, Result<ArtifactPart, ArtifactError>> {
        Box::pin(async move {
            let info = self.big();
            if reference != info.reference {
                return Err(ArtifactError::NotFound(reference.as_str().into()));
            }
            let end = usize::try_from(range.end.min(info.bytes)).unwrap();
            let bytes = Bytes::from_static(&BIG.as_bytes()[..end]);
            Ok(ArtifactPart { info, bytes })
        })
    }

    fn refused(&self, reason: &str) {
        self.refusals.lock().unwrap().push(reason.to_owned());
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        self.closed.store(true, Ordering::SeqCst);
        Box::pin(async {})
    }
}

impl SmallHost {
    fn big(&self) -> ArtifactInfo {
        ArtifactInfo {
            reference: ArtifactRef::of(BIG.as_bytes()),
            media_type: "text/plain".into(),
            bytes: BIG.len() as u64,
            run: self.run.clone(),
            created: "2026-01-01T00:00:00.000Z".into(),
        }
    }
}
