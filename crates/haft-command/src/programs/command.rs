//! `command -v` and `type`: print what a name stands for. Without such an option, `command` runs its words, which are judged by themselves.

use haft_shell::AsWord as _;

use crate::forms::each_file;
use crate::meaning::CommandMeaning;
use crate::path_use::PathAccess;
use crate::program::{Program, ProgramCall};

pub(super) const PROGRAM: Program = Program::new(&["command", "type"], meaning).printing();

fn meaning(call: &ProgramCall<'_>) -> CommandMeaning {
    let end = call.words.iter().position(|word| !word.is_option());
    let (options, names) = call.words.split_at(end.unwrap_or(call.words.len()));
    let letters = |table: &str| {
        let known = |text: &str| {
            let letters = text.strip_prefix('-').unwrap_or_default();
            !letters.is_empty() && letters.chars().all(|c| table.contains(c))
        };
        options
            .iter()
            .all(|word| word.is_known() && known(word.text))
    };
    let queries = match call.name {
        // `-p` alone would run the name.
        "command" => {
            let asks = |text: &str| text.contains(['v', 'V']);
            letters("pvV") && options.first().is_some_and(|word| asks(word.text))
        }
        _ => letters("aptPf"),
    };
    if !queries || !call.is_known() {
        return CommandMeaning::unknown();
    }
    // A path is looked for as it is.
    let paths = names.iter().filter(|word| word.text.contains('/'));
    let uses = each_file(paths, PathAccess::Names);
    CommandMeaning {
        prints_words: uses.is_empty(),
        ..CommandMeaning::of(uses)
    }
}

#[cfg(test)]
mod tests {
    use crate::tests::check;

    #[test]
    fn command_means_what_its_words_say() {
        check(&[
            ("command -v a", "prints words"),
            ("command -pv a b", "prints words"),
            ("command -V a", "prints words"),
            ("command -v ./a /b/c", "Names ./a, Names /b/c"),
            ("command -v *", "unknown"),
            ("command -v \"$x\"", "unknown"),
            ("command -v", "prints words"),
            ("command -x a", "unknown"),
            ("type a", "prints words"),
            ("type -a a", "prints words"),
            ("type -x a", "unknown"),
        ]);
    }
}
