//! A yes or no before something is done that the command alone does not say in full.

use haft_app::problem::Problem;

use crate::invocation::{Invocation, is_interactive};

/// Asks at the terminal; no is what is taken where nothing was typed. `what` is the action for the error where nobody can be
/// asked, as `undo`.
///
/// # Errors
/// Stdin is no terminal, or cannot be read.
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
    read.map_err(|e| Problem::failed(format!("read the answer: {e}")))?;
    Ok(matches!(line.trim().to_lowercase().as_str(), "y" | "yes"))
}
