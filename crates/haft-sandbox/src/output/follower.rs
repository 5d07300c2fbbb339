//! `Follower`: a reader of a log that misses nothing: the command waits for it.

use tokio::sync::watch;

use crate::output::{Log, NEWEST};

/// How far the log may be ahead of whoever follows it, in bytes: what one read of a pipe adds beyond that is still among the newest.
const AHEAD: u64 = (NEWEST / 2) as u64;

/// How far the follower of a log has come; none where none follows it.
#[derive(Debug, Default)]
pub(super) struct Reached(watch::Sender<Option<u64>>);

/// A reader of one log whose command waits while it lags behind, as at the other end of a pipe. Dropping it lets the command go on.
#[derive(Debug)]
pub struct Follower<'a>(&'a Log);

impl Follower<'_> {
    /// What comes before this offset was read.
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
    /// Has the command wait for a reader that has read what comes before `from`. One at a time.
    pub fn follow(&self, from: u64) -> Follower<'_> {
        self.follower.0.send_replace(Some(from));
        Follower(self)
    }

    /// Whether more can be taken in without losing what its follower has not read.
    pub(crate) fn has_room(&self) -> bool {
        self.is_near(*self.follower.0.borrow())
    }

    /// Waits until it has room.
    pub(crate) async fn room(&self) {
        let mut reached = self.follower.0.subscribe();
        // The sender lives in `self`, so this cannot fail.
        let _ = reached.wait_for(|reached| self.is_near(*reached)).await;
    }

    fn is_near(&self, reached: Option<u64>) -> bool {
        reached.is_none_or(|reached| self.total().saturating_sub(reached) < AHEAD)
    }
}
