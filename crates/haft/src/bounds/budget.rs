//! `ByteBudget`: bytes that many holders share: each has some reserved, and none takes more of the rest than it leaves free.

use std::sync::Arc;
use std::time::Duration;

use crate::bounds::shares::ShareLedger;
use crate::bounds::{CallerClass, PrincipalShares, ShareKey};

/// A number of bytes that many holders share.
///
/// Each holder has some reserved bytes, so one that needs little is never locked out. Beyond these, a holder may grow while it takes
/// no more of the shared bytes than it leaves free. The number of holders must be limited elsewhere, for example by
/// [`ConcurrencyLimit`](super::ConcurrencyLimit).
#[derive(Debug)]
pub struct ByteBudget {
    own: usize,
    /// Counts the shared bytes in use.
    ledger: Arc<ShareLedger>,
    /// Whose share it is.
    who: ShareKey,
}

/// A holder's share of a budget; returned when dropped.
#[derive(Debug)]
pub struct Charge {
    budget: Arc<ByteBudget>,
    held: usize,
}

impl ByteBudget {
    /// Creates a budget with `shared` bytes for all, in addition to `own` reserved bytes per holder.
    pub fn new(shared: usize, own: usize) -> Arc<Self> {
        Arc::new(Self {
            own,
            ledger: ShareLedger::new(shared, shared),
            who: CallerClass::Operator.into(),
        })
    }

    /// Returns the budget of one caller's principal: its share of these bytes, in addition to `own` reserved bytes per holder.
    pub fn of(shares: &PrincipalShares, who: &ShareKey, own: usize) -> Arc<Self> {
        Arc::new(Self {
            own,
            ledger: Arc::clone(shares.of(who)),
            who: who.clone(),
        })
    }

    /// Creates a new, empty holder.
    pub fn charge(self: &Arc<Self>) -> Charge {
        Charge {
            budget: Arc::clone(self),
            held: 0,
        }
    }

    /// Returns the number of shared bytes in use.
    pub fn used(&self) -> usize {
        self.ledger.held(&self.who)
    }
}

impl Charge {
    /// Returns the number of bytes it holds.
    pub fn held(&self) -> usize {
        self.held
    }

    /// Returns the maximum number of bytes by which it can grow now.
    pub fn room(&self) -> usize {
        let budget = &self.budget;
        let free = budget.ledger.free(&budget.who);
        let own = budget.own.saturating_sub(self.held);
        own + free.saturating_sub(self.of_shared(self.held)) / 2
    }

    /// Takes more bytes. Returns false and takes none if it would take more of the shared bytes than it leaves free.
    pub fn grow(&mut self, bytes: usize) -> bool {
        let held = self.held.saturating_add(bytes);
        let (before, after) = (self.of_shared(self.held), self.of_shared(held));
        let budget = &self.budget;
        let take = || budget.ledger.take(&budget.who, after - before, after);
        let grown = after == before || take();
        if grown {
            self.held = held;
        }
        grown
    }

    /// Returns how many of `held` bytes are shared rather than reserved.
    fn of_shared(&self, held: usize) -> usize {
        held.saturating_sub(self.budget.own)
    }

    /// Like [`grow`](Self::grow), but waits up to `patience` for other holders to return bytes.
    pub async fn grow_within(&mut self, bytes: usize, patience: Duration) -> bool {
        if self.grow(bytes) {
            return true;
        }
        let budget = Arc::clone(&self.budget);
        let growing = async {
            loop {
                // Listen before checking, so that no release in between is missed.
                let freed = budget.ledger.freed.notified();
                if self.grow(bytes) {
                    return;
                }
                freed.await;
            }
        };
        tokio::time::timeout(patience, growing).await.is_ok()
    }

    /// Returns bytes to the budget.
    pub fn shrink(&mut self, bytes: usize) {
        let before = self.of_shared(self.held);
        self.held = self.held.saturating_sub(bytes);
        let freed = before - self.of_shared(self.held);
        if freed > 0 {
            self.budget.ledger.give_back(&self.budget.who, freed);
        }
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.shrink(self.held);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::ByteBudget;

    #[test]
    fn greedy_holders_keep_nobody_from_its_own_bytes_and_never_exceed_the_shared_ones() {
        let budget = ByteBudget::new(1000, 10);
        let mut holders = Vec::new();
        for _ in 0..50 {
            let mut charge = budget.charge();
            while charge.grow(1) {}
            assert!(charge.held() >= 10);
            assert!(!charge.grow(1) && charge.room() == 0);
            holders.push(charge);
            assert!(budget.used() <= 1000);
        }
        let held = holders.iter().take(3).map(super::Charge::held);
        assert_eq!(held.collect::<Vec<_>>(), [510, 260, 135]);
        drop(holders);
        assert_eq!(budget.used(), 0);
    }

    #[test]
    fn what_is_too_much_takes_nothing() {
        let budget = ByteBudget::new(100, 5);
        let mut charge = budget.charge();
        for bytes in [56, 100, usize::MAX] {
            assert!(!charge.grow(bytes), "{bytes}");
        }
        assert_eq!((charge.room(), budget.used()), (55, 0));
        assert!(charge.grow(55));
        charge.shrink(20);
        assert_eq!((charge.held(), budget.used()), (35, 30));
        charge.shrink(33);
        assert_eq!((charge.held(), budget.used()), (2, 0));
    }

    #[tokio::test(start_paused = true)]
    async fn a_holder_waits_for_what_others_give_back_and_not_for_ever() {
        let budget = ByteBudget::new(100, 0);
        let mut first = budget.charge();
        assert!(first.grow(50));
        let mut second = budget.charge();
        assert!(!second.grow_within(40, Duration::from_secs(3)).await);
        let giving = tokio::spawn(async move {
            tokio::time::sleep(Duration::from_secs(1)).await;
            drop(first);
        });
        assert!(second.grow_within(40, Duration::from_secs(3)).await);
        giving.await.unwrap();
    }
}
