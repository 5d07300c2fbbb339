//! `ClientRuns`: the runs of MCP clients: one per connection, with every call through the executor.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use haft::bounds::CallerClass;
use haft::call::RunId;
use haft::error::HostFailure;
use haft::executor::Executor;
use haft::future::BoxFuture;
use haft::progress::Pace;
use haft::session::Session;
use haft::skill::Skill;
use haft::toolset::Toolset;
use haft_mcp::offer::Offer;
use haft_mcp::opener::{ClientInfo, OpenError, RunFactory, Transport, ViewName};
use haft_mcp::upstream::Gateway;
use parking_lot::Mutex;
use sha2::{Digest, Sha256};
use tokio::runtime::Handle;
use tokio::sync::OnceCell;
use tokio::task::JoinSet;

use crate::attach::Attach;
use haft_app::app::App;
use haft_app::config::Settings;
use haft_app::run::{RunHandle, RunOptions};

/// Maximum number of refused messages that are recorded; further ones are only logged.
const MAX_REFUSALS: u64 = 10_000;

/// What clients learn once haft listens.
#[derive(Debug)]
struct ListenInfo {
    console: String,
    key: [u8; 32],
}

/// Holds the run of each MCP client from its first call until the client disconnects.
#[derive(Debug)]
pub(crate) struct ClientRuns {
    app: App,
    /// What the servers behind haft offer besides tools.
    gateway: Arc<Gateway>,
    /// The clients whose forms may decide requests.
    trusted: Vec<String>,
    /// The console where users decide, once it is known.
    web: OnceLock<ListenInfo>,
    /// Finds that console on demand, for a server that opens no port.
    attach: OnceLock<Attach>,
    refusals: AtomicU64,
    /// The runs of connected clients.
    held: Mutex<HashMap<RunId, Arc<RunHandle>>>,
    /// Refused messages that are being recorded.
    recording: Mutex<JoinSet<()>>,
    /// Runs of disconnected clients that are being suspended or finished.
    releasing: Mutex<JoinSet<()>>,
    /// The run for messages that belong to no client's run, started on demand.
    strays: Mutex<Arc<OnceCell<RunHandle>>>,
}

impl ClientRuns {
    /// Creates it without connected clients.
    pub(crate) fn new(app: App, settings: &Settings) -> Arc<Self> {
        let trusted = settings.items("mcp.trusted_clients").into_iter();
        let trusted = trusted.filter_map(|(item, _)| item.as_str());
        Self::of(app, trusted.map(str::to_owned).collect())
    }

    /// Creates a separate one for other clients of the same application.
    pub(crate) fn for_other_clients(&self) -> Arc<Self> {
        Self::of(self.app.clone(), self.trusted.clone())
    }

    fn of(app: App, trusted: Vec<String>) -> Arc<Self> {
        let of = app.clone();
        let gateway = Arc::new(Gateway::new(move || of.servers().upstreams()));
        Arc::new(Self {
            app,
            gateway,
            trusted,
            web: OnceLock::new(),
            attach: OnceLock::new(),
            refusals: AtomicU64::new(0),
            held: Mutex::default(),
            recording: Mutex::default(),
            releasing: Mutex::default(),
            strays: Mutex::default(),
        })
    }

    /// Sets the console's address, where users decide. The state that stateless clients carry is sealed with a key derived from
    /// the operator's token, which stays the same after a restart.
    pub(crate) fn listens(&self, console: String, operator: &str) {
        let key = Sha256::new()
            .chain_update(b"haft requestState key 1\n")
            .chain_update(operator)
            .finalize();
        let web = ListenInfo {
            console,
            key: key.into(),
        };
        // Set once: a listener is bound once.
        let _ = self.web.set(web);
    }

    /// Sets the finder of the console, where users decide.
    pub(crate) fn set_console_finder(&self, attach: Attach) {
        // Set once: a server starts once.
        let _ = self.attach.set(attach);
    }

    /// Suspends or finishes every run of the application, including those not ended by a disconnect (but by a signal), and waits
    /// for all of them.
    pub(crate) async fn release_all(&self) {
        self.release_held().await;
        self.app.runs().release_all().await;
    }

    /// Suspends or finishes the runs of these clients only, and waits for all of them.
    pub(crate) async fn release_held(&self) {
        let recording = std::mem::take(&mut *self.recording.lock());
        // Refused messages are recorded before the run that they belong to is finished.
        recording.join_all().await;
        let held = std::mem::take(&mut *self.held.lock());
        let strays = std::mem::take(&mut *self.strays.lock());
        {
            let mut releasing = self.releasing.lock();
            // A run that is still being started is released by the task that starts it.
            for run in held.into_values().filter_map(Arc::into_inner) {
                releasing.spawn(run.release());
            }
            if let Some(run) = Arc::into_inner(strays).and_then(OnceCell::into_inner) {
                releasing.spawn(run.release());
            }
        }
        let releasing = std::mem::take(&mut *self.releasing.lock());
        releasing.join_all().await;
    }

    /// Returns a client's label in lists and requests: the name that it gives itself, after who it is if not this server's user.
    fn label(&self, client: &ClientInfo) -> String {
        let name = format!("{} {}", client.name, client.version);
        let name = name.trim();
        let person = client.principal.as_ref();
        match person.filter(|person| *person != self.app.principal()) {
            None => name.to_owned(),
            Some(person) if name.is_empty() => person.subject.to_string(),
            Some(person) => format!("{} ({name})", person.subject),
        }
    }

    fn handle(&self, session: &Session) -> Option<Arc<RunHandle>> {
        self.held.lock().get(session.run()).cloned()
    }
}

/// Returns the error for a view that is not in the settings: its tools are unknown, so it gets none.
fn unknown_view(view: Option<&str>) -> String {
    let view = view.unwrap_or_default();
    format!("the view `{view}` of this caller is not in the settings")
}

impl RunFactory for ClientRuns {
    fn open(&self, client: ClientInfo) -> BoxFuture<'_, Result<(Executor, Session), OpenError>> {
        Box::pin(async move {
            let name = self.label(&client);
            let view = client.view.as_ref().map(|ViewName(name)| &**name);
            let served = self.app.served(view);
            let served = served.ok_or_else(|| OpenError(unknown_view(view).into()))?;
            let (narrow, served) = match view {
                Some(_) => (Some(served), None),
                None => (None, Some(served)),
            };
            let options = RunOptions {
                tools: narrow,
                served,
                principal: client.principal,
                class: client.class,
                client: (!name.is_empty()).then_some(name),
                progress: self.app.watched(),
                ..RunOptions::new(match client.transport {
                    Transport::Stdio => "mcp stdio",
                    Transport::Http => "mcp http",
                })
            };
            let prepared = self.app.runs().prepare(options);
            let run = prepared.map_err(|e| OpenError(HostFailure::of(e)))?;
            let session = run.session().clone();
            self.held
                .lock()
                .insert(session.run().clone(), Arc::new(run));
            Ok((self.app.executor().clone(), session))
        })
    }

    fn start<'a>(&'a self, session: &'a Session) -> BoxFuture<'a, Result<(), OpenError>> {
        Box::pin(async move {
            let Some(run) = self.handle(session) else {
                return Err(OpenError("the run is over".into()));
            };
            run.start().await.map_err(|e| OpenError(HostFailure::of(e)))
        })
    }

    fn shows_progress(&self) -> bool {
        self.app.shows_progress()
    }

    fn pace(&self) -> Pace {
        self.app.pace()
    }

    fn asks(&self) -> bool {
        // Without approvals there is no inbox that outlives a request.
        self.app.executor().inbox().is_durable()
    }

    fn console(&self) -> Option<String> {
        self.web.get().map(|web| web.console.clone())
    }

    fn reach_console(&self) -> BoxFuture<'_, Option<String>> {
        Box::pin(async move {
            match (self.console(), self.attach.get()) {
                (None, Some(attach)) => attach.console().await,
                (console, _) => console,
            }
        })
    }

    fn trusts(&self, client: &str) -> bool {
        self.trusted.iter().any(|name| name == client)
    }

    fn state_key(&self) -> Option<[u8; 32]> {
        self.web.get().map(|web| web.key)
    }

    fn skills(&self) -> Vec<Skill> {
        let tools = self.app.skill_tools();
        // If none of the skill tools is enabled, skills are not offered in another way either.
        if tools.registry().snapshot().entries().is_empty() {
            return Vec::new();
        }
        tools.skills()
    }

    fn offer(&self) -> Option<Arc<dyn Offer>> {
        Some(Arc::clone(&self.gateway) as _)
    }

    fn release(&self, session: &Session) {
        let run = self.held.lock().remove(session.run());
        // A run that is still being started is released when its task drops it.
        let Some(run) = run.and_then(Arc::into_inner) else {
            return;
        };
        // The run is suspended or finished in the background.
        let Ok(runtime) = Handle::try_current() else {
            return drop(run);
        };
        let mut releasing = self.releasing.lock();
        while releasing.try_join_next().is_some() {}
        releasing.spawn_on(run.release(), &runtime);
    }

    fn stray(&self, transport: Transport, reason: &str) {
        let number = self.refusals.fetch_add(1, Ordering::Relaxed) + 1;
        if number > MAX_REFUSALS {
            return tracing::warn!(?transport, reason, "mcp message refused");
        }
        let (app, strays, reason) = (
            self.app.clone(),
            Arc::clone(&self.strays.lock()),
            reason.to_owned(),
        );
        let name = match transport {
            Transport::Stdio => "mcp stdio, no session",
            Transport::Http => "mcp http, no session",
        };
        let record = async move {
            let options = RunOptions {
                class: CallerClass::Client,
                ..RunOptions::new(name)
            };
            match strays.get_or_try_init(|| app.runs().start(options)).await {
                Ok(run) => app.record_refusal(run.session(), number, &reason),
                Err(problem) => tracing::warn!(%problem, "record a refused message"),
            }
        };
        let mut recording = self.recording.lock();
        while recording.try_join_next().is_some() {}
        recording.spawn(record);
    }

    fn refused(&self, session: &Session, reason: &str) {
        let number = self.refusals.fetch_add(1, Ordering::Relaxed) + 1;
        if number > MAX_REFUSALS {
            return tracing::warn!(run = %session.run(), reason, "mcp message refused");
        }
        self.app.record_refusal(session, number, reason);
    }
}
