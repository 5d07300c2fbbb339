//! `RequestPace`: how many requests of one principal are begun at a time while others' wait to be worked on, too.
//!
//! Shares bound what a principal makes the server hold. They do not bound the work: with hundreds of requests begun at once, every other
//! request waits for a step of each of them, in the runtime's queue, in the threads that read files, in the queue of records. So a
//! principal that is not alone has only a few requests at work for each processor, and its next one begins when one of them is answered,
//! or has taken so long that it waits for something else than a processor: a person, a command, another server.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use haft::bounds::{CallerClass, ShareKey};
use parking_lot::Mutex;
use tokio::sync::Semaphore;

/// How many requests of one principal may be at work for each processor.
const FOR_EACH_PROCESSOR: usize = 2;
/// How long a request counts as being at work if it is not answered before.
const AT_WORK: Duration = Duration::from_millis(5);

/// The requests in progress, by principal. Clones count together.
#[derive(Debug, Clone)]
pub(crate) struct RequestPace {
    /// How many requests of one principal may be at work.
    each: usize,
    principals: Arc<Mutex<HashMap<ShareKey, Requests>>>,
}

/// A principal's requests.
#[derive(Debug)]
struct Requests {
    /// In progress, whether at work or not. It is never zero.
    count: usize,
    /// What may be at work.
    places: Arc<Semaphore>,
}

/// A request in progress.
struct InProgress<'a> {
    pace: &'a RequestPace,
    who: &'a ShareKey,
    /// The principal's places, unless nobody else asks for anything.
    places: Option<Arc<Semaphore>>,
}

impl RequestPace {
    /// Creates the pace for a service that this many threads work for.
    pub(crate) fn new(threads: usize) -> Self {
        Self {
            each: threads.max(1) * FOR_EACH_PROCESSOR,
            principals: Arc::default(),
        }
    }

    /// Does a request's work when it is its principal's turn.
    pub(crate) async fn run<T>(&self, who: &ShareKey, work: impl Future<Output = T>) -> T {
        let request = self.enter(who);
        let Some(places) = &request.places else {
            return work.await;
        };
        // A connection with many requests in one packet lets others' come up between them.
        tokio::task::yield_now().await;
        // It is never closed.
        let place = places.acquire().await;
        let mut work = std::pin::pin!(work);
        if let Ok(done) = tokio::time::timeout(AT_WORK, &mut work).await {
            return done;
        }
        drop(place);
        work.await
    }

    fn enter<'a>(&'a self, who: &'a ShareKey) -> InProgress<'a> {
        let mut principals = self.principals.lock();
        let own = principals.entry(who.clone()).or_insert_with(|| Requests {
            count: 0,
            places: Arc::new(Semaphore::new(self.each)),
        });
        own.count += 1;
        let places = Arc::clone(&own.places);
        // The operator is asked to act on what others do, so it never waits for its own requests.
        let is_free = principals.len() == 1 || who.class == CallerClass::Operator;
        InProgress {
            pace: self,
            who,
            places: (!is_free).then_some(places),
        }
    }
}

impl Drop for InProgress<'_> {
    fn drop(&mut self) {
        let mut principals = self.pace.principals.lock();
        if let Some(own) = principals.get_mut(self.who) {
            own.count -= 1;
            if own.count == 0 {
                principals.remove(self.who);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use haft::bounds::{CallerClass, ShareKey};
    use haft::call::Principal;
    use tokio::sync::Notify;

    use super::RequestPace;

    /// Requests that count themselves while they are at work, until they are let go.
    #[derive(Default)]
    struct Work {
        begun: AtomicUsize,
        go: Notify,
    }

    impl Work {
        async fn until_told(self: Arc<Self>) {
            let go = self.go.notified();
            self.begun.fetch_add(1, Ordering::Relaxed);
            go.await;
        }
    }

    fn client(name: &str) -> ShareKey {
        ShareKey {
            class: CallerClass::Client,
            principal: Some(Principal::local(name)),
        }
    }

    /// Begins this many requests of a principal; returns them, and how many are at work before any time has passed.
    async fn begin(pace: &RequestPace, who: &ShareKey, requests: usize) -> (Arc<Work>, usize) {
        let work = Arc::<Work>::default();
        for _ in 0..requests {
            let (pace, who, work) = (pace.clone(), who.clone(), Arc::clone(&work));
            tokio::spawn(async move { pace.run(&who, work.until_told()).await });
        }
        for _ in 0..10 {
            tokio::task::yield_now().await;
        }
        let begun = work.begun.load(Ordering::Relaxed);
        (work, begun)
    }

    #[tokio::test(start_paused = true)]
    async fn requests_of_one_principal_beside_another_begin_a_few_at_a_time() {
        let pace = RequestPace::new(1);
        let (ann, begun) = begin(&pace, &client("ann"), 1).await;
        assert_eq!(begun, 1);
        let (eve, begun) = begin(&pace, &client("eve"), 50).await;
        assert_eq!(begun, 2);
        // What waits for something else than a processor makes room.
        tokio::time::sleep(super::AT_WORK * 2).await;
        assert!(eve.begun.load(Ordering::Relaxed) > 2);
        let (_bob, begun) = begin(&pace, &client("bob"), 1).await;
        assert_eq!(begun, 1);
        tokio::time::sleep(super::AT_WORK * 60).await;
        assert_eq!(eve.begun.load(Ordering::Relaxed), 50);
        for work in [ann, eve] {
            work.go.notify_waiters();
        }
    }

    #[tokio::test(start_paused = true)]
    async fn requests_of_a_principal_alone_and_of_the_operator_begin_at_once() {
        let pace = RequestPace::new(1);
        let (_eve, begun) = begin(&pace, &client("eve"), 50).await;
        assert_eq!(begun, 50);
        let (_operator, begun) = begin(&pace, &CallerClass::Operator.into(), 50).await;
        assert_eq!(begun, 50);
    }

    #[tokio::test(start_paused = true)]
    async fn a_principal_whose_requests_are_dropped_or_done_is_forgotten() {
        let pace = RequestPace::new(1);
        let (_ann, _) = begin(&pace, &client("ann"), 1).await;
        let eve = client("eve");
        for _ in 0..5 {
            pace.run(&eve, async {}).await;
            let dropped = pace.run(&eve, std::future::pending::<()>());
            let in_time = tokio::time::timeout(super::AT_WORK, dropped).await;
            assert!(in_time.is_err());
        }
        assert!(!pace.principals.lock().contains_key(&eve));
    }
}
