//! `LaneSeat`: the place of a running call in its session's lane, shared or exclusive. A call with a shared place gives it up while it
//! waits for a decision, so that it does not block other calls.

use std::future::Future;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::{OwnedRwLockReadGuard, OwnedRwLockWriteGuard, RwLock};

/// Decides which calls run in parallel: concurrency-safe calls share the lane, all others hold it exclusively.
pub(crate) type Lane = Arc<RwLock<()>>;

/// A place in the lane, held until dropped.
#[derive(Debug)]
pub(crate) enum LanePermit {
    Shared { _guard: OwnedRwLockReadGuard<()> },
    Alone { _guard: OwnedRwLockWriteGuard<()> },
}

impl LanePermit {
    /// Returns a place if it is free, the common case.
    pub(crate) fn free(lane: &Lane, shared: bool) -> Option<Self> {
        let lane = Arc::clone(lane);
        if shared {
            let guard = lane.try_read_owned().ok()?;
            Some(Self::Shared { _guard: guard })
        } else {
            let guard = lane.try_write_owned().ok()?;
            Some(Self::Alone { _guard: guard })
        }
    }

    /// Waits for a place.
    pub(crate) async fn acquire(lane: &Lane, shared: bool) -> Self {
        let lane = Arc::clone(lane);
        if shared {
            let guard = lane.read_owned().await;
            Self::Shared { _guard: guard }
        } else {
            let guard = lane.write_owned().await;
            Self::Alone { _guard: guard }
        }
    }
}

/// Holds the place of a running call.
#[derive(Debug, Default)]
pub(crate) struct LaneSeat(Mutex<LaneSeatState>);

#[derive(Debug, Default)]
struct LaneSeatState {
    place: Option<LanePermit>,
    /// Number of open waits of the call for a decision.
    aside: u32,
    /// Whether the call has ended.
    ended: bool,
}

impl LaneSeat {
    /// Holds the place until the returned guard is dropped: a copy of the call's context may outlive the call.
    pub(crate) fn take(&self, place: LanePermit) -> LaneSeatGuard<'_> {
        let mut state = self.0.lock();
        state.place = Some(place);
        state.ended = false;
        LaneSeatGuard(self)
    }

    /// Waits for a decision, without the place if it is shared.
    pub(crate) async fn yield_for<T>(&self, lane: &Lane, wait: impl Future<Output = T>) -> T {
        let aside = self.release_shared(lane);
        let done = wait.await;
        if let Some(aside) = aside {
            aside.reclaim().await;
        }
        done
    }

    /// Gives up a shared place until the returned guard comes back. An exclusive place is kept: nothing may run in parallel.
    pub(crate) fn release_shared<'s>(&'s self, lane: &'s Lane) -> Option<YieldGuard<'s>> {
        let mut state = self.0.lock();
        let shared = matches!(state.place, Some(LanePermit::Shared { .. }));
        if !shared && state.aside == 0 {
            return None;
        }
        state.aside += 1;
        state.place = None;
        Some(YieldGuard { seat: self, lane })
    }
}

/// A call that holds its place until this is dropped.
pub(crate) struct LaneSeatGuard<'s>(&'s LaneSeat);

impl Drop for LaneSeatGuard<'_> {
    fn drop(&mut self) {
        let mut state = self.0.0.lock();
        state.place = None;
        state.ended = true;
    }
}

/// A call that has given up its place.
pub(crate) struct YieldGuard<'s> {
    seat: &'s LaneSeat,
    lane: &'s Lane,
}

impl YieldGuard<'_> {
    /// Takes a place again, unless another wait of the call is open.
    pub(crate) async fn reclaim(self) {
        let last = self.seat.0.lock().aside == 1;
        if last {
            let place = LanePermit::acquire(self.lane, true).await;
            self.put(Some(place));
        }
    }

    fn put(&self, place: Option<LanePermit>) {
        let mut state = self.seat.0.lock();
        if state.aside == 1 && !state.ended && state.place.is_none() {
            state.place = place;
        }
    }
}

impl Drop for YieldGuard<'_> {
    fn drop(&mut self) {
        // A wait that its tool abandons cannot wait for a place.
        self.put(LanePermit::free(self.lane, true));
        self.seat.0.lock().aside -= 1;
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::{Lane, LanePermit, LaneSeat};

    #[tokio::test]
    async fn who_waits_beside_others_keeps_none_of_them_from_the_lane() {
        let lane = Lane::default();
        let seat = LaneSeat::default();
        let taken = seat.take(LanePermit::acquire(&lane, true).await);
        assert!(LanePermit::free(&lane, false).is_none());
        let (one, two) = (seat.release_shared(&lane), seat.release_shared(&lane));
        let alone = LanePermit::free(&lane, false);
        assert!(
            alone.is_some(),
            "a call that waits for a person holds the lane"
        );
        drop(alone);
        one.unwrap().reclaim().await;
        assert!(
            LanePermit::free(&lane, false).is_some(),
            "its other question is open"
        );
        two.unwrap().reclaim().await;
        assert!(LanePermit::free(&lane, false).is_none(), "it runs again");
        // The tool abandons a question.
        drop(seat.release_shared(&lane));
        assert!(LanePermit::free(&lane, false).is_none());
        let late = seat.release_shared(&lane);
        drop(taken);
        late.unwrap().reclaim().await;
        assert!(LanePermit::free(&lane, false).is_some(), "it has ended");
    }

    #[tokio::test]
    async fn who_has_the_lane_alone_keeps_it_while_it_waits() {
        let lane = Lane::default();
        let seat = LaneSeat::default();
        let taken = seat.take(LanePermit::acquire(&lane, false).await);
        assert!(seat.release_shared(&lane).is_none());
        assert!(LanePermit::free(&Arc::clone(&lane), true).is_none());
        drop(taken);
        assert!(LanePermit::free(&lane, true).is_some());
    }
}
