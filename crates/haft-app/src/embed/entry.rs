//! The start of a program that embeds an application: the sandbox's processes first, then the runtime.

use std::error::Error;
use std::io::{self, Write as _};
use std::process::ExitCode;

use haft_builtins::web::reader;

use crate::problem::Problem;

/// Does the work of a process that the sandbox started. The jail's supervisor and the reader of pages and PDF files are the program's own
/// binary, executed again: this must come first in `main`, before any thread starts. Returns an exit code if the process has done its work;
/// as a supervisor, it never returns.
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

/// Runs a program: [`enter`], then `app` on a multi-threaded runtime. Prints an error to stderr, with what to do about it.
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
///     haft.shut_down().await;
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
            // A thread may still wait for input that never comes; it ends with the process.
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

/// Writes an error to stderr, with what to do about it.
fn say(error: &(dyn Error + Send + Sync + 'static)) {
    let mut lines = format!("error: {}\n", visible(&error.to_string()));
    let advice = error.downcast_ref::<Problem>().and_then(Problem::advice);
    if let Some(advice) = advice {
        lines = format!("{lines}  {}\n", visible(advice));
    }
    // If stderr is closed, the failure cannot be reported.
    let _ = io::stderr().write_all(lines.as_bytes());
}

/// Replaces control characters, which a terminal would act on.
fn visible(text: &str) -> String {
    let plain = |c: char| match c {
        '\n' | '\t' => c,
        c if c.is_control() => char::REPLACEMENT_CHARACTER,
        c => c,
    };
    text.chars().map(plain).collect()
}
