//! External MCP servers (`mcp.servers`): their settings, how each is reached, and what is pinned of it.
//!
//! A server that is not pinned is not started and offers nothing. A pin is for one command line or address: with another one, it is another
//! server. When settings or pins change, new [`Servers`] are built; unchanged servers keep their connection.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Weak};
use std::time::Duration;

use haft::text::hex;
use haft::toolset::registry::ToolRegistry;
use haft_mcp::client::ClientError;
use haft_mcp::upstream::{
    Activity, Connector, RemoteTool, Upstream, UpstreamTerms, findings, internal_tools,
};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::home::Home;
use crate::plain_file;
use crate::problem::{Problem, SourceLocation};
use crate::servers::endpoint::ServerAddress;

pub use haft_mcp::upstream::{DescriptionFinding, Drift, Manifest, PinnedTool};

pub use haft_setup::literal;

pub mod edit;
pub(crate) mod endpoint;
pub mod login;
pub(crate) mod process;
pub(crate) mod sign_in;

/// Maximum size of a manifest, in bytes.
const MAX_MANIFEST: u64 = 64 << 20;

/// How haft connects to a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ServerTransport {
    /// haft runs it as a process.
    Stdio,
    /// It is reached over HTTP.
    Http,
    /// It is reached over HTTP and speaks the HTTP+SSE of 2024-11-05, as seen when it was pinned.
    Sse,
}

/// The state of a server in a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ServerState {
    /// The settings turn it off.
    Disabled,
    /// The settings name it, but it is not pinned: it offers nothing.
    Configured,
    /// It is pinned: its tools are offered.
    Known,
    /// It is also connected.
    Started,
    /// A call of one of its tools is running.
    InUse,
}

impl ServerState {
    /// Returns whether its tools are offered.
    pub fn is_offered(self) -> bool {
        matches!(self, Self::Known | Self::Started | Self::InUse)
    }
}

/// A server in a list (contract §9).
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ServerListItem {
    /// Its name in the settings.
    pub name: String,
    /// How haft connects to it.
    pub transport: ServerTransport,
    /// The command line or the address.
    pub place: String,
    /// Its state.
    pub state: ServerState,
    /// The protocol revision that it spoke when it was pinned.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revision: Option<String>,
    /// Number of pinned tools.
    pub tools: usize,
    /// The error, if any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// A server from the settings.
pub(crate) struct ConfiguredServer {
    pub(crate) name: String,
    pub(crate) transport: ServerTransport,
    /// The command line or the address, with references to secrets as written.
    pub(crate) place: String,
    pub(crate) enabled: bool,
    pub(crate) terms: UpstreamTerms,
    pub(crate) open: Arc<dyn Connector>,
    /// All of its settings.
    said: BTreeMap<Vec<String>, toml::Value>,
    /// Its address, if it has one.
    address: Option<Arc<ServerAddress>>,
    /// The file with its pin.
    file: PathBuf,
    /// The pin, if it could be read.
    pinned: Option<Arc<Upstream>>,
    fault: Option<String>,
}

impl std::fmt::Debug for ConfiguredServer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ConfiguredServer")
            .field("name", &self.name)
            .field("place", &self.place)
            .finish_non_exhaustive()
    }
}

/// A server, as configured by the settings.
pub(crate) struct ServerDefinition {
    pub(crate) name: String,
    pub(crate) transport: ServerTransport,
    pub(crate) place: String,
    pub(crate) enabled: bool,
    pub(crate) terms: UpstreamTerms,
    pub(crate) open: Arc<dyn Connector>,
    /// All of its settings.
    pub(crate) said: BTreeMap<Vec<String>, toml::Value>,
    pub(crate) address: Option<Arc<ServerAddress>>,
}

/// All servers from the settings, by name.
#[derive(Debug, Default)]
pub struct Servers(BTreeMap<String, Arc<ConfiguredServer>>);

/// What a server offers now, compared with its pin.
#[derive(Debug)]
pub struct ServerReview {
    /// What the server offers now.
    pub now: Manifest,
    /// What it offered when it was pinned; `None` if it was not.
    pub pinned: Option<Manifest>,
    /// The changes since it was pinned; everything is new if it was not.
    pub drift: Drift,
    /// Findings that the user should review.
    pub findings: Vec<DescriptionFinding>,
    file: PathBuf,
}

impl ConfiguredServer {
    /// Returns a server with its pin from this state folder; `before` itself if nothing about it has changed.
    pub(crate) fn new(
        home: &Home,
        made: ServerDefinition,
        before: Option<&Arc<Self>>,
    ) -> Arc<Self> {
        let file = pin_file(home, &made.name, &made.place);
        let before = before.filter(|before| before.said == made.said);
        let (manifest, fault) = match read(&file) {
            Ok(manifest) => (manifest.filter(|known| known.place == made.place), None),
            Err(why) => (None, Some(why)),
        };
        let held = before.and_then(|before| before.pinned.as_ref());
        let pinned = match (manifest, held) {
            // If the pin has become unreadable, the previous one stays.
            (None, Some(held)) if fault.is_some() => Some(Arc::clone(held)),
            (Some(now), Some(held)) if now.to_text() == held.manifest().to_text() => {
                Some(Arc::clone(held))
            }
            (manifest, _) => manifest.map(|manifest| {
                let open = Arc::clone(&made.open);
                Arc::new(Upstream::new(
                    &made.name,
                    manifest,
                    open,
                    made.terms.clone(),
                ))
            }),
        };
        if let Some(before) = before
            && before.fault == fault
            && before.upstream() == pinned.as_ref().map(Arc::as_ptr)
        {
            return Arc::clone(before);
        }
        Arc::new(Self {
            name: made.name,
            transport: made.transport,
            place: made.place,
            enabled: made.enabled,
            terms: made.terms,
            open: made.open,
            said: made.said,
            address: made.address,
            file,
            pinned,
            fault,
        })
    }

    /// Identifies its connection.
    fn upstream(&self) -> Option<*const Upstream> {
        self.pinned.as_ref().map(Arc::as_ptr)
    }

    fn state(&self, activity: &Activity) -> ServerState {
        match (self.enabled, &self.pinned) {
            (false, _) => ServerState::Disabled,
            (true, None) => ServerState::Configured,
            (true, Some(_)) if activity.calls > 0 => ServerState::InUse,
            (true, Some(_)) if activity.is_connected => ServerState::Started,
            (true, Some(_)) => ServerState::Known,
        }
    }

    fn listed(&self) -> ServerListItem {
        let manifest = self.pinned.as_ref().map(|known| known.manifest());
        let activity = self.pinned.as_ref().map(|known| known.activity());
        let activity = activity.unwrap_or_default();
        let seen = manifest.and_then(|manifest| manifest.transport.as_deref());
        ServerListItem {
            name: self.name.clone(),
            transport: match (self.transport, seen) {
                (ServerTransport::Http, Some("sse")) => ServerTransport::Sse,
                (transport, _) => transport,
            },
            place: self.place.clone(),
            state: self.state(&activity),
            revision: manifest.map(|manifest| manifest.revision.clone()),
            tools: manifest.map_or(0, |manifest| manifest.tools.len()),
            error: self.fault.clone().or(activity.fault),
        }
    }
}

/// Returns the file with the pin of a server for this command line or address.
fn pin_file(home: &Home, name: &str, place: &str) -> PathBuf {
    let digest = hex(&Sha256::digest(place.as_bytes())[..6]);
    home.join("mcp").join(format!("{name}-{digest}.json"))
}

/// Removes the pins of all servers of this name, whatever their command line or address, and returns their number.
///
/// # Errors
/// The folder cannot be read, or a file cannot be removed.
pub fn forget_pins(home: &Home, name: &str) -> Result<usize, Problem> {
    let folder = home.join("mcp");
    let failed = |e: std::io::Error| {
        Problem::failed(format!("cannot forget what was pinned of `{name}`: {e}"))
            .at(SourceLocation::file(&folder))
    };
    let entries = match std::fs::read_dir(&folder) {
        Ok(entries) => entries,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(0),
        Err(e) => return Err(failed(e)),
    };
    let is_pin = |found: &str| {
        let digest = found
            .strip_prefix(name)?
            .strip_prefix('-')?
            .strip_suffix(".json")?;
        Some(digest.len() == 12 && digest.bytes().all(|b| b.is_ascii_hexdigit()))
    };
    let mut count = 0;
    for entry in entries {
        let entry = entry.map_err(failed)?;
        if entry.file_name().to_str().and_then(is_pin) == Some(true) {
            std::fs::remove_file(entry.path()).map_err(failed)?;
            count += 1;
        }
    }
    Ok(count)
}

/// Returns the manifest in the file; `None` if there is no file.
fn read(file: &std::path::Path) -> Result<Option<Manifest>, String> {
    let to_message = |why: String| format!("read {}: {why}", file.display());
    match plain_file::read(file, MAX_MANIFEST) {
        Ok(text) => Manifest::parse(&text)
            .map(Some)
            .map_err(|e| to_message(e.to_string())),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(to_message(error.to_string())),
    }
}

impl Servers {
    pub(crate) fn new(servers: impl IntoIterator<Item = Arc<ConfiguredServer>>) -> Self {
        let named = |server: Arc<ConfiguredServer>| (server.name.clone(), server);
        Self(servers.into_iter().map(named).collect())
    }

    /// Returns the server of this name.
    pub(crate) fn get(&self, name: &str) -> Option<&Arc<ConfiguredServer>> {
        self.0.get(name)
    }

    /// Returns whether both contain the same server objects.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        let pairs = self.0.values().zip(other.0.values());
        self.0.len() == other.0.len() && pairs.into_iter().all(|(a, b)| Arc::ptr_eq(a, b))
    }

    /// Returns the files with the pins, whether they exist or not.
    pub(crate) fn pin_files(&self) -> impl Iterator<Item = PathBuf> {
        self.0.values().map(|server| server.file.clone())
    }

    /// Returns the names of the servers whose pin differs from that in `before` while their settings are the same.
    pub(crate) fn pinned_since<'a>(&'a self, before: &'a Self) -> impl Iterator<Item = &'a str> {
        let is_other = |server: &&Arc<ConfiguredServer>| {
            let old = before.get(&server.name);
            old.is_some_and(|old| old.said == server.said && old.upstream() != server.upstream())
        };
        self.0.values().filter(is_other).map(|server| &*server.name)
    }

    /// Ends the connections that are not in `now`, and returns them: at once if the server was removed or turned off, after its running
    /// calls if it stays in another form. Needs a tokio runtime.
    pub(crate) fn retire_without(&self, now: &Self) -> Vec<Weak<Upstream>> {
        let mut retiring = Vec::new();
        for server in self.0.values() {
            let new = now.get(&server.name);
            let Some(old) = server.pinned.clone() else {
                continue;
            };
            if new.is_some_and(|new| new.upstream() == Some(Arc::as_ptr(&old))) {
                continue;
            }
            let continues = |new: &&Arc<ConfiguredServer>| {
                new.enabled && new.place == server.place && new.pinned.is_some()
            };
            let grace = match new.filter(continues) {
                Some(_) => server.terms.limits.call,
                None => Duration::ZERO,
            };
            // Resource subscriptions of clients move to the new connection.
            if let Some(now) = new.filter(continues).and_then(|new| new.pinned.as_ref()) {
                now.succeeds(&old);
            }
            retiring.push(Arc::downgrade(&old));
            tokio::spawn(async move { old.retire(grace).await });
        }
        retiring
    }

    /// Lists all servers, by name.
    pub fn list(&self) -> Vec<ServerListItem> {
        self.0.values().map(|server| server.listed()).collect()
    }

    /// Returns the tools of the pinned servers, and a line for each server and each tool that is not offered.
    pub(crate) fn tools(&self) -> (Vec<RemoteTool>, Vec<String>) {
        let (mut tools, mut notes) = (Vec::new(), Vec::new());
        for server in self.0.values().filter(|server| server.enabled) {
            let name = &server.name;
            let Some(known) = &server.pinned else {
                notes.push(match &server.fault {
                    Some(why) => format!("the MCP server `{name}` offers no tools: {why}"),
                    None => format!(
                        "the MCP server `{name}` offers no tools until you review them: haft mcp pin {name}"
                    ),
                });
                continue;
            };
            if let Some(why) = &server.fault {
                notes.push(format!(
                    "the MCP server `{name}`: {why}; the earlier pins stay in force"
                ));
            }
            let (some, refused) = known.tools();
            tools.extend(some);
            let left_out = |why| format!("the MCP server `{name}`: left out {why}");
            notes.extend(refused.into_iter().map(left_out));
        }
        (tools, notes)
    }

    /// Returns the pinned servers, by name.
    pub fn upstreams(&self) -> Vec<Arc<Upstream>> {
        let on = self.0.values().filter(|server| server.enabled);
        on.filter_map(|server| server.pinned.clone()).collect()
    }

    /// Returns the tools by which clients reach what these servers offer besides tools: the executor's own, which no caller sees.
    pub(crate) fn internal_tools(&self) -> Arc<ToolRegistry> {
        let registry = ToolRegistry::new();
        for upstream in self.upstreams() {
            // Their names contain the server's, and haft defines their schemas.
            if let Err(error) = registry.add_all(internal_tools(&upstream)) {
                tracing::error!(server = upstream.name(), %error, "tools of a server's resources");
            }
        }
        Arc::new(registry)
    }

    fn find(&self, name: &str) -> Result<&Arc<ConfiguredServer>, Problem> {
        self.0.get(name).ok_or_else(|| {
            let problem = Problem::usage(format!("settings have no MCP server `{name}`"));
            if self.0.is_empty() {
                return problem.advise("`haft mcp add` adds one");
            }
            let names: Vec<&str> = self.0.keys().map(String::as_str).collect();
            problem.advise(format!("there are {}", names.join(", ")))
        })
    }

    /// Returns the command line or address of a server: what [`look`](Self::look) starts or connects to.
    ///
    /// # Errors
    /// The settings have no server of this name.
    pub fn place(&self, name: &str) -> Result<&str, Problem> {
        Ok(&self.find(name)?.place)
    }

    /// Starts or connects to a server, asks it for its tools, and disconnects.
    ///
    /// # Errors
    /// The settings have no server of this name, it cannot be reached, or its response is invalid.
    pub async fn look(&self, name: &str) -> Result<ServerReview, Problem> {
        let server = self.find(name)?;
        let limits = server.terms.limits;
        let now = Upstream::look(server.place.clone(), &*server.open, limits).await;
        let now = now.map_err(|e| {
            let problem = Problem::failed(format!("cannot look at `{name}`: {e}"));
            match e {
                ClientError::Unauthorized { .. } => problem.advise(login::advice(name)),
                _ => problem,
            }
        })?;
        let pinned = server.pinned.as_ref().map(|known| known.manifest().clone());
        let nothing = Manifest {
            tools: Vec::new(),
            ..now.clone()
        };
        Ok(ServerReview {
            drift: pinned.as_ref().unwrap_or(&nothing).drift(&now),
            findings: findings(&now),
            now,
            pinned,
            file: server.file.clone(),
        })
    }

    /// Closes all connections.
    pub(crate) async fn close(&self) {
        for server in self.0.values() {
            if let Some(known) = &server.pinned {
                known.close().await;
            }
        }
    }
}

impl ServerReview {
    /// Pins the current manifest: from now on these tools are offered, and no others, also by haft servers that are already running.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn pin(&self) -> Result<(), Problem> {
        let failed = |e: std::io::Error| {
            Problem::failed(format!("cannot store what was pinned: {e}"))
                .at(SourceLocation::file(&self.file))
        };
        if let Some(folder) = self.file.parent() {
            plain_file::private_folder(folder).map_err(failed)?;
        }
        plain_file::write_private(&self.file, &self.now.to_text()).map_err(failed)
    }
}
