//! The `haft` command: parse, pick a command, return its exit code.

use std::process::ExitCode;

use clap::Parser;

mod args;
mod commands;
mod exit;
mod invocation;
mod screen;
mod terminal;

fn main() -> ExitCode {
    // The jail's supervisor and the page reader are this binary, executed again: nothing may run before.
    if let Some(code) = haft_app::enter() {
        return code;
    }
    haft_sandbox::map_large_blocks();
    match args::Cli::try_parse() {
        Ok(cli) => commands::run(cli).into(),
        Err(said) => commands::refuse(&said).into(),
    }
}
