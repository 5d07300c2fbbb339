//! `is_unfollowed`: whether the shell of a line ends in another folder than the agent's own, which changes its folder only where a line is
//! plain words.

use haft_shell::plain_words;

use crate::hook::exec_line::is_followed;

/// What may stand before a command.
const BEFORE: [&str; 9] = [
    "{", "!", "then", "do", "else", "if", "while", "builtin", "command",
];

/// Returns whether a line may change the folder of its shell, and the agent's shell does not follow. What a subshell does stays there.
pub(super) fn is_unfollowed(line: &str) -> bool {
    let top = without_subshells(line);
    let parts = || top.split([';', '\n', '&', '|']).map(first_words);
    let moves = |words: &Vec<&str>| matches!(words.first(), Some(&("cd" | "pushd" | "popd")));
    if !parts().any(|words| moves(&words)) {
        return false;
    }
    let is_plain = |part: &str| match plain_words(part) {
        Some(words) if words.first().is_some_and(|first| first == "cd") => {
            words.len() == 2 && !words[1].starts_with(['-', '~'])
        }
        // `command cd a`, or a `cd` of other words than plain ones.
        _ => !moves(&first_words(part)),
    };
    let whole = line.replace("&&", "\n");
    !is_followed(line) || !whole.split([';', '\n']).all(is_plain)
}

/// The words of a command without what may stand before it.
fn first_words(part: &str) -> Vec<&str> {
    let words = part.split_whitespace();
    words.skip_while(|word| BEFORE.contains(word)).collect()
}

/// Returns a line without what is in parentheses, quotes and comments.
fn without_subshells(line: &str) -> String {
    let (mut top, mut depth, mut quote) = (String::new(), 0_usize, None);
    let mut chars = line.chars();
    while let Some(c) = chars.next() {
        match (c, quote) {
            ('\\', None | Some('"')) => {
                chars.next();
            }
            (_, Some(end)) => quote = (c != end).then_some(end),
            ('\'' | '"' | '`', None) => {
                quote = Some(c);
                top.push('x');
            }
            ('(', None) => depth += 1,
            (')', None) => depth = depth.saturating_sub(1),
            _ if depth == 0 => top.push(c),
            _ => {}
        }
    }
    top
}

#[cfg(test)]
mod tests {
    use super::is_unfollowed;

    #[test]
    fn a_line_whose_folder_the_agents_shell_does_not_follow_is_told_from_others() {
        for line in [
            "pushd a",
            "cd $PWD/a; ls",
            "command cd c",
            "ls && { cd c; }",
            "mkdir x; cd \"d e\"",
            "make && cd a 2>/dev/null && cd .",
            "cd a # note",
            "if cd a; then ls; fi",
            "ls; cd -",
            "ls || cd a",
            "make; cd a && ls",
        ] {
            assert!(is_unfollowed(line), "{line}");
        }
        for line in [
            "ls",
            "(cd a && make)",
            "x=$(cd a && pwd)",
            "make && cd a",
            "cd a; make; cd ..",
            "echo cd a",
            "echo 'x; cd a'",
            "git -C a status",
            "for f in *; do (cd $f; ls); done",
            "bash -c \"cd a; ls\"",
        ] {
            assert!(!is_unfollowed(line), "{line}");
        }
    }
}
