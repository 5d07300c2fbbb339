//! `ChainWatch`: polls the socket instead of sleeping at moments when the next frame is likely.
//!
//! An idle processor takes longer to wake (tens to hundreds of microseconds in a virtual machine) than a script takes to
//! make its next call. So the host keeps polling for a short time after each message, and yields to the other tasks of its
//! runtime in between: only for a chain that runs alone, and only if there is a processor to spare.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// How long a script is expected to take until its first message.
const FIRST: Duration = Duration::from_micros(1500);
/// How long a script is expected to take from an answer to the next call.
const NEXT: Duration = Duration::from_micros(60);
/// How often a script polls for an answer before it sleeps: each takes about a microsecond.
const LOOKS: u32 = 25;

/// Decides whether to poll, for all chains of one tool.
#[derive(Debug, Clone)]
pub(crate) struct PollPolicy {
    running: Arc<AtomicUsize>,
    spare: bool,
}

impl PollPolicy {
    /// Polling pays off if this machine has a second processor.
    pub(crate) fn new() -> Self {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        Self {
            running: Arc::default(),
            spare: processors > 1,
        }
    }

    /// Registers a chain, before it has an interpreter: creating that needs a processor, too.
    pub(crate) fn enter(&self) -> ChainRegistration {
        self.running.fetch_add(1, Ordering::Relaxed);
        ChainRegistration(Arc::clone(&self.running))
    }

    /// Returns how often a script polls before it sleeps.
    pub(crate) fn of_script(&self) -> u32 {
        if self.spare { LOOKS } else { 0 }
    }
}

/// A registered chain; dropping it unregisters the chain.
#[derive(Debug)]
pub(crate) struct ChainRegistration(Arc<AtomicUsize>);

impl Drop for ChainRegistration {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// One chain's watch.
#[derive(Debug)]
pub(super) struct ChainWatch {
    looking: PollPolicy,
    until: Instant,
}

impl ChainWatch {
    /// Starts polling for a script's first message.
    pub(super) fn new(looking: PollPolicy) -> Self {
        Self {
            looking,
            until: Instant::now() + FIRST,
        }
    }

    /// Extends the polling after a message in either direction: the next one is likely to follow.
    pub(super) fn again(&mut self) {
        self.until = self.until.max(Instant::now() + NEXT);
    }

    /// Returns whether to poll once more.
    pub(super) fn looks(&self) -> bool {
        self.looking.spare
            && self.looking.running.load(Ordering::Relaxed) == 1
            && Instant::now() < self.until
    }
}

#[cfg(test)]
mod tests {
    use super::{ChainWatch, PollPolicy};

    #[test]
    fn a_chain_looks_while_it_runs_alone() {
        let looking = PollPolicy {
            spare: true,
            ..PollPolicy::new()
        };
        let _present = looking.enter();
        let mut first = ChainWatch::new(looking.clone());
        first.until += std::time::Duration::from_mins(1);
        assert!(first.looks());
        let second = looking.enter();
        assert!(!first.looks());
        drop(second);
        assert!(first.looks());
        let alone = PollPolicy {
            spare: false,
            ..PollPolicy::new()
        };
        assert!(!ChainWatch::new(alone).looks());
    }
}
