//! `Fragments`: the commands and targets that the lexer can find, without a grammar, in a line that the parser rejects.

use crate::lexer::{Lexer, Redirect, Token};
use crate::word::is_assignment;

/// Maximum length of the searched text, in bytes.
const MAX_SEARCH: usize = 64 * 1024;

/// Words before a command that belong to the shell's grammar.
const KEYWORDS: &[&str] = &[
    "if", "then", "else", "elif", "while", "until", "do", "!", "{", "}", "time", "coproc",
];

/// The commands that a line probably runs and the files that it probably writes.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Fragments {
    /// Simple commands, without preceding assignments. A file that a redirection reads is one of the words.
    pub commands: Vec<Vec<String>>,
    /// The assignments before them.
    pub assignments: Vec<String>,
    /// Targets of redirections that write.
    pub targets: Vec<String>,
    /// Files that redirections read.
    pub reads: Vec<String>,
}

/// Returns every simple command and every target visible in a line, even one that [`parse`](crate::parse) rejects.
///
/// It errs towards finding too much but still misses things: use it to forbid, never to allow.
///
/// ```
/// let seen = haft_shell::fragments("sudo id; echo \"$((x))");
/// assert_eq!(seen.commands[0], ["sudo", "id"]);
/// ```
pub fn fragments(line: &str) -> Fragments {
    let end = line.floor_char_boundary(MAX_SEARCH);
    let mut found = Fragments::default();
    Search::new(&line[..end], 0, &mut found).run();
    found
}

/// The search of one text: the line, or the commands in a substitution.
struct Search<'a, 'f> {
    lexer: Lexer<'a>,
    words: Vec<String>,
    found: &'f mut Fragments,
}

impl<'a, 'f> Search<'a, 'f> {
    fn new(text: &'a str, depth: usize, found: &'f mut Fragments) -> Self {
        Self {
            lexer: Lexer::tolerant(text, depth),
            words: Vec::new(),
            found,
        }
    }

    fn run(mut self) {
        loop {
            let Ok((token, _)) = self.lexer.next() else {
                // Skip a character that begins no token.
                self.lexer.walk.at += self.lexer.walk.peek().map_or(0, char::len_utf8);
                continue;
            };
            self.search_inner();
            match token {
                Token::Word(read) => self.word(read.word.text),
                Token::Redirect(Redirect::Write(target)) => {
                    self.search_quoted(&target.text);
                    self.found.targets.push(target.text);
                }
                Token::Redirect(Redirect::Read(word)) => {
                    self.found.reads.push(word.text.clone());
                    self.word(word.text);
                }
                Token::Redirect(Redirect::Both(word)) => {
                    self.found.reads.push(word.text.clone());
                    self.found.targets.push(word.text.clone());
                    self.word(word.text);
                }
                Token::Redirect(Redirect::Text(word)) => self.word(word.text),
                Token::Redirect(Redirect::NoFile) => {}
                Token::Sign(_) | Token::Newline => self.end_command(),
                Token::End => break,
            }
        }
        self.end_command();
    }

    fn word(&mut self, text: String) {
        self.search_quoted(&text);
        if text == "{" || text == "}" {
            self.end_command();
        } else {
            self.words.push(text);
        }
    }

    fn end_command(&mut self) {
        let mut words = std::mem::take(&mut self.words);
        let start = words
            .iter()
            .position(|w| !KEYWORDS.contains(&w.as_str()) && !is_assignment(w) && w != "-p");
        let command = words.split_off(start.unwrap_or(words.len()));
        words.retain(|word| is_assignment(word));
        self.found.assignments.append(&mut words);
        if !command.is_empty() {
            self.found.commands.push(command);
        }
    }

    /// Searches a quoted text. Bash may evaluate it again, as in arithmetic, and then runs what is quoted in it.
    fn search_quoted(&mut self, text: &str) {
        let read = self.lexer.walk.ends_open;
        if !read && (text.contains('`') || text.contains("$(")) {
            let _ = self.lexer.walk.expansions(text, false);
            self.search_inner();
        }
    }

    /// Searches the inner texts found since the last call.
    fn search_inner(&mut self) {
        for inner in std::mem::take(&mut self.lexer.walk.inner) {
            Search::new(&inner.text, inner.depth, self.found).run();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::fragments;
    use crate::plain::join_words;

    /// Line → its commands, then its targets.
    fn check(line: &str, commands: &[&str], targets: &[&str]) {
        let seen = fragments(line);
        let texts: Vec<String> = seen
            .commands
            .iter()
            .map(|words| join_words(words))
            .collect();
        assert_eq!(texts, commands, "{line:?}");
        assert_eq!(seen.targets, targets, "{line:?}");
    }

    #[test]
    fn what_can_be_seen_is_found_in_the_order_in_which_it_runs() {
        for (line, commands, targets) in [
            (
                "cat <<'E' > a 2>&1; x > \"b c\" >| d &> e\nbody; rm y\nE\nlast $(in `deep`)",
                &["cat", "x", "deep", "in '$()'", "last '$()'"][..],
                &["a", "b c", "d", "e"][..],
            ),
            ("a '\\\n' b\\\nc", &["a '\\\n' bc"], &[]),
            ("echo $((x)); y", &["x", "echo '$()'", "y"], &[]),
            ("if ! a=1 b; then time -p c; fi", &["b", "c", "fi"], &[]),
            ("x[$(a)]=(b c) d", &["a", "b c", "d"], &[]),
            ("cat < a <<< b 3<&$x", &["cat a b"], &[]),
            ("{a}> b c", &["'{a}' c"], &["b"]),
            // Bash may read quoted text again.
            (
                "printf -v 'x[$(a)]' y",
                &["a", "printf -v 'x[$(a)]' y"],
                &[],
            ),
            // Bash ends the text at a NUL.
            ("$'su\\x64o\\0x' id", &["sudo id"], &[]),
            ("$'a\\cb' $'\\xff' $\"c\"", &["'a\\cb' \u{fffd} c"], &[]),
            // Backticks within backticks.
            ("`a \\`b\\``", &["b", "a '$()'", "'$()'"], &[]),
            // As in bash, only `<<-` ignores the tabs before a here-document's delimiter.
            ("cat <<E\n\tE\na\nE\nb", &["cat", "b"], &[]),
            ("cat <<-E\n\tE\nb", &["cat", "b"], &[]),
            // Unclosed text extends to the end and is searched.
            ("a \"b; c", &["b", "c", "a 'b; c'"], &[]),
            ("a 'b; $(c", &["b", "c", "'$()'", "a 'b; $(c'"], &[]),
            ("a ${b; c", &["b", "c", "a '${}'"], &[]),
            ("a $(b; c", &["b", "c", "a '$()'"], &[]),
            ("a <<'E'\nb", &["b", "a"], &[]),
            ("a <<E\n$(b)", &["b", "a"], &[]),
            ("a\\", &["'a\\'"], &[]),
        ] {
            check(line, commands, targets);
        }
    }

    #[test]
    fn every_text_is_searched_in_bounded_time() {
        for odd in [
            "",
            "$(",
            "`",
            "${",
            "<<",
            "<<E",
            ">",
            "$'\\x",
            "\"",
            "\\",
            "((((",
            "<(<(<(",
            "$'\\ud800",
        ] {
            fragments(odd);
        }
        // Each opens something within what the previous one opened.
        for opened in [
            "$(",
            "\"$(",
            "'$(",
            "${x:-",
            "\"${",
            "`",
            "<(",
            "> '$(",
            "<<E\n$(",
            "<<'E'\n$(",
            "$'$(",
        ] {
            fragments(&opened.repeat(50_000));
        }
    }
}
