//! Every order of events around one waiting call, searched breadth first over the states that [`transition`] leads to: two identical calls
//! ask, two users decide, one process exits and its client makes the call again, the time runs out. The call runs at most once, no outcome is
//! lost, and nobody waits for ever.

use std::collections::{HashSet, VecDeque};
use std::fmt::Debug;
use std::hash::Hash;

use haft::approval::inbox::RequestEnding;
use haft::approval::inbox::RequestStatus::{
    Answered, Approved, Denied, Done, Expired, InDoubt, Pending, Running, Withdrawn,
};
use haft::approval::transition::{CallState, CallerState, WaitingEvent, transition};

/// Visits every state that can follow from the first, and returns their number. `next` returns the successors of a state.
pub(crate) fn search<W: Clone + Eq + Hash + Debug>(
    first: W,
    next: fn(&W) -> Vec<W>,
    check: fn(&W, bool),
) -> usize {
    let (mut known, mut queue) = (HashSet::from([first.clone()]), VecDeque::from([first]));
    while let Some(world) = queue.pop_front() {
        let successors = next(&world);
        check(&world, successors.is_empty());
        queue.extend(
            successors
                .into_iter()
                .filter(|one| known.insert(one.clone())),
        );
    }
    known.len()
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Process {
    Waits,
    /// Its call ended suspended, and it will make the call again.
    Suspended,
    /// It exited while its call waited or ran, and its client will make the call again in another run.
    Returns,
    /// Acts on the decision if no other process waits for it.
    Follows,
    Runs,
    /// Its call has ended, and it collects the outcome for its client.
    Ends,
    /// It has the call's outcome, or was told what became of the request.
    Heard(bool),
    Gone,
}

/// Two processes that make the call, and one that follows; what the users will decide, and what can still happen.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct World {
    row: CallState,
    processes: [Process; 3],
    deciders: [Option<WaitingEvent>; 2],
    may_exit: bool,
    patience: u8,
    decided: u8,
    runs: u8,
}

impl World {
    fn with(&self, event: WaitingEvent) -> Option<Self> {
        let row = transition(self.row, event).ok()?;
        Some(Self {
            row,
            ..self.clone()
        })
    }

    /// Returns the world in which this process has come to be so.
    fn at(mut self, process: usize, to: Process) -> Self {
        self.processes[process] = to;
        self
    }

    fn claimed(&self, process: usize) -> Option<Self> {
        let mut after = self.with(WaitingEvent::Claim)?.at(process, Process::Runs);
        after.runs += u8::from(after.row.status == Running);
        Some(after)
    }

    /// What a process that waits does when it looks at the row; `None` if it keeps waiting.
    fn look(&self, process: usize) -> Option<Self> {
        let row = self.row;
        match row.status {
            Expired | Withdrawn | InDoubt => Some(self.clone().at(process, Process::Heard(false))),
            _ if row.has_outcome => {
                let delivered = self.with(WaitingEvent::Deliver)?;
                Some(delivered.at(process, Process::Heard(true)))
            }
            // It says the same to both, and nothing runs on it.
            Denied | Answered if row.claimed => Some(self.clone().at(process, Process::Runs)),
            Pending | Running => None,
            Approved | Denied | Answered | Done => self.claimed(process),
        }
    }

    /// The call is made again in its run; a row that answers no call leaves it to a new request.
    fn again_here(&self, n: usize) -> Option<Self> {
        let answers = self.row.answers_again();
        let to = if answers {
            Process::Waits
        } else {
            Process::Heard(false)
        };
        let noted = WaitingEvent::Suspend { within: false };
        let after = if answers {
            self.with(noted)?
        } else {
            self.clone()
        };
        Some(after.at(n, to))
    }

    /// The call is made again in another run, and waits until the request is settled.
    fn again_elsewhere(&self, n: usize) -> Option<Self> {
        if self.row.caller == CallerState::None {
            return Some(self.clone().at(n, Process::Heard(false)));
        }
        let collected = self.with(WaitingEvent::Collect)?;
        let is_over = collected.row.caller == CallerState::None;
        let heard = Process::Heard(self.row.owes_outcome() && self.row.has_outcome);
        is_over.then(|| collected.at(n, heard))
    }

    fn steps_of(&self, n: usize) -> Vec<Option<Self>> {
        let attended = self.processes.contains(&Process::Waits);
        match self.processes[n] {
            Process::Waits => vec![self.look(n).or_else(|| {
                let mut after = self.with(WaitingEvent::Suspend { within: false })?;
                after.patience = after.patience.checked_sub(1)?;
                Some(after.at(n, Process::Suspended))
            })],
            Process::Suspended => vec![self.again_here(n), self.again_elsewhere(n)],
            Process::Returns => vec![self.again_elsewhere(n)],
            Process::Follows if !attended && self.decided > 0 => vec![self.claimed(n)],
            Process::Runs => {
                let ended = self.with(WaitingEvent::Finish { delivered: false });
                let to = if n < 2 { Process::Ends } else { Process::Gone };
                vec![ended.map(|ended| ended.at(n, to))]
            }
            Process::Ends => {
                // The note is shared, and may be gone already.
                let collected = self.with(WaitingEvent::Collect);
                let heard = collected.and_then(|one| one.with(WaitingEvent::Deliver));
                vec![heard.map(|one| one.at(n, Process::Heard(true)))]
            }
            Process::Follows | Process::Heard(_) | Process::Gone => Vec::new(),
        }
    }

    fn exit_of(&self, n: usize) -> Option<Self> {
        let now = self.processes[n];
        let lives = !matches!(
            now,
            Process::Heard(_) | Process::Gone | Process::Suspended | Process::Returns
        );
        let to = if n < 2 {
            Process::Returns
        } else {
            Process::Gone
        };
        let exits = lives && self.may_exit;
        let runs = now == Process::Runs;
        let after = if runs {
            self.with(WaitingEvent::Exit)?
        } else {
            self.clone()
        };
        exits.then(|| Self {
            may_exit: false,
            ..after.at(n, to)
        })
    }

    fn decision_of(&self, n: usize) -> Option<Self> {
        let mut after = self.clone();
        let event = after.deciders[n].take()?;
        if let Ok(row) = transition(self.row, event) {
            (after.row, after.decided) = (row, self.decided + 1);
        }
        Some(after)
    }

    fn next(&self) -> Vec<Self> {
        let is_open = self.row.status == Pending;
        let expire = WaitingEvent::End(RequestEnding::Expired);
        let expires = is_open.then(|| self.with(expire)).flatten();
        let of_each = (0..3).flat_map(|n| self.steps_of(n).into_iter().chain([self.exit_of(n)]));
        let decisions = (0..2).map(|n| self.decision_of(n));
        of_each
            .chain(decisions)
            .chain([expires])
            .flatten()
            .collect()
    }

    fn check(&self, is_end: bool) {
        assert!(self.decided <= 1, "decided twice: {self:?}");
        let running = self.processes.iter().filter(|one| **one == Process::Runs);
        let one = self.row.status != Running || running.count() == 1;
        assert!(self.runs <= 1 && one, "run twice: {self:?}");
        let asked = &self.processes[..2];
        // Who comes back is told that the call waits.
        let over = |one: &Process| matches!(one, Process::Heard(_) | Process::Returns);
        assert!(
            !is_end || asked.iter().all(over),
            "waits for ever: {self:?}"
        );
        let heard = asked.contains(&Process::Heard(true));
        let lost = self.row.status == Done && !heard;
        assert!(!is_end || !lost, "an outcome is lost: {self:?}");
        assert!(!heard || self.row.delivered, "owed again: {self:?}");
    }
}

#[test]
fn a_call_asked_about_twice_runs_at_most_once_and_leaves_nobody_waiting() {
    let decisions = [
        WaitingEvent::Approve,
        WaitingEvent::Deny,
        WaitingEvent::Answer,
    ];
    for (first, second) in decisions
        .into_iter()
        .flat_map(|one| decisions.map(|two| (one, two)))
    {
        let world = World {
            // Noted before the request was stored.
            row: CallState {
                caller: CallerState::Own,
                ..CallState::of(Pending)
            },
            processes: [Process::Waits, Process::Waits, Process::Follows],
            deciders: [Some(first), Some(second)],
            may_exit: true,
            patience: 3,
            decided: 0,
            runs: 0,
        };
        let states = search(world, World::next, World::check);
        assert!(states > 500, "{states} states");
    }
}
