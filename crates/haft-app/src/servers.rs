//! MCP servers behind haft (`mcp.servers`): which there are, how each is reached, and what was pinned of it.
//!
//! A server that nobody has pinned is not started and offers nothing. What was pinned holds for one command line or
//! address: another one is another server. Settings and pins that change make other [`Servers`]; those of which nothing has
//! changed go on with the connection they have.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Weak};
use std::time::Duration;

use haft::text::hex;
use haft::toolset::registry::ToolRegistry;
use haft_mcp::client::ClientError;
use haft_mcp::upstream::{
    Activity, Open, RemoteTool, Upstream, UpstreamTerms, findings, internal_tools,
};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::home::Home;
use crate::plain_file;
use crate::problem::{Place, Problem};
use crate::servers::endpoint::Address;

pub use haft_mcp::upstream::{Drift, Finding, Manifest, PinnedTool};

pub mod edit;
pub(crate) mod endpoint;
pub mod literal;
pub mod login;
pub(crate) mod process;
pub(crate) mod sign_in;

/// The largest manifest that is read.
const LARGEST: u64 = 64 << 20;

/// How a server is spoken to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Transport {
    /// It is a process of ours.
    Stdio,
    /// It answers at an address.
    Http,
    /// The same, and it speaks the HTTP+SSE of 2024-11-05: seen when it was pinned.
    Sse,
}

/// How far a server has come in a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ServerState {
    /// Settings turned it off.
    Disabled,
    /// Settings name it, and nobody has pinned it: it offers nothing.
    Configured,
    /// It was pinned: its tools are offered.
    Known,
    /// It is connected, too.
    Started,
    /// A call of one of its tools is under way.
    InUse,
}

impl ServerState {
    /// Whether its tools are offered.
    pub fn is_offered(self) -> bool {
        matches!(self, Self::Known | Self::Started | Self::InUse)
    }
}

/// A server as it is listed (contract §9).
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ListedServer {
    /// Its name in settings.
    pub name: String,
    /// How it is spoken to.
    pub transport: Transport,
    /// The command line or the address.
    pub place: String,
    /// Whether its tools are offered.
    pub state: ServerState,
    /// The revision of the protocol that it spoke when it was pinned.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revision: Option<String>,
    /// Tools that were pinned.
    pub tools: usize,
    /// What is wrong with it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// A server of settings.
pub(crate) struct Server {
    pub(crate) name: String,
    pub(crate) transport: Transport,
    /// The command line or the address, with references to secrets as they were written.
    pub(crate) place: String,
    pub(crate) enabled: bool,
    pub(crate) terms: UpstreamTerms,
    pub(crate) open: Arc<dyn Open>,
    /// All that settings say of it.
    said: BTreeMap<Vec<String>, toml::Value>,
    /// Where it answers, where that is an address.
    address: Option<Arc<Address>>,
    /// Where what was pinned is kept.
    file: PathBuf,
    /// What was pinned, where it could be read.
    pinned: Option<Arc<Upstream>>,
    fault: Option<String>,
}

impl std::fmt::Debug for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Server")
            .field("name", &self.name)
            .field("place", &self.place)
            .finish_non_exhaustive()
    }
}

/// A server, as settings want it.
pub(crate) struct Made {
    pub(crate) name: String,
    pub(crate) transport: Transport,
    pub(crate) place: String,
    pub(crate) enabled: bool,
    pub(crate) terms: UpstreamTerms,
    pub(crate) open: Arc<dyn Open>,
    /// All that settings say of it.
    pub(crate) said: BTreeMap<Vec<String>, toml::Value>,
    pub(crate) address: Option<Arc<Address>>,
}

/// All servers of settings, by name.
#[derive(Debug, Default)]
pub struct Servers(BTreeMap<String, Arc<Server>>);

/// What a server says of itself now, beside what was pinned.
#[derive(Debug)]
pub struct Look {
    /// What it says now.
    pub now: Manifest,
    /// What was pinned.
    pub pinned: Option<Manifest>,
    /// What has changed since; all is new where nothing was pinned.
    pub drift: Drift,
    /// What a person should look at.
    pub findings: Vec<Finding>,
    file: PathBuf,
}

impl Server {
    /// A server, with what was pinned of it in this state folder; the one that was there before where nothing of it has changed.
    pub(crate) fn new(home: &Home, made: Made, before: Option<&Arc<Self>>) -> Arc<Self> {
        let file = pin_file(home, &made.name, &made.place);
        let before = before.filter(|before| before.said == made.said);
        let (manifest, fault) = match read(&file) {
            Ok(manifest) => (manifest.filter(|known| known.place == made.place), None),
            Err(why) => (None, Some(why)),
        };
        let held = before.and_then(|before| before.pinned.as_ref());
        let pinned = match (manifest, held) {
            // A pin that cannot be read any more is as it was.
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

    /// Which connection it has.
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

    fn listed(&self) -> ListedServer {
        let manifest = self.pinned.as_ref().map(|known| known.manifest());
        let activity = self.pinned.as_ref().map(|known| known.activity());
        let activity = activity.unwrap_or_default();
        let seen = manifest.and_then(|manifest| manifest.transport.as_deref());
        ListedServer {
            name: self.name.clone(),
            transport: match (self.transport, seen) {
                (Transport::Http, Some("sse")) => Transport::Sse,
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

/// Where what was pinned of a server is kept: it holds for this command line or address.
fn pin_file(home: &Home, name: &str, place: &str) -> PathBuf {
    let digest = hex(&Sha256::digest(place.as_bytes())[..6]);
    home.join("mcp").join(format!("{name}-{digest}.json"))
}

/// Forgets what was pinned of the servers of this name, whatever they were reached by; the number of those.
///
/// # Errors
/// The folder cannot be read, or a file not be removed.
pub fn forget_pins(home: &Home, name: &str) -> Result<usize, Problem> {
    let folder = home.join("mcp");
    let failed = |e: std::io::Error| {
        Problem::failed(format!("forget what was pinned of `{name}`: {e}")).at(Place::file(&folder))
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

/// What is in the file; nothing where there is none.
fn read(file: &std::path::Path) -> Result<Option<Manifest>, String> {
    let told = |why: String| format!("read {}: {why}", file.display());
    match plain_file::read(file, LARGEST) {
        Ok(text) => Manifest::parse(&text)
            .map(Some)
            .map_err(|e| told(e.to_string())),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(told(error.to_string())),
    }
}

impl Servers {
    pub(crate) fn new(servers: impl IntoIterator<Item = Arc<Server>>) -> Self {
        let named = |server: Arc<Server>| (server.name.clone(), server);
        Self(servers.into_iter().map(named).collect())
    }

    /// The server of this name.
    pub(crate) fn get(&self, name: &str) -> Option<&Arc<Server>> {
        self.0.get(name)
    }

    /// Whether these are the very same servers.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        let pairs = self.0.values().zip(other.0.values());
        self.0.len() == other.0.len() && pairs.into_iter().all(|(a, b)| Arc::ptr_eq(a, b))
    }

    /// The files in which what was pinned is kept, whether they are there or not.
    pub(crate) fn pin_files(&self) -> impl Iterator<Item = PathBuf> {
        self.0.values().map(|server| server.file.clone())
    }

    /// The names of those that are pinned otherwise than in `before`, while settings say the same of them.
    pub(crate) fn pinned_since<'a>(&'a self, before: &'a Self) -> impl Iterator<Item = &'a str> {
        let is_other = |server: &&Arc<Server>| {
            let old = before.get(&server.name);
            old.is_some_and(|old| old.said == server.said && old.upstream() != server.upstream())
        };
        self.0.values().filter(is_other).map(|server| &*server.name)
    }

    /// Ends the connections that `now` has not got, and returns them: at once where the server is gone or off, with the calls
    /// under way where it goes on in another form. Needs a tokio runtime.
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
            let goes_on = |new: &&Arc<Server>| {
                new.enabled && new.place == server.place && new.pinned.is_some()
            };
            let grace = match new.filter(goes_on) {
                Some(_) => server.terms.limits.call,
                None => Duration::ZERO,
            };
            // What clients follow of it goes on.
            if let Some(now) = new.filter(goes_on).and_then(|new| new.pinned.as_ref()) {
                now.succeeds(&old);
            }
            retiring.push(Arc::downgrade(&old));
            tokio::spawn(async move { old.retire(grace).await });
        }
        retiring
    }

    /// All of them, by name.
    pub fn list(&self) -> Vec<ListedServer> {
        self.0.values().map(|server| server.listed()).collect()
    }

    /// The tools of those that are known, and a line for each server and each tool that is not offered.
    pub(crate) fn tools(&self) -> (Vec<RemoteTool>, Vec<String>) {
        let (mut tools, mut notes) = (Vec::new(), Vec::new());
        for server in self.0.values().filter(|server| server.enabled) {
            let name = &server.name;
            let Some(known) = &server.pinned else {
                notes.push(match &server.fault {
                    Some(why) => format!("the MCP server `{name}` offers no tools: {why}"),
                    None => format!(
                        "the MCP server `{name}` offers no tools before you have seen them: haft mcp pin {name}"
                    ),
                });
                continue;
            };
            if let Some(why) = &server.fault {
                notes.push(format!(
                    "the MCP server `{name}`: {why}; what was pinned before still holds"
                ));
            }
            let (some, refused) = known.tools();
            tools.extend(some);
            let left_out = |why| format!("the MCP server `{name}`: left out {why}");
            notes.extend(refused.into_iter().map(left_out));
        }
        (tools, notes)
    }

    /// Those that are known, by name.
    pub fn upstreams(&self) -> Vec<Arc<Upstream>> {
        let on = self.0.values().filter(|server| server.enabled);
        on.filter_map(|server| server.pinned.clone()).collect()
    }

    /// The tools by which clients reach what these servers have beside tools: the executor's own, which no caller sees.
    pub(crate) fn internal_tools(&self) -> Arc<ToolRegistry> {
        let registry = ToolRegistry::new();
        for upstream in self.upstreams() {
            // Their names hold the server's, and their schemas are ours.
            if let Err(error) = registry.add_all(internal_tools(&upstream)) {
                tracing::error!(server = upstream.name(), %error, "tools of a server's resources");
            }
        }
        Arc::new(registry)
    }

    fn find(&self, name: &str) -> Result<&Arc<Server>, Problem> {
        self.0.get(name).ok_or_else(|| {
            let problem = Problem::usage(format!("settings have no MCP server `{name}`"));
            if self.0.is_empty() {
                return problem.advise("`haft mcp add` adds one");
            }
            let names: Vec<&str> = self.0.keys().map(String::as_str).collect();
            problem.advise(format!("there are {}", names.join(", ")))
        })
    }

    /// The command line or address of a server: what [`look`](Self::look) starts or reaches.
    ///
    /// # Errors
    /// Settings have no server of this name.
    pub fn place(&self, name: &str) -> Result<&str, Problem> {
        Ok(&self.find(name)?.place)
    }

    /// Starts or reaches a server, asks it for its tools, and leaves it again.
    ///
    /// # Errors
    /// Settings have no server of this name, it cannot be reached, or what it says is not understood.
    pub async fn look(&self, name: &str) -> Result<Look, Problem> {
        let server = self.find(name)?;
        let limits = server.terms.limits;
        let now = Upstream::look(server.place.clone(), &*server.open, limits).await;
        let now = now.map_err(|e| {
            let problem = Problem::failed(format!("look at `{name}`: {e}"));
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
        Ok(Look {
            drift: pinned.as_ref().unwrap_or(&nothing).drift(&now),
            findings: findings(&now),
            now,
            pinned,
            file: server.file.clone(),
        })
    }

    /// Ends the connections there are.
    pub(crate) async fn close(&self) {
        for server in self.0.values() {
            if let Some(known) = &server.pinned {
                known.close().await;
            }
        }
    }
}

impl Look {
    /// Pins what was seen: from now on these tools are offered, and no others, also by servers of haft that run already.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn pin(&self) -> Result<(), Problem> {
        let failed = |e: std::io::Error| {
            Problem::failed(format!("keep what was pinned: {e}")).at(Place::file(&self.file))
        };
        if let Some(folder) = self.file.parent() {
            plain_file::private_folder(folder).map_err(failed)?;
        }
        plain_file::write_private(&self.file, &self.now.to_text()).map_err(failed)
    }
}
