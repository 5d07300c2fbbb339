//! `Bridge`: passes what a server asks and reports during a call to the program that made the call.
//!
//! A handshake-era server asks with requests of its own, a stateless one with a result that says what is missing. haft's client
//! receives either in the way of its own era. A question to a user names the server that asks.

use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::sync::Arc;

use haft::caller::{CallerRequest, LogLevel, RequestKind};
use haft::context::{CallContext, CallerHandle};
use haft::future::BoxFuture;
use haft::json::members::members;
use haft::progress::Progress;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_encode};
use serde_json::json;
use serde_json::value::RawValue;

use crate::client::{ClientError, OwnCapabilities, Respond, Responder};
use crate::upstream::{Upstream, question};
use crate::wire::params::text;

/// The error code for a capability that the server needs and its client did not declare.
const MISSING_CAPABILITY: i64 = -32021;

/// What a server may ask its callers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerRequestPolicy {
    /// Whether it may ask a user (`elicitation/create`).
    pub elicitation: bool,
    /// Whether it may ask a model (`sampling/createMessage`).
    pub sampling: bool,
    /// Whether it may ask a client for its folders (`roots/list`).
    pub client_roots: bool,
    /// The folders that it is told of instead.
    pub roots: Vec<Root>,
}

impl Default for ServerRequestPolicy {
    /// It may ask users but no model, and is told of no folders.
    fn default() -> Self {
        Self {
            elicitation: true,
            sampling: false,
            client_roots: false,
            roots: Vec::new(),
        }
    }
}

impl ServerRequestPolicy {
    /// Returns what haft offers on a connection that many callers share.
    pub(crate) fn offers(&self) -> OwnCapabilities {
        OwnCapabilities {
            elicitation: self.elicitation,
            sampling: self.sampling,
            roots: self.client_roots || !self.roots.is_empty(),
        }
    }
}

/// A folder that a server is told of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Root {
    /// `file://` and the path.
    pub uri: String,
    /// A display name.
    pub name: String,
}

/// The characters of a folder's path that are not encoded.
const PATH_ENCODE_SET: AsciiSet = NON_ALPHANUMERIC
    .remove(b'/')
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

impl Root {
    /// Describes a folder by its own name.
    pub fn folder(path: &Path) -> Self {
        let bytes = path.as_os_str().as_bytes();
        let name = path.file_name().map(|name| name.to_string_lossy());
        Self {
            uri: format!("file://{}", percent_encode(bytes, &PATH_ENCODE_SET)),
            name: name.unwrap_or_default().into_owned(),
        }
    }
}

/// The way back to the caller of one call.
#[derive(Debug, Clone)]
pub(crate) struct Bridge {
    server: Arc<Upstream>,
    caller: Option<CallerHandle>,
    pub(crate) progress: Progress,
}

impl Bridge {
    /// Creates the bridge for the call with this context.
    pub(crate) fn of(server: &Arc<Upstream>, context: &CallContext) -> Self {
        Self {
            server: Arc::clone(server),
            caller: context.caller(),
            progress: context.progress(),
        }
    }

    /// Returns the responder for the server: within what the settings allow and the caller supports.
    pub(crate) fn responder(&self) -> Responder {
        let passing = &self.server.terms.passing;
        let can = |kind| self.caller.as_ref().is_some_and(|caller| caller.can(kind));
        let offers = OwnCapabilities {
            elicitation: passing.elicitation && can(RequestKind::Form),
            sampling: passing.sampling && can(RequestKind::Sampling),
            roots: if passing.client_roots {
                can(RequestKind::Roots)
            } else {
                !passing.roots.is_empty()
            },
        };
        Responder::new(offers, Arc::new(self.clone()))
    }

    /// Handles a call that the server refused because its client lacks a capability (2026-07-28, -32021): notes the missing
    /// capabilities for the caller, as if it had been asked.
    pub(crate) async fn note_missing_capability(&self, error: &ClientError) {
        let error = match error {
            ClientError::TaskFailed { error, .. } => error,
            error => error,
        };
        let ClientError::Refused {
            code: MISSING_CAPABILITY,
            data: Some(data),
            ..
        } = error
        else {
            return;
        };
        for kind in [RequestKind::Form, RequestKind::Sampling, RequestKind::Roots] {
            let named = format!("\"{}\"", kind.capability());
            if let Some(caller) = &self.caller
                && data.contains(&named)
                && !caller.can(kind)
                && let Ok(nothing) = RawValue::from_string("{}".to_owned())
            {
                // The caller declared no such capability, so no one is asked.
                let _unsupported = caller.ask(CallerRequest::new(kind, nothing)).await;
            }
        }
    }

    /// Returns the folders in the settings; a server learns nothing about the caller's folders.
    fn roots(&self) -> Result<Box<RawValue>, String> {
        let roots = self.server.terms.passing.roots.iter();
        let roots = roots.map(|root| json!({"uri": root.uri, "name": root.name}));
        let roots = json!({"roots": roots.collect::<Vec<_>>()});
        RawValue::from_string(roots.to_string()).map_err(|e| e.to_string())
    }
}

impl Respond for Bridge {
    fn respond<'a>(
        &'a self,
        method: &'a str,
        params: Option<&'a RawValue>,
    ) -> BoxFuture<'a, Result<Box<RawValue>, String>> {
        self.respond_named(None, method, params)
    }

    fn respond_named<'a>(
        &'a self,
        name: Option<&'a str>,
        method: &'a str,
        params: Option<&'a RawValue>,
    ) -> BoxFuture<'a, Result<Box<RawValue>, String>> {
        Box::pin(async move {
            let empty = || RawValue::from_string("{}".to_owned()).map_err(|e| e.to_string());
            let params = match params {
                Some(params) => params.to_owned(),
                None => empty()?,
            };
            let kind = RequestKind::of(method, &params);
            let kind = kind.ok_or_else(|| format!("haft cannot pass on {method} of this form"))?;
            let params = match kind {
                RequestKind::Roots if !self.server.terms.passing.client_roots => {
                    return self.roots();
                }
                RequestKind::Roots | RequestKind::Sampling => params,
                RequestKind::Form | RequestKind::Url => {
                    question::check(kind, &params)?;
                    question::marked(&params, self.server.name())?
                }
            };
            let caller = self.caller.as_ref();
            let caller = caller.ok_or("the caller of this tool cannot be asked")?;
            let mut request = CallerRequest::new(kind, params);
            request.name = name.map(str::to_owned);
            let answer = caller.ask(request).await;
            answer.map_err(|error| error.to_string())
        })
    }

    fn log(&self) -> Option<LogLevel> {
        let caller = self.caller.as_ref()?;
        let mut levels = LogLevel::ALL.into_iter();
        levels.find(|level| caller.wants_log(*level))
    }

    fn hear(&self, method: &str, params: Option<Box<RawValue>>) {
        let (Some(caller), Some(params)) = (&self.caller, params) else {
            return;
        };
        // Other notifications are about haft's own connection, which its callers do not know.
        if method == "notifications/message"
            && params.get().len() <= MAX_LOG
            && let Some(level) = level_of(&params)
        {
            caller.log_raw(level, params);
        }
    }
}

/// Maximum length of a log message that is passed on, in bytes.
const MAX_LOG: usize = 64 << 10;

fn level_of(params: &RawValue) -> Option<LogLevel> {
    let found = members(params.get()).ok()?;
    let level = found.iter().find(|member| member.is("level"))?;
    LogLevel::parse(&text(level.value())?)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::Root;

    #[test]
    fn a_folder_has_an_address_that_can_be_read_back() {
        let root = Root::folder(Path::new("/home/ada/my work%"));
        assert_eq!(root.uri, "file:///home/ada/my%20work%25");
        assert_eq!(root.name, "my work%");
    }
}
