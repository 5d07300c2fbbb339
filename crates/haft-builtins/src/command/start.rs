//! Starts a command and feeds it what its client pipes in; explains why a command did not start.

use std::io::ErrorKind;

use haft::error::ToolError;
use haft::input::InputReader;
use haft_sandbox::{CommandSpec, Network, Program, RunningCommand, Sandbox, StartError};
use tokio::net::unix::pipe;
use tokio::task::AbortHandle;

/// Starts a command that reads what its client pipes in, or nothing. If the network is unavailable and `allows_no_network` is set,
/// it starts without one.
pub(super) async fn start(
    sandbox: &Sandbox,
    spec: CommandSpec,
    input: Option<InputReader>,
    allows_no_network: bool,
) -> Result<(RunningCommand, Option<InputFeed>), NotStarted> {
    let line = matches!(spec.program, Program::Shell(_));
    let alone = allows_no_network.then(|| CommandSpec {
        network: Network::None,
        ..spec.clone()
    });
    let mut running = begin(sandbox, spec, input.is_some()).await;
    if let (Err(StartError::NoOutlet(_)), Some(alone)) = (&running, alone) {
        // If the jail cannot restrict the command to the outlet, it gets no network at all.
        running = begin(sandbox, alone, input.is_some()).await;
    }
    let (running, pipe) = running.map_err(|error| NotStarted { error, line })?;
    Ok((running, InputFeed::of(input, pipe)))
}

async fn begin(
    sandbox: &Sandbox,
    spec: CommandSpec,
    piped: bool,
) -> Result<(RunningCommand, Option<pipe::Sender>), StartError> {
    if piped {
        let (running, pipe) = sandbox.start_piped(spec).await?;
        return Ok((running, Some(pipe)));
    }
    Ok((sandbox.start(spec).await?, None))
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

/// Feeds a command with what its client pipes in, until dropped.
pub(crate) struct InputFeed(AbortHandle);

impl InputFeed {
    fn of(input: Option<InputReader>, pipe: Option<pipe::Sender>) -> Option<Self> {
        let (mut input, mut pipe) = (input?, pipe?);
        let feeding = tokio::spawn(async move {
            // Ends if the command stops reading or the input cannot be read.
            let _ = tokio::io::copy(&mut input, &mut pipe).await;
        });
        Some(Self(feeding.abort_handle()))
    }
}

impl Drop for InputFeed {
    fn drop(&mut self) {
        self.0.abort();
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
                error_text.with_advice("no such program on the jail's PATH; give its name or path")
            } else {
                error_text
            }
        }
        StartError::Spec(_) => ToolError::invalid_arguments(message),
        StartError::TooWeak { .. } => {
            ToolError::unavailable(message).for_operator("run `haft doctor`")
        }
        StartError::NoOutlet(_) => ToolError::unavailable(message).for_operator(
            "sandbox.network = \"none\" needs less; `haft doctor` says what is missing",
        ),
        _ => ToolError::unavailable(message).for_operator("`haft doctor` says what works here"),
    };
    error_text.with_source(error)
}
