//! The requests a connection has under way, by id: none twice, each can be cancelled.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
use tokio::sync::oneshot;

use crate::wire::Id;

/// The requests under way.
#[derive(Debug, Clone, Default)]
pub(crate) struct InFlight(Arc<Mutex<HashMap<Id, oneshot::Sender<()>>>>);

/// One request under way; taken off the list when dropped.
#[derive(Debug)]
pub(crate) struct Ticket {
    list: InFlight,
    id: Id,
    cancelled: oneshot::Receiver<()>,
}

impl InFlight {
    fn lock(&self) -> MutexGuard<'_, HashMap<Id, oneshot::Sender<()>>> {
        self.0.lock()
    }

    /// Puts a request on the list; `None` when its id is on it already.
    pub(crate) fn enter(&self, id: &Id) -> Option<Ticket> {
        let mut list = self.lock();
        if list.contains_key(id) {
            return None;
        }
        let (cancel, cancelled) = oneshot::channel();
        list.insert(id.clone(), cancel);
        Some(Ticket {
            list: self.clone(),
            id: id.clone(),
            cancelled,
        })
    }

    /// Cancels the request with this id (raw JSON); an unknown one has ended already.
    pub(crate) fn cancel(&self, raw: &str) {
        // Its sender is kept until the request has ended, so that the id stays taken; the receiver is woken here.
        if let Some(id) = Id::parse(raw)
            && let Some(cancel) = self.lock().get_mut(&id)
        {
            let (spent, _) = oneshot::channel();
            drop(std::mem::replace(cancel, spent));
        }
    }

    /// Cancels all.
    pub(crate) fn cancel_all(&self) {
        for cancel in self.lock().values_mut() {
            let (spent, _) = oneshot::channel();
            drop(std::mem::replace(cancel, spent));
        }
    }
}

impl Ticket {
    /// Runs the work to its end; `None` when it was cancelled before. Dropping the work is what ends it.
    pub(crate) async fn run<T>(mut self, work: impl Future<Output = T>) -> Option<T> {
        tokio::select! {
            biased;
            _ = &mut self.cancelled => None,
            result = work => Some(result),
        }
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        self.list.lock().remove(&self.id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(raw: &str) -> Id {
        Id::parse(raw).unwrap()
    }

    #[test]
    fn an_id_is_taken_until_its_request_ends() {
        let list = InFlight::default();
        let first = list.enter(&id("1")).unwrap();
        assert!(list.enter(&id("1")).is_none());
        let other = list
            .enter(&id("\"1\""))
            .expect("a string is another id than a number");
        list.cancel("1");
        assert!(list.enter(&id("1")).is_none(), "cancelled is not yet ended");
        drop(first);
        assert!(list.enter(&id("1")).is_some());
        drop(other);
        assert!(list.enter(&id("\"1\"")).is_some());
    }

    #[tokio::test]
    async fn cancelling_ends_the_work_and_only_that() {
        let list = InFlight::default();
        let one = list.enter(&id("1")).unwrap();
        let two = list.enter(&id("2")).unwrap();
        list.cancel("1");
        assert_eq!(one.run(std::future::pending::<()>()).await, None);
        assert_eq!(two.run(async { 7 }).await, Some(7));
        let three = list.enter(&id("3")).unwrap();
        list.cancel_all();
        assert_eq!(three.run(std::future::pending::<()>()).await, None);
    }
}
