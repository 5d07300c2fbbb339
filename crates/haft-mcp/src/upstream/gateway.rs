//! `Gateway`: offers what the servers behind haft have besides tools to haft's own clients: resources, prompts, completion.
//!
//! Lists show what was pinned, so that no server is started for them; a connected server is asked for its present lists. Whatever
//! reaches a server is a call of one of its [`ServerTool`]s.

use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

use haft::call::{Origin, ToolCall};
use haft::error::HostFailure;
use haft::future::BoxFuture;
use haft::json::amend::Amended;
use haft::session::Session;
use haft::tool::Tool;
use serde_json::json;
use serde_json::value::RawValue;
use tokio::sync::broadcast;

use crate::offer::{
    Offer, OfferChange, OfferEntry, OfferKinds, OfferRequest, OfferSubscription, Reference,
};
use crate::upstream::Upstream;
use crate::upstream::address;
use crate::upstream::address_table::AddressTable;
use crate::upstream::pages::ListKind;
use crate::upstream::server_tool::{ServerTool, ServerToolAction};
use crate::wire::reply;

type UpstreamSource = dyn Fn() -> Vec<Arc<Upstream>> + Send + Sync;

/// The servers behind haft, as an [`Offer`].
pub struct Gateway {
    now: Box<UpstreamSource>,
    changes: broadcast::Sender<OfferChange>,
}

/// Maximum number of changes that a client may lag behind.
const LISTENER_BUFFER: usize = 256;

impl fmt::Debug for Gateway {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gateway").finish_non_exhaustive()
    }
}

/// Returns the tools by which a gateway reaches a server. They belong to the executor, and no caller sees them.
pub fn internal_tools(server: &Arc<Upstream>) -> impl Iterator<Item = Arc<dyn Tool>> + '_ {
    let tools = ServerToolAction::ALL.into_iter();
    tools
        .filter_map(|verb| ServerTool::new(verb, server))
        .map(|tool| Arc::new(tool) as Arc<dyn Tool>)
}

impl Gateway {
    /// Creates a gateway to the servers that `servers` returns each time, in order of their names.
    pub fn new(servers: impl Fn() -> Vec<Arc<Upstream>> + Send + Sync + 'static) -> Self {
        Self {
            now: Box::new(servers),
            changes: broadcast::Sender::new(LISTENER_BUFFER),
        }
    }

    /// Returns the servers whose resources and prompts this session may use: if it has a view, those with a tool in the view.
    fn servers(&self, session: &Session) -> Vec<Arc<Upstream>> {
        let mut servers = (self.now)();
        for server in &servers {
            server.send_changes_to(&self.changes);
        }
        if session.is_narrowed() {
            let tools = session.tools();
            servers.retain(|server| {
                let mut sources = tools.entries().iter().map(|entry| &entry.spec().source);
                sources.any(|source| source.strip_prefix("mcp:") == Some(server.name()))
            });
        }
        servers
    }

    /// Returns a list across all servers. A URI that belongs to another server, or to none, names the server that
    /// lists it; a prompt that would be another server's is left out.
    async fn list(&self, session: &Session, kind: ListKind) -> Vec<OfferEntry> {
        let (mut keys, mut entries) = (HashSet::new(), Vec::new());
        let servers = self.servers(session);
        let table = AddressTable::new(&servers);
        for (nth, server) in servers.iter().enumerate() {
            for listed in server.list_entries(kind).await {
                let owner = match kind {
                    ListKind::Prompts => {
                        let key = server.prompt_name(&listed.key);
                        servers.iter().position(|s| s.own_prompt(&key).is_some())
                    }
                    ListKind::Resources => table.owner(&listed.key),
                    ListKind::Templates => table.template_owner(&listed.key),
                };
                let key = match kind {
                    // No other name leads to it.
                    ListKind::Prompts if owner != Some(nth) => continue,
                    ListKind::Prompts => server.prompt_name(&listed.key),
                    _ if owner == Some(nth) => listed.key.clone(),
                    _ => address::of_server(server.name(), &listed.key),
                };
                if keys.insert(key.clone())
                    && let Some(json) = renamed(&listed.raw, kind.key(), &key)
                {
                    entries.push(OfferEntry { key, json });
                }
            }
        }
        entries
    }

    /// Returns a resource's server and its URI there: the server that the URI names, else the one that it belongs to.
    fn resource(&self, session: &Session, uri: &str) -> Option<(Arc<Upstream>, String)> {
        let servers = self.servers(session);
        if let Some((name, own)) = address::parts(uri) {
            let server = servers.into_iter().find(|server| server.name() == name);
            return Some((server?, own.to_owned()));
        }
        let owner = AddressTable::new(&servers).owner(uri)?;
        Some((Arc::clone(servers.get(owner)?), uri.to_owned()))
    }

    /// Returns a prompt's server and its name there.
    fn prompt(&self, session: &Session, name: &str) -> Option<(Arc<Upstream>, String)> {
        let servers = self.servers(session);
        let mut owners = servers.iter().filter_map(|server| {
            let own = server.own_prompt(name)?;
            Some((Arc::clone(server), own.to_owned()))
        });
        owners.next()
    }

    fn complete(
        &self,
        session: &Session,
        reference: &Reference,
        params: &RawValue,
    ) -> Option<ToolCall> {
        let (server, member, own) = match reference {
            Reference::Prompt(name) => {
                let (server, own) = self.prompt(session, name)?;
                (server, "name", own)
            }
            Reference::Resource(uri) => {
                let (server, own) = self.resource(session, uri)?;
                (server, "uri", own)
            }
        };
        if !server.has_completions() {
            return None;
        }
        let mut wanted = Amended::read(params.get()).ok()?;
        wanted.retain(|part| !part.is("_meta"));
        let nth = wanted.position("ref")?;
        let renamed = renamed(wanted.members()[nth].value(), member, &own)?;
        wanted
            .replace(nth)
            .extend_from_slice(renamed.get().as_bytes());
        Some(call(ServerToolAction::Complete, &server, wanted.to_text()))
    }
}

fn call(verb: ServerToolAction, server: &Upstream, arguments: String) -> ToolCall {
    ToolCall::new(verb.tool(server.name()), arguments).from_origin(Origin::Mcp)
}

/// Returns an object with another text in one of its members, and everything else unchanged. A duplicate member is removed, since
/// readers could disagree about it.
fn renamed(raw: &RawValue, member: &str, text: &str) -> Option<Arc<RawValue>> {
    let mut object = Amended::read(raw.get()).ok()?;
    let first = object.position(member);
    for (nth, part) in object.members().to_vec().iter().enumerate() {
        if Some(nth) == first {
            object.say(nth, text);
        } else if part.is(member) {
            object.remove(nth);
        }
    }
    object.to_raw().map(Arc::from)
}

impl Offer for Gateway {
    fn kinds(&self, session: &Session) -> OfferKinds {
        let servers = self.servers(session);
        let any = |has: fn(&Upstream) -> bool| servers.iter().any(|server| has(server));
        OfferKinds {
            resources: any(Upstream::has_resources),
            subscriptions: any(Upstream::has_subscriptions),
            prompts: any(Upstream::has_prompts),
            completions: any(Upstream::has_completions),
        }
    }

    fn resources<'a>(
        &'a self,
        session: &'a Session,
    ) -> BoxFuture<'a, Result<Vec<OfferEntry>, HostFailure>> {
        Box::pin(async move { Ok(self.list(session, ListKind::Resources).await) })
    }

    fn templates<'a>(
        &'a self,
        session: &'a Session,
    ) -> BoxFuture<'a, Result<Vec<OfferEntry>, HostFailure>> {
        Box::pin(async move { Ok(self.list(session, ListKind::Templates).await) })
    }

    fn prompts<'a>(
        &'a self,
        session: &'a Session,
    ) -> BoxFuture<'a, Result<Vec<OfferEntry>, HostFailure>> {
        Box::pin(async move { Ok(self.list(session, ListKind::Prompts).await) })
    }

    fn call<'a>(
        &'a self,
        session: &'a Session,
        wanted: &'a OfferRequest,
    ) -> BoxFuture<'a, Option<ToolCall>> {
        let found = match wanted {
            OfferRequest::Read { uri } => self.resource(session, uri).map(|(server, own)| {
                call(
                    ServerToolAction::Read,
                    &server,
                    json!({"uri": own}).to_string(),
                )
            }),
            OfferRequest::Prompt { name, arguments } => {
                self.prompt(session, name).map(|(server, own)| {
                    let mut params = b"{\"name\":".to_vec();
                    reply::json(&mut params, &own);
                    let mut params = String::from_utf8_lossy(&params).into_owned();
                    if !arguments.trim_ascii().is_empty() {
                        params.push_str(",\"arguments\":");
                        params.push_str(arguments);
                    }
                    params.push('}');
                    call(ServerToolAction::Get, &server, params)
                })
            }
            OfferRequest::Complete { reference, params } => {
                self.complete(session, reference, params)
            }
            OfferRequest::Subscribe { uri } => self.resource(session, uri).map(|(server, own)| {
                let arguments = json!({"uri": own, "follow": true});
                call(ServerToolAction::Read, &server, arguments.to_string())
            }),
        };
        Box::pin(std::future::ready(found))
    }

    fn follow(&self, session: &Session, uri: &str) -> Option<OfferSubscription> {
        let (server, own) = self.resource(session, uri)?;
        let lease = server.follow(&own, Some(uri))?;
        Some(Box::new(lease))
    }

    fn changes(&self, session: &Session) -> Option<broadcast::Receiver<OfferChange>> {
        // Servers added since the last look report their changes as well.
        self.servers(session);
        Some(self.changes.subscribe())
    }
}
