//! The user's approval requests, as the inbox lists them: for decisions, resumed runs and screens.

use haft::approval::inbox::{RequestFilter, RequestStatus, StoredApproval};
use haft::approval::listing;

use crate::app::App;
use crate::problem::Problem;

/// Maximum number of requests in a list.
const MAX_REQUESTS: usize = 10_000;

/// Visits the user's requests, oldest first.
///
/// # Errors
/// A [`Problem`] if the inbox cannot be read.
pub async fn visit(
    app: &App,
    filter: RequestFilter,
    visit: impl FnMut(StoredApproval),
) -> Result<(), Problem> {
    let filter = RequestFilter {
        tenant: app.principal().tenant.to_string(),
        limit: MAX_REQUESTS,
        ..filter
    };
    let visited = listing::each(&**app.executor().inbox(), filter, visit).await;
    visited.map_err(|e| Problem::failed(e.to_string()))
}

/// Returns the filter for requests with this status.
pub fn with_status(status: RequestStatus) -> RequestFilter {
    RequestFilter {
        status: vec![status],
        ..RequestFilter::default()
    }
}
