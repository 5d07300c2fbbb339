//! What a server has besides tools: as pinned, or the present state while there is a connection.

use std::collections::HashSet;
use std::sync::Arc;

use haft::error::ToolError;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::client::{Client, ClientError};
use crate::upstream::bridge::Bridge;
use crate::upstream::link::LiveConnection;
use crate::upstream::manifest::{Manifest, PinnedExtras, PinnedTool};
use crate::upstream::pages::{self, ListKind};
use crate::upstream::upstream_request::UpstreamRequest;
use crate::upstream::{ListedEntry, Upstream};

/// Returns the pages that tools name (`_meta.ui.resourceUri`, MCP Apps): resources that need not be in a list.
pub(crate) fn tool_pages(manifest: &Manifest) -> HashSet<String> {
    #[derive(Deserialize)]
    struct ToolMetaMember {
        #[serde(rename = "_meta")]
        meta: Option<ToolMeta>,
    }
    #[derive(Deserialize)]
    struct ToolMeta {
        ui: Option<UiToolMeta>,
        #[serde(rename = "ui/resourceUri")]
        flat: Option<String>,
    }
    #[derive(Deserialize)]
    struct UiToolMeta {
        #[serde(rename = "resourceUri")]
        uri: Option<String>,
    }
    let page = |tool: &PinnedTool| {
        let described: ToolMetaMember = serde_json::from_str(tool.raw.get()).ok()?;
        let meta = described.meta?;
        meta.ui.and_then(|ui| ui.uri).or(meta.flat)
    };
    manifest.tools.iter().filter_map(page).collect()
}

/// Returns what a server has now.
pub(crate) async fn look(client: &Client) -> Result<PinnedExtras, ClientError> {
    let server = client.server();
    let mut beside = PinnedExtras {
        has_resources: server.has_resources,
        has_prompts: server.has_prompts,
        has_completions: server.has_completions,
        has_subscriptions: server.has_subscriptions,
        ..PinnedExtras::default()
    };
    if beside.has_resources {
        beside.resources = listed(client, ListKind::Resources).await?;
        beside.templates = listed(client, ListKind::Templates).await?;
    }
    if beside.has_prompts {
        beside.prompts = listed(client, ListKind::Prompts).await?;
    }
    Ok(beside)
}

/// Returns a list; empty if the server turns out not to support the method.
async fn listed(client: &Client, kind: ListKind) -> Result<Vec<ListedEntry>, ClientError> {
    match pages::list(client, kind).await {
        // JSON-RPC's code for method not found.
        Err(ClientError::Refused { code: -32601, .. }) => Ok(Vec::new()),
        other => other,
    }
}

impl Upstream {
    /// Returns whether it had resources, or pages of tools, when it was pinned.
    pub(crate) fn has_resources(&self) -> bool {
        self.manifest.beside.has_resources || !self.pages.is_empty()
    }

    /// Returns whether it had prompts.
    pub(crate) fn has_prompts(&self) -> bool {
        self.manifest.beside.has_prompts
    }

    /// Returns whether it completes arguments.
    pub(crate) fn has_completions(&self) -> bool {
        self.manifest.beside.has_completions
    }

    /// Returns whether it reported changes of single resources.
    pub(crate) fn has_subscriptions(&self) -> bool {
        self.manifest.beside.has_subscriptions
    }

    /// Returns what it listed when it was pinned.
    pub(crate) fn known(&self, kind: ListKind) -> &[ListedEntry] {
        let beside = &self.manifest.beside;
        match kind {
            ListKind::Resources => &beside.resources,
            ListKind::Templates => &beside.templates,
            ListKind::Prompts => &beside.prompts,
        }
    }

    /// Returns the URIs that it listed when it was pinned, and those that its tools name.
    pub(crate) fn pinned_addresses(&self) -> impl Iterator<Item = &str> {
        let known = self.known(ListKind::Resources).iter();
        let pages = self.pages.iter().map(String::as_str);
        known.map(|entry| entry.key.as_str()).chain(pages)
    }

    /// Returns what it lists: now, if there is a connection and it responds; otherwise as pinned.
    pub(crate) async fn list_entries(&self, kind: ListKind) -> Vec<ListedEntry> {
        let has = match kind {
            ListKind::Resources | ListKind::Templates => self.manifest.beside.has_resources,
            ListKind::Prompts => self.manifest.beside.has_prompts,
        };
        if has && let Some(live) = self.open_now().await {
            match listed(&live.client, kind).await {
                Ok(now) => return now,
                Err(error) => {
                    tracing::warn!(server = %self.name, %error, "list what a server has");
                }
            }
        }
        self.known(kind).to_vec()
    }

    /// Returns an open connection, if there is one.
    async fn open_now(&self) -> Option<Arc<LiveConnection>> {
        for link in self.links.all() {
            if let Some(live) = link.open_now().await {
                return Some(live);
            }
        }
        None
    }

    /// Returns the name in haft of one of its prompts.
    pub(crate) fn prompt_name(&self, own: &str) -> String {
        format!("{}{own}", self.terms.prefix(&self.name))
    }

    /// Returns its own name for a prompt of haft's, if that is one of its prompts.
    pub(crate) fn own_prompt<'n>(&self, name: &'n str) -> Option<&'n str> {
        let own = name.strip_prefix(&*self.terms.prefix(&self.name))?;
        // Without a prefix, every name could be its own.
        let is_known = || {
            let known = self.known(ListKind::Prompts);
            known.iter().any(|entry| entry.key == own)
        };
        let names_it = self.terms.prefix.as_deref() != Some("");
        (self.has_prompts() && (names_it || is_known())).then_some(own)
    }

    /// Sends a request to the server, over a new connection if there is none. Retries once if the connection was lost, since
    /// these requests change nothing by the protocol.
    pub(crate) async fn ask(
        &self,
        errand: UpstreamRequest<'_>,
        bridge: &Bridge,
    ) -> Result<Box<RawValue>, ToolError> {
        let _place = self.room.acquire().await;
        self.check_retired()?;
        let link = self.links.of(bridge.responder().offers);
        let mut again = true;
        loop {
            let live = link.open_connection().await;
            let live = live.map_err(|e| self.failure(e.before_call()))?;
            let answer = errand.run(&live.client, bridge).await;
            let error = match answer {
                Ok(raw) => {
                    link.note_success();
                    return Ok(raw);
                }
                Err(error) => error,
            };
            let is_gone = matches!(
                error,
                ClientError::Closed { .. } | ClientError::SessionOver | ClientError::Unreachable(_)
            );
            if is_gone {
                link.discard(&live, &error).await;
            }
            if !(again && is_gone) {
                return Err(self.missing(error));
            }
            again = false;
        }
    }

    /// Waits until the server has confirmed that it reports a resource's changes. Clients take a lease of their own before the
    /// server is told to drop this one.
    pub(crate) async fn wait_until_followed(&self, uri: &str) -> Result<(), ToolError> {
        self.check_retired()?;
        let name = &self.name;
        let lease = self.follow(uri, None).ok_or_else(|| {
            ToolError::unavailable(format!(
                "so many resources of {name} are followed that no other can be"
            ))
            .with_advice("end subscriptions that are not needed")
        })?;
        lease
            .wait_until_confirmed()
            .await
            .map_err(|error| self.missing(error))
    }

    /// Returns the failure of a request; if something does not exist, the error says so.
    fn missing(&self, error: ClientError) -> ToolError {
        let message = format!("{}: {error}", self.name);
        match error {
            // MCP until 2025-11-25: resource not found; since then, and for prompts: invalid params.
            ClientError::Refused {
                code: -32002 | -32602,
                ..
            } => ToolError::not_found(message),
            other => self.failure(other),
        }
    }
}
