//! The limits of a run whose time is not its own: another program runs its tools, or its client stays with a command in the background.

use std::time::Duration;

use haft::session::RunLimits;

/// The longest that a command in the background runs while its client stays with it: as long as a task may.
const LONGEST_BACKGROUND: Duration = Duration::from_hours(12);

/// Gives the run as much time as its tools may take: they run in another program, or one of them is attended to its end.
pub(super) fn extend(limits: &mut RunLimits, is_foreign: bool, attends: bool) {
    if is_foreign || attends {
        limits.total_timeout = Duration::MAX;
    }
    if attends {
        limits.call_timeout = LONGEST_BACKGROUND;
    }
}
