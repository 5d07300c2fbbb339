//! The MCP door: one governed run for each connection, every call through the executor.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use haft::artifact::{ArtifactError, ArtifactInfo, ArtifactRef};
use haft::audit::BoxFuture;
use haft::call::{RunId, ToolCall};
use haft::progress::{self, ProgressEvent};
use haft::result::Outcome;
use haft::session::Session;
use haft::toolset::Toolset;
use haft_mcp::host::{
    ArtifactPart, ClientInfo, Host, HostFactory, OpenError, ProgressSink, Tools, Transport,
};

use crate::assemble::{Door, House};

/// Opens runs for MCP clients.
#[derive(Debug)]
pub(crate) struct Doors {
    house: House,
    listed: Arc<Listed>,
}

impl Doors {
    /// Doors into this house.
    pub(crate) fn new(house: House) -> Self {
        Self {
            house,
            listed: Arc::default(),
        }
    }
}

impl HostFactory for Doors {
    fn open(&self, client: ClientInfo) -> BoxFuture<'_, Result<Arc<dyn Host>, OpenError>> {
        Box::pin(async move {
            let door = Door {
                name: match client.transport {
                    Transport::Stdio => "mcp stdio",
                    Transport::Http => "mcp http",
                },
                principal: client.principal,
                progress: None,
            };
            let opened = self.house.open(door).await;
            let session = opened.map_err(|e| OpenError(e.to_string()))?;
            let host: Arc<dyn Host> = Arc::new(OneRun {
                house: self.house.clone(),
                listed: Arc::clone(&self.listed),
                session,
                refusals: AtomicU64::new(0),
            });
            Ok(host)
        })
    }
}

/// One client's run.
#[derive(Debug)]
struct OneRun {
    house: House,
    listed: Arc<Listed>,
    session: Session,
    refusals: AtomicU64,
}

impl Host for OneRun {
    fn run(&self) -> &RunId {
        self.session.run()
    }

    fn tools(&self) -> Tools {
        self.listed.now(self.session.view().as_ref())
    }

    fn changed(&self, seen: u64) -> BoxFuture<'_, u64> {
        Box::pin(async move {
            // Subscribed before the look, so that no change falls between.
            let mut changes = self.session.view().changes();
            loop {
                let version = self.session.tools().version();
                if version != seen {
                    return version;
                }
                changes.changed().await;
            }
        })
    }

    fn call(&self, call: ToolCall, progress: ProgressSink) -> BoxFuture<'_, Outcome> {
        Box::pin(async move {
            if !(self.house.shows_progress() && progress.wanted()) {
                return self.house.call(&self.session, call).await;
            }
            let watched = self.session.watched_by(Arc::new(Screen(progress)));
            self.house.call(&watched, call).await
        })
    }

    fn artifacts(&self) -> BoxFuture<'_, Result<Vec<ArtifactInfo>, ArtifactError>> {
        let (house, session) = (self.house.clone(), self.session.clone());
        blocking(move || {
            house
                .artifacts()
                .list(session.principal(), Some(session.run()))
        })
    }

    fn read_artifact(
        &self,
        reference: ArtifactRef,
        range: Range<u64>,
    ) -> BoxFuture<'_, Result<ArtifactPart, ArtifactError>> {
        let (house, session) = (self.house.clone(), self.session.clone());
        blocking(move || {
            let store = house.artifacts();
            let info = store.info(session.owner(), &reference)?;
            let bytes = store.read(session.owner(), &reference, range)?;
            Ok(ArtifactPart { info, bytes })
        })
    }

    fn refused(&self, reason: &str) {
        let number = self.refusals.fetch_add(1, Ordering::Relaxed) + 1;
        self.house.record_refusal(&self.session, number, reason);
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.house.close(&self.session))
    }
}

/// A disk's work off the threads that answer.
fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, ArtifactError> + Send + 'static,
) -> BoxFuture<'static, Result<T, ArtifactError>> {
    Box::pin(async move {
        let done = tokio::task::spawn_blocking(work).await;
        done.unwrap_or_else(|e| Err(ArtifactError::Io(std::io::Error::other(e))))
    })
}

/// The listed specs of the newest snapshot: the same `Arc` for all clients while nothing changed.
#[derive(Debug, Default)]
struct Listed(Mutex<Option<Tools>>);

impl Listed {
    fn now(&self, view: &dyn Toolset) -> Tools {
        let snapshot = view.snapshot();
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match &*kept {
            Some(tools) if tools.version == snapshot.version() => tools.clone(),
            _ => {
                let tools = Tools {
                    version: snapshot.version(),
                    specs: snapshot
                        .listed()
                        .map(|entry| Arc::clone(entry.spec()))
                        .collect(),
                };
                *kept = Some(tools.clone());
                tools
            }
        }
    }
}

/// The client's screen of one call.
#[derive(Debug)]
struct Screen(ProgressSink);

impl progress::ProgressSink for Screen {
    fn progress(&self, event: ProgressEvent) {
        if !event.text.is_empty() {
            // What the client is too slow to take is dropped: progress is for screens alone.
            self.0.send(&event.text);
        }
    }
}
