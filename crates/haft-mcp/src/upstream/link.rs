//! `UpstreamLink`: the connection to a server behind haft: opened by the first call, shared by all, checked whenever the server reports a
//! change of its list of tools, closed when idle.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use haft::CancellationToken;
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until, timeout};

use crate::client::{Client, ClientError, ClientLimits, OwnCapabilities};
use crate::era::Era;
use crate::upstream::Connector;
use crate::upstream::change_receivers::ChangeReceivers;
use crate::upstream::manifest::{PinnedTool, digest};

/// Pause after a server's first failure; doubles with each further failure.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
/// Maximum pause.
const MAX_PAUSE: Duration = Duration::from_secs(60);

/// The connection, if there is one.
pub(crate) struct UpstreamLink {
    open: Arc<dyn Connector>,
    limits: ClientLimits,
    idle: Duration,
    /// What is offered to the server on the connection.
    offers: OwnCapabilities,
    /// Receives what the server reports about its lists.
    herald: Arc<ChangeReceivers>,
    /// The era of the server, once detected.
    era: Mutex<Option<Era>>,
    failures: Mutex<ConnectFailures>,
    /// Locked while connecting: other callers wait for that connection.
    live: tokio::sync::Mutex<Option<Arc<LiveConnection>>>,
    /// Whether no connection is opened any more.
    ended: AtomicBool,
}

impl std::fmt::Debug for UpstreamLink {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("UpstreamLink").finish_non_exhaustive()
    }
}

/// Failures since the last success.
#[derive(Debug, Default)]
struct ConnectFailures {
    count: u32,
    /// The end of the pause, and its reason.
    pause: Option<(Instant, String)>,
}

/// An open connection, with what its server lists.
pub(crate) struct LiveConnection {
    pub(crate) client: Arc<Client>,
    listed: Mutex<ToolDigests>,
    used: Mutex<Instant>,
    /// Cancelled when the connection is closed.
    pub(crate) over: CancellationToken,
}

impl Drop for LiveConnection {
    fn drop(&mut self) {
        self.over.cancel();
    }
}

/// The tools that a server lists now, by name, with the digests of their descriptions.
struct ToolDigests {
    by_name: HashMap<String, String>,
    changes: watch::Receiver<u64>,
}

/// Why a pinned tool is not called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PinMismatch {
    /// The server describes it differently.
    Changed,
    /// The server has no such tool.
    Gone,
}

impl LiveConnection {
    /// Returns the server's present name for a pinned tool: its own, or another one with exactly the same description that is not
    /// the name of another pinned tool.
    pub(crate) fn name_of(
        &self,
        tool: &PinnedTool,
        pinned: &[PinnedTool],
    ) -> Result<String, PinMismatch> {
        let listed = self.listed.lock();
        match listed.by_name.get(&tool.name) {
            Some(now) if *now == tool.digest => return Ok(tool.name.clone()),
            Some(_) => return Err(PinMismatch::Changed),
            None => {}
        }
        let mut same = listed
            .by_name
            .iter()
            .filter(|(_, digest)| **digest == tool.digest)
            .filter(|(name, _)| pinned.iter().all(|other| other.name != **name));
        match (same.next(), same.next()) {
            (Some((name, _)), None) => Ok(name.clone()),
            _ => Err(PinMismatch::Gone),
        }
    }

    /// Closes the connection.
    async fn end(&self) {
        self.over.cancel();
        self.client.close().await;
    }

    fn is_current(&self) -> bool {
        self.client.is_open() && !self.listed.lock().changes.has_changed().unwrap_or(false)
    }

    /// Requests the list again.
    async fn list(&self) -> Result<(), ClientError> {
        // A change that is announced meanwhile counts as a further one.
        self.listed.lock().changes.mark_unchanged();
        let tools = self.client.tools().await?;
        for what in self.client.left_out() {
            tracing::warn!(server = %self.client.server().name, what, "left out of a server's list of tools");
        }
        self.listed.lock().by_name = tools
            .into_iter()
            .map(|tool| (tool.name, digest(&tool.raw)))
            .collect();
        Ok(())
    }
}

/// Opens a wire and greets the server, all within the time limit.
pub(crate) async fn connect(
    open: &dyn Connector,
    era: Option<Era>,
    limits: ClientLimits,
    offers: OwnCapabilities,
) -> Result<Client, ClientError> {
    let opened = timeout(limits.connect, open.open()).await;
    let late = || ClientError::Late {
        method: "connect".to_owned(),
        limit: limits.connect,
        said: String::new(),
    };
    Client::connect_offering(opened.map_err(|_| late())??, era, limits, offers).await
}

impl UpstreamLink {
    pub(crate) fn new(open: Arc<dyn Connector>, limits: ClientLimits, idle: Duration) -> Self {
        Self {
            open,
            limits,
            idle,
            offers: OwnCapabilities::default(),
            herald: Arc::default(),
            era: Mutex::default(),
            failures: Mutex::default(),
            live: tokio::sync::Mutex::default(),
            ended: AtomicBool::new(false),
        }
    }

    /// Sets what the server may ask its callers.
    pub(crate) fn with_offers(self, offers: OwnCapabilities) -> Self {
        Self { offers, ..self }
    }

    /// Sets the receiver of what the server reports about its lists.
    pub(crate) fn with_herald(self, herald: Arc<ChangeReceivers>) -> Self {
        Self { herald, ..self }
    }

    /// Returns what the server is offered.
    pub(crate) fn offers(&self) -> OwnCapabilities {
        self.offers
    }

    /// Creates a separate link to the same server with a different offer.
    pub(crate) fn clone_with_offers(&self, offers: OwnCapabilities) -> Self {
        let link = Self::new(Arc::clone(&self.open), self.limits, self.idle).with_offers(offers);
        *link.era.lock() = *self.era.lock();
        link.with_herald(Arc::clone(&self.herald))
    }

    /// Returns the connection if it is open.
    pub(crate) async fn open_now(&self) -> Option<Arc<LiveConnection>> {
        let slot = self.live.lock().await;
        let live = slot.as_ref().filter(|live| live.client.is_open());
        live.cloned()
    }

    /// Returns the connection, opened if necessary, with an up-to-date list of tools.
    pub(crate) async fn open_connection(
        self: &Arc<Self>,
    ) -> Result<Arc<LiveConnection>, ClientError> {
        let mut slot = self.live.lock().await;
        if self.ended.load(Ordering::Acquire) {
            return Err(link_retired());
        }
        if let Some(live) = slot.as_ref().filter(|live| live.client.is_open()) {
            if !live.is_current()
                && let Err(error) = live.list().await
            {
                self.note_failure(&error);
                return Err(error);
            }
            *live.used.lock() = Instant::now();
            return Ok(Arc::clone(live));
        }
        if let Some(broken) = slot.take() {
            broken.over.cancel();
        }
        self.check_pause()?;
        let live = match self.begin().await {
            Ok(live) => Arc::new(live),
            Err(error) => {
                self.note_failure(&error);
                return Err(error);
            }
        };
        *slot = Some(Arc::clone(&live));
        tokio::spawn(close_idle(Arc::downgrade(self), Arc::downgrade(&live)));
        let (client, over) = (Arc::downgrade(&live.client), live.over.clone());
        tokio::spawn(Arc::clone(&self.herald).follow(client, over));
        Ok(live)
    }

    async fn begin(&self) -> Result<LiveConnection, ClientError> {
        let era = *self.era.lock();
        let client = connect(&*self.open, era, self.limits, self.offers).await?;
        *self.era.lock() = Some(client.era());
        let changes = client.list_changes();
        let live = LiveConnection {
            client: Arc::new(client),
            listed: Mutex::new(ToolDigests {
                by_name: HashMap::new(),
                changes,
            }),
            used: Mutex::new(Instant::now()),
            over: CancellationToken::new(),
        };
        live.list().await?;
        Ok(live)
    }

    /// Returns an error during the pause after a failure.
    fn check_pause(&self) -> Result<(), ClientError> {
        let failures = self.failures.lock();
        match &failures.pause {
            Some((until, why)) if Instant::now() < *until => {
                let left = until.saturating_duration_since(Instant::now());
                let seconds = left.as_secs() + 1;
                Err(ClientError::Unreachable(format!(
                    "it failed {} times and is tried again in {seconds} s; the last time: {why}",
                    failures.count
                )))
            }
            _ => Ok(()),
        }
    }

    fn note_failure(&self, error: &ClientError) {
        // The server may speak another era now: detect it again.
        *self.era.lock() = None;
        let mut failures = self.failures.lock();
        // If a working server disconnects once, it is restarted without a pause.
        if failures.count == 0 && matches!(error, ClientError::Closed { .. }) {
            failures.count = 1;
            return;
        }
        let pause = FIRST_PAUSE.saturating_mul(1 << failures.count.min(16));
        let until = Instant::now() + pause.min(MAX_PAUSE);
        failures.count = failures.count.saturating_add(1);
        failures.pause = Some((until, error.to_string()));
    }

    /// Notes that the server did what was requested.
    pub(crate) fn note_success(&self) {
        *self.failures.lock() = ConnectFailures::default();
    }

    /// Closes a connection that is lost. A server that disconnected in the middle of a call counts as failed.
    pub(crate) async fn discard(&self, live: &Arc<LiveConnection>, error: &ClientError) {
        let mut slot = self.live.lock().await;
        if !slot.as_ref().is_some_and(|now| Arc::ptr_eq(now, live)) {
            return;
        }
        *slot = None;
        drop(slot);
        if matches!(error, ClientError::Closed { .. }) {
            self.note_failure(error);
        }
        live.end().await;
    }

    /// Closes the connection for good.
    pub(crate) async fn end(&self) {
        self.ended.store(true, Ordering::Release);
        self.close().await;
    }

    /// Returns whether there is a connection, or one is being opened.
    pub(crate) fn is_connected(&self) -> bool {
        let slot = self.live.try_lock();
        slot.map_or(true, |slot| {
            slot.as_ref().is_some_and(|live| live.client.is_open())
        })
    }

    /// Returns the server's last failure during the pause after it.
    pub(crate) fn fault(&self) -> Option<String> {
        let failures = self.failures.lock();
        let (until, why) = failures.pause.as_ref()?;
        (Instant::now() < *until).then(|| why.clone())
    }

    pub(crate) async fn close(&self) {
        let live = self.live.lock().await.take();
        if let Some(live) = live {
            live.end().await;
        }
    }
}

/// Returns the error for calls over a link that has ended.
pub(crate) fn link_retired() -> ClientError {
    ClientError::Unreachable("the settings or what was pinned of it have changed".to_owned())
}

/// Closes a connection that has been idle for long enough.
async fn close_idle(link: Weak<UpstreamLink>, live: Weak<LiveConnection>) {
    loop {
        let (Some(of), Some(connection)) = (link.upgrade(), live.upgrade()) else {
            return;
        };
        let due = *connection.used.lock() + of.idle;
        drop((of, connection));
        sleep_until(due).await;
        let (Some(of), Some(connection)) = (link.upgrade(), live.upgrade()) else {
            return;
        };
        let mut slot = of.live.lock().await;
        let is_ours = slot
            .as_ref()
            .is_some_and(|now| Arc::ptr_eq(now, &connection));
        if !is_ours {
            return;
        }
        // The slot's reference and this one: no call holds it.
        let is_idle = Arc::strong_count(&connection) == 2;
        if !is_idle {
            *connection.used.lock() = Instant::now();
        } else if connection.used.lock().elapsed() >= of.idle {
            *slot = None;
            drop(slot);
            connection.end().await;
            return;
        }
    }
}
