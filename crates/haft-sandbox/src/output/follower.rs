//! `Follower`: a reader of a log that misses nothing, because the command waits for it.

use tokio::sync::watch;

use crate::output::{Log, NEWEST};

/// Maximum number of bytes that the log may be ahead of its follower; what one more read of a pipe adds still fits in the newest bytes.
const AHEAD: u64 = (NEWEST / 2) as u64;

/// How far the follower of a log has read; `None` if there is no follower.
#[derive(Debug, Default)]
pub(super) struct FollowerPosition(watch::Sender<Option<u64>>);

/// A reader of one log; the command waits while it lags behind, as for the other end of a pipe. Dropping it releases the command.
#[derive(Debug)]
pub struct Follower<'a>(&'a Log);

impl Follower<'_> {
    /// Records that everything before this offset was read.
    pub fn reached(&self, offset: u64) {
        self.0.follower.0.send_replace(Some(offset));
    }
}

impl Drop for Follower<'_> {
    fn drop(&mut self) {
        self.0.follower.0.send_replace(None);
    }
}

impl Log {
    /// Makes the command wait for a reader that has read everything before `from`. Only one follower at a time.
    pub fn follow(&self, from: u64) -> Follower<'_> {
        self.follower.0.send_replace(Some(from));
        Follower(self)
    }

    /// Returns whether the log can take more without losing bytes that its follower has not read.
    pub(crate) fn has_room(&self) -> bool {
        self.is_near(*self.follower.0.borrow())
    }

    /// Waits until the log has room.
    pub(crate) async fn room(&self) {
        let mut reached = self.follower.0.subscribe();
        // `self` holds the sender, so this cannot fail.
        let _ = reached.wait_for(|reached| self.is_near(*reached)).await;
    }

    fn is_near(&self, reached: Option<u64>) -> bool {
        reached.is_none_or(|reached| self.total().saturating_sub(reached) < AHEAD)
    }
}
