//! `ConcurrencyLimit`: limits how many callers of each class may do something at once.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::bounds::{CallerClass, Shares};

/// Limits how many callers of each class may do something at once.
#[derive(Debug, Clone)]
pub struct ConcurrencyLimit(Shares<Arc<Semaphore>>);

/// One place, returned when dropped.
#[derive(Debug)]
pub struct ConcurrencyPermit(
    #[expect(dead_code, reason = "held, never read")] OwnedSemaphorePermit,
);

impl ConcurrencyLimit {
    /// Creates this many places for each class.
    pub fn new(most: Shares<usize>) -> Self {
        Self(most.map(|most| Arc::new(Semaphore::new(most))))
    }

    /// Takes a place; `None` if the class has none left. Never waits.
    pub fn take(&self, class: CallerClass) -> Option<ConcurrencyPermit> {
        let places = Arc::clone(self.0.of(class));
        places.try_acquire_owned().ok().map(ConcurrencyPermit)
    }
}

#[cfg(test)]
mod tests {
    use super::ConcurrencyLimit;
    use crate::bounds::{CallerClass, Shares};

    #[test]
    fn no_class_takes_anothers_places_and_every_place_comes_back() {
        let places = ConcurrencyLimit::new(Shares {
            strangers: 0,
            clients: 2,
            operator: 1,
        });
        let taken = [(); 2].map(|()| places.take(CallerClass::Client));
        assert!(taken.iter().all(Option::is_some));
        assert!(
            places.take(CallerClass::Client).is_none()
                && places.take(CallerClass::Stranger).is_none()
        );
        let own = places.take(CallerClass::Operator);
        assert!(own.is_some() && places.take(CallerClass::Operator).is_none());
        drop(taken);
        assert!(places.take(CallerClass::Client).is_some());
        drop(own);
        assert!(places.take(CallerClass::Operator).is_some());
    }
}
