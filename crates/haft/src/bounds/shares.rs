//! `PrincipalShares`: the units of one resource that each class of callers may hold, and each principal within its class.
//!
//! The one mechanism behind every limit on what callers make a server hold: places ([`ConcurrencyLimit`](super::ConcurrencyLimit)) and
//! bytes ([`ByteBudget`](super::ByteBudget)) are both counted here. A principal never holds more than its share, a quarter of its
//! class, so one hostile principal leaves the others three quarters; the operator is in a class of its own.

use std::collections::HashMap;
use std::sync::Arc;

use haft_types::call::Principal;
use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::bounds::{CallerClass, Shares};

/// How many principals can hold their whole share at the same time.
pub const FULL_SHARES: usize = 4;

/// Who holds something: the class of a caller, and its principal within the class.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ShareKey {
    /// The class.
    pub class: CallerClass,
    /// The principal. Callers without one share what one principal gets.
    pub principal: Option<Principal>,
}

impl From<CallerClass> for ShareKey {
    fn from(class: CallerClass) -> Self {
        Self {
            class,
            principal: None,
        }
    }
}

/// The units of one resource that callers may hold, by class and by principal. Clones count together.
#[derive(Debug, Clone)]
pub struct PrincipalShares(Shares<Arc<ShareLedger>>);

/// The units of one class that are held.
#[derive(Debug)]
pub(super) struct ShareLedger {
    /// Maximum number of units for all principals together.
    most: usize,
    /// Maximum number of units for each principal.
    each: usize,
    held: Mutex<HeldUnits>,
    /// Signals that units were returned.
    pub(super) freed: Notify,
}

#[derive(Debug, Default)]
struct HeldUnits {
    all: usize,
    /// Without principals that hold nothing, so it never has more entries than units.
    of: HashMap<ShareKey, usize>,
}

impl PrincipalShares {
    /// Creates this many units for each principal among the clients; all clients together get [`FULL_SHARES`] times as many. Strangers
    /// and the operator are one principal each.
    pub fn by_principal(each: Shares<usize>) -> Self {
        Self(Shares {
            strangers: ShareLedger::new(each.strangers, each.strangers),
            clients: ShareLedger::new(each.clients.saturating_mul(FULL_SHARES), each.clients),
            operator: ShareLedger::new(each.operator, each.operator),
        })
    }

    /// Creates this many units for each class, where its callers are one principal or cannot be told apart.
    pub fn by_class(most: Shares<usize>) -> Self {
        Self(most.map(|most| ShareLedger::new(most, most)))
    }

    /// Returns the units that this caller holds.
    pub fn held(&self, who: &ShareKey) -> usize {
        self.of(who).held(who)
    }

    /// Returns whether this caller holds its whole share: only what it returns itself makes room for it.
    pub fn is_at_share(&self, who: &ShareKey) -> bool {
        self.held(who) >= self.of(who).each
    }

    pub(super) fn of(&self, who: &ShareKey) -> &Arc<ShareLedger> {
        self.0.of(who.class)
    }
}

impl ShareLedger {
    pub(super) fn new(most: usize, each: usize) -> Arc<Self> {
        Arc::new(Self {
            most,
            each,
            held: Mutex::default(),
            freed: Notify::new(),
        })
    }

    /// Returns the units that a principal holds.
    pub(super) fn held(&self, who: &ShareKey) -> usize {
        self.held.lock().of.get(who).copied().unwrap_or(0)
    }

    /// Returns how many more units a principal could take now.
    pub(super) fn free(&self, who: &ShareKey) -> usize {
        self.free_within(&self.held.lock(), who)
    }

    fn free_within(&self, held: &HeldUnits, who: &ShareKey) -> usize {
        let own = held.of.get(who).copied().unwrap_or(0);
        let of_class = self.most.saturating_sub(held.all);
        of_class.min(self.each.saturating_sub(own))
    }

    /// Takes units for a principal if that leaves it at least `leaves` more. Returns false and takes none otherwise.
    pub(super) fn take(&self, who: &ShareKey, units: usize, leaves: usize) -> bool {
        let mut held = self.held.lock();
        let left = self.free_within(&held, who).checked_sub(units);
        if left.is_none_or(|left| left < leaves) {
            return false;
        }
        held.all += units;
        match held.of.get_mut(who) {
            Some(own) => *own += units,
            None if units > 0 => drop(held.of.insert(who.clone(), units)),
            None => {}
        }
        true
    }

    /// Returns units that a principal took.
    pub(super) fn give_back(&self, who: &ShareKey, units: usize) {
        let mut held = self.held.lock();
        held.all = held.all.saturating_sub(units);
        if let Some(own) = held.of.get_mut(who) {
            *own = own.saturating_sub(units);
            if *own == 0 {
                held.of.remove(who);
            }
        }
        drop(held);
        self.freed.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use haft_types::call::Principal;
    use proptest::prelude::*;

    use super::{FULL_SHARES, PrincipalShares, ShareKey};
    use crate::bounds::{ByteBudget, CallerClass, ConcurrencyLimit, Shares};

    /// Units of one principal.
    const EACH: usize = 8;

    fn shares() -> PrincipalShares {
        PrincipalShares::by_principal(Shares {
            strangers: 2,
            clients: EACH,
            operator: EACH,
        })
    }

    fn client(number: usize) -> ShareKey {
        ShareKey {
            class: CallerClass::Client,
            principal: Some(Principal::local(format!("person {number}"))),
        }
    }

    /// Takes as many places as it can get.
    fn fill(limit: &ConcurrencyLimit, who: &ShareKey) -> usize {
        let taken: Vec<_> = std::iter::from_fn(|| limit.take(who)).collect();
        taken.len()
    }

    proptest! {
        #[test]
        fn a_principal_gets_its_share_whatever_three_others_and_other_classes_do(
            steps in proptest::collection::vec((0_usize..6, any::<bool>(), 0_usize..64), 0..200)
        ) {
            let shares = shares();
            let limit = ConcurrencyLimit::new(&shares);
            // Three hostile principals, one that takes nothing yet, strangers, and the operator.
            let callers = [client(0), client(1), client(2), client(3), CallerClass::Stranger.into(), CallerClass::Operator.into()];
            let mut held: Vec<Vec<_>> = callers.iter().map(|_| Vec::new()).collect();
            for (who, takes, nth) in steps {
                if takes && who != 3 {
                    held[who].extend(limit.take(&callers[who]));
                } else if !held[who].is_empty() {
                    let nth = nth % held[who].len();
                    held[who].swap_remove(nth);
                }
                prop_assert!(held.iter().take(4).all(|own| own.len() <= EACH));
                prop_assert_eq!(shares.held(&callers[who]), held[who].len());
                // It could take its whole share now, and so could the operator the rest of its own.
                prop_assert_eq!(fill(&limit, &callers[3]), EACH);
                prop_assert_eq!(fill(&limit, &callers[5]), EACH - held[5].len());
            }
            drop(held);
            prop_assert!(callers.iter().all(|who| shares.held(who) == 0));
        }

        #[test]
        fn bytes_of_one_principal_leave_anothers_budget_as_it_was(
            sizes in proptest::collection::vec(0_usize..2000, 0..50)
        ) {
            let shares = PrincipalShares::by_principal(Shares { strangers: 0, clients: 1000, operator: 1000 });
            let room = |who: &ShareKey| ByteBudget::of(&shares, who, 10).charge().room();
            let (other, operator) = (client(1), CallerClass::Operator.into());
            let (before, before_operator) = (room(&other), room(&operator));
            let mut held = Vec::new();
            for size in sizes {
                let mut charge = ByteBudget::of(&shares, &client(0), 10).charge();
                charge.grow(size);
                held.push(charge);
                prop_assert_eq!((room(&other), room(&operator)), (before, before_operator));
                prop_assert!(shares.held(&client(0)) <= 1000);
            }
        }
    }

    #[test]
    fn a_class_is_full_when_enough_principals_hold_their_share() {
        let limit = ConcurrencyLimit::new(&shares());
        let held: Vec<_> = (0..=FULL_SHARES)
            .map(|number| std::iter::from_fn(|| limit.take(&client(number))).collect::<Vec<_>>())
            .collect();
        let counts: Vec<_> = held.iter().map(Vec::len).collect();
        assert_eq!(counts, [EACH, EACH, EACH, EACH, 0]);
        assert!(limit.take(&CallerClass::Operator.into()).is_some());
    }

    #[test]
    fn callers_without_a_principal_count_as_one() {
        let limit = ConcurrencyLimit::new(&shares());
        assert_eq!(fill(&limit, &CallerClass::Client.into()), EACH);
    }
}
