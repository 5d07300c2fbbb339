//! The greeting: how a client detects a server's era and introduces itself.
//!
//! The client first sends `server/discover`. A server that does not know that method is of the handshake era, and gets an
//! `initialize` (2026-07-28, basic/versioning).

use std::borrow::Cow;
use std::time::Duration;

use haft::json::members::members;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::client::error::ClientError;
use crate::client::speech::CLIENT_INFO;
use crate::client::{Client, ClientRequest, OFFERED_REVISION, ServerRecord};
use crate::era::{Era, MODERN, Revision};
use crate::wire::RpcError;
use crate::wire::params::text;
use crate::wire::reply;

/// Maximum time that a starting server may leave `server/discover` unanswered before it is treated as an older one.
const DISCOVER_TIMEOUT: Duration = Duration::from_secs(5);

/// The member of `_meta` that names the responding server.
const SERVER_INFO_KEY: &str = "io.modelcontextprotocol/serverInfo";
/// The capabilities of which haft makes use.
const USED: [&str; 4] = ["tools", "resources", "prompts", "completions"];

/// The parts of a response to `initialize` and `server/discover` that a client uses.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct GreetingParts<'a> {
    #[serde(borrow)]
    protocol_version: Option<&'a RawValue>,
    #[serde(borrow, default)]
    supported_versions: Vec<&'a RawValue>,
    #[serde(borrow)]
    server_info: Option<&'a RawValue>,
    #[serde(borrow)]
    instructions: Option<&'a RawValue>,
    #[serde(borrow)]
    capabilities: Option<&'a RawValue>,
    #[serde(borrow, rename = "_meta")]
    meta: Option<&'a RawValue>,
}

impl GreetingParts<'_> {
    fn read(raw: &RawValue) -> Result<GreetingParts<'_>, ClientError> {
        serde_json::from_str(raw.get())
            .map_err(|e| ClientError::Malformed(format!("its greeting: {e}")))
    }

    /// Returns the server's description of itself, truncated to lengths that can be kept.
    fn record(&self) -> ServerRecord {
        let info = self.server_info;
        let info = info.or_else(|| member(self.meta, SERVER_INFO_KEY));
        let word = |name| member(info, name).and_then(text).unwrap_or_default();
        let cut = |said: &str, most| haft::text::clip(said, most).into_owned();
        let instructions = self.instructions.and_then(text);
        let is_null = |one: &RawValue| one.get() == "null";
        let of = |name: &str| {
            let found = member(self.capabilities, name);
            found.filter(|one| one.get() != "false" && !is_null(one))
        };
        let is_true = |name, inner| member(of(name), inner).is_some_and(|one| one.get() == "true");
        ServerRecord {
            name: cut(&word("name"), 200),
            version: cut(&word("version"), 100),
            instructions: instructions.map(|said| cut(&said, 8000)),
            has_tools: of("tools").is_some(),
            is_silent: USED.iter().all(|name| of(name).is_none())
                || member(self.capabilities, "tools").is_some_and(is_null),
            has_resources: of("resources").is_some(),
            has_prompts: of("prompts").is_some(),
            has_completions: of("completions").is_some(),
            has_logging: of("logging").is_some(),
            has_subscriptions: is_true("resources", "subscribe"),
            tells_tools: is_true("tools", "listChanged"),
            tells_prompts: is_true("prompts", "listChanged"),
            tells_resources: is_true("resources", "listChanged"),
        }
    }
}

/// Returns the member of an object, if that is one.
fn member<'a>(object: Option<&'a RawValue>, name: &str) -> Option<&'a RawValue> {
    let all = members(object?.get()).ok()?;
    let found = all.iter().find(|member| member.is(name))?;
    Some(found.value())
}

impl Client {
    /// Greets the server in its `known` era, or else in the one that it turns out to speak.
    pub(super) async fn greet(&mut self, known: Option<Era>) -> Result<(), ClientError> {
        let was_older = matches!(known, Some(Era::Legacy(_)));
        // One of the stateless era may have changed since it was last seen, so it is asked again.
        if !was_older && self.discover().await? {
            return Ok(());
        }
        match self.initialize().await {
            // It started too slowly to answer `server/discover` in time, or is newer than when it was last seen.
            Err(refused @ ClientError::Refused { .. }) => match self.discover().await {
                Ok(true) => Ok(()),
                _ => Err(refused),
            },
            other => other,
        }
    }

    /// Sends `server/discover`; returns whether the server is of the stateless era.
    async fn discover(&mut self) -> Result<bool, ClientError> {
        let whole = self.limits.connect;
        let patience = if self.wire.may_ignore_discover() {
            DISCOVER_TIMEOUT.min(whole / 2)
        } else {
            whole
        };
        let ask = || {
            let question = ClientRequest::new("server/discover", "", patience);
            self.ask_as(Some(Era::Modern), question)
        };
        let raw = match ask().await {
            // It refuses the revision but says that it supports it, so try once more.
            Err(error) if speaks_modern(&error) => ask().await,
            other => other,
        };
        let raw = match raw {
            Ok(raw) => raw,
            Err(error) => return is_older(error, self.wire.may_ignore_discover()).map(|()| false),
        };
        let greeted = GreetingParts::read(&raw.raw)?;
        let mut versions = greeted.supported_versions.iter();
        if !versions.any(|one| text(one).is_some_and(|one| one == MODERN)) {
            // It knows the method, but no stateless revision that haft supports.
            return Ok(false);
        }
        self.era = Era::Modern;
        self.server = greeted.record();
        Ok(true)
    }

    async fn initialize(&mut self) -> Result<(), ClientError> {
        let mut params = Vec::new();
        params.extend_from_slice(b"\"protocolVersion\":");
        reply::json(&mut params, OFFERED_REVISION.as_str());
        let offers = self.offers.json(false);
        let rest = format!(",\"capabilities\":{offers},\"clientInfo\":{CLIENT_INFO}");
        params.extend_from_slice(rest.as_bytes());
        let params = String::from_utf8_lossy(&params);
        let question = ClientRequest::new("initialize", &params, self.limits.connect);
        let raw = self.ask_as(None, question).await?;
        let greeted = GreetingParts::read(&raw.raw)?;
        // A server that names no revision accepted the request as it was.
        let version = greeted.protocol_version.and_then(text);
        let version = version.map_or_else(|| OFFERED_REVISION.as_str().to_owned(), Cow::into_owned);
        let revision = Revision::parse(&version).ok_or_else(|| {
            ClientError::Revision(format!("{:?}", haft::text::clip(&version, 100)))
        })?;
        self.era = Era::Legacy(revision);
        self.server = greeted.record();
        let initialized = reply::notification("notifications/initialized", None);
        self.wire.send_notification(initialized, self.era).await?;
        self.wire.begun(self.era).await;
        Ok(())
    }
}

/// Returns whether a server that refused the stateless era's revision lists it as supported.
fn speaks_modern(error: &ClientError) -> bool {
    #[derive(Deserialize)]
    struct SupportedVersions {
        supported: Vec<String>,
    }
    let ClientError::Refused { code, data, .. } = error else {
        return false;
    };
    let data = data
        .as_deref()
        .filter(|_| *code == i64::from(RpcError::VERSION));
    let data = data.and_then(|data| serde_json::from_str::<SupportedVersions>(data).ok());
    data.is_some_and(|data| data.supported.iter().any(|revision| revision == MODERN))
}

/// Returns `Ok` if this answer to `server/discover` means that the server expects `initialize`.
fn is_older(error: ClientError, may_stay_silent: bool) -> Result<(), ClientError> {
    match error {
        // It is of the stateless era and lists the revisions that it supports.
        ClientError::Refused {
            code,
            message,
            data,
        } if code == i64::from(RpcError::VERSION) => {
            let data = data.unwrap_or_default();
            if Revision::LATEST_FIRST
                .iter()
                .any(|old| data.contains(old.as_str()))
            {
                return Ok(());
            }
            Err(ClientError::Revision(format!("{message} {data}")))
        }
        // Servers of the handshake era refuse a request before the handshake in many ways.
        ClientError::Refused { .. }
        | ClientError::Malformed(_)
        | ClientError::Http {
            status: 400..=406 | 415 | 422,
            ..
        } => Ok(()),
        ClientError::Late { .. } if may_stay_silent => Ok(()),
        other => Err(other),
    }
}
