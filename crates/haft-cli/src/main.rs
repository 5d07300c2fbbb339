//! The `haft` command: parse, pick a command, return its exit code.

use std::process::ExitCode;

use clap::Parser;

mod args;
mod commands;
mod environment;
mod exit;
mod home;
mod invocation;
mod plain_file;
mod problem;
mod screen;
mod settings;
mod trust;

fn main() -> ExitCode {
    commands::run(args::Cli::parse()).into()
}
