//! MCP servers behind haft (`mcp.servers`): which there are, how each is reached, and what was pinned of it.
//!
//! A server that nobody has pinned is not started and offers nothing. What was pinned holds for one command line or
//! address: another one is another server.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use haft::text::hex;
use haft_mcp::upstream::{Open, RemoteTool, Upstream, UpstreamTerms, findings};
use serde::Serialize;
use sha2::{Digest, Sha256};

use crate::home::Home;
use crate::plain_file;
use crate::problem::{Place, Problem};

pub use haft_mcp::upstream::{Drift, Finding, Manifest, PinnedTool};

pub(crate) mod endpoint;
pub(crate) mod process;

/// The largest manifest that is read.
const LARGEST: u64 = 64 << 20;

/// How a server is spoken to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Transport {
    /// It is a process of ours.
    Stdio,
    /// It answers at an address.
    Http,
}

/// Whether a server's tools are offered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ServerState {
    /// Settings turned it off.
    Disabled,
    /// Nobody has pinned it.
    Unknown,
    /// It was pinned: its tools are offered.
    Known,
}

/// A server as it is listed (contract §9).
#[derive(Debug, Clone, Serialize)]
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
}

/// All servers of settings, by name.
#[derive(Debug, Default)]
pub struct Servers(BTreeMap<String, Server>);

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
    /// A server, with what was pinned of it in this state folder.
    pub(crate) fn new(home: &Home, made: Made) -> Self {
        let digest = hex(&Sha256::digest(made.place.as_bytes())[..6]);
        let file = home
            .join("mcp")
            .join(format!("{}-{digest}.json", made.name));
        let (manifest, fault) = match read(&file) {
            Ok(manifest) => (manifest.filter(|known| known.place == made.place), None),
            Err(why) => (None, Some(why)),
        };
        let pinned = manifest.map(|manifest| {
            let open = Arc::clone(&made.open);
            Arc::new(Upstream::new(
                &made.name,
                manifest,
                open,
                made.terms.clone(),
            ))
        });
        Self {
            name: made.name,
            transport: made.transport,
            place: made.place,
            enabled: made.enabled,
            terms: made.terms,
            open: made.open,
            file,
            pinned,
            fault,
        }
    }

    fn state(&self) -> ServerState {
        match (self.enabled, &self.pinned) {
            (false, _) => ServerState::Disabled,
            (true, None) => ServerState::Unknown,
            (true, Some(_)) => ServerState::Known,
        }
    }

    fn listed(&self) -> ListedServer {
        let manifest = self.pinned.as_ref().map(|known| known.manifest());
        ListedServer {
            name: self.name.clone(),
            transport: self.transport,
            place: self.place.clone(),
            state: self.state(),
            revision: manifest.map(|manifest| manifest.revision.clone()),
            tools: manifest.map_or(0, |manifest| manifest.tools.len()),
            error: self.fault.clone(),
        }
    }
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
    pub(crate) fn new(servers: impl IntoIterator<Item = Server>) -> Self {
        let named = |server: Server| (server.name.clone(), server);
        Self(servers.into_iter().map(named).collect())
    }

    /// All of them, by name.
    pub fn list(&self) -> Vec<ListedServer> {
        self.0.values().map(Server::listed).collect()
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
            let (some, refused) = known.tools();
            tools.extend(some);
            let left_out = |why| format!("the MCP server `{name}`: left out {why}");
            notes.extend(refused.into_iter().map(left_out));
        }
        (tools, notes)
    }

    fn find(&self, name: &str) -> Result<&Server, Problem> {
        self.0.get(name).ok_or_else(|| {
            let problem = Problem::usage(format!("settings have no MCP server `{name}`"));
            if self.0.is_empty() {
                return problem.advise("`haft config explain mcp.servers` says how to add one");
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
        let now = now.map_err(|e| Problem::failed(format!("look at `{name}`: {e}")))?;
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
    /// Pins what was seen: from the next start on these tools are offered, and no others.
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
