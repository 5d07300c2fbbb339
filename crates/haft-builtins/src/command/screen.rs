//! `tty` of `run_command`: the terminal that a command runs on.

use std::sync::Arc;
use std::time::Duration;

use haft::context::CallContext;
use haft::input::{InputReader, ScreenSize};
use haft::shell_report::ShellReport;
use haft_sandbox::{CommandSpec, TerminalSize, TerminalSpec};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::sync::watch;

use crate::command::RunCommandInput;

/// A terminal's size, in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CommandScreen {
    /// Lines.
    #[serde(default = "rows")]
    #[schemars(range(min = 1, max = 500))]
    pub rows: u16,
    /// Characters in a line.
    #[serde(default = "cols")]
    #[schemars(range(min = 1, max = 1_000))]
    pub cols: u16,
}

fn rows() -> u16 {
    TerminalSize::default().rows
}

fn cols() -> u16 {
    TerminalSize::default().cols
}

impl CommandScreen {
    /// Says what the command's output is.
    fn note(self) -> String {
        let Self { rows, cols } = self;
        format!(
            "it ran on a terminal of {rows} rows and {cols} columns: stdout has all output, without escape sequences"
        )
    }
}

/// What a client gives to a command that ends within its call.
#[derive(Default)]
pub(crate) struct ClientInput {
    pub(super) reader: Option<InputReader>,
    /// The size of the client's terminal.
    pub(super) screen: Option<watch::Receiver<ScreenSize>>,
    /// Where the shell of a command line reports what it holds in the end.
    pub(super) report: Option<Arc<ShellReport>>,
}

impl ClientInput {
    /// Takes what the client of the call gives.
    pub(super) fn of(input: &RunCommandInput, context: &CallContext) -> Self {
        if !input.ends() {
            return Self::default();
        }
        Self {
            screen: context.screen_size().filter(|_| input.tty.is_some()),
            reader: context.input(),
            report: context.shell_report().filter(|_| input.tty.is_none()),
        }
    }

    /// Sets the terminal and the time limit of a command; returns how long the call waits for it.
    pub(super) fn prepare(
        &self,
        spec: &mut CommandSpec,
        input: &RunCommandInput,
        context: &CallContext,
    ) -> Duration {
        let wait = match self.screen {
            // A user who works in the command ends it; the call has a limit of its own.
            Some(_) => context.limit(),
            None => Duration::from_secs(input.timeout_s),
        };
        spec.timeout = input.ends().then_some(wait);
        spec.terminal = input.tty.map(|screen| self.terminal(screen));
        wait
    }

    /// Returns what a result says about the terminal. A user who saw it is told nothing.
    pub(super) fn note(&self, input: &RunCommandInput) -> Option<String> {
        let screen = input.tty.filter(|_| self.screen.is_none());
        screen.map(CommandScreen::note)
    }

    /// Returns the terminal for a command that wants one of this size; the client's own size counts if it has one.
    fn terminal(&self, wanted: CommandScreen) -> TerminalSpec {
        let shown = self.screen.as_ref().map(|screen| *screen.borrow());
        let size = match shown {
            Some(shown) => terminal_size(shown),
            None => TerminalSize {
                rows: wanted.rows,
                cols: wanted.cols,
            },
        };
        TerminalSpec {
            size,
            watched: shown.is_some(),
        }
    }
}

pub(super) fn terminal_size(size: ScreenSize) -> TerminalSize {
    TerminalSize {
        rows: size.rows,
        cols: size.cols,
    }
}
