//! Asks for a yes or no before an action whose effects the command line does not fully show.

use haft_app::problem::Problem;

use crate::invocation::{Invocation, is_interactive};

/// Asks at the terminal; an empty answer means no. `what` names the action, such as `undo`, for the error if no user can be
/// asked.
///
/// # Errors
/// If stdin is not a terminal, or cannot be read.
pub(crate) fn agree(at: &Invocation, question: &str, what: &str) -> Result<bool, Problem> {
    if !is_interactive() {
        let problem = Problem::usage(format!(
            "{what} needs confirmation, and stdin is not a terminal"
        ));
        return Err(problem.advise("add --yes in a script"));
    }
    at.screen.err(&format!("{question} [y/N]"));
    let mut line = String::new();
    let read = std::io::BufRead::read_line(&mut std::io::stdin().lock(), &mut line);
    read.map_err(|e| Problem::failed(format!("cannot read the answer: {e}")))?;
    Ok(matches!(line.trim().to_lowercase().as_str(), "y" | "yes"))
}
