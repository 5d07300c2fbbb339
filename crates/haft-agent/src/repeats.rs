//! `Repeats`: notices a model that repeats the same failing call.

use std::collections::HashMap;

use haft::json::canonical::args_digest;
use haft_wire::Call;

/// The number of failures after which the model is told that it repeats itself.
pub(crate) const NOTICED_AFTER: u32 = 3;
/// The number of failures after which the run is stopped.
pub(crate) const STOPPED_AFTER: u32 = 5;

/// How often each call has failed since the user's last message, without a success in between.
#[derive(Debug, Default)]
pub(crate) struct Repeats {
    failed: HashMap<String, FailureCount>,
    stopped: Option<(String, u32)>,
}

/// Failures of one call; several in one turn count once, because the model has not seen the first before it makes the second.
#[derive(Debug, Clone, Copy, Default)]
struct FailureCount {
    times: u32,
    last_turn: u32,
}

impl FailureCount {
    fn after(self, turn: u32) -> Self {
        let again = u32::from(self.last_turn != turn);
        Self {
            times: self.times + again,
            last_turn: turn,
        }
    }
}

impl Repeats {
    /// Returns the number that another failure of this call in this turn would have, counted from 1.
    pub(crate) fn next(&self, call: &Call, turn: u32) -> u32 {
        let failures = self.failed.get(&key(call)).copied();
        failures.unwrap_or_default().after(turn).times
    }

    /// Records how a call of this turn ended.
    pub(crate) fn note(&mut self, call: &Call, turn: u32, failed: bool) {
        let key = key(call);
        if !failed {
            self.failed.remove(&key);
            return;
        }
        let failures = self.failed.entry(key).or_default();
        *failures = failures.after(turn);
        if failures.times >= STOPPED_AFTER {
            self.stopped = Some((call.name.clone(), failures.times));
        }
    }

    /// Resets everything after a message of the user.
    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }

    /// Returns the tool's name on the wire, and how often its call failed, if the run must be stopped.
    pub(crate) fn stopped(&self) -> Option<(&str, u32)> {
        self.stopped
            .as_ref()
            .map(|(name, times)| (name.as_str(), *times))
    }

    /// Returns what the model is told with this failure of a call, if anything.
    pub(crate) fn notice(times: u32) -> Option<String> {
        (times >= NOTICED_AFTER).then(|| {
            format!(
                "[This same call has failed {times} times. Do not make it again: change its arguments, use another tool, or say \
                 what is in the way. At the failure number {STOPPED_AFTER} the run is stopped.]"
            )
        })
    }
}

/// Returns the key that identifies equal calls: the tool and its arguments, however they are written.
fn key(call: &Call) -> String {
    let toolset = call.toolset.as_deref().unwrap_or_default();
    format!("{toolset}/{}/{}", call.name, args_digest(&call.arguments))
}
