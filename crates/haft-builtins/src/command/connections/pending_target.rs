//! `PendingTarget`: a place that connections wait for, and what was decided about it.

use tokio::sync::watch;

use crate::command::connect::{ConnectionTarget, LoginInput};
use crate::proxy::{ConnectionAccess, ConnectionRefusal};

pub(super) type ConnectionVerdict = Result<ConnectionAccess, ConnectionRefusal>;
/// An answer that may not have arrived yet.
pub(super) type VerdictReceiver = watch::Receiver<Option<ConnectionVerdict>>;

/// A place that one or more connections wait for.
#[derive(Debug)]
pub(super) struct PendingTarget {
    pub(super) place: ConnectionTarget,
    /// The login that is to be used there, about which the same request asks.
    pub(super) login: Option<LoginInput>,
    pub(super) tell: watch::Sender<Option<ConnectionVerdict>>,
}

impl PendingTarget {
    pub(super) fn new(place: ConnectionTarget) -> (Self, VerdictReceiver) {
        let (tell, hear) = watch::channel(None);
        let login = None;
        (Self { place, login, tell }, hear)
    }

    pub(super) fn answer(&self, answer: ConnectionVerdict) {
        self.tell.send_replace(Some(answer));
    }

    pub(super) fn refuse(&self, why: impl Into<String>, operator: Option<String>) {
        self.answer(Err(refusal(&self.place, why.into(), operator)));
    }
}

/// A place that was asked about.
#[derive(Debug)]
pub(super) struct TargetDecision {
    pub(super) hear: VerdictReceiver,
    /// Whether a guard asked because of what the run had read.
    pub(super) asked_each_time: bool,
}

impl TargetDecision {
    /// Whether nobody has answered yet.
    pub(super) fn is_pending(&self) -> bool {
        self.hear.borrow().is_none()
    }

    /// Whether its answer holds for a connection about which such a guard asks now or not: what was agreed to before the run read
    /// untrusted content is no answer afterwards.
    pub(super) fn holds(&self, asks_each_time: bool) -> bool {
        let agreed = matches!(&*self.hear.borrow(), Some(Ok(_)));
        !agreed || !asks_each_time || self.asked_each_time
    }
}

pub(super) fn refusal(
    place: &ConnectionTarget,
    why: String,
    operator: Option<String>,
) -> ConnectionRefusal {
    ConnectionRefusal::Judged {
        place: place.describe_use(),
        why,
        operator,
    }
}
