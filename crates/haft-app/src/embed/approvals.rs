//! `Approvals`: lists and decides the approval requests of an embedded application.

use haft::approval::inbox::{RequestFilter, RequestStatus, StoredApproval};
use haft::approval::{ApprovalId, Decision, listing};

use crate::app::App;
use crate::decide::DecisionError;
use crate::problem::Problem;

/// Maximum number of requests in a list.
const MAX_REQUESTS: usize = 10_000;

/// The approval requests of an application.
#[derive(Debug, Clone, Copy)]
pub struct Approvals<'a> {
    app: &'a App,
}

impl<'a> Approvals<'a> {
    pub(super) fn new(app: &'a App) -> Self {
        Self { app }
    }

    /// Returns the pending requests of the tenant `local`, oldest first.
    ///
    /// # Errors
    /// The inbox cannot be read.
    pub async fn pending(self) -> Result<Vec<StoredApproval>, Problem> {
        self.pending_of(&self.app.principal().tenant).await
    }

    /// Returns the pending requests of a tenant, oldest first.
    ///
    /// # Errors
    /// The inbox cannot be read.
    pub async fn pending_of(self, tenant: &str) -> Result<Vec<StoredApproval>, Problem> {
        let filter = RequestFilter {
            tenant: tenant.to_owned(),
            status: vec![RequestStatus::Pending],
            limit: MAX_REQUESTS,
            ..RequestFilter::default()
        };
        let mut found = Vec::new();
        let inbox = &**self.app.executor().inbox();
        let read = listing::each(inbox, filter, |entry| found.push(entry)).await;
        read.map_err(|e| Problem::failed(format!("cannot read the inbox: {e}")))?;
        Ok(found)
    }

    /// Returns a request, whatever its status.
    ///
    /// # Errors
    /// There is no request with this id, or the inbox cannot be read.
    pub async fn get(self, id: &ApprovalId) -> Result<StoredApproval, Problem> {
        self.app.entry(id).await
    }

    /// Decides a pending request. A call that waits for it continues; one that was suspended is resumed by
    /// [`Haft::resume`](crate::Haft::resume), or by a program that [follows](crate::Haft::follow) decisions.
    ///
    /// # Errors
    /// There is no such request, it is already decided or over, an edit is invalid, or the call would not do here what the request shows.
    /// Nothing is decided then.
    pub async fn decide(self, id: &ApprovalId, decision: Decision) -> Result<(), Problem> {
        let decided = self.app.decide(id, decision).await;
        decided.map(|_| ()).map_err(DecisionError::problem)
    }
}
