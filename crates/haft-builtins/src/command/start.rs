//! Starts a command and feeds it what its client pipes in; explains why a command did not start.

use std::io::ErrorKind;
use std::sync::Arc;
use std::time::{Duration, Instant};

use haft::error::ToolError;
use haft::input::InputReader;
use haft::shell_report::ShellReport;
use haft_sandbox::{CommandSpec, Network, Program, RunningCommand, Sandbox, StartError};
use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe;
use tokio::task::AbortHandle;

use crate::command::connections::AskingGuard;
use crate::command::screen::{ClientInput, terminal_size};
use crate::command::shell_end::{ReportReader, make_report};

/// Bytes typed into a terminal at once.
const TYPED_AT_ONCE: usize = 4096;
/// Longer than any command runs: what a client types waits until the command reads it.
const FOREVER: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// Starts a command that reads what its client pipes in, or nothing. If the network is unavailable and `allows_no_network` is set,
/// it starts without one.
pub(super) async fn start(
    sandbox: &Sandbox,
    spec: CommandSpec,
    client: ClientInput,
    allows_no_network: bool,
) -> Result<(RunningCommand, Option<InputFeed>), NotStarted> {
    let line = matches!(spec.program, Program::Shell(_));
    let alone = allows_no_network.then(|| CommandSpec {
        network: Network::None,
        ..spec.clone()
    });
    // A terminal is what the command reads; it is typed into once it runs.
    let piped = client.reader.is_some() && spec.terminal.is_none();
    let report = client.report.clone().filter(|_| !piped);
    let mut running = begin(sandbox, spec, piped, report.clone()).await;
    if let (Err(StartError::NoOutlet(_)), Some(alone)) = (&running, alone) {
        // If the jail cannot restrict the command to the outlet, it gets no network at all.
        running = begin(sandbox, alone, piped, report).await;
    }
    let (running, end) = running.map_err(|error| NotStarted { error, line })?;
    let feed = match end {
        InputEnd::Pipe(pipe) => InputFeed::piped(client.reader, pipe),
        InputEnd::Report(reader) => Some(InputFeed {
            feeding: None,
            report: Some(reader),
        }),
        InputEnd::None => InputFeed::typed(client, &running),
    };
    Ok((running, feed))
}

/// haft's end of a command's standard input.
enum InputEnd {
    None,
    Pipe(pipe::Sender),
    Report(ReportReader),
}

/// Ends what goes with a command that has ended: its questions, and what its shell reports.
pub(super) async fn finish(asking: Option<AskingGuard>, fed: Option<InputFeed>) {
    if let Some(asking) = asking {
        asking.end().await;
    }
    if let Some(report) = fed.and_then(|mut fed| fed.report.take()) {
        report.finish().await;
    }
}

async fn begin(
    sandbox: &Sandbox,
    mut spec: CommandSpec,
    piped: bool,
    report: Option<Arc<ShellReport>>,
) -> Result<(RunningCommand, InputEnd), StartError> {
    if piped {
        let (running, pipe) = sandbox.start_piped(spec).await?;
        return Ok((running, InputEnd::Pipe(pipe)));
    }
    if let Some(report) = report
        && make_report(&mut spec)
    {
        let (running, reader) = ReportReader::start(sandbox, spec, report).await?;
        return Ok((running, InputEnd::Report(reader)));
    }
    Ok((sandbox.start(spec).await?, InputEnd::None))
}

/// A command that did not start.
pub(crate) struct NotStarted {
    pub(super) error: StartError,
    /// True for a command line, which a shell would have read.
    pub(super) line: bool,
}

impl NotStarted {
    /// Returns the exit code that a shell gives for a program that is missing or cannot be executed.
    pub(crate) fn exit_code(&self) -> Option<i32> {
        match &self.error {
            StartError::Program { source, .. } if !self.line => {
                Some(if source.kind() == ErrorKind::NotFound {
                    127
                } else {
                    126
                })
            }
            _ => None,
        }
    }

    /// Converts this to the error of the call.
    pub(crate) fn into_error(self) -> ToolError {
        start_failure(self.error, self.line)
    }
}

/// Feeds a command with what its client pipes in, or reads what its shell reports, until dropped.
pub(crate) struct InputFeed {
    feeding: Option<AbortHandle>,
    report: Option<ReportReader>,
}

impl InputFeed {
    fn piped(input: Option<InputReader>, mut pipe: pipe::Sender) -> Option<Self> {
        let mut input = input?;
        let feeding = tokio::spawn(async move {
            // Ends if the command stops reading or the input cannot be read.
            let _ = tokio::io::copy(&mut input, &mut pipe).await;
        });
        Some(Self::feeding(feeding.abort_handle()))
    }

    fn feeding(task: AbortHandle) -> Self {
        Self {
            feeding: Some(task),
            report: None,
        }
    }
}

impl InputFeed {
    /// Types what the client sends into the command's terminal, and gives that the size of the client's.
    fn typed(client: ClientInput, running: &RunningCommand) -> Option<Self> {
        running.terminal()?;
        let ClientInput { reader, screen, .. } = client;
        let (mut reader, running) = (reader?, running.clone());
        let feeding = tokio::spawn(async move {
            let Some(terminal) = running.terminal() else {
                return;
            };
            let resize = async {
                let Some(mut screen) = screen else { return };
                while screen.changed().await.is_ok() {
                    let size = *screen.borrow_and_update();
                    terminal.resize(terminal_size(size));
                }
            };
            let type_in = async {
                let mut bytes = [0; TYPED_AT_ONCE];
                while let Ok(count @ 1..) = reader.read(&mut bytes).await {
                    let typed = terminal.input(&bytes[..count], Instant::now() + FOREVER);
                    if typed.await.is_err() {
                        return;
                    }
                }
                let _ = terminal.end_input(Instant::now() + FOREVER).await;
            };
            tokio::join!(resize, type_in);
        });
        Some(Self::feeding(feeding.abort_handle()))
    }
}

impl Drop for InputFeed {
    fn drop(&mut self) {
        if let Some(feeding) = &self.feeding {
            feeding.abort();
        }
    }
}

/// Builds the error for a command that did not start. `line` is true for a command line, which a shell would have read.
fn start_failure(error: StartError, line: bool) -> ToolError {
    let message = error.to_string();
    let error_text = match &error {
        StartError::Program { source, .. } => {
            let absent = source.kind() == ErrorKind::NotFound;
            let error_text = ToolError::failed(message);
            if absent && line {
                error_text.with_advice(
                    "haft reads shell syntax as bash does and runs it in no other shell; give argv instead",
                )
            } else if absent {
                error_text.with_advice(
                    "give the name of an installed program, or its path in the workspace",
                )
            } else {
                error_text
            }
        }
        StartError::Spec(_) => ToolError::invalid_arguments(message),
        StartError::TooWeak { .. } => {
            ToolError::unavailable(message).for_operator("run `haft doctor`")
        }
        StartError::NoTerminal(_) => ToolError::unavailable(message)
            .with_advice("leave tty out")
            .for_operator("`haft doctor` says what is missing for a jail with namespaces"),
        StartError::NoOutlet(_) => ToolError::unavailable(message).for_operator(
            "sandbox.network = \"none\" needs less; `haft doctor` says what is missing",
        ),
        _ => ToolError::unavailable(message).for_operator("`haft doctor` says what works here"),
    };
    error_text.with_source(error)
}
