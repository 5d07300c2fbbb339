//! `cd`, `pushd`, `popd`: change the folder.

use haft_shell::{AsWord, FirstLook, Layer, Line, Options, alters_shell, layers, parse, script};

use crate::forms::each_file;
use crate::meaning::CommandMeaning;
use crate::path_use::PathAccess;
use crate::program::{Program, ProgramCall};
use haft_shell::clean;

pub(super) const PROGRAM: Program =
    Program::new(&["cd", "pushd", "popd"], meaning).reading(is_step_down);

/// Builtins that may change the folder.
const MOVING: &[&str] = &["cd", "chdir", "pushd", "popd", "eval", ".", "source"];
const MOVING_LOOK: FirstLook = FirstLook::NONE.with_names(MOVING);
/// Options of `cd`, which change nothing but how links count.
const CD_OPTIONS: Options = Options {
    flags: "LPe@",
    ..Options::NONE
};
/// Options of `pushd`: with `-n`, the folder is one that a later `popd` may go to.
const PUSHD_OPTIONS: Options = Options {
    flags: "n",
    ..Options::NONE
};

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

/// Returns where a command goes if it changes the shell's folder to a different one; empty where that is unknown.
pub fn folder_of<W: AsWord>(words: &[W]) -> Option<&str> {
    let named = |word: &W| {
        let text = word.text();
        (MOVING_LOOK.may_be(text) && MOVING.contains(&text)) || text.starts_with("CDPATH")
    };
    if !words.iter().any(named) {
        return None;
    }
    // A wrapper of another process leaves the folder as it is; but which one is one is not looked at.
    layers(words).commands.into_iter().find_map(moves)
}

/// The same for one of the commands that the words may run.
fn moves<W: AsWord>(layer: Layer<'_, W>) -> Option<&str> {
    let (name, rest) = layer.words.split_first()?;
    // `cd` searches the folders in this variable.
    let searched = |word: &W| word.text().starts_with("CDPATH");
    if rest.iter().any(searched) && alters_shell(layer.words) {
        return Some("");
    }
    let options = match name.text() {
        "cd" | "chdir" => &CD_OPTIONS,
        "pushd" => &PUSHD_OPTIONS,
        // A folder of a list, or a file of commands.
        "popd" | "." | "source" => return Some(""),
        "eval" => return evaluates_move(layer.words).then_some(""),
        _ => return None,
    };
    let given = options.split(rest);
    // Shells read other numbers of operands each in its own way.
    let folder = match given.as_ref().map(|given| given.words.as_slice()) {
        Some([folder]) if folder.is_known() && !layer.fed => folder.text(),
        _ => return Some(""),
    };
    if folder.starts_with(['-', '+', '~', '$']) || folder.is_empty() {
        Some("")
    } else {
        (clean(folder) != ".").then_some(folder)
    }
}

/// Whether the text of `eval` may change the folder.
fn evaluates_move<W: AsWord>(words: &[W]) -> bool {
    let known = words.iter().all(AsWord::is_known);
    let read = script(words).and_then(|text| parse(&text).ok());
    let changes = |read: Line| {
        let mut parts = read.commands.iter();
        parts.any(|part| folder_of(&part.words).is_some())
    };
    !known || read.is_none_or(changes)
}

#[cfg(test)]
mod tests {
    use haft_shell::parse;

    use super::folder_of;
    use crate::tests::check;

    #[test]
    fn a_folder_is_known_however_the_command_is_written() {
        for (line, expect) in [
            ("cd a", Some("a")),
            ("cd -- a", Some("a")),
            ("cd -P ../a", Some("../a")),
            ("cd -L -e -- ..", Some("..")),
            ("command cd a", Some("a")),
            ("builtin cd -P a", Some("a")),
            ("command -p cd a", Some("a")),
            ("timeout 5 cd a", Some("a")),
            ("git commit -m cd", None),
            ("ls .", None),
            ("pushd a", Some("a")),
            ("pushd -n a", Some("a")),
            ("cd .", None),
            ("cd a/..", None),
            ("cd", Some("")),
            ("cd -", Some("")),
            ("cd -- -", Some("")),
            ("cd ~", Some("")),
            ("cd \"$x\"", Some("")),
            ("cd a*", Some("")),
            ("cd a b", Some("")),
            ("cd -x a", Some("")),
            ("pushd", Some("")),
            ("pushd +1", Some("")),
            ("popd", Some("")),
            ("ls | xargs cd", Some("")),
            ("eval cd a", Some("")),
            ("eval 'ls; cd ..'", Some("")),
            ("eval \"$x\"", Some("")),
            ("eval 'eval cd a'", Some("")),
            ("eval 'if'", Some("")),
            ("eval ls", None),
            (". ./a", Some("")),
            ("source a", Some("")),
            ("export CDPATH=a", Some("")),
            ("declare -x CDPATH=a", Some("")),
            ("ls", None),
        ] {
            let read = parse(line).unwrap();
            let mut moves = read
                .commands
                .iter()
                .filter_map(|part| folder_of(&part.words));
            assert_eq!(moves.next(), expect, "{line}");
        }
    }

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
