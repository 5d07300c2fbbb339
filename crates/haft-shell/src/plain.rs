//! Lines that consist only of words, and words written as a line.

use crate::error::is_too_long;
use crate::lexer::{Lexer, Token};
use crate::walk::{Marks, ReadWord};

/// Words that begin a shell construct when they come first.
const RESERVED_WORDS: &[&str] = &[
    "if", "then", "else", "elif", "fi", "do", "done", "case", "esac", "while", "until", "for",
    "in", "select", "function", "coproc", "[[", "]]",
];

/// Words that only a shell can run, or to which a shell gives a meaning of its own.
const SHELL_BUILTINS: &[&str] = &[
    "!",
    ".",
    ":",
    "alias",
    "bg",
    "bind",
    "break",
    "builtin",
    "caller",
    "cd",
    "command",
    "compgen",
    "complete",
    "continue",
    "declare",
    "dirs",
    "disown",
    "enable",
    "eval",
    "exec",
    "exit",
    "export",
    "fc",
    "fg",
    "getopts",
    "hash",
    "help",
    "history",
    "jobs",
    "let",
    "local",
    "logout",
    "mapfile",
    "popd",
    "pushd",
    "read",
    "readarray",
    "readonly",
    "return",
    "set",
    "shift",
    "shopt",
    "source",
    "suspend",
    "time",
    "times",
    "trap",
    "type",
    "typeset",
    "ulimit",
    "umask",
    "unalias",
    "unset",
    "wait",
];

/// Returns the words of a line that uses no shell syntax except quotes and blanks. Returns `None` for any other line, and for one
/// longer than [`LONGEST_LINE`](crate::LONGEST_LINE).
///
/// ```
/// use haft_shell::plain_words;
///
/// assert_eq!(plain_words(r#"grep 'two words' "a"b"#).unwrap(), ["grep", "two words", "ab"]);
/// assert_eq!(plain_words("ls $HOME"), None);
/// ```
pub fn plain_words(line: &str) -> Option<Vec<String>> {
    Some(texts(read(line)?))
}

/// Returns the words of a line that can be started without a shell to the same effect: [`plain_words`] whose first is neither a
/// builtin nor a word of the shell. Returns `None` for a line with a quoting backslash, or with a character that other shells or a
/// terminal may interpret differently.
///
/// ```
/// use haft_shell::direct_words;
///
/// assert_eq!(direct_words("git commit -m 'a $x; b'").unwrap(), ["git", "commit", "-m", "a $x; b"]);
/// assert_eq!(direct_words("cd /tmp"), None);
/// ```
pub fn direct_words(line: &str) -> Option<Vec<String>> {
    let words = read(line)?;
    let doubtful = Marks::ESCAPE | Marks::UNUSUAL;
    let first = words.first()?.word.text.as_str();
    let of_shell = first.is_empty() || first.contains('=') || SHELL_BUILTINS.contains(&first);
    let direct = !of_shell
        && !line.contains("\\\n")
        && !words.iter().any(|word| word.marks.intersects(doubtful));
    direct.then(|| texts(words))
}

fn texts(words: Vec<ReadWord>) -> Vec<String> {
    words.into_iter().map(|word| word.word.text).collect()
}

/// Returns the words of a line that has no other tokens.
fn read(line: &str) -> Option<Vec<ReadWord>> {
    if is_too_long(line) || line.contains('\0') {
        return None;
    }
    let line = line.trim_matches([' ', '\t', '\n']);
    let mut lexer = Lexer::new(line, 0);
    let mut words: Vec<ReadWord> = Vec::new();
    loop {
        match lexer.next().ok()? {
            (Token::Word(word), _) => {
                let names = words.is_empty() && word.marks.intersects(Marks::EQUALS);
                if names || word.marks.intersects(Marks::SYNTAX) {
                    return None;
                }
                words.push(word);
            }
            // Nothing may follow the last word, not even a comment.
            (Token::End, at) if at == line.len() => break,
            _ => return None,
        }
    }
    let first = words.first()?;
    (!RESERVED_WORDS.contains(&first.word.text.as_str())).then_some(words)
}

/// Joins words into a command line with minimal quoting. Equal lines mean equal words.
pub fn join_words<S: AsRef<str>>(words: &[S]) -> String {
    let mut line = String::new();
    for (at, word) in words.iter().enumerate() {
        if at > 0 {
            line.push(' ');
        }
        push_word(&mut line, word.as_ref());
    }
    line
}

/// Appends a word to a command line with minimal quoting.
pub fn push_word(line: &mut String, word: &str) {
    if !word.is_empty() && !word.bytes().any(is_special) {
        line.push_str(word);
        return;
    }
    line.push('\'');
    for c in word.chars() {
        line.push_str(if c == '\'' { "'\\'" } else { "" });
        line.push(c);
    }
    line.push('\'');
}

/// Whether the shell treats each byte specially outside quotes. No byte of a multi-byte character is special.
const SPECIAL_BYTES: [bool; 128] = {
    let mut table = [false; 128];
    let (mut at, signs) = (0, b" '\"\\$`;&|<>(){}[]?!#~\x7f");
    while at < signs.len() {
        table[signs[at] as usize] = true;
        at += 1;
    }
    let mut control = 0;
    while control < 0x20 {
        table[control] = true;
        control += 1;
    }
    table
};

fn is_special(byte: u8) -> bool {
    SPECIAL_BYTES.get(usize::from(byte)) == Some(&true)
}

/// Returns true for a character that [`join_words`] quotes. That excludes `*`, which rules use as a pattern.
pub fn needs_quotes(c: char) -> bool {
    u8::try_from(c).is_ok_and(is_special)
}

/// Returns false if no word of the line can spell this name once unquoted: a quick check that avoids parsing.
pub fn may_spell(line: &str, name: &str) -> bool {
    line.contains(name) || line.contains(['\\', '\'', '"'])
}

#[cfg(test)]
mod tests {
    use super::direct_words;
    use crate::error::LONGEST_LINE;

    fn check(line: &str, expect: Option<&[&str]>) {
        let got = direct_words(line);
        let got = got
            .as_ref()
            .map(|words| words.iter().map(String::as_str).collect::<Vec<_>>());
        assert_eq!(got.as_deref(), expect, "{line:?}");
    }

    #[test]
    fn a_line_without_shell_syntax_is_split_and_nothing_else_is() {
        check("ls", Some(&["ls"]));
        check(
            "  git  log\t--oneline -5 ",
            Some(&["git", "log", "--oneline", "-5"]),
        );
        check(
            "git commit -m 'a $x; b'",
            Some(&["git", "commit", "-m", "a $x; b"]),
        );
        check(
            "grep \"two words\" --x='y'z",
            Some(&["grep", "two words", "--x=yz"]),
        );
        check("echo ''", Some(&["echo", ""]));
        check(
            "echo a#b a=b ü %s",
            Some(&["echo", "a#b", "a=b", "ü", "%s"]),
        );
        for shell in [
            "",
            "   ",
            "a | b",
            "a && b",
            "a; b",
            "a & ",
            "a > f",
            "a < f",
            "(a)",
            "echo $HOME",
            "echo `id`",
            "echo a\\ b",
            "ls *.rs",
            "ls ?",
            "ls [a]",
            "echo {a,b}",
            "echo ~",
            "~/x",
            "echo # c",
            "A=b env",
            "cd /tmp",
            "export A=1",
            "source x",
            ". x",
            "! true",
            "time ls",
            "echo \"$A\"",
            "echo \"a`b\"",
            "echo \"a\\n\"",
            "a\nb",
            "echo 'open",
            "echo \"open",
            "if true",
            "echo \u{7}",
            "echo a!b",
            "\"\" x",
            "exec ls",
            "a\rb",
        ] {
            check(shell, None);
        }
    }

    #[test]
    fn what_is_rare_or_too_long_is_left_to_the_shell() {
        let long = format!("a {}", "b".repeat(LONGEST_LINE));
        for shell in ["a '\r'", "a \"!\"", "a \\\nb", "a b^", "a b]", &long] {
            check(shell, None);
        }
    }
}
