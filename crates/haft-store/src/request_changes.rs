//! The channel on which a store reports which requests changed, the same for both databases.

use haft::approval::ApprovalId;
use tokio::sync::broadcast;

/// Maximum number of changes that a slow listener may lag behind.
pub(crate) const LISTENER_BUFFER: usize = 4096;

/// Returns the sending end of a new channel without listeners.
pub(crate) fn new_sender() -> broadcast::Sender<ApprovalId> {
    broadcast::channel(LISTENER_BUFFER).0
}
