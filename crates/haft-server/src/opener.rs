//! The runs of MCP clients: one for each connection, every call through the executor.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use haft::bounds::Class;
use haft::executor::Executor;
use haft::future::BoxFuture;
use haft::progress::Pace;
use haft::session::Session;
use haft::skill::Skill;
use haft::toolset::Toolset;
use haft_mcp::opener::{ClientInfo, OpenError, Opener, Transport};
use sha2::{Digest, Sha256};
use tokio::sync::OnceCell;
use tokio::task::JoinSet;

use haft_app::app::App;
use haft_app::config::Settings;
use haft_app::run::{ApprovalWait, RunOptions};

/// Refused messages that are recorded; a client that sends more leaves lines in the log alone.
const REFUSALS: u64 = 10_000;

/// What clients are told once haft listens.
#[derive(Debug)]
struct Web {
    console: String,
    key: [u8; 32],
}

/// Opens runs for MCP clients, and seals them when they have ended.
#[derive(Debug)]
pub(crate) struct Runs {
    app: App,
    /// The clients whose forms may decide.
    trusted: Vec<String>,
    /// Where people decide, once that is known.
    web: OnceLock<Web>,
    refusals: AtomicU64,
    /// Runs whose record is being sealed.
    sealing: Mutex<JoinSet<()>>,
    /// The run of messages that belong to no client's run, once there was one.
    strays: Arc<OnceCell<Session>>,
}

impl Runs {
    /// Runs into this app.
    pub(crate) fn new(app: App, settings: &Settings) -> Arc<Self> {
        let trusted = settings.items("mcp.trusted_clients").into_iter();
        let trusted = trusted.filter_map(|(item, _)| item.as_str());
        Arc::new(Self {
            app,
            trusted: trusted.map(str::to_owned).collect(),
            web: OnceLock::new(),
            refusals: AtomicU64::new(0),
            sealing: Mutex::default(),
            strays: Arc::default(),
        })
    }

    /// People decide in the console at this address. What stateless clients carry is closed with a key made of the
    /// operator's token, which is the same after a restart.
    pub(crate) fn listens(&self, console: String, operator: &str) {
        let key = Sha256::new()
            .chain_update(b"haft requestState key 1\n")
            .chain_update(operator)
            .finalize();
        let web = Web {
            console,
            key: key.into(),
        };
        // Said once: a listener is bound once.
        let _ = self.web.set(web);
    }

    /// Ends all waits for people: what they asked goes on waiting, and is there when haft serves again.
    pub(crate) fn leave(&self) {
        for session in self.app.all_live() {
            session.leave();
        }
    }

    /// Ends the runs that no hang-up ended (a signal did), and waits until every run is sealed.
    pub(crate) async fn sealed(&self) {
        let all = std::mem::take(&mut *self.sealing.lock().unwrap_or_else(PoisonError::into_inner));
        // What was refused is recorded before the run that it belongs to is sealed.
        all.join_all().await;
        for session in self.app.all_live() {
            self.app.close(&session).await;
        }
    }
}

impl Opener for Runs {
    fn open(&self, client: ClientInfo) -> BoxFuture<'_, Result<(Executor, Session), OpenError>> {
        Box::pin(async move {
            let door = RunOptions {
                name: match client.transport {
                    Transport::Stdio => "mcp stdio",
                    Transport::Http => "mcp http",
                },
                client: Some(
                    format!("{} {}", client.name, client.version)
                        .trim()
                        .to_owned(),
                )
                .filter(|name| !name.is_empty()),
                principal: client.principal,
                class: client.class,
                progress: self.app.watched(),
                waits: ApprovalWait::Limit,
            };
            let prepared = self.app.prepare(door);
            let session = prepared.map_err(|e| OpenError(e.to_string()))?;
            Ok((self.app.executor().clone(), session))
        })
    }

    fn begin<'a>(&'a self, session: &'a Session) -> BoxFuture<'a, Result<(), OpenError>> {
        Box::pin(async move {
            let begun = self.app.begin(session).await;
            begun.map_err(|e| OpenError(e.to_string()))
        })
    }

    fn shows_progress(&self) -> bool {
        self.app.shows_progress()
    }

    fn pace(&self) -> Pace {
        self.app.pace()
    }

    fn asks(&self) -> bool {
        // Where nobody is asked there is no inbox that outlives a request.
        self.app.executor().inbox().is_durable()
    }

    fn console(&self) -> Option<String> {
        self.web.get().map(|web| web.console.clone())
    }

    fn trusts(&self, client: &str) -> bool {
        self.trusted.iter().any(|name| name == client)
    }

    fn state_key(&self) -> Option<[u8; 32]> {
        self.web.get().map(|web| web.key)
    }

    fn skills(&self) -> Vec<Skill> {
        let tools = self.app.skill_tools();
        // Where none of the tools is on, skills are not offered by another way either.
        if tools.registry().snapshot().entries().is_empty() {
            return Vec::new();
        }
        tools.skills()
    }

    fn closed(&self, session: &Session) {
        let (app, session) = (self.app.clone(), session.clone());
        let mut sealing = self.sealing.lock().unwrap_or_else(PoisonError::into_inner);
        while sealing.try_join_next().is_some() {}
        sealing.spawn(async move { app.close(&session).await });
    }

    fn stray(&self, transport: Transport, reason: &str) {
        let number = self.refusals.fetch_add(1, Ordering::Relaxed) + 1;
        if number > REFUSALS {
            return tracing::warn!(?transport, reason, "mcp message refused");
        }
        let (app, strays, reason) = (
            self.app.clone(),
            Arc::clone(&self.strays),
            reason.to_owned(),
        );
        let name = match transport {
            Transport::Stdio => "mcp stdio, no session",
            Transport::Http => "mcp http, no session",
        };
        let record = async move {
            let door = RunOptions {
                name,
                principal: None,
                class: Class::Client,
                client: None,
                progress: None,
                waits: ApprovalWait::Limit,
            };
            match strays.get_or_try_init(|| app.open(door)).await {
                Ok(session) => app.record_refusal(session, number, &reason),
                Err(problem) => tracing::warn!(%problem, "record a refused message"),
            }
        };
        let mut sealing = self.sealing.lock().unwrap_or_else(PoisonError::into_inner);
        while sealing.try_join_next().is_some() {}
        sealing.spawn(record);
    }

    fn refused(&self, session: &Session, reason: &str) {
        let number = self.refusals.fetch_add(1, Ordering::Relaxed) + 1;
        if number > REFUSALS {
            return tracing::warn!(run = %session.run(), reason, "mcp message refused");
        }
        self.app.record_refusal(session, number, reason);
    }
}
