//! An MCP server behind haft: its tools as a person pinned them, and the one connection that their calls share.
//!
//! ```text
//! manifest.rs ── what was pinned ──┬─► remote_tool.rs ── tools of the registry ──────────┬─► link.rs ── checked ──► Client
//!                                  └─► gateway.rs ── resources, prompts ──► server_tool.rs ┘     bridge.rs ◄── what it asks
//!                                            ▲ herald.rs ── what it says has changed ◄── following.rs: what clients follow
//! ```
//!
//! A server is started by the first call of one of its tools. What it lists then is compared with what was pinned: a tool
//! that means something else is not called before a person has looked at it.

use std::borrow::Cow;
use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use haft::error::ToolError;
use haft::future::BoxFuture;
use haft::result::ToolResult;
use parking_lot::Mutex;
use tokio::sync::{Semaphore, broadcast};
use tokio::time::timeout;

use crate::client::{ClientError, ClientLimits, Offers, Wire};
use crate::offer::OfferChange;

mod address;
mod beside;
mod bridge;
mod content;
mod errand;
mod findings;
mod following;
mod gateway;
mod herald;
mod link;
mod links;
mod manifest;
mod name;
mod pages;
mod question;
mod remote_tool;
mod server_tool;

pub use bridge::{Passing, Root};
pub use findings::{Finding, findings};
pub use gateway::{Gateway, internal_tools};
pub use manifest::{Beside, Drift, Manifest, ManifestError, PinnedTool};
pub use name::{MAX_SERVER_NAME, is_server_name, tool_name};
pub use pages::ListedEntry;
pub use remote_tool::RemoteTool;

use bridge::Bridge;
use following::{Following, Lease};
use herald::Herald;
use link::Link;
use links::Links;

/// How a server is reached.
pub trait Open: Send + Sync {
    /// A new wire to it: a process that was started, an endpoint that takes connections.
    fn open(&self) -> BoxFuture<'_, Result<Arc<dyn Wire>, ClientError>>;
}

/// What holds for one server.
#[derive(Debug, Clone)]
pub struct UpstreamTerms {
    /// What is waited for at most.
    pub limits: ClientLimits,
    /// Whether what its tools say of themselves (`readOnlyHint` and the like) is believed.
    pub trusted: bool,
    /// Whether it is a process in a jail without a network: what it is given stays on this machine, and what it answers comes from it.
    pub is_confined: bool,
    /// Calls that it gets at the same time; more of them wait.
    pub concurrency: usize,
    /// How long a connection is kept that nobody uses.
    pub idle: Duration,
    /// What stands before the names of its tools and prompts instead of its own name and a dot; nothing may.
    pub prefix: Option<String>,
    /// What it may ask of those who call it.
    pub passing: Passing,
}

impl UpstreamTerms {
    /// What stands before the names of the tools of the server of this name.
    fn prefix(&self, server: &str) -> Cow<'_, str> {
        match &self.prefix {
            Some(prefix) => Cow::Borrowed(prefix),
            None => Cow::Owned(format!("{server}.")),
        }
    }
}

impl Default for UpstreamTerms {
    /// Not trusted, 16 calls at a time, closed after five minutes.
    fn default() -> Self {
        Self {
            limits: ClientLimits::default(),
            trusted: false,
            is_confined: false,
            concurrency: 16,
            idle: Duration::from_secs(300),
            prefix: None,
            passing: Passing::default(),
        }
    }
}

/// A server that is known: what was pinned of it, and how it is reached.
#[derive(Debug)]
pub struct Upstream {
    name: String,
    manifest: Manifest,
    terms: UpstreamTerms,
    links: Links,
    herald: Arc<Herald>,
    /// The resources of whose changes clients hear: it outlives a pin.
    following: Mutex<Arc<Following>>,
    room: Semaphore,
    /// The addresses of pages that its tools name.
    pages: HashSet<String>,
    /// How many calls there is room for.
    places: usize,
    /// Whether it takes no more calls.
    retired: AtomicBool,
}

/// What a server is doing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Activity {
    /// Whether there is a connection to it.
    pub is_connected: bool,
    /// Calls under way.
    pub calls: usize,
    /// Why it failed last, while it is left alone for that.
    pub fault: Option<String>,
}

impl Upstream {
    /// The server of this name; nothing is started yet.
    pub fn new(
        name: impl Into<String>,
        manifest: Manifest,
        open: Arc<dyn Open>,
        terms: UpstreamTerms,
    ) -> Self {
        let places = terms.concurrency.clamp(1, Semaphore::MAX_PERMITS);
        let offers = terms.passing.offers();
        let herald = Arc::<Herald>::default();
        let link = Link::new(open, terms.limits, terms.idle).offering(offers);
        let link = Arc::new(link.telling(Arc::clone(&herald)));
        let following = Following::new(Arc::clone(&link), Arc::clone(&herald));
        Self {
            name: name.into(),
            pages: beside::tool_pages(&manifest),
            links: Links::new(link, &manifest),
            manifest,
            terms,
            herald,
            following: Mutex::new(following),
            room: Semaphore::new(places),
            places,
            retired: AtomicBool::new(false),
        }
    }

    /// Its name in settings and before the names of its tools.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What was pinned.
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// Its tools, as they were pinned. A tool whose description is not one is left out, with the reason.
    pub fn tools(self: &Arc<Self>) -> (Vec<RemoteTool>, Vec<String>) {
        let (mut tools, mut refused) = (Vec::new(), Vec::new());
        for pinned in &self.manifest.tools {
            match RemoteTool::new(self, pinned) {
                Ok(tool) => tools.push(tool),
                Err(why) => refused.push(format!("{}: {why}", pinned.name)),
            }
        }
        (tools, refused)
    }

    /// Ends the connection, where there is one.
    pub async fn close(&self) {
        for link in self.links.all() {
            link.close().await;
        }
    }

    /// Takes no more calls, lets those under way go on for as long as `grace`, and ends the connection for good.
    pub async fn retire(&self, grace: Duration) {
        self.retired.store(true, Ordering::Release);
        let all = u32::try_from(self.places).unwrap_or(u32::MAX);
        // Whether they have ended or the time is over: the connection ends now.
        let _ended = timeout(grace, self.room.acquire_many(all)).await;
        self.links.end().await;
    }

    /// Goes on with what clients follow of the same server as it was before: they hear of changes as if nothing had happened.
    pub fn succeeds(&self, before: &Self) {
        let following = Arc::clone(&*before.following.lock());
        following.go_on(&self.links.main);
        *self.following.lock() = following;
    }

    /// A wish to hear when a resource of it changes, by this address of haft's; none where too many are followed.
    pub(crate) fn follow(&self, uri: &str, address: Option<&str>) -> Option<Lease> {
        let following = Arc::clone(&*self.following.lock());
        following.lease(uri, address)
    }

    /// Tells these of what changes from now on.
    pub(crate) fn tells(&self, out: &broadcast::Sender<OfferChange>) {
        self.herald.tells(out);
        self.following.lock().herald.tells(out);
    }

    /// What it is doing.
    pub fn activity(&self) -> Activity {
        let links = self.links.all();
        Activity {
            is_connected: links.iter().any(|link| link.is_connected()),
            calls: self.places.saturating_sub(self.room.available_permits()),
            fault: links.iter().find_map(|link| link.fault()),
        }
    }

    /// Connects, and notes what the server says of itself and its tools, to be looked at and pinned.
    ///
    /// # Errors
    /// The server cannot be reached, or what it says is not understood.
    pub async fn look(
        place: String,
        open: &dyn Open,
        limits: ClientLimits,
    ) -> Result<Manifest, ClientError> {
        let offers = Offers::default();
        let client = link::connect(open, None, limits, offers).await?;
        let tools = client.tools().await;
        let beside = beside::look(&client).await;
        let manifest = tools.map(|tools| Manifest::new(place, &client, tools));
        client.close().await;
        Ok(Manifest {
            beside: beside?,
            ..manifest?
        })
    }

    /// Calls a tool, over a connection that was checked against what is pinned. It is called again only where nothing can
    /// have been done, or where doing it twice is doing it once.
    async fn call(
        &self,
        tool: &PinnedTool,
        arguments: &str,
        bridge: &Bridge,
        repeatable: bool,
    ) -> Result<ToolResult, ToolError> {
        let _place = self.room.acquire().await;
        self.check_retired()?;
        let link = self.links.of(bridge.responder().offers);
        let mut again = true;
        loop {
            let live = link.live().await;
            let live = live.map_err(|e| self.failure(e.before_call()))?;
            let listed = live
                .name_of(tool, &self.manifest.tools)
                .map_err(|drift| self.refusal(tool, drift))?;
            let progress = Some(bridge.progress.clone());
            let responder = Some(bridge.responder());
            let reply = live
                .client
                .call_tool_with(&listed, arguments, progress, responder);
            let error = match reply.await {
                Ok(reply) => {
                    link.works();
                    return Ok(content::result(reply, &tool.name));
                }
                Err(error) => error,
            };
            let broken = matches!(error, ClientError::Closed { .. });
            let gone = matches!(
                error,
                ClientError::SessionOver | ClientError::Unreachable(_)
            );
            if broken || gone {
                link.discard(&live, &error).await;
            }
            if !(again && (gone || broken && repeatable)) {
                bridge.lacks(&error).await;
                let ClientError::TaskFailed { whole, .. } = &error else {
                    return Err(self.failure(error));
                };
                return Ok(content::refused(whole.clone(), self.failure(error)));
            }
            again = false;
        }
    }

    /// Refuses once no more calls are taken.
    fn check_retired(&self) -> Result<(), ToolError> {
        if self.retired.load(Ordering::Acquire) {
            return Err(self.failure(link::retired()));
        }
        Ok(())
    }

    fn failure(&self, error: ClientError) -> ToolError {
        error.into_tool_error(&self.name)
    }

    fn refusal(&self, tool: &PinnedTool, drift: link::Missing) -> ToolError {
        let (name, server) = (&tool.name, &self.name);
        match drift {
            link::Missing::Changed => ToolError::denied(format!(
                "{server} describes its tool {name} otherwise than when it was pinned"
            ))
            .for_operator(format!(
                "`haft mcp inspect {server}` shows what has changed, `haft mcp pin {server}` accepts it"
            )),
            link::Missing::Gone => ToolError::unavailable(format!("{server} has no tool {name} now"))
                .for_operator(format!("`haft mcp pin {server}` takes over what it has now")),
        }
    }
}
