//! Listing requests a page at a time: a page holds a bounded number of bytes, however long requests are.

use crate::approval::Choice;
use crate::approval::inbox::{InboxError, RequestFilter, StoredApproval, WaitingCalls};

/// Maximum size, in bytes, of the requests in a page, with decisions and outcomes; a longer request gets its own page.
pub const PAGE_BYTES: usize = 16 << 20;

/// Visits the requests that match a filter, oldest first, holding one page of them at a time.
///
/// # Errors
///
/// The inbox cannot be read; the requests before that point were visited.
pub async fn each(
    inbox: &dyn WaitingCalls,
    mut filter: RequestFilter,
    mut visit: impl FnMut(StoredApproval),
) -> Result<(), InboxError> {
    while filter.limit > 0 {
        let page = inbox.list(&filter).await?;
        let Some(last) = page.last() else { break };
        filter.after = Some(last.request.id.clone());
        filter.limit = filter.limit.saturating_sub(page.len());
        page.into_iter().for_each(&mut visit);
    }
    Ok(())
}

/// One page of requests, limited in number and bytes.
#[derive(Debug)]
pub struct RequestPage {
    entries: Vec<StoredApproval>,
    bytes: usize,
    limit: usize,
}

impl RequestPage {
    /// Creates an empty page for at most `limit` requests.
    pub fn new(limit: usize) -> Self {
        Self {
            entries: Vec::new(),
            bytes: 0,
            limit,
        }
    }

    /// Adds an entry whose request has `request` bytes; returns false if there is no room, so that the page is complete.
    pub fn add(&mut self, entry: StoredApproval, request: usize) -> bool {
        let bytes = request.saturating_add(extra_bytes(&entry));
        self.bytes = self.bytes.saturating_add(bytes);
        let too_long = self.bytes > PAGE_BYTES && !self.entries.is_empty();
        if too_long || self.entries.len() >= self.limit {
            return false;
        }
        self.entries.push(entry);
        true
    }

    /// Returns whether nothing was added.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Returns the requests, in the order in which they were added.
    pub fn into_entries(self) -> Vec<StoredApproval> {
        self.entries
    }
}

/// Returns the size of an entry beside its request: edited arguments or answers, and the outcome.
fn extra_bytes(entry: &StoredApproval) -> usize {
    let outcome = entry.outcome.as_ref().map_or(0, String::len);
    let decision = entry.decision.as_ref().map(|decision| &decision.choice);
    let decided = match decision {
        Some(Choice::Approve { edited, .. }) => edited.as_ref().map_or(0, String::len),
        Some(Choice::Answer { answers }) => answers.len(),
        Some(Choice::Deny { message, .. }) => message.as_ref().map_or(0, String::len),
        None => 0,
    };
    outcome.saturating_add(decided)
}
