//! `cd`, `pushd`, `popd`: change the folder.

use haft_shell::{AsWord, inner_command};

use crate::forms::each_file;
use crate::meaning::CommandMeaning;
use crate::path_use::PathAccess;
use crate::program::{Program, ProgramCall};
use haft_shell::clean;

pub(super) const PROGRAM: Program =
    Program::new(&["cd", "pushd", "popd"], meaning).reading(is_step_down);

fn meaning(call: &ProgramCall<'_>) -> CommandMeaning {
    match call.words {
        // zsh reads `+1` as a place in its list of folders.
        [folder] if call.name == "cd" => CommandMeaning {
            unknown: folder.text.is_empty() || folder.text.starts_with(['-', '+']),
            ..CommandMeaning::of(each_file([folder], PathAccess::Goes))
        },
        _ => CommandMeaning::unknown(),
    }
}

fn is_step_down(call: &ProgramCall<'_>) -> bool {
    let folder = call.words.first().filter(|_| call.words.len() == 1);
    call.name == "cd" && call.is_known() && folder.is_some_and(|folder| is_below(folder.text))
}

/// Whether the path is relative and stays below the folder it starts in.
fn is_below(path: &str) -> bool {
    !path.is_empty() && !path.starts_with(['-', '/', '~']) && !clean(path).starts_with("..")
}

/// Returns where a command goes if it changes to a different folder; empty where that is unknown.
pub fn folder_of<W: AsWord>(words: &[W]) -> Option<&str> {
    let (name, rest) = inner_command(words).words.split_first()?;
    match (name.text(), rest) {
        ("cd", [folder]) if folder.is_known() => {
            let folder = folder.text();
            if folder.starts_with(['-', '~', '$']) || folder.is_empty() {
                Some("")
            } else {
                (clean(folder) != ".").then_some(folder)
            }
        }
        ("cd" | "pushd" | "popd", _) => Some(""),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use crate::tests::check;

    #[test]
    fn cd_means_what_its_words_say() {
        check(&[
            ("cd a/b", "only reads, Goes a/b"),
            ("cd ..", "Goes .."),
            ("cd a/../..", "Goes a/../.."),
            ("cd -", "Goes -, unknown"),
            ("cd", "unknown"),
            ("pushd a", "unknown"),
            ("cd \"$x\"", "Goes $x, unknown"),
        ]);
    }
}
