//! Spellings that the shells of agents (bash, sh, dash, ksh, zsh, fish) read differently, so that a text for one of them is a command,
//! a variable or another word for the next.
//!
//! The reader marks a line that has one as ambiguous. The marks are few on purpose: a line that differs only in a way that another
//! shell rejects as a whole is not ambiguous.

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
