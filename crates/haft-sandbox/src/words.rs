//! Splitting a command line that has no shell syntax into its words.

/// Words that only a shell can run (or that a shell runs with a meaning of its own).
const SHELL_WORDS: &[&str] = &[
    ".",
    ":",
    "[[",
    "alias",
    "bg",
    "bind",
    "break",
    "builtin",
    "caller",
    "case",
    "cd",
    "command",
    "compgen",
    "complete",
    "continue",
    "coproc",
    "declare",
    "dirs",
    "disown",
    "do",
    "done",
    "elif",
    "else",
    "enable",
    "esac",
    "eval",
    "exec",
    "exit",
    "export",
    "fc",
    "fg",
    "fi",
    "for",
    "function",
    "getopts",
    "hash",
    "help",
    "history",
    "if",
    "in",
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
    "select",
    "set",
    "shift",
    "shopt",
    "source",
    "suspend",
    "then",
    "time",
    "times",
    "trap",
    "type",
    "typeset",
    "ulimit",
    "umask",
    "unalias",
    "unset",
    "until",
    "wait",
    "while",
    "!",
];

/// The words of a line that a shell would only split, or `None` where it would do anything more.
///
/// Quoted words are taken where nothing inside the quotes means anything to a shell. An empty line,
/// or one whose first word is a shell's own, is `None`.
pub fn parse_simple(line: &str) -> Option<Vec<String>> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut chars = line.trim_matches([' ', '\t', '\n']).chars();
    while let Some(c) = chars.next() {
        match c {
            ' ' | '\t' => words.extend(word.take()),
            '\'' | '"' => {
                let word = word.get_or_insert_default();
                loop {
                    match chars.next()? {
                        end if end == c => break,
                        '$' | '`' | '\\' | '!' if c == '"' => return None,
                        '\0' | '\r' => return None,
                        inner => word.push(inner),
                    }
                }
            }
            '|' | '&' | ';' | '<' | '>' | '(' | ')' | '$' | '`' | '\\' | '*' | '?' | '[' | ']'
            | '{' | '}' | '!' | '^' | '\n' | '\r' | '\0' => return None,
            '~' | '#' if word.is_none() => return None,
            // bash takes an argument that looks like an assignment for one.
            '~' if word.as_ref().is_some_and(|word| word.ends_with(['=', ':'])) => return None,
            c if c.is_control() => return None,
            c => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    let first = words.first()?;
    let shell_only = first.is_empty() || first.contains('=') || SHELL_WORDS.contains(&&**first);
    (!shell_only).then_some(words)
}

#[cfg(test)]
mod tests {
    use super::parse_simple;

    fn check(line: &str, expect: Option<&[&str]>) {
        let got = parse_simple(line);
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
}
