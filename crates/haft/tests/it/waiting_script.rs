//! Every order of events around a script that waits for a request of a call in it, while its client is gone: two clients make the call
//! again, two processes resume it, one of them exits. Its outcome is collected once and never lost.

use haft::approval::inbox::RequestStatus;
use haft::approval::transition::{CallState, CallerState, WaitingEvent, transition};

use crate::waiting::search;

/// Whether each client has the outcome (`Some(true)`), or finds none and makes a new call.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Script {
    row: CallState,
    clients: [Option<bool>; 2],
    /// The resumers that have not come yet, and whether one is at work: only one can be, since a run has one holder.
    resumers: u8,
    at_work: bool,
    may_exit: bool,
}

impl Script {
    fn with(&self, event: WaitingEvent) -> Self {
        let row = transition(self.row, event).unwrap();
        Self {
            row,
            ..self.clone()
        }
    }

    fn next(&self) -> Vec<Self> {
        let mut next = Vec::new();
        let resumable = self.row.caller == CallerState::Within && !self.at_work;
        if resumable && self.resumers > 0 {
            next.push(Self {
                resumers: self.resumers - 1,
                at_work: true,
                ..self.clone()
            });
        }
        if self.at_work {
            let ended = self.with(WaitingEvent::Return { heard: false });
            next.push(Self {
                at_work: false,
                ..ended
            });
            // It asks about another call, and ends suspended once more.
            let again = self.with(WaitingEvent::Suspend { within: true });
            next.push(Self {
                at_work: false,
                ..again
            });
            if self.may_exit {
                next.push(Self {
                    at_work: false,
                    may_exit: false,
                    ..self.clone()
                });
            }
        }
        for n in (0..2).filter(|n| self.clients[*n].is_none()) {
            let heard = match self.row.caller {
                CallerState::Ended => true,
                CallerState::None => false,
                CallerState::Own | CallerState::Within => continue,
            };
            let mut after = self.with(WaitingEvent::Collect);
            after.clients[n] = Some(heard);
            next.push(after);
        }
        next
    }

    fn check(&self, is_end: bool) {
        let collected = self
            .clients
            .iter()
            .filter(|one| **one == Some(true))
            .count();
        assert!(collected <= 1, "collected twice: {self:?}");
        let ended = self.row.caller == CallerState::Ended;
        assert!(!(is_end && ended), "an outcome is lost: {self:?}");
        let gone = self.row.caller == CallerState::None;
        assert_eq!(gone, collected == 1, "{self:?}");
        let waits = self.clients.contains(&None);
        // Without another resumer, it waits for one: the operator's.
        assert!(
            !(is_end && waits) || self.resumers == 0,
            "waits for ever: {self:?}"
        );
    }
}

#[test]
fn a_script_resumed_without_its_client_gives_its_outcome_to_one_client() {
    let script = Script {
        row: transition(
            CallState::of(RequestStatus::Pending),
            WaitingEvent::Suspend { within: true },
        )
        .unwrap(),
        clients: [None; 2],
        resumers: 2,
        at_work: false,
        may_exit: true,
    };
    let states = search(script, Script::next, Script::check);
    assert!(states > 10, "{states} states");
}
