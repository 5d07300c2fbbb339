//! `RequestPace`: how many requests of one principal are begun at a time while others' wait to be worked on, too.
//!
//! Shares bound what a principal makes the server hold. They do not bound the work: with hundreds of requests begun at once, every other
//! request waits for a step of each of them, in the runtime's queue, in the threads that read files, in the queue of records. So a
//! principal that is not alone has only a few requests at work for each processor, and its next one begins when one of them is answered,
//! or has taken so long that it waits for something else than a processor: a person, a command, another server. And a principal with many
//! requests lets those go first that have few: a request of many steps would otherwise wait in each of them.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use haft::bounds::{CallerClass, ShareKey};
use parking_lot::Mutex;
use tokio::sync::{Notify, Semaphore};
use tokio::time::Instant;

/// How many requests of one principal may be at work for each processor.
const FOR_EACH_PROCESSOR: usize = 2;
/// How long a request counts as being at work if it is not answered before.
const AT_WORK: Duration = Duration::from_millis(5);
/// How many times as many requests a principal has in progress as one that goes first.
const MANY: usize = 4;
/// How long a principal's next request lets others go first.
const PATIENCE: Duration = Duration::from_millis(5);

/// The requests in progress, by principal. Clones count together.
#[derive(Debug, Clone)]
pub(crate) struct RequestPace {
    /// How many requests of one principal may be at work.
    each: usize,
    principals: Arc<Mutex<HashMap<ShareKey, Requests>>>,
    /// Some request is no longer at work.
    done: Arc<Notify>,
}

/// A principal's requests.
#[derive(Debug)]
struct Requests {
    /// In progress, whether at work or not. It is never zero.
    count: usize,
    /// At work, of a principal that is not alone.
    at_work: usize,
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

/// A request at work.
struct AtWork<'a>(&'a InProgress<'a>);

impl RequestPace {
    /// Creates the pace for a service that this many threads work for.
    pub(crate) fn new(threads: usize) -> Self {
        Self {
            each: threads.max(1) * FOR_EACH_PROCESSOR,
            principals: Arc::default(),
            done: Arc::default(),
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
        request.let_others_first().await;
        let at_work = request.begin();
        let mut work = std::pin::pin!(work);
        if let Ok(done) = tokio::time::timeout(AT_WORK, &mut work).await {
            return done;
        }
        drop(at_work);
        drop(place);
        work.await
    }

    fn enter<'a>(&'a self, who: &'a ShareKey) -> InProgress<'a> {
        let mut principals = self.principals.lock();
        let own = principals.entry(who.clone()).or_insert_with(|| Requests {
            count: 0,
            at_work: 0,
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

impl InProgress<'_> {
    /// Waits while a principal with few requests is at work, but not for long.
    async fn let_others_first(&self) {
        let patience = Instant::now() + PATIENCE;
        loop {
            // Before it looks, so that no end is missed.
            let done = self.pace.done.notified();
            if !self.is_crowding() || tokio::time::timeout_at(patience, done).await.is_err() {
                return;
            }
        }
    }

    /// Returns whether one is at work that has few requests where this principal has many.
    fn is_crowding(&self) -> bool {
        let principals = self.pace.principals.lock();
        let own = principals.get(self.who).map_or(0, |own| own.count);
        // Its own are too many to count as few.
        let mut all = principals.values();
        all.any(|other| other.at_work > 0 && other.count * MANY <= own)
    }

    fn begin(&self) -> AtWork<'_> {
        self.count_at_work(|at_work| at_work + 1);
        AtWork(self)
    }

    fn count_at_work(&self, change: impl Fn(usize) -> usize) {
        if let Some(own) = self.pace.principals.lock().get_mut(self.who) {
            own.at_work = change(own.at_work);
        }
    }
}

impl Drop for AtWork<'_> {
    fn drop(&mut self) {
        self.0.count_at_work(|at_work| at_work - 1);
        self.0.pace.done.notify_waiters();
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

    /// Lets all tasks go on as far as they can before any time has passed.
    async fn yields() {
        for _ in 0..20 {
            tokio::task::yield_now().await;
        }
    }

    /// Begins this many requests of a principal; returns them, and how many are at work before any time has passed.
    async fn begin(pace: &RequestPace, who: &ShareKey, requests: usize) -> (Arc<Work>, usize) {
        let work = Arc::<Work>::default();
        for _ in 0..requests {
            let (pace, who, work) = (pace.clone(), who.clone(), Arc::clone(&work));
            tokio::spawn(async move { pace.run(&who, work.until_told()).await });
        }
        yields().await;
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
    async fn a_principal_with_many_requests_lets_one_with_few_go_first() {
        let pace = RequestPace::new(1);
        // From the start they are not alone.
        let (_bob, _) = begin(&pace, &client("bob"), 1).await;
        let eve = client("eve");
        let (many, begun) = begin(&pace, &eve, 8).await;
        assert_eq!(begun, 2);
        let (few, begun) = begin(&pace, &client("ann"), 1).await;
        assert_eq!(begun, 1);
        // Two more of hers have a place now.
        many.go.notify_waiters();
        yields().await;
        assert_eq!(many.begun.load(Ordering::Relaxed), 2);
        few.go.notify_waiters();
        yields().await;
        assert_eq!(many.begun.load(Ordering::Relaxed), 4);
        // Nobody goes first for ever.
        let (_few, begun) = begin(&pace, &client("ann"), 1).await;
        assert_eq!(begun, 1);
        many.go.notify_waiters();
        yields().await;
        assert_eq!(many.begun.load(Ordering::Relaxed), 4);
        tokio::time::sleep(super::PATIENCE * 2).await;
        assert!(many.begun.load(Ordering::Relaxed) > 4);
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
