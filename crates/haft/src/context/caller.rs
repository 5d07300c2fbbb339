//! `CallerHandle`: what a running tool reaches of the program that made its call.

use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use serde_json::value::RawValue;
use tokio_util::sync::CancellationToken;

use super::CallContext;
use crate::caller::{Caller, CallerError, CallerRequest, LogLevel, RequestKind};
use crate::json;
use crate::session::lane::Lane;
use crate::session::nest::Nest;

/// The program that made a running call. It may be kept for as long as the call runs; after that nothing is asked.
#[derive(Debug, Clone)]
pub struct CallerHandle {
    caller: Arc<dyn Caller>,
    nest: Arc<Nest>,
    lane: Lane,
    cancelled: CancellationToken,
    patience: Duration,
}

impl CallContext {
    /// The program that made the call, where it can be asked and told things; none where a host gave none.
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
    /// Whether it said that it can be asked this.
    pub fn can(&self, kind: RequestKind) -> bool {
        self.caller.can(kind)
    }

    /// All that it said it can do, as it came: an object.
    pub fn capabilities(&self) -> Option<Box<RawValue>> {
        self.caller.capabilities()
    }

    /// Asks, and waits for the result as it comes, for as long as approvals wait. The wait is a person's time and does not count
    /// against the tool's limit. Several requests may wait at once: a caller gets those that are made together in one go where its
    /// protocol allows it. Dropping the future ends the request. A tool that is safe beside others keeps none of them waiting.
    ///
    /// # Errors
    /// [`CallerError`]: the caller did not say that it can be asked this, refused, went away, or did not answer in time. It
    /// becomes a [`ToolError`](crate::error::ToolError) by `?`.
    pub async fn ask(&self, request: CallerRequest) -> Result<Box<RawValue>, CallerError> {
        let kind = request.kind;
        let asked = self.caller.ask(request);
        let _waiting = self.nest.waiting();
        let aside = self.nest.seat().stand_aside(&self.lane);
        let answer = tokio::select! {
            biased;
            () = self.cancelled.cancelled() => return Err(CallerError::Gone(kind)),
            answer = tokio::time::timeout(self.patience, asked) => answer.unwrap_or(Err(CallerError::Late(kind))),
        };
        if let Some(aside) = aside {
            aside.come_back().await;
        }
        answer
    }

    /// Whether it wants log messages of this level.
    pub fn wants_log(&self, level: LogLevel) -> bool {
        self.caller.wants_log(level)
    }

    /// Tells it a log message, if it wants those of this level. `data` is any JSON value.
    pub fn log<T: Serialize + ?Sized>(&self, level: LogLevel, logger: Option<&str>, data: &T) {
        #[derive(Serialize)]
        struct Message<'a, T: ?Sized> {
            level: LogLevel,
            #[serde(skip_serializing_if = "Option::is_none")]
            logger: Option<&'a str>,
            data: &'a T,
        }
        if !self.wants_log(level) {
            return;
        }
        let message = Message {
            level,
            logger,
            data,
        };
        match json::raw::write(&message) {
            Ok(params) => self.caller.log(level, params),
            Err(error) => tracing::warn!(%error, "a log message of a tool is not JSON"),
        }
    }

    /// The same for one that came from elsewhere: the params of its `notifications/message` pass as they are.
    pub fn log_raw(&self, level: LogLevel, params: Box<RawValue>) {
        if self.wants_log(level) {
            self.caller.log(level, params);
        }
    }
}
