//! `haft man`: one page with every command, generated from the same definitions as `--help`.

use std::io;

use clap::{Command, CommandFactory};
use clap_mangen::Man;
use clap_mangen::roff::{Roff, bold};

use crate::args::Cli;
use crate::commands::ExitResult;
use crate::exit::Exit;
use crate::screen::Screen;
use haft_app::problem::Problem;

/// Prints the page.
pub(crate) fn run(screen: Screen) -> ExitResult {
    let page = page().map_err(|e| Problem::failed(format!("cannot make the man page: {e}")))?;
    screen.raw(&page)?;
    Ok(Exit::Done)
}

fn page() -> io::Result<Vec<u8>> {
    let mut root = Cli::command();
    root.build();
    let mut out = Vec::new();
    let man = Man::new(root.clone());
    man.render_title(&mut out)?;
    man.render_name_section(&mut out)?;
    man.render_synopsis_section(&mut out)?;
    man.render_description_section(&mut out)?;
    man.render_options_section(&mut out)?;
    let mut roff = Roff::new();
    roff.control("SH", ["COMMANDS"]);
    for command in root.get_subcommands() {
        describe(&mut roff, "haft", command);
    }
    roff.to_writer(&mut out)?;
    man.render_extra_section(&mut out)?;
    Ok(out)
}

fn describe(roff: &mut Roff, parent: &str, command: &Command) {
    if command.is_hide_set() {
        return;
    }
    let name = format!("{parent} {}", command.get_name());
    roff.control("SS", [name.as_str()]);
    roff.text([about(command).into()]);
    for argument in command
        .get_arguments()
        .filter(|argument| !argument.is_hide_set())
    {
        if argument.is_global_set() || argument.get_id() == "help" {
            continue;
        }
        roff.control("TP", []);
        roff.text([bold(argument.to_string())]);
        let help = argument.get_help().map(ToString::to_string);
        roff.text([help.unwrap_or_default().into()]);
    }
    for below in command.get_subcommands() {
        describe(roff, &name, below);
    }
}

fn about(command: &Command) -> String {
    command
        .get_about()
        .map(ToString::to_string)
        .unwrap_or_default()
}
