//! `reads_alike`: whether every shell that an agent may use finds the same commands and words in a line.

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
            "echo \"$x\" \"${y}\" $(ls)",
            "ls # all of it.",
            "echo \"$PATH:/bin $x: y\"",
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
            "find . # -delete",
            "cat README.md # .env",
            "echo \"Done!\"",
            "head -1 $f:s,x,/,",
            "ls '\r'",
            "echo 'open",
        ] {
            assert!(!reads_alike(line), "{line}");
        }
    }
}
