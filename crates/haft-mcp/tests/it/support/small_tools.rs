//! A few tools over files in memory, behind a real executor, for tests and examples.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use haft::approval::inbox::{RequestFilter, StoredApproval};
use haft::approval::listing;
use haft::arguments::Arguments;
use haft::artifact::memory::MemoryArtifacts;
use haft::audit::{AuditEvent, EventKind};
use haft::context::CallContext;
use haft::error::HostFailure;
use haft::future::BoxFuture;
use haft::permission::{PathClaim, Permission};
use haft::skill::Skill;
use haft::skill::set::{self, SkillRoot, SkillSet};
use haft::testing::{MemoryAudit, TestTool};
use haft::tool::{Depth, Intent, PreparedCall};
use haft::toolset::Toolset;
use haft::toolset::registry::ToolRegistry;
use haft::workspace::Workspace;
use haft::{
    Content, Executor, Policy, Risk, RunId, RunLimits, Session, Tool, ToolError, ToolName,
    ToolResult, ToolSpec,
};
use haft_mcp::offer::Offer;
use haft_mcp::opener::{ClientInfo, OpenError, RunFactory, Transport};
use parking_lot::Mutex;
use serde_json::value::RawValue;
use serde_json::{Value, json};

/// A line of the result of `big`, which has so many lines that it becomes an artifact.
pub(crate) const BIG: &str = "a large result\n";

/// Opens runs `run-0`, `run-1`, … that share one set of tools and files.
#[derive(Debug)]
pub(crate) struct SmallOpener {
    pub(crate) executor: Executor,
    registry: Arc<ToolRegistry>,
    opened: Mutex<usize>,
    /// The events, if they are recorded.
    pub(crate) audit: Arc<MemoryAudit>,
    /// What the clients said about themselves.
    pub(crate) clients: Mutex<Vec<ClientInfo>>,
    pub(crate) refusals: Mutex<Vec<String>>,
    /// The sessions that were opened.
    pub(crate) sessions: Mutex<Vec<Session>>,
    /// The runs of those that were started.
    pub(crate) started: Mutex<Vec<RunId>>,
    /// The call budget of the runs opened from now on.
    pub(crate) max_calls: Mutex<u64>,
    /// The console's URL, if a test has one.
    pub(crate) console: Option<String>,
    /// The client whose forms may decide.
    pub(crate) trusted: Option<String>,
    /// The skills, if a test has some.
    pub(crate) skills: Mutex<Option<Arc<SkillSet>>>,
    /// The offer beside tools, if a test has one.
    pub(crate) offered: Option<Arc<dyn Offer>>,
}

type Files = Arc<Mutex<BTreeMap<String, String>>>;

impl SmallOpener {
    /// Creates an opener under this policy; recording is for tests, which are short.
    pub(crate) fn new(policy: Policy, records: bool) -> Self {
        let audit = Arc::new(MemoryAudit::new());
        let mut executor = Executor::new(policy).with_artifacts(Arc::new(MemoryArtifacts::new()));
        if records {
            executor = executor.with_audit(Arc::clone(&audit) as _);
        }
        let registry = ToolRegistry::new();
        registry.add_all(tools()).unwrap();
        Self {
            executor,
            registry: Arc::new(registry),
            opened: Mutex::default(),
            audit,
            clients: Mutex::default(),
            refusals: Mutex::default(),
            sessions: Mutex::default(),
            started: Mutex::default(),
            max_calls: Mutex::new(u64::MAX),
            skills: Mutex::default(),
            offered: None,
            console: None,
            trusted: None,
        }
    }

    /// Creates an opener with a console for approvals, which trusts the forms of a client named `trusty`.
    pub(crate) fn asking() -> Self {
        let opener = Self {
            console: Some("http://127.0.0.1:7420".into()),
            trusted: Some("trusty".into()),
            ..Self::new(Policy::workspace(), true)
        };
        opener.registry.add_all([destroy(), question()]).unwrap();
        opener
    }

    /// Creates an opener that offers this beside tools, through these internal tools.
    pub(crate) fn offering(
        policy: Policy,
        offered: Arc<dyn Offer>,
        internal: Arc<dyn Toolset>,
    ) -> Self {
        let small = Self::new(policy, true);
        Self {
            executor: small.executor.clone().with_internal_tools(internal),
            offered: Some(offered),
            ..small
        }
    }

    /// Returns the same tools and inbox behind a restarted server, whose runs are new.
    pub(crate) fn restarted(&self) -> Self {
        Self {
            executor: self.executor.clone(),
            registry: Arc::clone(&self.registry),
            opened: Mutex::new(100),
            audit: Arc::clone(&self.audit),
            ..Self::asking()
        }
    }

    /// Returns the only request of the inbox, with its status.
    pub(crate) async fn request(&self) -> StoredApproval {
        let mut all = self.requests().await;
        assert_eq!(all.len(), 1, "{all:?}");
        all.remove(0)
    }

    /// Returns all requests of the inbox.
    pub(crate) async fn requests(&self) -> Vec<StoredApproval> {
        let filter = RequestFilter {
            tenant: "local".into(),
            limit: 100,
            ..RequestFilter::default()
        };
        let mut found = Vec::new();
        let inbox = &**self.executor.inbox();
        let listed = listing::each(inbox, filter, |entry| found.push(entry)).await;
        listed.unwrap();
        found
    }

    /// Adds one tool to the list.
    pub(crate) fn add_tool(&self, name: &str) {
        let tool = TestTool::of(TestTool::echo(name)).arc();
        self.registry.add_all([tool]).unwrap();
    }

    /// Adds these tools to the list.
    pub(crate) fn add_tools(&self, tools: impl IntoIterator<Item = Arc<dyn Tool>>) {
        self.registry.add_all(tools).unwrap();
    }

    /// Adds this tool to the list.
    pub(crate) fn add(&self, tool: TestTool) {
        self.registry.add_all([tool.arc()]).unwrap();
    }

    /// Offers the skills below this folder, and a tool that loads them like the standard one.
    pub(crate) fn offer_skills(&self, folder: &Path) {
        let set = SkillSet::new(vec![SkillRoot::user(folder)], set::SkillFilter::default());
        *self.skills.lock() = Some(Arc::new(set));
        let invoke = TestTool::with_body(TestTool::echo("invoke_skill"), |value, _| {
            Box::pin(async move {
                if value["skill"] == "broken" {
                    return Err(ToolError::denied("not this one").with_advice("take another"));
                }
                Ok(ToolResult::text(format!(
                    "do {} on {}",
                    value["skill"], value["arguments"]
                )))
            })
        });
        self.registry.add_all([invoke.arc()]).unwrap();
    }

    /// Returns the number of events with this word (see [`MemoryAudit::words`]).
    pub(crate) fn count(&self, word: &str) -> usize {
        self.audit.words().iter().filter(|w| *w == word).count()
    }

    /// Returns tool and exact arguments of every call that ended.
    pub(crate) fn calls(&self) -> Vec<(String, String)> {
        let call = |event: AuditEvent| match event.what {
            EventKind::CallEnded(call, _) => Some((call.tool.clone(), call.arguments.to_string())),
            _ => None,
        };
        self.audit.events().into_iter().filter_map(call).collect()
    }
}

impl RunFactory for SmallOpener {
    fn open(&self, client: ClientInfo) -> BoxFuture<'_, Result<(Executor, Session), OpenError>> {
        Box::pin(async move {
            let mut opened = self.opened.lock();
            let view = Arc::clone(&self.registry) as Arc<dyn Toolset>;
            let limits = RunLimits {
                max_calls: *self.max_calls.lock(),
                call_timeout: Duration::from_hours(2),
                total_timeout: Duration::from_hours(10_000),
                ..RunLimits::default()
            };
            let mut session = Session::builder(view)
                .with_run(RunId::new(format!("run-{opened}")))
                .with_entry_point("mcp")
                .with_limits(limits);
            if let Some(principal) = client.principal.clone() {
                session = session.with_principal(principal);
            }
            *opened += 1;
            self.clients.lock().push(client);
            let session = session.build().map_err(|e| OpenError(HostFailure::of(e)))?;
            self.sessions.lock().push(session.clone());
            Ok((self.executor.clone(), session))
        })
    }

    fn start<'a>(&'a self, session: &'a Session) -> BoxFuture<'a, Result<(), OpenError>> {
        Box::pin(async move {
            let recorded = self.executor.open(session);
            recorded.map_err(|e| OpenError(HostFailure::of(e)))?;
            self.started.lock().push(session.run().clone());
            Ok(())
        })
    }

    fn release(&self, session: &Session) {
        if !self.started.lock().contains(session.run()) {
            return session.cancel();
        }
        // A run with pending requests stays open if they outlive it.
        if !(session.has_asked() && self.executor.inbox().is_durable()) {
            self.executor.close(session).unwrap();
        }
    }

    fn asks(&self) -> bool {
        self.console.is_some()
    }

    fn console(&self) -> Option<String> {
        self.console.clone()
    }

    fn trusts(&self, client: &str) -> bool {
        self.trusted.as_deref() == Some(client)
    }

    fn state_key(&self) -> Option<[u8; 32]> {
        Some([7; 32])
    }

    fn offer(&self) -> Option<Arc<dyn Offer>> {
        self.offered.clone()
    }

    fn skills(&self) -> Vec<Skill> {
        let set = self.skills.lock().clone();
        set.map_or_else(Vec::new, |set| set.current().skills().to_vec())
    }

    fn stray(&self, _: Transport, reason: &str) {
        self.refusals.lock().push(reason.to_owned());
    }

    fn refused(&self, _: &Session, reason: &str) {
        self.refusals.lock().push(reason.to_owned());
    }
}

fn spec(name: &str, description: &str, properties: Value) -> ToolSpec {
    let required: Vec<String> = properties.as_object().unwrap().keys().cloned().collect();
    let schema = json!({"type": "object", "properties": properties, "required": required});
    let mut spec = ToolSpec::new(ToolName::new(name).unwrap(), description, schema);
    spec.concurrency_safe = true;
    spec
}

fn tools() -> Vec<Arc<dyn Tool>> {
    let hello = [("hello.txt".to_owned(), "hello\nneedle here\n".to_owned())];
    let files: Files = Arc::new(Mutex::new(hello.into()));
    vec![
        Arc::new(Echo::new()),
        read_file(Arc::clone(&files)),
        grep_files(Arc::clone(&files)),
        write_file(files),
        slow(),
        big(),
    ]
}

/// Returns its arguments, byte for byte.
struct Echo(Arc<ToolSpec>);

impl Echo {
    fn new() -> Self {
        let mut spec = spec("echo", "Gives its arguments back", json!({}));
        spec.title = Some("Echo".into());
        spec.annotations.read_only_hint = Some(true);
        Self(Arc::new(spec))
    }
}

impl Tool for Echo {
    fn spec(&self) -> &Arc<ToolSpec> {
        &self.0
    }

    fn workspace(&self) -> Option<&Workspace> {
        None
    }

    fn prepare(self: Arc<Self>, arguments: &Arguments) -> Result<Box<dyn PreparedCall>, ToolError> {
        Ok(Box::new(EchoCall(arguments.clone())))
    }
}

struct EchoCall(Arguments);

impl PreparedCall for EchoCall {
    fn intent(&self, _: Depth) -> Result<Intent, ToolError> {
        Ok(Intent::call_only())
    }

    fn run(self: Box<Self>, _: &CallContext) -> BoxFuture<'_, Result<ToolResult, ToolError>> {
        let mut result = ToolResult::text(self.0.as_str());
        result.data = RawValue::from_string(self.0.as_str().to_owned()).ok();
        Box::pin(async move { Ok(result) })
    }
}

fn text(arguments: &Value, key: &str) -> String {
    arguments[key].as_str().unwrap_or_default().to_owned()
}

fn read_file(files: Files) -> Arc<dyn Tool> {
    let string = json!({"type": "string"});
    let mut spec = spec("read_file", "Reads a file", json!({"path": string}));
    spec.output_schema = Some(Arc::new(json!({
        "type": "object",
        "properties": {"path": string, "lines": {"type": "integer"}},
        "required": ["path", "lines"]
    })));
    TestTool::with_body(spec, move |arguments, _| {
        let path = text(&arguments, "path");
        let found = files.lock().get(&path).cloned();
        Box::pin(async move {
            let missing = || ToolError::not_found(format!("no file {path}"));
            let found = found.ok_or_else(|| missing().with_advice("list the folder first"))?;
            let lines = found.lines().count();
            ToolResult::text(found).with_data(&json!({"path": path, "lines": lines}))
        })
    })
    .arc()
}

fn grep_files(files: Files) -> Arc<dyn Tool> {
    let spec = spec(
        "grep_files",
        "Searches files",
        json!({"pattern": {"type": "string"}}),
    );
    TestTool::with_body(spec, move |arguments, _| {
        let pattern = text(&arguments, "pattern");
        let files = files.lock();
        let hits = files.iter().filter(|(_, text)| text.contains(&pattern));
        let hits: Vec<_> = hits.map(|(path, _)| json!({"path": path})).collect();
        Box::pin(async move { ToolResult::data(&json!({"matches": hits})) })
    })
    .arc()
}

fn write_file(files: Files) -> Arc<dyn Tool> {
    let string = json!({"type": "string"});
    let spec = spec(
        "write_file",
        "Writes a file",
        json!({"path": string, "content": string}),
    );
    let write = TestTool::with_body(spec, move |arguments, _| {
        let (path, content) = (text(&arguments, "path"), text(&arguments, "content"));
        files.lock().insert(path.clone(), content);
        Box::pin(async move { ToolResult::data(&json!({"path": path})) })
    });
    let somewhere = Permission::write(PathClaim::plain("somewhere.txt"));
    write.wanting(vec![somewhere]).arc()
}

fn slow() -> Arc<dyn Tool> {
    let properties = json!({"milliseconds": {"type": "integer"}});
    let spec = spec("slow", "Says how far it is, then ends", properties);
    TestTool::with_body(spec, |arguments, context| {
        let each = Duration::from_millis(arguments["milliseconds"].as_u64().unwrap_or(0) / 4);
        Box::pin(async move {
            for step in 1..=4 {
                // slow on purpose: as long as the call says.
                tokio::time::sleep(each).await;
                context.progress().info(format!("step {step}"));
            }
            Ok(ToolResult::text("done"))
        })
    })
    .arc()
}

fn destroy() -> Arc<dyn Tool> {
    let spec = spec("destroy", "Is critical", json!({}));
    let everything = Permission::write(PathClaim::plain("everything")).at(Risk::Critical);
    TestTool::of(spec).wanting(vec![everything]).arc()
}

fn question() -> Arc<dyn Tool> {
    let spec = spec("question", "Asks the person", json!({}));
    Arc::new(Question(Arc::new(spec)))
}

/// Asks for a colour and a number.
struct Question(Arc<ToolSpec>);

impl Tool for Question {
    fn spec(&self) -> &Arc<ToolSpec> {
        &self.0
    }

    fn workspace(&self) -> Option<&Workspace> {
        None
    }

    fn prepare(self: Arc<Self>, arguments: &Arguments) -> Result<Box<dyn PreparedCall>, ToolError> {
        Ok(Box::new(QuestionCall(arguments.clone())))
    }
}

struct QuestionCall(Arguments);

impl PreparedCall for QuestionCall {
    fn intent(&self, _: Depth) -> Result<Intent, ToolError> {
        Ok(Intent::call_only())
    }

    fn run(self: Box<Self>, context: &CallContext) -> BoxFuture<'_, Result<ToolResult, ToolError>> {
        let form = json!({"title": "About the paint", "questions": [
            {"id": "colour", "type": "single", "text": "Which?", "options": ["red", "blue"]},
            {"id": "coats", "type": "number", "text": "How many?"}
        ]});
        Box::pin(async move {
            let form = serde_json::from_value(form).unwrap();
            let answers = context.ask(&self.0, form, Duration::from_mins(5)).await?;
            ToolResult::data(&answers)
        })
    }
}

fn big() -> Arc<dyn Tool> {
    let spec = spec("big", "Has a result kept aside", json!({}));
    TestTool::with_body(spec, |_, _| {
        let content = vec![Content::text(BIG.repeat(20_000))];
        Box::pin(async move {
            Ok(ToolResult {
                content,
                ..ToolResult::default()
            })
        })
    })
    .arc()
}
