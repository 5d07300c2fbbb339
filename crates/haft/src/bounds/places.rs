//! `ConcurrencyLimit`: limits how many callers of each class, and of each principal, may do something at once.

use std::sync::Arc;

use crate::bounds::shares::ShareLedger;
use crate::bounds::{PrincipalShares, ShareKey};

/// Limits how many callers of each class, and of each principal, may do something at once.
#[derive(Debug, Clone)]
pub struct ConcurrencyLimit(PrincipalShares);

/// One place, returned when dropped.
#[derive(Debug)]
pub struct ConcurrencyPermit {
    ledger: Arc<ShareLedger>,
    who: ShareKey,
}

impl ConcurrencyLimit {
    /// Creates a limit of one place per unit.
    pub fn new(shares: &PrincipalShares) -> Self {
        Self(shares.clone())
    }

    /// Takes a place; `None` if the class or the principal has none left. Never waits.
    pub fn take(&self, who: &ShareKey) -> Option<ConcurrencyPermit> {
        let ledger = self.0.of(who);
        ledger.take(who, 1, 0).then(|| ConcurrencyPermit {
            ledger: Arc::clone(ledger),
            who: who.clone(),
        })
    }

    /// Takes a place, waiting for one until the time is over.
    pub async fn take_within(
        &self,
        who: &ShareKey,
        patience: std::time::Duration,
    ) -> Option<ConcurrencyPermit> {
        let taking = async {
            loop {
                // Listen before checking, so that no release in between is missed.
                let freed = self.0.of(who).freed.notified();
                if let Some(place) = self.take(who) {
                    return place;
                }
                freed.await;
            }
        };
        tokio::time::timeout(patience, taking).await.ok()
    }

    /// Returns whether this caller's principal holds all places that it may have: only its own make room for it.
    pub fn is_at_share(&self, who: &ShareKey) -> bool {
        self.0.is_at_share(who)
    }
}

impl Drop for ConcurrencyPermit {
    fn drop(&mut self) {
        self.ledger.give_back(&self.who, 1);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::ConcurrencyLimit;
    use crate::bounds::{CallerClass, PrincipalShares, ShareKey, Shares};

    fn limit() -> ConcurrencyLimit {
        ConcurrencyLimit::new(&PrincipalShares::by_class(Shares {
            strangers: 0,
            clients: 2,
            operator: 1,
        }))
    }

    const CLIENT: ShareKey = ShareKey {
        class: CallerClass::Client,
        principal: None,
    };

    #[test]
    fn no_class_takes_anothers_places_and_every_place_comes_back() {
        let places = limit();
        let operator = CallerClass::Operator.into();
        let taken = [(); 2].map(|()| places.take(&CLIENT));
        assert!(taken.iter().all(Option::is_some));
        let stranger = CallerClass::Stranger.into();
        assert!(places.take(&CLIENT).is_none() && places.take(&stranger).is_none());
        let own = places.take(&operator);
        assert!(own.is_some() && places.take(&operator).is_none());
        drop(taken);
        assert!(places.take(&CLIENT).is_some());
        drop(own);
        assert!(places.take(&operator).is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn a_caller_waits_for_a_place_and_not_for_ever() {
        let places = limit();
        let taken = [(); 2].map(|()| places.take(&CLIENT));
        let patience = Duration::from_secs(3);
        assert!(places.take_within(&CLIENT, patience).await.is_none());
        let giving = tokio::spawn(async move {
            tokio::time::sleep(Duration::from_secs(1)).await;
            drop(taken);
        });
        assert!(places.take_within(&CLIENT, patience).await.is_some());
        giving.await.unwrap();
    }
}
