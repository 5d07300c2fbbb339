//! Where haft's own program is: commands that write its path to a file warn if a project's tools could change it, and
//! refuse if it is in the workspace.

use haft_app::own_program::{INSTALL_ELSEWHERE, OwnPlace};
use haft_app::problem::Problem;

use crate::invocation::Invocation;
use crate::screen::visible;

/// Warns if tools of agents may change the program.
pub(crate) fn warn(at: &Invocation) {
    if let Some(place) = OwnPlace::find(&at.site) {
        let line = format!("{}; {INSTALL_ELSEWHERE}", place.words());
        at.screen.warn(&visible::line(&line));
    }
}

/// Warns, or refuses to write the program's path to a file if the program lies in the workspace and `here` does not allow that.
pub(crate) fn check(at: &Invocation, here: bool) -> Result<(), Problem> {
    match OwnPlace::find(&at.site) {
        Some(place @ OwnPlace::Workspace(_)) if !here => {
            Err(Problem::usage(place.words()).advise(format!("{INSTALL_ELSEWHERE}; or add --here")))
        }
        _ => {
            warn(at);
            Ok(())
        }
    }
}
