//! `Places`: how many may do something at once, some of them kept for the operator.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// How many may do something at once.
#[derive(Debug, Clone)]
pub struct Places {
    shared: Arc<Semaphore>,
    kept: Arc<Semaphore>,
}

/// One place, given back when dropped.
#[derive(Debug)]
pub struct Place(#[expect(dead_code, reason = "held, never read")] OwnedSemaphorePermit);

impl Places {
    /// So many for everybody, and so many more that only the operator takes when the others are full.
    pub fn new(shared: usize, kept: usize) -> Self {
        Self {
            shared: Arc::new(Semaphore::new(shared)),
            kept: Arc::new(Semaphore::new(kept)),
        }
    }

    /// Takes a place, for the operator or for anybody else; none where they are full. Never waits.
    pub fn take(&self, operator: bool) -> Option<Place> {
        let take = |places: &Arc<Semaphore>| Arc::clone(places).try_acquire_owned().ok();
        let kept = || operator.then(|| take(&self.kept)).flatten();
        take(&self.shared).or_else(kept).map(Place)
    }
}

#[cfg(test)]
mod tests {
    use super::Places;

    #[test]
    fn others_cannot_take_the_operators_places_and_every_place_comes_back() {
        let places = Places::new(2, 1);
        let taken = [places.take(false), places.take(true)];
        assert!(taken.iter().all(Option::is_some));
        assert!(places.take(false).is_none());
        let own = places.take(true);
        assert!(own.is_some() && places.take(true).is_none());
        drop(taken);
        assert!(places.take(false).is_some());
        drop(own);
        assert!(
            [(); 3]
                .map(|()| places.take(true))
                .iter()
                .all(Option::is_some)
        );
    }
}
