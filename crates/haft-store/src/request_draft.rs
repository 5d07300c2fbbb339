//! `RequestDraft`: an approval request as the columns of the row to be written, for both databases.

use haft::approval::ApprovalRequest;
use haft::approval::inbox::InboxError;
use haft::error::HostFailure;

use crate::number::nanoseconds;

/// Maximum length of a request as JSON, in bytes: some megabytes of arguments with their escapes, and the preview of a file
/// change.
pub(crate) const MAX_REQUEST: usize = 16 << 20;

/// A request to be written.
#[derive(Debug)]
pub(crate) struct RequestDraft {
    pub(crate) tenant: String,
    pub(crate) id: String,
    pub(crate) run: String,
    pub(crate) fingerprint: String,
    pub(crate) created: i64,
    pub(crate) expires: i64,
    #[cfg(feature = "postgres")]
    pub(crate) digest: String,
    pub(crate) request: String,
}

impl RequestDraft {
    /// Prepares a request for storage; fails if it is too long.
    pub(crate) fn of(request: &ApprovalRequest) -> Result<Self, InboxError> {
        let json = serde_json::to_string(request)
            .map_err(|e| InboxError::Unavailable(HostFailure::of(e)))?;
        if json.len() > MAX_REQUEST {
            let bytes = json.len();
            return Err(InboxError::Unavailable(format!(
                "the request has {bytes} bytes, at most {MAX_REQUEST} are kept; pass big arguments as artifacts"
            ).into()));
        }
        Ok(Self {
            tenant: request.principal.tenant.to_string(),
            id: request.id.to_string(),
            run: request.run.to_string(),
            fingerprint: request.fingerprint.clone(),
            created: nanoseconds(request.created),
            expires: nanoseconds(request.expires),
            #[cfg(feature = "postgres")]
            digest: request.args_digest.clone(),
            request: json,
        })
    }
}
