//! `Upstream`: an MCP server behind haft: its tools as the user pinned them, and the connections that their calls share, one for each set of things that a client can answer.
//!
//! ```text
//! manifest.rs ── what was pinned ──┬─► remote_tool.rs ── tools of the registry ──────────┬─► link.rs ── checked ──► Client
//!                                  └─► gateway.rs ── resources, prompts ──► server_tool.rs ┘     bridge.rs ◄── what it asks
//!                                            ▲ change_receivers.rs ── what it says has changed ◄── following.rs: what clients follow
//! ```
//!
//! The first call of one of its tools starts a server. What the server lists then is compared with what was pinned: a tool with a
//! different meaning is not called until a user has reviewed it.

use std::borrow::Cow;
use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use haft::error::ToolError;
use haft::future::BoxFuture;
use haft::permission::{Condition, Effect, Permission};
use haft::result::ToolResult;
use haft::spec::Risk;
use haft::tool::{Depth, Intent};
use haft::untrusted::SERVER_EFFECT;
use parking_lot::Mutex;
use tokio::sync::{Semaphore, broadcast};
use tokio::time::timeout;

use crate::client::{ClientError, ClientLimits, OwnCapabilities, Wire};
use crate::offer::OfferChange;

mod address;
mod address_table;
mod listings;
mod bridge;
mod content;
mod upstream_request;
mod findings;
mod following;
mod gateway;
mod change_receivers;
mod link;
mod links;
mod manifest;
mod name;
mod pages;
mod question;
mod remote_tool;
mod secret_words;
mod server_tool;

pub use bridge::{Root, ServerRequestPolicy};
pub use findings::{DescriptionFinding, findings};
pub use gateway::{Gateway, internal_tools};
pub use manifest::{Drift, Manifest, ManifestError, PinnedExtras, PinnedTool};
pub use name::{MAX_SERVER_NAME, is_server_name, tool_name};
pub use pages::ListedEntry;
pub use remote_tool::RemoteTool;

use bridge::Bridge;
use change_receivers::ChangeReceivers;
use following::{SubscriptionLease, UpstreamSubscriptions};
use link::UpstreamLink;
use links::UpstreamLinks;

/// Opens connections to a server.
pub trait Connector: Send + Sync {
    /// Opens a new wire to it: starts a process, or connects to an endpoint.
    fn open(&self) -> BoxFuture<'_, Result<Arc<dyn Wire>, ClientError>>;
}

/// The terms for one server.
#[derive(Debug, Clone)]
pub struct UpstreamTerms {
    /// Limits on what its client waits for and takes.
    pub limits: ClientLimits,
    /// Whether to believe what its tools say about themselves (`readOnlyHint` and the like).
    pub trusted: bool,
    /// Whether a result that does not match its tool's output schema is refused, instead of delivered with a note.
    pub strict: bool,
    /// Whether it is a process in a jail without a network: its input stays on this machine, and its output comes from this machine.
    pub is_confined: bool,
    /// Maximum number of concurrent calls; more of them wait.
    pub concurrency: usize,
    /// How long an idle connection is kept.
    pub idle: Duration,
    /// Prefix of its tools' and prompts' names, instead of its own name and a dot; may be empty.
    pub prefix: Option<String>,
    /// What it may ask its callers.
    pub passing: ServerRequestPolicy,
}

impl UpstreamTerms {
    /// Returns the prefix of the tools' names, for a server of this name.
    fn prefix(&self, server: &str) -> Cow<'_, str> {
        match &self.prefix {
            Some(prefix) => Cow::Borrowed(prefix),
            None => Cow::Owned(format!("{server}.")),
        }
    }
}

impl Default for UpstreamTerms {
    /// Not trusted, 16 concurrent calls, closed after five idle minutes.
    fn default() -> Self {
        Self {
            limits: ClientLimits::default(),
            trusted: false,
            strict: false,
            is_confined: false,
            concurrency: 16,
            idle: Duration::from_secs(300),
            prefix: None,
            passing: ServerRequestPolicy::default(),
        }
    }
}

/// A known server: what was pinned of it, and how it is reached.
#[derive(Debug)]
pub struct Upstream {
    name: String,
    manifest: Manifest,
    terms: UpstreamTerms,
    links: UpstreamLinks,
    herald: Arc<ChangeReceivers>,
    /// The resources that clients follow: this outlives a pin.
    following: Mutex<Arc<UpstreamSubscriptions>>,
    room: Semaphore,
    /// URIs of the pages that its tools name.
    pages: HashSet<String>,
    /// The number of calls that there is room for.
    places: usize,
    /// Whether it takes no more calls.
    retired: AtomicBool,
}

/// What a server is doing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Activity {
    /// Whether there is a connection to it.
    pub is_connected: bool,
    /// Number of calls in progress.
    pub calls: usize,
    /// Its last failure, while haft pauses before retrying.
    pub fault: Option<String>,
}

impl Upstream {
    /// Creates the server with this name; does not start anything yet.
    pub fn new(
        name: impl Into<String>,
        manifest: Manifest,
        open: Arc<dyn Connector>,
        terms: UpstreamTerms,
    ) -> Self {
        let places = terms.concurrency.clamp(1, Semaphore::MAX_PERMITS);
        let offers = terms.passing.offers();
        let herald = Arc::<ChangeReceivers>::default();
        let link = UpstreamLink::new(open, terms.limits, terms.idle).with_offers(offers);
        let link = Arc::new(link.with_herald(Arc::clone(&herald)));
        let following = UpstreamSubscriptions::new(Arc::clone(&link), Arc::clone(&herald));
        Self {
            name: name.into(),
            pages: listings::tool_pages(&manifest),
            links: UpstreamLinks::new(link, &manifest),
            manifest,
            terms,
            herald,
            following: Mutex::new(following),
            room: Semaphore::new(places),
            places,
            retired: AtomicBool::new(false),
        }
    }

    /// Returns its name in the settings and in the names of its tools.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns what was pinned.
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// Returns its tools as pinned, and the reasons for those left out because their descriptions are invalid.
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

    /// Closes the connection, if there is one.
    pub async fn close(&self) {
        for link in self.links.all() {
            link.close().await;
        }
    }

    /// Takes no more calls, gives those in progress up to `grace` to finish, and closes the connection for good.
    pub async fn retire(&self, grace: Duration) {
        self.retired.store(true, Ordering::Release);
        let all = u32::try_from(self.places).unwrap_or(u32::MAX);
        // Whether they have ended or the time is up, the connection ends now.
        let _ended = timeout(grace, self.room.acquire_many(all)).await;
        self.links.end().await;
    }

    /// Takes over what clients follow from the same server's earlier instance, so that they continue to receive changes.
    pub fn succeeds(&self, before: &Self) {
        let following = Arc::clone(&*before.following.lock());
        following.resume_on(&self.links.main);
        *self.following.lock() = following;
    }

    /// Subscribes to changes of a resource, known to the client by `address`; `None` if too many are followed.
    pub(crate) fn follow(&self, uri: &str, address: Option<&str>) -> Option<SubscriptionLease> {
        let following = Arc::clone(&*self.following.lock());
        following.lease(uri, address)
    }

    /// Sends changes to this channel from now on.
    pub(crate) fn send_changes_to(&self, out: &broadcast::Sender<OfferChange>) {
        self.herald.send_changes_to(out);
        self.following.lock().herald.send_changes_to(out);
    }

    /// Returns what it is doing.
    pub fn activity(&self) -> Activity {
        let links = self.links.all();
        Activity {
            is_connected: links.iter().any(|link| link.is_connected()),
            calls: self.places.saturating_sub(self.room.available_permits()),
            fault: links.iter().find_map(|link| link.fault()),
        }
    }

    /// Connects and notes what the server says about itself and its tools, to be reviewed and pinned.
    ///
    /// # Errors
    /// The server cannot be reached, or its answers are invalid.
    pub async fn look(
        place: String,
        open: &dyn Connector,
        limits: ClientLimits,
    ) -> Result<Manifest, ClientError> {
        let offers = OwnCapabilities::default();
        let client = link::connect(open, None, limits, offers).await?;
        let tools = client.tools().await;
        let beside = listings::look(&client).await;
        let manifest = tools.map(|tools| Manifest::new(place, &client, tools));
        client.close().await;
        Ok(Manifest {
            beside: beside?,
            ..manifest?
        })
    }

    /// Returns what a call that reaches this server would do, at this risk: what the server then does, haft cannot know.
    fn intent(&self, risk: Risk, depth: Depth) -> Intent {
        let effect = Effect::Other {
            kind: SERVER_EFFECT.to_owned(),
            value: self.name.clone(),
        };
        Intent::of([Permission { effect, risk }]).with_conditions(depth, || {
            vec![Condition::new("server", self.manifest.place.clone())]
        })
    }

    /// Calls a tool over a connection that was checked against what is pinned. Repeats the call once, and only if nothing can have
    /// been done, or if the tool is idempotent (`repeatable`).
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
            let live = link.open_connection().await;
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
                    link.note_success();
                    return Ok(content::result(reply, &tool.name));
                }
                Err(error) => error,
            };
            let broken = matches!(error, ClientError::Closed { .. });
            let is_gone = matches!(
                error,
                ClientError::SessionOver | ClientError::Unreachable(_)
            );
            if broken || is_gone {
                link.discard(&live, &error).await;
            }
            if !(again && (is_gone || broken && repeatable)) {
                bridge.note_missing_capability(&error).await;
                let ClientError::TaskFailed { whole, .. } = &error else {
                    return Err(self.failure(error));
                };
                return Ok(content::refused(whole.clone(), self.failure(error)));
            }
            again = false;
        }
    }

    /// Returns an error once no more calls are taken.
    fn check_retired(&self) -> Result<(), ToolError> {
        if self.retired.load(Ordering::Acquire) {
            return Err(self.failure(link::link_retired()));
        }
        Ok(())
    }

    fn failure(&self, error: ClientError) -> ToolError {
        error.into_tool_error(&self.name)
    }

    fn refusal(&self, tool: &PinnedTool, drift: link::PinMismatch) -> ToolError {
        let (name, server) = (&tool.name, &self.name);
        match drift {
            link::PinMismatch::Changed => ToolError::denied(format!(
                "{server} describes its tool {name} differently than when it was pinned"
            ))
            .for_operator(format!(
                "`haft mcp inspect {server}` shows what has changed, `haft mcp pin {server}` accepts it"
            )),
            link::PinMismatch::Gone => ToolError::unavailable(format!("{server} has no tool {name} now"))
                .for_operator(format!("`haft mcp pin {server}` accepts what it offers now")),
        }
    }
}
