//! `UpstreamLinks`: the connections to a server behind haft.
//!
//! One is enough, except for a handshake-era server over HTTP: it learns at the start of a session what its client can be asked,
//! so there is one session for each set of its callers' capabilities. A process is started once, for all callers.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;

use crate::client::OwnCapabilities;
use crate::era::Revision;
use crate::upstream::link::UpstreamLink;
use crate::upstream::manifest::Manifest;

/// The connections to one server.
#[derive(Debug)]
pub(crate) struct UpstreamLinks {
    /// The connection for everything that belongs to no caller; it offers whatever the settings allow.
    pub(crate) main: Arc<UpstreamLink>,
    /// Connections for callers with fewer capabilities, if each set needs its own: at most eight.
    others: Option<Mutex<BTreeMap<OwnCapabilities, Arc<UpstreamLink>>>>,
    /// Whether no other connection is opened any more.
    is_over: AtomicBool,
}

impl UpstreamLinks {
    pub(crate) fn new(main: Arc<UpstreamLink>, manifest: &Manifest) -> Self {
        let is_behind_an_address = matches!(manifest.transport.as_deref(), Some("http" | "sse"));
        let is_older = Revision::parse(&manifest.revision).is_some();
        Self {
            main,
            others: (is_behind_an_address && is_older).then(Mutex::default),
            is_over: AtomicBool::new(false),
        }
    }

    /// Returns the connection for a caller with these capabilities.
    pub(crate) fn of(&self, offers: OwnCapabilities) -> Arc<UpstreamLink> {
        match &self.others {
            Some(others) if offers != self.main.offers() => {
                let mut others = others.lock();
                if self.is_over.load(Ordering::Acquire) {
                    return Arc::clone(&self.main);
                }
                let other = others
                    .entry(offers)
                    .or_insert_with(|| Arc::new(self.main.clone_with_offers(offers)));
                Arc::clone(other)
            }
            _ => Arc::clone(&self.main),
        }
    }

    /// Closes all connections for good.
    pub(crate) async fn end(&self) {
        self.is_over.store(true, Ordering::Release);
        for link in self.all() {
            link.end().await;
        }
    }

    /// Returns all connections, the main one first.
    pub(crate) fn all(&self) -> Vec<Arc<UpstreamLink>> {
        let mut all = vec![Arc::clone(&self.main)];
        if let Some(others) = &self.others {
            all.extend(others.lock().values().cloned());
        }
        all
    }
}
