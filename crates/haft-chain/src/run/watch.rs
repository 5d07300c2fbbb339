//! `Watch`: for moments in which the next frame is likely, a look at the socket again and again instead of sleep.
//!
//! An idle processor takes longer to wake (tens to hundreds of microseconds in a virtual machine) than a script takes to
//! make its next call. So for a short time after each message the host keeps looking, by yielding to whatever else its
//! runtime has to do: a chain that runs alone does, and only where there is a processor to spare.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// How long a script is expected to take to its first message.
const FIRST: Duration = Duration::from_micros(1500);
/// The same from an answer to the next call.
const NEXT: Duration = Duration::from_micros(60);
/// How often a script looks for an answer before it sleeps: about a microsecond each.
const LOOKS: u32 = 25;

/// Whether to look, for the chains of one tool.
#[derive(Debug, Clone)]
pub(crate) struct Looking {
    running: Arc<AtomicUsize>,
    spare: bool,
}

impl Looking {
    /// It is worth it where this machine has a second processor.
    pub(crate) fn new() -> Self {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        Self {
            running: Arc::default(),
            spare: processors > 1,
        }
    }

    /// A chain is there, from before it has an interpreter: what makes that one needs a processor, too.
    pub(crate) fn enter(&self) -> Present {
        self.running.fetch_add(1, Ordering::Relaxed);
        Present(Arc::clone(&self.running))
    }

    /// How often a script looks before it sleeps.
    pub(crate) fn of_script(&self) -> u32 {
        if self.spare { LOOKS } else { 0 }
    }
}

/// A chain that is there.
#[derive(Debug)]
pub(crate) struct Present(Arc<AtomicUsize>);

impl Drop for Present {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// One chain's watch.
#[derive(Debug)]
pub(super) struct Watch {
    looking: Looking,
    until: Instant,
}

impl Watch {
    /// Looks for a script's first message.
    pub(super) fn new(looking: Looking) -> Self {
        Self {
            looking,
            until: Instant::now() + FIRST,
        }
    }

    /// Something came or went: the next message is likely to follow.
    pub(super) fn again(&mut self) {
        self.until = self.until.max(Instant::now() + NEXT);
    }

    /// Whether to look once more.
    pub(super) fn looks(&self) -> bool {
        self.looking.spare
            && self.looking.running.load(Ordering::Relaxed) == 1
            && Instant::now() < self.until
    }
}

#[cfg(test)]
mod tests {
    use super::{Looking, Watch};

    #[test]
    fn a_chain_looks_while_it_runs_alone() {
        let looking = Looking {
            spare: true,
            ..Looking::new()
        };
        let _present = looking.enter();
        let mut first = Watch::new(looking.clone());
        first.until += std::time::Duration::from_mins(1);
        assert!(first.looks());
        let second = looking.enter();
        assert!(!first.looks());
        drop(second);
        assert!(first.looks());
        let alone = Looking {
            spare: false,
            ..Looking::new()
        };
        assert!(!Watch::new(alone).looks());
    }
}
