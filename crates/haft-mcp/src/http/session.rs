//! `Session`: a run that an HTTP client uses, and since when it does not.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use haft::bounds::Class;
use haft::call::Principal;
use tokio::time::Instant;

use super::resume::Streams;

use crate::core::Answer;
use crate::run::Run;

/// When something was last used, and how often it is in use now.
#[derive(Debug)]
struct Use {
    began: Instant,
    /// Milliseconds after `began`.
    last: AtomicU64,
    now: AtomicUsize,
    /// It has been used for more than to begin.
    worked: AtomicBool,
}

impl Use {
    fn touch(&self) {
        let passed = self.began.elapsed().as_millis();
        let passed = u64::try_from(passed).unwrap_or(u64::MAX);
        self.last.store(passed, Ordering::Relaxed);
    }

    fn idle(&self) -> Option<Duration> {
        let last = Duration::from_millis(self.last.load(Ordering::Relaxed));
        let unused = self.now.load(Ordering::Relaxed) == 0;
        unused.then(|| self.began.elapsed().saturating_sub(last))
    }
}

/// A run that a client uses.
#[derive(Debug)]
pub(super) struct Session {
    pub(super) run: Arc<Run>,
    pub(super) principal: Option<Principal>,
    pub(super) class: Class,
    /// The streams of answers that it may lose.
    streams: Arc<Streams>,
    used: Use,
}

impl Session {
    pub(super) fn new(run: Arc<Run>, principal: Option<Principal>, class: Class) -> Arc<Self> {
        Arc::new(Self {
            run,
            principal,
            class,
            streams: Arc::default(),
            used: Use {
                began: Instant::now(),
                last: AtomicU64::new(0),
                now: AtomicUsize::new(0),
                worked: AtomicBool::new(false),
            },
        })
    }

    /// How long it has not been used; none while it is, by its client or by a call that waits for it.
    pub(super) fn idle(&self) -> Option<Duration> {
        self.used.idle().filter(|_| !self.run.is_at_work())
    }

    /// Whether it was used for more than to begin.
    pub(super) fn has_worked(&self) -> bool {
        self.used.worked.load(Ordering::Relaxed)
    }
}

/// A session in use: it does not expire meanwhile.
#[derive(Debug)]
pub(crate) struct Lease(pub(super) Arc<Session>);

impl Lease {
    pub(super) fn new(session: &Arc<Session>) -> Self {
        session.used.now.fetch_add(1, Ordering::Relaxed);
        session.used.touch();
        Self(Arc::clone(session))
    }

    pub(crate) fn run(&self) -> &Arc<Run> {
        &self.0.run
    }

    /// The streams of answers that its client may lose.
    pub(crate) fn streams(&self) -> &Arc<Streams> {
        &self.0.streams
    }

    /// Notes that the client does something with it.
    pub(crate) fn works(&self) {
        self.0.used.worked.store(true, Ordering::Relaxed);
    }

    /// Given back; where the call still waits for an approval, once it is decided: its run must be there then.
    pub(crate) fn keep_for(self, answer: Option<&Answer>) {
        if let Some(id) = answer.and_then(|answer| answer.waits.clone()) {
            tokio::spawn(async move { self.run().settled(&id).await });
        }
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.0.used.touch();
        self.0.used.now.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Of these sessions, the one that is missed least: idle for longest, those that never did anything first.
pub(super) fn least_missed<'a, K>(
    sessions: impl Iterator<Item = (K, &'a Arc<Session>)>,
) -> Option<K> {
    let idle = sessions.filter_map(|(key, session)| {
        let idle = session.idle()?;
        Some(((!session.has_worked(), idle), key))
    });
    idle.max_by_key(|(order, _)| *order).map(|(_, key)| key)
}
