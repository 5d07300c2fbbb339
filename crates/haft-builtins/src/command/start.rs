//! The start of a command, with what its client pipes in; why it did not start.

use std::io::ErrorKind;

use haft::error::ToolError;
use haft::input::InputReader;
use haft_sandbox::{CommandSpec, Network, Program, Running, Sandbox, StartError};
use tokio::net::unix::pipe;
use tokio::task::AbortHandle;

/// Starts a command that reads what its client pipes in, or nothing; without the network where that cannot be had and `can_do_without` says
/// so.
pub(super) async fn start(
    sandbox: &Sandbox,
    spec: CommandSpec,
    input: Option<InputReader>,
    can_do_without: bool,
) -> Result<(Running, Option<Fed>), NotStarted> {
    let line = matches!(spec.program, Program::Shell(_));
    let alone = can_do_without.then(|| CommandSpec {
        network: Network::None,
        ..spec.clone()
    });
    let mut running = begin(sandbox, spec, input.is_some()).await;
    if let (Err(StartError::NoOutlet(_)), Some(alone)) = (&running, alone) {
        // Where the jail cannot hold it to the outlet it has no network at all.
        running = begin(sandbox, alone, input.is_some()).await;
    }
    let (running, pipe) = running.map_err(|error| NotStarted { error, line })?;
    Ok((running, Fed::of(input, pipe)))
}

async fn begin(
    sandbox: &Sandbox,
    spec: CommandSpec,
    piped: bool,
) -> Result<(Running, Option<pipe::Sender>), StartError> {
    if piped {
        let (running, pipe) = sandbox.start_piped(spec).await?;
        return Ok((running, Some(pipe)));
    }
    Ok((sandbox.start(spec).await?, None))
}

/// A command that did not start.
pub(crate) struct NotStarted {
    pub(super) error: StartError,
    /// It is a line, which a shell would have read.
    pub(super) line: bool,
}

impl NotStarted {
    /// The exit code that a shell gives a program that is not there, or that cannot be executed.
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

    /// The failure.
    pub(crate) fn into_error(self) -> ToolError {
        start_failure(self.error, self.line)
    }
}

/// What a client pipes in, on its way to a command; dropping it ends that.
pub(crate) struct Fed(AbortHandle);

impl Fed {
    fn of(input: Option<InputReader>, pipe: Option<pipe::Sender>) -> Option<Self> {
        let (mut input, mut pipe) = (input?, pipe?);
        let feeding = tokio::spawn(async move {
            // A command that reads no further, or input that cannot be read, ends it.
            let _ = tokio::io::copy(&mut input, &mut pipe).await;
        });
        Some(Self(feeding.abort_handle()))
    }
}

impl Drop for Fed {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// The failure of a command that did not start; a line has a shell that it is read by.
fn start_failure(error: StartError, line: bool) -> ToolError {
    let message = error.to_string();
    let told = match &error {
        StartError::Program { source, .. } => {
            let absent = source.kind() == ErrorKind::NotFound;
            let told = ToolError::failed(message);
            if absent && line {
                told.with_advice(
                    "a line with shell syntax is read as bash reads it, and run by no other shell; give argv",
                )
            } else if absent {
                told.with_advice(
                    "there is no such program in the jail's PATH; give its name or path",
                )
            } else {
                told
            }
        }
        StartError::Spec(_) => ToolError::invalid_arguments(message),
        StartError::TooWeak { .. } => {
            ToolError::unavailable(message).for_operator("`haft doctor` says what is missing")
        }
        StartError::NoOutlet(_) => ToolError::unavailable(message).for_operator(
            "sandbox.network = \"none\" needs less; `haft doctor` says what is missing",
        ),
        _ => ToolError::unavailable(message).for_operator("`haft doctor` says what works here"),
    };
    told.with_source(error)
}
