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
    next.is_some_and(|c| !c.is_whitespace() && !matches!(c, '=' | '(' | ')'))
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
        _ => after.find(name).is_some_and(|end| {
            let mut rest = after[end..].chars();
            match rest.next() {
                // zsh and fish take an index without braces: arithmetic, or a command in parentheses.
                Some('[') => true,
                // zsh changes the value: `$name:s/a/b/`.
                Some(':') => rest.next().is_some_and(|c| c.is_alphabetic() || c == '&'),
                _ => false,
            }
        }),
    }
}

/// Returns true if a comment could do something in an interactive zsh, which has none: behind a command (`alone` is false) its words are
/// options and files. Words of letters are neither, as far as a name can tell.
pub(crate) fn comment_acts(comment: &str, alone: bool) -> bool {
    let is_text = |c: char| c.is_alphanumeric() || " #\t,.:_-".contains(c);
    let is_plain = |word: &str| {
        let word = word.trim_start_matches('#');
        let word = word.trim_end_matches(['.', ',', ':']);
        word.chars().all(char::is_alphabetic)
    };
    !comment.chars().all(is_text) || !(alone || comment.split_whitespace().all(is_plain))
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
