//! `CallerHandle`: a running tool's access to the program that made its call.

use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use serde_json::value::RawValue;
use tokio_util::sync::CancellationToken;

use super::CallContext;
use crate::caller::{Caller, CallerError, CallerRequest, LogLevel, RequestKind};
use crate::json;
use crate::session::lane::Lane;
use crate::session::nest::CallScope;

/// The program that made a running call. It may be kept while the call runs; later requests to it fail.
#[derive(Debug, Clone)]
pub struct CallerHandle {
    caller: Arc<dyn Caller>,
    nest: Arc<CallScope>,
    lane: Lane,
    cancelled: CancellationToken,
    patience: Duration,
}

impl CallContext {
    /// Returns the program that made the call, if it can be asked or sent messages; `None` if the host provides none.
    pub fn caller(&self) -> Option<CallerHandle> {
        let caller = self.session.caller()?;
        Some(CallerHandle {
            caller: Arc::clone(caller),
            nest: Arc::clone(&self.nest),
            lane: Arc::clone(self.session.lane()),
            cancelled: self.session.cancellation().clone(),
            patience: self.session.limits().approval_timeout,
        })
    }
}

impl CallerHandle {
    /// Returns whether the program declared that it accepts this kind of request.
    pub fn can(&self, kind: RequestKind) -> bool {
        self.caller.can(kind)
    }

    /// Returns all capabilities that it declared, unchanged: an object.
    pub fn capabilities(&self) -> Option<Box<RawValue>> {
        self.caller.capabilities()
    }

    /// Sends a request and waits for the raw result, for at most the approval timeout. The wait is the user's time and does not count
    /// against the tool's limit. Several requests may wait at once; if the protocol allows, those made together are sent together.
    /// Dropping the future ends the request. A concurrency-safe tool does not block other calls meanwhile.
    ///
    /// # Errors
    /// [`CallerError`]: the caller did not declare support for the request, refused it, disconnected, or did not answer in time. `?`
    /// converts it into a [`ToolError`](crate::error::ToolError).
    pub async fn ask(&self, request: CallerRequest) -> Result<Box<RawValue>, CallerError> {
        let kind = request.kind;
        let asking = self.caller.ask(request);
        let _waiting = self.nest.begin_wait();
        let aside = self.nest.seat().release_shared(&self.lane);
        let answer = tokio::select! {
            biased;
            () = self.cancelled.cancelled() => return Err(CallerError::Gone(kind)),
            answer = tokio::time::timeout(self.patience, asking) => answer.unwrap_or(Err(CallerError::Late(kind))),
        };
        if let Some(aside) = aside {
            aside.reclaim().await;
        }
        answer
    }

    /// Returns whether the caller wants log messages of this level.
    pub fn wants_log(&self, level: LogLevel) -> bool {
        self.caller.wants_log(level)
    }

    /// Sends a log message, if the caller wants this level. `data` is any JSON value.
    pub fn log<T: Serialize + ?Sized>(&self, level: LogLevel, logger: Option<&str>, data: &T) {
        #[derive(Serialize)]
        struct LogMessage<'a, T: ?Sized> {
            level: LogLevel,
            #[serde(skip_serializing_if = "Option::is_none")]
            logger: Option<&'a str>,
            data: &'a T,
        }
        if !self.wants_log(level) {
            return;
        }
        let message = LogMessage {
            level,
            logger,
            data,
        };
        match json::raw::write(&message) {
            Ok(params) => self.caller.log(level, params),
            Err(error) => tracing::warn!(%error, "a log message of a tool is not JSON"),
        }
    }

    /// Forwards a log message from elsewhere: the params of its `notifications/message` are passed unchanged.
    pub fn log_raw(&self, level: LogLevel, params: Box<RawValue>) {
        if self.wants_log(level) {
            self.caller.log(level, params);
        }
    }
}
