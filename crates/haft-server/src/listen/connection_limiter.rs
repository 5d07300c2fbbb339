//! `ConnectionLimiter`: the open connections. Each principal has a share; among strangers, the oldest makes room for the next.

use std::collections::BTreeMap;
use std::sync::Arc;

use haft::bounds::{
    CallerClass, ConcurrencyLimit, ConcurrencyPermit, FULL_SHARES, PrincipalShares, ShareKey,
    Shares,
};
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::Notify;

/// The connections of one listener.
#[derive(Debug)]
pub(crate) struct ConnectionLimiter {
    /// Maximum number of strangers.
    strangers: usize,
    /// The places of connections that showed a token.
    places: ConcurrencyLimit,
    inside: Mutex<ConnectionLimiterState>,
}

#[derive(Debug, Default)]
struct ConnectionLimiterState {
    next: u64,
    /// In order of arrival.
    strangers: BTreeMap<u64, Arc<Notify>>,
}

/// One connection's place in the crowd, released when it ends.
#[derive(Debug)]
pub(crate) struct ConnectionSlot {
    crowd: Arc<ConnectionLimiter>,
    number: u64,
    /// The place that it has once it showed a token.
    shown: Mutex<Option<ShownPlace>>,
    evicted: Arc<Notify>,
}

/// The place of a connection that showed a token.
#[derive(Debug)]
struct ShownPlace {
    class: CallerClass,
    _place: ConcurrencyPermit,
}

impl ConnectionLimiter {
    /// Creates a crowd of at most `most` connections. One that shows no token makes room for one that may; clients cannot take
    /// the operator's share, nor one principal another's.
    pub(crate) fn new(most: usize) -> Arc<Self> {
        let shares = PrincipalShares::by_principal(Shares {
            strangers: 0,
            clients: (most / 2 / FULL_SHARES).max(1),
            operator: (most / 4).max(1),
        });
        Arc::new(Self {
            strangers: (most / 8).max(1),
            places: ConcurrencyLimit::new(&shares),
            inside: Mutex::default(),
        })
    }

    /// Admits a connection as a stranger; if there are too many, the oldest stranger has to leave.
    pub(crate) fn enter(self: &Arc<Self>) -> ConnectionSlot {
        let evicted = Arc::new(Notify::new());
        let mut inside = self.lock();
        if inside.strangers.len() >= self.strangers
            && let Some((_, first)) = inside.strangers.pop_first()
        {
            first.notify_one();
        }
        let number = inside.next;
        inside.next += 1;
        inside.strangers.insert(number, Arc::clone(&evicted));
        drop(inside);
        ConnectionSlot {
            crowd: Arc::clone(self),
            number,
            shown: Mutex::default(),
            evicted,
        }
    }

    fn lock(&self) -> MutexGuard<'_, ConnectionLimiterState> {
        self.inside.lock()
    }
}

impl ConnectionSlot {
    /// Notes whose token arrived on this connection; returns false if that class or principal has too many connections. The
    /// connection counts in the highest class it has shown, for the first principal of that class.
    pub(crate) fn shows(&self, who: &ShareKey) -> bool {
        let mut shown = self.shown.lock();
        if shown.as_ref().is_some_and(|shown| shown.class >= who.class) {
            return true;
        }
        let mut inside = self.crowd.lock();
        if shown.is_none() && !inside.strangers.contains_key(&self.number) {
            // It has been told to leave.
            return false;
        }
        let Some(place) = self.crowd.places.take(who) else {
            return false;
        };
        inside.strangers.remove(&self.number);
        *shown = Some(ShownPlace {
            class: who.class,
            _place: place,
        });
        true
    }

    /// Waits until it must make room.
    pub(crate) async fn wait_for_eviction(&self) {
        self.evicted.notified().await;
    }
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        self.crowd.lock().strangers.remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use std::future::Future;
    use std::pin::pin;
    use std::task::{Context, Waker};

    use haft::bounds::{CallerClass, ShareKey};
    use haft::call::Principal;

    use super::{ConnectionLimiter, ConnectionSlot};

    fn is_out(guest: &ConnectionSlot) -> bool {
        let mut cx = Context::from_waker(Waker::noop());
        pin!(guest.wait_for_eviction()).poll(&mut cx).is_ready()
    }

    fn ann() -> ShareKey {
        person("ann")
    }

    fn person(name: &str) -> ShareKey {
        ShareKey {
            class: CallerClass::Client,
            principal: Some(Principal::local(name)),
        }
    }

    #[test]
    fn w4_a_stranger_makes_room_for_the_next_and_nobody_with_a_token_does() {
        let crowd = ConnectionLimiter::new(16);
        let client = crowd.enter();
        assert!(client.shows(&ann()));
        let strangers = [(); 2].map(|()| crowd.enter());
        assert!(!strangers.iter().any(is_out));
        let third = crowd.enter();
        assert!(is_out(&strangers[0]) && !is_out(&strangers[1]) && !is_out(&third));
        // A connection that has to leave cannot gain a class any more.
        assert!(!strangers[0].shows(&CallerClass::Operator.into()));
        for _ in 0..100 {
            crowd.enter();
        }
        assert!(!is_out(&client) && client.shows(&ann()));
    }

    #[test]
    fn w4_clients_take_no_connection_of_the_operators() {
        let crowd = ConnectionLimiter::new(64);
        let clients = [(); 8].map(|()| {
            let client = crowd.enter();
            assert!(client.shows(&ann()));
            client
        });
        let late = crowd.enter();
        assert!(!late.shows(&ann()) && late.shows(&CallerClass::Operator.into()));
        // A connection that showed both tokens counts as the operator's.
        assert!(late.shows(&ann()) && clients[0].shows(&CallerClass::Operator.into()));
        assert!(crowd.enter().shows(&ann()));
    }

    #[test]
    fn n2_a_principal_takes_a_quarter_of_the_clients_connections_and_no_more() {
        let crowd = ConnectionLimiter::new(64);
        let fill = |who: &ShareKey| {
            let connections = std::iter::repeat_with(|| crowd.enter());
            connections
                .take_while(|one| one.shows(who))
                .collect::<Vec<_>>()
        };
        let held = ["ann", "bob", "eve"].map(|name| fill(&person(name)));
        assert_eq!(held.each_ref().map(Vec::len), [8, 8, 8]);
        assert!(
            crowd.enter().shows(&person("late"))
                && crowd.enter().shows(&CallerClass::Operator.into())
        );
    }
}
