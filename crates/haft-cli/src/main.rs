//! The `haft` command: parse, pick a command, return its exit code.

use std::process::ExitCode;

use clap::Parser;
use haft_builtins::web::reader;

mod args;
mod commands;
mod exit;
mod invocation;
mod screen;
mod terminal;

fn main() -> ExitCode {
    // The jail's supervisor is this binary, executed again: nothing may come before.
    haft_sandbox::enter();
    if std::env::args_os()
        .nth(1)
        .is_some_and(|word| word == reader::WORKER)
    {
        return reader::worker();
    }
    commands::run(args::Cli::parse()).into()
}
