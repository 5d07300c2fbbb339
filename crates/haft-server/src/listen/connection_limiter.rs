//! `ConnectionLimiter`: the open connections. Each class has a share; among strangers, the oldest makes room for the next.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use haft::bounds::{CallerClass, Shares};
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::Notify;

/// The connections of one listener.
#[derive(Debug)]
pub(crate) struct ConnectionLimiter {
    most: Shares<usize>,
    inside: Mutex<ConnectionLimiterState>,
}

#[derive(Debug, Default)]
struct ConnectionLimiterState {
    next: u64,
    /// In order of arrival.
    strangers: BTreeMap<u64, Arc<Notify>>,
    clients: usize,
    operators: usize,
}

/// One connection's place in the crowd, released when it ends.
#[derive(Debug)]
pub(crate) struct ConnectionSlot {
    crowd: Arc<ConnectionLimiter>,
    number: u64,
    /// The class it counts in, as a number.
    class: AtomicU8,
    evicted: Arc<Notify>,
}

impl ConnectionLimiter {
    /// Creates a crowd of at most `most` connections. One that shows no token makes room for one that may; clients cannot take
    /// the operator's share.
    pub(crate) fn new(most: usize) -> Arc<Self> {
        Arc::new(Self {
            most: Shares {
                strangers: (most / 8).max(1),
                clients: (most / 2).max(1),
                operator: (most / 4).max(1),
            },
            inside: Mutex::default(),
        })
    }

    /// Admits a connection as a stranger; if there are too many, the oldest stranger has to leave.
    pub(crate) fn enter(self: &Arc<Self>) -> ConnectionSlot {
        let evicted = Arc::new(Notify::new());
        let mut inside = self.lock();
        if inside.strangers.len() >= self.most.strangers
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
            class: AtomicU8::new(CallerClass::Stranger as u8),
            evicted,
        }
    }

    fn lock(&self) -> MutexGuard<'_, ConnectionLimiterState> {
        self.inside.lock()
    }
}

impl ConnectionLimiterState {
    /// Returns the counter of a class.
    fn count(&mut self, class: CallerClass) -> Option<&mut usize> {
        match class {
            CallerClass::Stranger => None,
            CallerClass::Client => Some(&mut self.clients),
            CallerClass::Operator => Some(&mut self.operators),
        }
    }
}

impl ConnectionSlot {
    /// Notes the class of a token that arrived on this connection; returns false if that class has too many connections. The
    /// connection counts in the highest class it has shown.
    pub(crate) fn shows(&self, class: CallerClass) -> bool {
        let counted = self.class.load(Ordering::Relaxed);
        if counted >= class as u8 {
            return true;
        }
        let mut inside = self.crowd.lock();
        if counted == CallerClass::Stranger as u8 && !inside.strangers.contains_key(&self.number) {
            // It has been told to leave.
            return false;
        }
        let most = *self.crowd.most.of(class);
        let Some(count) = inside.count(class).filter(|count| **count < most) else {
            return false;
        };
        *count += 1;
        if counted == CallerClass::Client as u8 {
            inside.clients -= 1;
        } else {
            inside.strangers.remove(&self.number);
        }
        self.class.store(class as u8, Ordering::Relaxed);
        true
    }

    /// Waits until it must make room.
    pub(crate) async fn wait_for_eviction(&self) {
        self.evicted.notified().await;
    }
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        let mut inside = self.crowd.lock();
        match self.class.load(Ordering::Relaxed) {
            class if class == CallerClass::Client as u8 => inside.clients -= 1,
            class if class == CallerClass::Operator as u8 => inside.operators -= 1,
            _ => drop(inside.strangers.remove(&self.number)),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::Future;
    use std::pin::pin;
    use std::task::{Context, Waker};

    use haft::bounds::CallerClass;

    use super::{ConnectionLimiter, ConnectionSlot};

    fn is_out(guest: &ConnectionSlot) -> bool {
        let mut cx = Context::from_waker(Waker::noop());
        pin!(guest.wait_for_eviction()).poll(&mut cx).is_ready()
    }

    #[test]
    fn w4_a_stranger_makes_room_for_the_next_and_nobody_with_a_token_does() {
        let crowd = ConnectionLimiter::new(16);
        let client = crowd.enter();
        assert!(client.shows(CallerClass::Client));
        let strangers = [(); 2].map(|()| crowd.enter());
        assert!(!strangers.iter().any(is_out));
        let third = crowd.enter();
        assert!(is_out(&strangers[0]) && !is_out(&strangers[1]) && !is_out(&third));
        // A connection that has to leave cannot gain a class any more.
        assert!(!strangers[0].shows(CallerClass::Operator));
        for _ in 0..100 {
            crowd.enter();
        }
        assert!(!is_out(&client) && client.shows(CallerClass::Client));
    }

    #[test]
    fn w4_clients_take_no_connection_of_the_operators() {
        let crowd = ConnectionLimiter::new(16);
        let clients = [(); 8].map(|()| {
            let client = crowd.enter();
            assert!(client.shows(CallerClass::Client));
            client
        });
        let late = crowd.enter();
        assert!(!late.shows(CallerClass::Client) && late.shows(CallerClass::Operator));
        // A connection that showed both tokens counts as the operator's.
        assert!(late.shows(CallerClass::Client) && clients[0].shows(CallerClass::Operator));
        assert!(crowd.enter().shows(CallerClass::Client));
    }
}
