//! The limits of a run whose time is not its own: another program runs its tools, or its client stays with a command, in the background or at a terminal.

use std::time::Duration;

use haft::session::RunLimits;

use crate::run::RunOptions;

/// The longest that a command runs while its client stays with it: as long as a task in the background may.
const LONGEST_BACKGROUND: Duration = Duration::from_hours(12);

/// Gives the run as much time as its tools may take: they run in another program, or a client stays with one to its end.
pub(super) fn extend(limits: &mut RunLimits, options: &RunOptions) {
    let outlasts = options.attends || options.on_terminal;
    if options.is_foreign || outlasts {
        limits.total_timeout = Duration::MAX;
    }
    if outlasts {
        limits.call_timeout = LONGEST_BACKGROUND;
    }
}
