//! The commands, one file each, and which of them needs what.

use clap::CommandFactory;

use crate::args::{Cli, Command, McpAction, later};
use crate::exit::Exit;
use crate::invocation::Invocation;
use crate::problem::Problem;
use crate::screen::Screen;

mod config;
mod man;
mod snippet;
mod trust;

/// What a command came to.
pub(crate) type Done = Result<Exit, Problem>;

/// Runs the command and tells what went wrong.
pub(crate) fn run(cli: Cli) -> Exit {
    let screen = Screen::new(&cli.options);
    dispatch(cli, screen).unwrap_or_else(|problem| screen.problem(&problem))
}

fn dispatch(cli: Cli, screen: Screen) -> Done {
    match cli.command {
        Command::Completions { shell } => completions(shell, screen),
        Command::Man => man::run(screen),
        Command::Other(words) => Err(later::unknown_command(&words)),
        Command::Mcp(crate::args::Mcp {
            action: McpAction::Other(words),
        }) => Err(later::unknown_mcp(&words)),
        command => resolved(command, &Invocation::new(cli.options)?),
    }
}

/// The commands that stand on workspace, home and settings.
fn resolved(command: Command, at: &Invocation) -> Done {
    match command {
        Command::Config(config) => config::run(at, config.action.as_ref()),
        Command::Trust(trust) => trust::run(at, &trust),
        Command::Mcp(mcp) => snippet::run(at, &mcp.action),
        _ => Err(Problem::failed("not wired yet")),
    }
}

fn completions(shell: clap_complete::Shell, screen: Screen) -> Done {
    let mut out = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "haft", &mut out);
    screen.raw(&out)?;
    Ok(Exit::Done)
}
