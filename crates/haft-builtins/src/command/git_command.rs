//! Whether a setting of git names only programs of the user's, which lie outside of the workspace.

use crate::command::git_scope::GitScope;

/// Programs that run a file that a plain name among their arguments names.
const INTERPRETERS: &str = "sh bash dash zsh ksh fish source . exec env sudo nohup awk gawk sed make node deno bun perl ruby php lua \
    python python2 python3 osascript pwsh tclsh";

/// Returns true if no word of a setting's value is a path that is relative or lies in the workspace. Git passes such a value to a shell.
pub(super) fn names_only_own_programs(scope: &GitScope<'_>, value: &str) -> bool {
    // What a substitution makes is not known.
    if value.contains(['`', '\0']) || value.contains("$(") {
        return false;
    }
    let value = value.replace('\\', "");
    value
        .split([';', '|', '&', '(', ')', '{', '}', '!', '\n'])
        .all(|command| is_own_command(scope, command))
}

fn is_own_command(scope: &GitScope<'_>, command: &str) -> bool {
    let is_end = |c: char| c.is_whitespace() || matches!(c, '"' | '\'' | '=' | ',' | '<' | '>');
    let mut words = command.split(is_end).filter(|word| !word.is_empty());
    let Some(program) = words.next() else {
        return true;
    };
    let name = program.rsplit('/').next().unwrap_or(program);
    let interprets = INTERPRETERS.split(' ').any(|known| known == name);
    (!program.contains('/') || is_own_word(scope, program))
        && words.all(|word| {
            let is_option = word.starts_with('-');
            // A value may follow the letter of an option: `-ffile`.
            let word = match word.strip_prefix('-') {
                Some(long) if long.starts_with('-') => long.trim_start_matches('-'),
                Some(letter) => letter.get(1..).unwrap_or_default(),
                None => word,
            };
            if word.contains('/') {
                return is_own_word(scope, word);
            }
            let here = scope.root.join(word).symlink_metadata();
            let is_file = here.is_ok_and(|here| !here.is_dir());
            !is_file && (is_option || !interprets)
        })
}

/// Returns true if a word with a slash is the absolute path of something outside of the workspace.
fn is_own_word(scope: &GitScope<'_>, word: &str) -> bool {
    let of_home = ["$HOME/", "${HOME}/"]
        .iter()
        .find_map(|home| word.strip_prefix(home));
    let path = of_home.map_or_else(|| word.to_owned(), |rest| format!("~/{rest}"));
    !path.contains('$') && scope.is_own_path(&path)
}
