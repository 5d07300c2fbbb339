//! `Places`: limits how many callers of each class may do something at once.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::bounds::{Class, Shares};

/// Limits how many callers of each class may do something at once.
#[derive(Debug, Clone)]
pub struct Places(Shares<Arc<Semaphore>>);

/// One place, returned when dropped.
#[derive(Debug)]
pub struct Place(#[expect(dead_code, reason = "held, never read")] OwnedSemaphorePermit);

impl Places {
    /// Creates this many places for each class.
    pub fn new(most: Shares<usize>) -> Self {
        Self(most.map(|most| Arc::new(Semaphore::new(most))))
    }

    /// Takes a place; `None` if the class has none left. Never waits.
    pub fn take(&self, class: Class) -> Option<Place> {
        let places = Arc::clone(self.0.of(class));
        places.try_acquire_owned().ok().map(Place)
    }
}

#[cfg(test)]
mod tests {
    use super::Places;
    use crate::bounds::{Class, Shares};

    #[test]
    fn no_class_takes_anothers_places_and_every_place_comes_back() {
        let places = Places::new(Shares {
            strangers: 0,
            clients: 2,
            operator: 1,
        });
        let taken = [(); 2].map(|()| places.take(Class::Client));
        assert!(taken.iter().all(Option::is_some));
        assert!(places.take(Class::Client).is_none() && places.take(Class::Stranger).is_none());
        let own = places.take(Class::Operator);
        assert!(own.is_some() && places.take(Class::Operator).is_none());
        drop(taken);
        assert!(places.take(Class::Client).is_some());
        drop(own);
        assert!(places.take(Class::Operator).is_some());
    }
}
