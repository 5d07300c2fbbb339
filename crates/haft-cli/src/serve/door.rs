//! The MCP door: one governed run for each connection, every call through the executor.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use haft::audit::BoxFuture;
use haft::executor::Executor;
use haft::session::Session;
use haft::skill::Skill;
use haft::toolset::Toolset;
use haft_mcp::opener::{ClientInfo, OpenError, Opener, Transport};
use tokio::sync::OnceCell;
use tokio::task::JoinSet;

use crate::assemble::{Door, House, Waits};

/// Opens runs for MCP clients, and seals them when they have ended.
#[derive(Debug)]
pub(crate) struct Doors {
    house: House,
    refusals: AtomicU64,
    /// Runs whose record is being sealed.
    sealing: Mutex<JoinSet<()>>,
    /// The run of messages that belong to no client's run, once there was one.
    strays: Arc<OnceCell<Session>>,
}

impl Doors {
    /// Doors into this house.
    pub(crate) fn new(house: House) -> Arc<Self> {
        Arc::new(Self {
            house,
            refusals: AtomicU64::new(0),
            sealing: Mutex::default(),
            strays: Arc::default(),
        })
    }

    /// Ends all waits for people: what they asked goes on waiting, and is there when haft serves again.
    pub(crate) fn leave(&self) {
        for session in self.house.all_live() {
            session.leave();
        }
    }

    /// Ends the runs that no hang-up ended (a signal did), and waits until every run is sealed.
    pub(crate) async fn sealed(&self) {
        for session in self.house.all_live() {
            self.house.close(&session).await;
        }
        let all = std::mem::take(&mut *self.sealing.lock().unwrap_or_else(PoisonError::into_inner));
        all.join_all().await;
    }
}

impl Opener for Doors {
    fn open(&self, client: ClientInfo) -> BoxFuture<'_, Result<(Executor, Session), OpenError>> {
        Box::pin(async move {
            let door = Door {
                name: match client.transport {
                    Transport::Stdio => "mcp stdio",
                    Transport::Http => "mcp http",
                },
                principal: client.principal,
                progress: self.house.watched(),
                waits: Waits::Limit,
            };
            let opened = self.house.open(door).await;
            let session = opened.map_err(|e| OpenError(e.to_string()))?;
            Ok((self.house.executor().clone(), session))
        })
    }

    fn shows_progress(&self) -> bool {
        self.house.shows_progress()
    }

    fn skills(&self) -> Vec<Skill> {
        let tools = self.house.skill_tools();
        // Where none of the tools is on, skills are not offered by another way either.
        if tools.registry().snapshot().entries().is_empty() {
            return Vec::new();
        }
        tools.skills()
    }

    fn closed(&self, session: &Session) {
        let (house, session) = (self.house.clone(), session.clone());
        let mut sealing = self.sealing.lock().unwrap_or_else(PoisonError::into_inner);
        while sealing.try_join_next().is_some() {}
        sealing.spawn(async move { house.close(&session).await });
    }

    fn stray(&self, transport: Transport, reason: &str) {
        let number = self.refusals.fetch_add(1, Ordering::Relaxed) + 1;
        let (house, strays, reason) = (
            self.house.clone(),
            Arc::clone(&self.strays),
            reason.to_owned(),
        );
        let name = match transport {
            Transport::Stdio => "mcp stdio, no session",
            Transport::Http => "mcp http, no session",
        };
        let record = async move {
            let door = Door {
                name,
                principal: None,
                progress: None,
                waits: Waits::Limit,
            };
            match strays.get_or_try_init(|| house.open(door)).await {
                Ok(session) => house.record_refusal(session, number, &reason),
                Err(problem) => tracing::warn!(%problem, "record a refused message"),
            }
        };
        let mut sealing = self.sealing.lock().unwrap_or_else(PoisonError::into_inner);
        while sealing.try_join_next().is_some() {}
        sealing.spawn(record);
    }

    fn refused(&self, session: &Session, reason: &str) {
        let number = self.refusals.fetch_add(1, Ordering::Relaxed) + 1;
        self.house.record_refusal(session, number, reason);
    }
}
