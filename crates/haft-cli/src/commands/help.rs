//! `haft help` and `haft version`: the same texts as `--help` and `--version`, as commands.

use clap::CommandFactory;
use haft_app::nearest::nearest;
use haft_app::problem::Problem;
use serde_json::json;

use crate::args::Cli;
use crate::commands::ExitResult;
use crate::exit::Exit;
use crate::screen::Screen;

/// Prints the help of a command.
pub(crate) fn run(screen: Screen, words: &[String]) -> ExitResult {
    let mut command = Cli::command();
    command.build();
    for (nth, word) in words.iter().enumerate() {
        let names: Vec<String> = command
            .get_subcommands()
            .map(|inner| inner.get_name().to_owned())
            .collect();
        let Some(inner) = command.find_subcommand(word).cloned() else {
            return Err(unknown(&words[..nth], word, &names));
        };
        command = inner;
    }
    let help = command.render_help();
    screen.out(&help.ansi().to_string())?;
    Ok(Exit::Done)
}

fn unknown(before: &[String], word: &str, names: &[String]) -> Problem {
    let whole = [before, &[word.to_owned()]].concat().join(" ");
    let problem = Problem::usage(format!("unknown command `{whole}`"));
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    match nearest(word, &names) {
        Some(near) => {
            let near = [before, &[near.to_owned()]].concat().join(" ");
            problem.advise(format!("did you mean `haft help {near}`?"))
        }
        None => problem.advise("`haft help` lists the commands"),
    }
}

/// Prints the version.
pub(crate) fn version(screen: Screen) -> ExitResult {
    let version = env!("CARGO_PKG_VERSION");
    if screen.json {
        screen.document(&json!({"version": version}))?;
    } else {
        screen.out(&format!("haft {version}\n"))?;
    }
    Ok(Exit::Done)
}
