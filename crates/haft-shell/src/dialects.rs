//! Spellings that the shells of agents (bash, sh, dash, ksh, zsh, fish) read differently, so that a text for one of them is a command,
//! a variable or another word for the next.
//!
//! The reader marks a line that has one as ambiguous. The marks are few on purpose: a line that differs only in a way that another
//! shell rejects as a whole is not ambiguous.

use crate::error::is_too_long;
use crate::line::parse;

/// Returns true if all shells that agents use, interactive ones included, find the same commands and words in this line. A line that
/// cannot be parsed is not such a line.
///
/// ```
/// use haft_shell::reads_alike;
///
/// assert!(reads_alike("grep -n 'a b' src/*.rs | head -3"));
/// // To fish, `\\'` within single quotes is a quote, so this one runs `rm`.
/// assert!(!reads_alike(r"echo 'a\' 'b; rm c; #'"));
/// ```
pub fn reads_alike(line: &str) -> bool {
    // A terminal acts on control characters.
    let acts = |c: char| c.is_control() && !matches!(c, '\n' | '\t');
    !is_too_long(line) && !line.contains(acts) && parse(line).is_ok_and(|line| !line.ambiguous)
}

/// Returns true if a text in single quotes may end elsewhere: to fish, `\'` is a quote within it; to zsh with `RC_QUOTES`, `''` is.
pub(crate) fn quotes_differ(inner: &str, behind: &str) -> bool {
    inner.ends_with('\\') || behind.starts_with('\'')
}

/// Returns true if an interactive shell replaces the `!` at the start of this text by an earlier line.
pub(crate) fn recalls(text: &str) -> bool {
    let next = text.chars().nth(1);
    next.is_some_and(|c| !c.is_whitespace() && !matches!(c, '=' | '"' | '(' | ')'))
}

/// Returns true if fish removes the braces at the start of this text: `{.env}`. What remains of `HEAD@{1}` names nothing else.
pub(crate) fn braces_differ(before: &str, text: &str) -> bool {
    let inner = text[1..].split('}').next().unwrap_or_default();
    let entry = before.ends_with('@') && inner.bytes().all(|b| b.is_ascii_alphanumeric());
    !inner.is_empty() && !inner.starts_with(char::is_whitespace) && !entry
}

/// Returns true if another shell expands more than bash, or less, in an expansion; `after` is what follows its `$`.
pub(crate) fn expands_more(after: &str, quoted: bool) -> bool {
    let name = |c: char| c != '_' && !c.is_ascii_alphanumeric();
    match after.chars().next() {
        // dash ends such a text at `\'`.
        Some('\'') => !quoted,
        // zsh: `$=name`, `$~name`, `$^name`, `$+name`.
        Some('=' | '~' | '^' | '+') => true,
        // zsh and fish take an index without braces: arithmetic, or a command in parentheses.
        _ => after
            .find(name)
            .is_some_and(|end| after[end..].starts_with('[')),
    }
}

/// Returns true if a comment could do something in an interactive zsh, which has no comments.
pub(crate) fn comment_acts(comment: &str) -> bool {
    let plain = |c: char| c.is_alphanumeric() || " #\t,.:_-".contains(c);
    !comment.chars().all(plain) || comment.contains("..")
}

/// Returns true if a redirection differs: fish pipes `>|` to a command, and zsh matches numbers with `<1-5>`.
pub(crate) fn redirects_elsewhere(sign: &str, target: &str) -> bool {
    let range = |c: char| c.is_ascii_digit() || c == '-';
    sign == ">|" || (sign == "<" && target.contains('-') && target.chars().all(range))
}

/// Returns true if a text in backticks is more than words of one command; to fish, a backtick is a character like any other.
pub(crate) fn is_syntax_without_backticks(body: &str) -> bool {
    let plain = |c: char| c.is_alphanumeric() || " ,.:/_+%@-".contains(c);
    !body.chars().all(plain)
}

#[cfg(test)]
mod tests {
    use super::reads_alike;

    #[test]
    fn only_what_every_shell_reads_as_bash_does_is_read_alike() {
        for line in [
            "ls",
            "echo 'it'\\''s'",
            "echo \"a\\\"b\\$\" | grep 'a$'",
            "ls [!a]* && ! false",
            "echo \"Done!\"",
            "echo \"$x\" \"${y}\" $(ls)",
            "ls # all of it",
            "find . -exec ls {} \\;",
            "git show HEAD@{1}",
            "{ ls; }",
            "cat < a > b 2>&1",
        ] {
            assert!(reads_alike(line), "{line}");
        }
        for line in [
            r"echo 'a\' b",
            r"echo 'a\' 'b; c'",
            "echo $(echo 'a\\')",
            "cat <<E\n$x[y=1]\nE",
            "cat > a <<E\n`ls; ls`\nE",
            "echo 'a''b'",
            "echo $'a'",
            "echo $~x",
            "cat {.env}",
            r"cat \x41",
            "echo x >| a",
            "cat <1-5> a",
            "[[ a || b ]]",
            "echo \"!x\"",
            "ls # it's",
            "ls '\r'",
            "echo 'open",
        ] {
            assert!(!reads_alike(line), "{line}");
        }
    }
}
