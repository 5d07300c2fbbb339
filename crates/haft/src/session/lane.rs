//! `Seat`: the place of a running call among the calls of its session, beside others or alone. A call that only reads beside
//! others gives its place up while it waits for a person, so that none of them waits with it.

use std::future::Future;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::{OwnedRwLockReadGuard, OwnedRwLockWriteGuard, RwLock};

/// Who may run beside whom: calls that are safe beside others share it, all others hold it alone.
pub(crate) type Lane = Arc<RwLock<()>>;

/// A place in the lane, held until it is dropped.
#[derive(Debug)]
pub(crate) enum Place {
    Shared { _guard: OwnedRwLockReadGuard<()> },
    Alone { _guard: OwnedRwLockWriteGuard<()> },
}

impl Place {
    /// A place that is free: the common case.
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

    /// A place once it is free.
    pub(crate) async fn turn(lane: &Lane, shared: bool) -> Self {
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

/// Where a running call keeps its place.
#[derive(Debug, Default)]
pub(crate) struct Seat(Mutex<SeatState>);

#[derive(Debug, Default)]
struct SeatState {
    place: Option<Place>,
    /// How many waits of the call for a person are open.
    aside: u32,
    /// The call has ended.
    over: bool,
}

impl Seat {
    /// Keeps the place until what is returned is dropped: a copy of the call's context may live on.
    pub(crate) fn take(&self, place: Place) -> Seated<'_> {
        let mut state = self.0.lock();
        state.place = Some(place);
        state.over = false;
        Seated(self)
    }

    /// Waits for a person without a place, as far as it was shared.
    pub(crate) async fn aside_for<T>(&self, lane: &Lane, wait: impl Future<Output = T>) -> T {
        let aside = self.stand_aside(lane);
        let done = wait.await;
        if let Some(aside) = aside {
            aside.come_back().await;
        }
        done
    }

    /// Gives a shared place up until what is returned comes back. Who has the lane alone keeps it: nothing may happen beside it.
    pub(crate) fn stand_aside<'s>(&'s self, lane: &'s Lane) -> Option<Aside<'s>> {
        let mut state = self.0.lock();
        let shared = matches!(state.place, Some(Place::Shared { .. }));
        if !shared && state.aside == 0 {
            return None;
        }
        state.aside += 1;
        state.place = None;
        Some(Aside { seat: self, lane })
    }
}

/// A call that has its place; none once this is dropped.
pub(crate) struct Seated<'s>(&'s Seat);

impl Drop for Seated<'_> {
    fn drop(&mut self) {
        let mut state = self.0.0.lock();
        state.place = None;
        state.over = true;
    }
}

/// A call that has given its place up.
pub(crate) struct Aside<'s> {
    seat: &'s Seat,
    lane: &'s Lane,
}

impl Aside<'_> {
    /// Takes a place again, unless another wait of the call is open.
    pub(crate) async fn come_back(self) {
        let last = self.seat.0.lock().aside == 1;
        if last {
            let place = Place::turn(self.lane, true).await;
            self.put(Some(place));
        }
    }

    fn put(&self, place: Option<Place>) {
        let mut state = self.seat.0.lock();
        if state.aside == 1 && !state.over && state.place.is_none() {
            state.place = place;
        }
    }
}

impl Drop for Aside<'_> {
    fn drop(&mut self) {
        // A wait that its tool gave up cannot wait for a place.
        self.put(Place::free(self.lane, true));
        self.seat.0.lock().aside -= 1;
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::{Lane, Place, Seat};

    #[tokio::test]
    async fn who_waits_beside_others_keeps_none_of_them_from_the_lane() {
        let lane = Lane::default();
        let seat = Seat::default();
        let taken = seat.take(Place::turn(&lane, true).await);
        assert!(Place::free(&lane, false).is_none());
        let (one, two) = (seat.stand_aside(&lane), seat.stand_aside(&lane));
        let alone = Place::free(&lane, false);
        assert!(
            alone.is_some(),
            "a call that waits for a person holds the lane"
        );
        drop(alone);
        one.unwrap().come_back().await;
        assert!(
            Place::free(&lane, false).is_some(),
            "its other question is open"
        );
        two.unwrap().come_back().await;
        assert!(Place::free(&lane, false).is_none(), "it runs again");
        // A question that its tool gives up.
        drop(seat.stand_aside(&lane));
        assert!(Place::free(&lane, false).is_none());
        let late = seat.stand_aside(&lane);
        drop(taken);
        late.unwrap().come_back().await;
        assert!(Place::free(&lane, false).is_some(), "it has ended");
    }

    #[tokio::test]
    async fn who_has_the_lane_alone_keeps_it_while_it_waits() {
        let lane = Lane::default();
        let seat = Seat::default();
        let taken = seat.take(Place::turn(&lane, false).await);
        assert!(seat.stand_aside(&lane).is_none());
        assert!(Place::free(&Arc::clone(&lane), true).is_none());
        drop(taken);
        assert!(Place::free(&lane, true).is_some());
    }
}
