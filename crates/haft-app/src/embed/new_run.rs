//! `NewRun`: the options of a run that a program is about to start.

use std::future::IntoFuture;
use std::sync::Arc;

use haft::CancellationToken;
use haft::call::Principal;
use haft::future::BoxFuture;
use haft::progress::ProgressSink;
use haft::toolset::Toolset;

use crate::embed::Haft;
use crate::problem::Problem;
use crate::run::{ApprovalWait, RunHandle, RunOptions};

/// The entry point of a program's runs, as recorded.
pub(super) const ENTRY: &str = "library";

/// A run that starts when awaited: `haft.run(principal).await?`.
#[derive(Debug)]
#[must_use = "a run starts when it is awaited"]
pub struct NewRun {
    haft: Haft,
    options: RunOptions,
}

impl NewRun {
    pub(super) fn new(haft: Haft, principal: Principal) -> Self {
        Self {
            haft,
            options: RunOptions {
                principal: Some(principal),
                ..RunOptions::new(ENTRY)
            },
        }
    }

    /// Cancels the run's calls when this token is cancelled, but not the other way round.
    pub fn cancel_with(mut self, token: CancellationToken) -> Self {
        self.options.cancellation = Some(token);
        self
    }

    /// Sends the live output of its tools to this sink.
    pub fn progress(mut self, sink: Arc<dyn ProgressSink>) -> Self {
        self.options.progress = Some(sink);
        self
    }

    /// Restricts the run to these tools: a view of [`Haft::tools`]. It is also resumed with only these, by their names, which are stored
    /// with its record, so resume such a run where its record is.
    pub fn tools(mut self, tools: Arc<dyn Toolset>) -> Self {
        self.options.tools = Some(tools);
        self
    }

    /// Sets how its calls wait for decisions, instead of what the builder and the settings say.
    pub fn wait(mut self, wait: ApprovalWait) -> Self {
        self.options.wait = wait;
        self
    }

    /// Sets the entry point in the record, instead of `library`.
    pub fn entry(mut self, entry: &'static str) -> Self {
        self.options.entry = entry;
        self
    }

    /// Sets the name of the program's client, which is displayed with approval requests but never trusted.
    pub fn client(mut self, name: impl Into<String>) -> Self {
        self.options.client = Some(name.into());
        self
    }
}

impl IntoFuture for NewRun {
    type Output = Result<RunHandle, Problem>;
    type IntoFuture = BoxFuture<'static, Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move { self.haft.app().runs().start(self.options).await })
    }
}
