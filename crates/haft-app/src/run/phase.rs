//! Where a run is in its life, and what can happen to it there.

/// Where a run is in its life, as the process that holds it knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    /// In memory alone: nothing is recorded.
    Prepared,
    /// Its record has begun; the index may not know it yet.
    Recorded,
    /// It takes calls.
    Running,
    /// It waits for decisions, or for a call to be resumed; another process may resume it.
    Suspended,
    /// Its record is sealed, or it never had one.
    Finished,
}

/// What happens to a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Event {
    /// Its record begins, or is opened again.
    Record,
    /// The index knows it.
    Start,
    /// Its process lets go of it, and it can be resumed.
    Suspend,
    /// It is over.
    Finish,
}

impl Phase {
    /// The phase after an event; none where the event cannot happen.
    fn after(self, event: Event) -> Option<Self> {
        match (self, event) {
            (Self::Prepared, Event::Record) => Some(Self::Recorded),
            (Self::Recorded, Event::Start) => Some(Self::Running),
            (Self::Recorded | Self::Running, Event::Suspend) => Some(Self::Suspended),
            (Self::Prepared | Self::Recorded | Self::Running, Event::Finish) => {
                Some(Self::Finished)
            }
            _ => None,
        }
    }

    /// Goes to the phase after an event. One that cannot happen changes nothing: a run that is over stays over.
    pub(crate) fn go(&mut self, event: Event) {
        if let Some(next) = self.after(event) {
            *self = next;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Event, Phase};

    #[test]
    fn a_run_goes_from_phase_to_phase_and_ends_once() {
        use Event::{Finish, Record, Start, Suspend};
        use Phase::{Finished, Prepared, Recorded, Running, Suspended};
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
