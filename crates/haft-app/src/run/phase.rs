//! The phases of a run, and the events that change them.

/// The phase of a run, as seen by the process that holds it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RunPhase {
    /// Only in memory: nothing is recorded.
    Prepared,
    /// Its record exists; the index may not contain it yet.
    Recorded,
    /// It takes calls.
    Running,
    /// It waits for decisions, or for a call to be resumed; another process may resume it.
    Suspended,
    /// Its record is sealed, or it never had one.
    Finished,
}

/// An event in the life of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PhaseEvent {
    /// Its record is created or reopened.
    Record,
    /// The index contains it.
    Start,
    /// Its process releases it, and it can be resumed.
    Suspend,
    /// It is over.
    Finish,
}

impl RunPhase {
    /// Returns the phase after an event; `None` if the event cannot happen in this phase.
    fn after(self, event: PhaseEvent) -> Option<Self> {
        match (self, event) {
            (Self::Prepared, PhaseEvent::Record) => Some(Self::Recorded),
            (Self::Recorded, PhaseEvent::Start) => Some(Self::Running),
            (Self::Recorded | Self::Running, PhaseEvent::Suspend) => Some(Self::Suspended),
            (Self::Prepared | Self::Recorded | Self::Running, PhaseEvent::Finish) => {
                Some(Self::Finished)
            }
            _ => None,
        }
    }

    /// Moves to the phase after an event. An impossible event changes nothing: a run that is over stays over.
    pub(crate) fn transition(&mut self, event: PhaseEvent) {
        if let Some(next) = self.after(event) {
            *self = next;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{PhaseEvent, RunPhase};

    #[test]
    fn a_run_goes_from_phase_to_phase_and_ends_once() {
        use PhaseEvent::{Finish, Record, Start, Suspend};
        use RunPhase::{Finished, Prepared, Recorded, Running, Suspended};
        let rows = [
            (Prepared, [Some(Recorded), None, None, Some(Finished)]),
            (
                Recorded,
                [None, Some(Running), Some(Suspended), Some(Finished)],
            ),
            (Running, [None, None, Some(Suspended), Some(Finished)]),
            (Suspended, [None; 4]),
            (Finished, [None; 4]),
        ];
        for (phase, expect) in rows {
            let after = [Record, Start, Suspend, Finish].map(|event| phase.after(event));
            assert_eq!(after, expect, "{phase:?}");
        }
    }
}
