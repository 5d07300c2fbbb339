//! `Gateway`: what servers behind haft have beside tools, offered to haft's own clients: resources, prompts, completion.
//!
//! Lists are what was pinned, so that no server is started for them; one that is connected is asked for what it has now. Whatever
//! reaches a server is a call of one of its [`ServerTool`]s.

use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

use haft::call::{Origin, ToolCall};
use haft::error::Failure;
use haft::future::BoxFuture;
use haft::json::amend::Amended;
use haft::session::Session;
use haft::tool::Tool;
use serde_json::json;
use serde_json::value::RawValue;
use tokio::sync::broadcast;

use crate::offer::{Entry, Held, Kinds, Offer, OfferChange, Reference, Wanted};
use crate::upstream::Upstream;
use crate::upstream::address::{self, fits, is_reserved};
use crate::upstream::pages::ListKind;
use crate::upstream::server_tool::{ServerTool, Verb};
use crate::wire::reply;

/// What the address of a tool's page begins with (MCP Apps).
const PAGES: &str = "ui://";

type Now = dyn Fn() -> Vec<Arc<Upstream>> + Send + Sync;

/// The servers behind haft, as an [`Offer`].
pub struct Gateway {
    now: Box<Now>,
    changes: broadcast::Sender<OfferChange>,
}

/// Changes that a client may lie behind.
const BEHIND: usize = 256;

impl fmt::Debug for Gateway {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gateway").finish_non_exhaustive()
    }
}

/// The tools by which a gateway reaches a server; the executor's own, which no caller sees.
pub fn internal_tools(server: &Arc<Upstream>) -> impl Iterator<Item = Arc<dyn Tool>> + '_ {
    let tools = Verb::ALL.into_iter();
    tools
        .filter_map(|verb| ServerTool::new(verb, server))
        .map(|tool| Arc::new(tool) as Arc<dyn Tool>)
}

impl Gateway {
    /// The servers that this gives, in the order of their names, whenever it is asked.
    pub fn new(servers: impl Fn() -> Vec<Arc<Upstream>> + Send + Sync + 'static) -> Self {
        Self {
            now: Box::new(servers),
            changes: broadcast::Sender::new(BEHIND),
        }
    }

    /// The servers whose resources and prompts this session may have: where it has a view, those of which the view has a tool.
    fn servers(&self, session: &Session) -> Vec<Arc<Upstream>> {
        let mut servers = (self.now)();
        for server in &servers {
            server.tells(&self.changes);
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

    /// A list over all servers. An address or a name that an earlier server has, or that haft reads as its own, names its server.
    async fn list(&self, session: &Session, kind: ListKind) -> Vec<Entry> {
        let (mut keys, mut entries) = (HashSet::new(), Vec::new());
        for server in self.servers(session) {
            for listed in server.beside(kind).await {
                let key = match kind {
                    ListKind::Prompts => server.prompt_name(&listed.key),
                    _ if is_reserved(&listed.key) || keys.contains(&listed.key) => {
                        address::of_server(server.name(), &listed.key)
                    }
                    _ => listed.key.clone(),
                };
                if keys.insert(key.clone())
                    && let Some(json) = renamed(&listed.raw, kind.key(), &key)
                {
                    entries.push(Entry { key, json });
                }
            }
        }
        entries
    }

    /// Whose resource this is, and its address there: the server that it names, else the first that lists it, has a template
    /// for it, or is the only one with resources.
    fn resource(&self, session: &Session, uri: &str) -> Option<(Arc<Upstream>, String)> {
        let mut servers = self.servers(session);
        if let Some((name, own)) = address::parts(uri) {
            let server = servers.into_iter().find(|server| server.name() == name);
            return Some((server?, own.to_owned()));
        }
        servers.retain(|server| server.has_resources());
        let is_listed = |server: &&Arc<Upstream>| server.knows_resource(uri);
        // A tool would be shown with the page of another server's.
        if uri.starts_with(PAGES) && servers.iter().filter(is_listed).count() > 1 {
            return None;
        }
        let has_template = |server: &&Arc<Upstream>| {
            let templates = server.known(ListKind::Templates);
            templates.iter().any(|t| t.key == uri || fits(&t.key, uri))
        };
        let found = servers.iter().find(is_listed);
        let found = found.or_else(|| servers.iter().find(has_template));
        let found = found.or_else(|| servers.first().filter(|_| servers.len() == 1));
        found.map(|server| (Arc::clone(server), uri.to_owned()))
    }

    /// Whose prompt this is, and its name there.
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
        Some(call(Verb::Complete, &server, wanted.to_text()))
    }
}

fn call(verb: Verb, server: &Upstream, arguments: String) -> ToolCall {
    ToolCall::new(verb.tool(server.name()), arguments).from_origin(Origin::Mcp)
}

/// An object with another text in one of its members, and all else as it stands. One that comes twice is read in two ways: it
/// comes once.
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
    fn kinds(&self, session: &Session) -> Kinds {
        let servers = self.servers(session);
        let any = |has: fn(&Upstream) -> bool| servers.iter().any(|server| has(server));
        Kinds {
            resources: any(Upstream::has_resources),
            subscriptions: any(Upstream::has_subscriptions),
            prompts: any(Upstream::has_prompts),
            completions: any(Upstream::has_completions),
        }
    }

    fn resources<'a>(&'a self, session: &'a Session) -> BoxFuture<'a, Result<Vec<Entry>, Failure>> {
        Box::pin(async move { Ok(self.list(session, ListKind::Resources).await) })
    }

    fn templates<'a>(&'a self, session: &'a Session) -> BoxFuture<'a, Result<Vec<Entry>, Failure>> {
        Box::pin(async move { Ok(self.list(session, ListKind::Templates).await) })
    }

    fn prompts<'a>(&'a self, session: &'a Session) -> BoxFuture<'a, Result<Vec<Entry>, Failure>> {
        Box::pin(async move { Ok(self.list(session, ListKind::Prompts).await) })
    }

    fn call<'a>(
        &'a self,
        session: &'a Session,
        wanted: &'a Wanted,
    ) -> BoxFuture<'a, Option<ToolCall>> {
        let found = match wanted {
            Wanted::Read { uri } => self
                .resource(session, uri)
                .map(|(server, own)| call(Verb::Read, &server, json!({"uri": own}).to_string())),
            Wanted::Prompt { name, arguments } => {
                self.prompt(session, name).map(|(server, own)| {
                    let mut params = b"{\"name\":".to_vec();
                    reply::json(&mut params, &own);
                    let mut params = String::from_utf8_lossy(&params).into_owned();
                    if !arguments.trim_ascii().is_empty() {
                        params.push_str(",\"arguments\":");
                        params.push_str(arguments);
                    }
                    params.push('}');
                    call(Verb::Get, &server, params)
                })
            }
            Wanted::Complete { reference, params } => self.complete(session, reference, params),
            Wanted::Subscribe { uri } => self.resource(session, uri).map(|(server, own)| {
                let arguments = json!({"uri": own, "follow": true});
                call(Verb::Read, &server, arguments.to_string())
            }),
        };
        Box::pin(std::future::ready(found))
    }

    fn follow(&self, session: &Session, uri: &str) -> Option<Held> {
        let (server, own) = self.resource(session, uri)?;
        let lease = server.follow(&own, Some(uri))?;
        Some(Box::new(lease))
    }

    fn changes(&self, session: &Session) -> Option<broadcast::Receiver<OfferChange>> {
        // Those that came since the last look tell of their changes, too.
        self.servers(session);
        Some(self.changes.subscribe())
    }
}
