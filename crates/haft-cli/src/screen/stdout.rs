//! Standard output: every write is checked here, and the first that fails decides how the command ends.

use std::io::{self, ErrorKind, Stdout, StdoutLock, Write as _};
use std::sync::OnceLock;

use haft_app::problem::Problem;
use haft_sandbox::stdout_was_closed;

use crate::exit::Exit;
use crate::screen::Screen;

/// Why something could not be written; `None` if the reader went away.
static UNWRITTEN: OnceLock<Option<String>> = OnceLock::new();

/// Writes to stdout. A reader that went away is not reported: no one misses what it did not read. But the command has
/// not done all of its work, so [`checked`] makes it fail.
pub(crate) fn write(
    print: impl FnOnce(StdoutLock<'static>) -> io::Result<()>,
) -> Result<(), Problem> {
    let written = open().and_then(|stdout| {
        print(stdout.lock())?;
        io::stdout().flush()
    });
    let Err(error) = written else {
        return Ok(());
    };
    if error.kind() == ErrorKind::BrokenPipe {
        let _ = UNWRITTEN.set(None);
        return Ok(());
    }
    let problem = unwritten(&error.to_string());
    let _ = UNWRITTEN.set(Some(error.to_string()));
    Err(problem)
}

/// Returns stdout for what writes there itself.
pub(crate) fn open() -> io::Result<Stdout> {
    if stdout_was_closed() {
        return Err(io::Error::other("it is closed"));
    }
    Ok(io::stdout())
}

/// Returns the problem that stdout could not be written, for this reason.
pub(crate) fn unwritten(why: &str) -> Problem {
    let cause = why.split(" (os error").next().unwrap_or(why);
    Problem::failed(format!("cannot write to standard output: {cause}"))
}

/// Returns how a command ends: as `done` says, or as failed if anything could not be written.
pub(crate) fn checked(done: Result<Exit, Problem>, screen: Screen) -> Exit {
    let exit = match (done, UNWRITTEN.get()) {
        (Ok(exit), Some(Some(why))) => {
            screen.problem(&unwritten(why));
            exit
        }
        (Ok(exit), _) => exit,
        (Err(problem), _) => screen.problem(&problem),
    };
    match exit {
        Exit::Done if UNWRITTEN.get().is_some() => Exit::Failed,
        exit => exit,
    }
}
