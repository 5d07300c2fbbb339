//! `Links`: the connections to a server behind haft.
//!
//! One is enough, but for a server of the handshake era behind an address: it hears at the beginning of a session what its client can be
//! asked, so there is a session for each set of what callers can be. A process is started once, for all of them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;

use crate::client::Offers;
use crate::era::Revision;
use crate::upstream::link::Link;
use crate::upstream::manifest::Manifest;

/// The connections to one server.
#[derive(Debug)]
pub(crate) struct Links {
    /// The one for all that belongs to no caller, which offers whatever settings let pass.
    pub(crate) main: Arc<Link>,
    /// Those for callers of whom less can be asked, where there is one for each: eight at most.
    others: Option<Mutex<BTreeMap<Offers, Arc<Link>>>>,
    /// Whether no other one is opened any more.
    is_over: AtomicBool,
}

impl Links {
    pub(crate) fn new(main: Arc<Link>, manifest: &Manifest) -> Self {
        let is_behind_an_address = matches!(manifest.transport.as_deref(), Some("http" | "sse"));
        let is_older = Revision::parse(&manifest.revision).is_some();
        Self {
            main,
            others: (is_behind_an_address && is_older).then(Mutex::default),
            is_over: AtomicBool::new(false),
        }
    }

    /// The one for a caller who can be asked this.
    pub(crate) fn of(&self, offers: Offers) -> Arc<Link> {
        match &self.others {
            Some(others) if offers != self.main.offers() => {
                let mut others = others.lock();
                if self.is_over.load(Ordering::Acquire) {
                    return Arc::clone(&self.main);
                }
                let other = others
                    .entry(offers)
                    .or_insert_with(|| Arc::new(self.main.beside(offers)));
                Arc::clone(other)
            }
            _ => Arc::clone(&self.main),
        }
    }

    /// Ends all of them, and opens none after them.
    pub(crate) async fn end(&self) {
        self.is_over.store(true, Ordering::Release);
        for link in self.all() {
            link.end().await;
        }
    }

    /// All of them, the main one first.
    pub(crate) fn all(&self) -> Vec<Arc<Link>> {
        let mut all = vec![Arc::clone(&self.main)];
        if let Some(others) = &self.others {
            all.extend(others.lock().values().cloned());
        }
        all
    }
}
