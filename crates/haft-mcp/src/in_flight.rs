//! `InFlightRequests`: a connection's requests in progress by id: ids are unique, and each request can be cancelled.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use tokio::sync::oneshot;

use crate::wire::RequestId;

/// How long the work of a client that has gone may take to end by itself, as a call that waits for a decision does.
const LEAVE_TIMEOUT: Duration = Duration::from_millis(500);

/// The requests in progress.
#[derive(Debug, Clone, Default)]
pub(crate) struct InFlightRequests(Arc<Mutex<HashMap<RequestId, oneshot::Sender<()>>>>);

/// A request in progress; removed from the list when dropped.
#[derive(Debug)]
pub(crate) struct InFlightRequest {
    list: InFlightRequests,
    id: RequestId,
    cancelled: oneshot::Receiver<()>,
}

impl InFlightRequests {
    fn lock(&self) -> MutexGuard<'_, HashMap<RequestId, oneshot::Sender<()>>> {
        self.0.lock()
    }

    /// Adds a request to the list; `None` if its id is already there.
    pub(crate) fn enter(&self, id: &RequestId) -> Option<InFlightRequest> {
        let mut list = self.lock();
        if list.contains_key(id) {
            return None;
        }
        let (cancel, cancelled) = oneshot::channel();
        list.insert(id.clone(), cancel);
        Some(InFlightRequest {
            list: self.clone(),
            id: id.clone(),
            cancelled,
        })
    }

    /// Cancels the request with this id (raw JSON); an unknown one has already ended.
    pub(crate) fn cancel(&self, raw: &str) {
        // A sender stays in the map until the request has ended, so the id stays taken; dropping the old one wakes the receiver.
        if let Some(id) = RequestId::parse(raw)
            && let Some(cancel) = self.lock().get_mut(&id)
        {
            let (spent, _) = oneshot::channel();
            drop(std::mem::replace(cancel, spent));
        }
    }

    /// Cancels all requests because their client has gone: none is answered, and what waits for a decision may end suspended first.
    pub(crate) fn leave_all(&self) {
        for cancel in self.lock().values_mut() {
            let (spent, _) = oneshot::channel();
            // One that was cancelled before does not listen any more.
            let _cancelled = std::mem::replace(cancel, spent).send(());
        }
    }
}

impl InFlightRequest {
    /// Runs the work to completion; `None` if it is cancelled first, which drops the work.
    pub(crate) async fn run<T>(mut self, work: impl Future<Output = T>) -> Option<T> {
        tokio::pin!(work);
        tokio::select! {
            biased;
            has_left = &mut self.cancelled => {
                if has_left.is_ok() {
                    let _late = tokio::time::timeout(LEAVE_TIMEOUT, work).await;
                }
                None
            }
            result = &mut work => Some(result),
        }
    }
}

impl Drop for InFlightRequest {
    fn drop(&mut self) {
        self.list.lock().remove(&self.id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(raw: &str) -> RequestId {
        RequestId::parse(raw).unwrap()
    }

    #[test]
    fn an_id_is_taken_until_its_request_ends() {
        let list = InFlightRequests::default();
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
        let list = InFlightRequests::default();
        let one = list.enter(&id("1")).unwrap();
        let two = list.enter(&id("2")).unwrap();
        list.cancel("1");
        assert_eq!(one.run(std::future::pending::<()>()).await, None);
        assert_eq!(two.run(async { 7 }).await, Some(7));
        let three = list.enter(&id("3")).unwrap();
        list.leave_all();
        assert_eq!(three.run(std::future::pending::<()>()).await, None);
    }
}
