//! How a program with an application begins: the sandbox's processes first, then the runtime.

use std::error::Error;
use std::io::{self, Write as _};
use std::process::ExitCode;

use haft_builtins::web::reader;

use crate::problem::Problem;

/// Does what a process is for that the sandbox started. The jail's supervisor and the reader of pages and PDF files are the program's own
/// binary, executed again: this must come first in `main`, before there is a thread. It returns an exit code where the process has done
/// its work, and does not return at all as a supervisor.
///
/// ```no_run
/// use std::process::ExitCode;
///
/// fn main() -> ExitCode {
///     if let Some(code) = haft_app::enter() {
///         return code;
///     }
///     // The program's own start.
///     ExitCode::SUCCESS
/// }
/// ```
pub fn enter() -> Option<ExitCode> {
    haft_sandbox::enter();
    let word = std::env::args_os().nth(1);
    word.is_some_and(|word| word == reader::WORKER)
        .then(reader::worker)
}

/// Runs a program: [`enter`], then `app` on a runtime of several threads. An error is said on stderr, with what to do about it.
///
/// ```no_run
/// use std::process::ExitCode;
///
/// use haft_app::problem::Problem;
/// use haft_app::{Haft, Standard};
///
/// fn main() -> ExitCode {
///     haft_app::main(app)
/// }
///
/// async fn app() -> Result<(), Problem> {
///     let haft = Haft::builder().workspace("work").standard(Standard::COMMANDS).build()?;
///     // Runs, calls.
///     haft.shut().await;
///     Ok(())
/// }
/// ```
pub fn main<E>(app: impl AsyncFnOnce() -> Result<(), E>) -> ExitCode
where
    E: Into<Box<dyn Error + Send + Sync>>,
{
    if let Some(code) = enter() {
        return code;
    }
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    let ended = match builder.enable_all().build() {
        Ok(runtime) => {
            let ended = runtime.block_on(app()).map_err(Into::into);
            // A thread may still wait for a line that no one types; it ends with the process.
            runtime.shutdown_background();
            ended
        }
        Err(error) => Err(error.into()),
    };
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            say(&*error);
            ExitCode::FAILURE
        }
    }
}

/// Writes an error on stderr, and what to do about it.
fn say(error: &(dyn Error + Send + Sync + 'static)) {
    let mut lines = format!("error: {}\n", visible(&error.to_string()));
    let advice = error.downcast_ref::<Problem>().and_then(Problem::advice);
    if let Some(advice) = advice {
        lines = format!("{lines}  {}\n", visible(advice));
    }
    // The caller is gone: a failure cannot be reported.
    let _ = io::stderr().write_all(lines.as_bytes());
}

/// A text without control characters, which a terminal would act on.
fn visible(text: &str) -> String {
    let plain = |c: char| match c {
        '\n' | '\t' => c,
        c if c.is_control() => char::REPLACEMENT_CHARACTER,
        c => c,
    };
    text.chars().map(plain).collect()
}
