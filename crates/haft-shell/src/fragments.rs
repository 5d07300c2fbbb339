//! Takes a command line with shell syntax apart as well as can be done without a grammar: for deny and ask only, never to allow.

use std::iter::Peekable;
use std::str::Chars;

use crate::word::is_assignment;

/// Text looked at, in bytes; what is longer is asked about anyway.
const LONGEST_SCAN: usize = 64 * 1024;

/// Substitutions within substitutions that are followed.
const DEEPEST: usize = 32;

/// Words before a command that are part of the shell's grammar.
const KEYWORDS: &[&str] = &[
    "if", "then", "else", "elif", "while", "until", "do", "!", "{", "}", "time", "coproc",
];

/// What a line probably runs and writes.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Fragments {
    /// Simple commands, without assignments before them.
    pub commands: Vec<Vec<String>>,
    /// Targets of redirections.
    pub targets: Vec<String>,
}

/// Every simple command and every target that can be seen in a line.
pub fn fragments(line: &str) -> Fragments {
    let end = line.floor_char_boundary(LONGEST_SCAN);
    let mut found = Fragments::default();
    Scan::new(&line[..end], 0, &mut found).commands();
    found
}

/// One level of the line: the whole, or the inside of a substitution.
struct Scan<'a, 'f> {
    chars: Peekable<Chars<'a>>,
    depth: usize,
    found: &'f mut Fragments,
    words: Vec<String>,
    word: Option<String>,
    target_next: bool,
    here: Vec<(String, bool)>,
}

impl<'a, 'f> Scan<'a, 'f> {
    fn new(text: &'a str, depth: usize, found: &'f mut Fragments) -> Self {
        Self {
            chars: text.chars().peekable(),
            depth,
            found,
            words: Vec::new(),
            word: None,
            target_next: false,
            here: Vec::new(),
        }
    }

    fn commands(mut self) {
        while let Some(c) = self.chars.next() {
            match c {
                ' ' | '\t' => self.end_word(),
                '\n' => {
                    self.end_command();
                    self.skip_here_documents();
                }
                '#' if self.word.is_none() => while self.chars.next_if(|c| *c != '\n').is_some() {},
                '&' if self.chars.peek() == Some(&'>') => self.end_word(),
                ';' | '&' | '|' | '(' | ')' => self.end_command(),
                '<' | '>' => self.redirection(c),
                '`' => self.backticks(),
                '$' => self.dollar(),
                '\'' => {
                    let text: String = self.chars.by_ref().take_while(|c| *c != '\'').collect();
                    self.word.get_or_insert_default().push_str(&text);
                }
                '"' => self.double_quoted(),
                '\\' => match self.chars.next() {
                    // A continued line is joined.
                    Some('\n') => {}
                    escaped => self.word.get_or_insert_default().extend(escaped),
                },
                c => self.word.get_or_insert_default().push(c),
            }
        }
        self.end_command();
    }

    fn end_word(&mut self) {
        let Some(word) = self.word.take() else {
            return;
        };
        // Bash may read a text again, as it does in arithmetic: what is quoted in it then runs.
        if word.contains('`') || word.contains("$(") {
            self.expansions(&word);
        }
        if std::mem::take(&mut self.target_next) {
            self.found.targets.push(word);
        } else if word == "{" || word == "}" {
            self.end_command();
        } else {
            self.words.push(word);
        }
    }

    fn end_command(&mut self) {
        self.end_word();
        self.target_next = false;
        let words = std::mem::take(&mut self.words);
        let start = words
            .iter()
            .position(|w| !KEYWORDS.contains(&w.as_str()) && !is_assignment(w) && w != "-p");
        if let Some(start) = start {
            self.found.commands.push(words[start..].to_vec());
        }
    }

    /// `>`, `>>`, `>|`, `>&`, `<`, `<<`, `<<<`, `>(`, `<(`.
    fn redirection(&mut self, sign: char) {
        if self
            .word
            .as_deref()
            .is_some_and(|w| w.chars().all(|c| c.is_ascii_digit()))
        {
            self.word = None;
        }
        self.end_word();
        if self.chars.next_if_eq(&'(').is_some() {
            return self.substitution();
        }
        let mut signs = 1;
        while self.chars.next_if_eq(&sign).is_some() {
            signs += 1;
        }
        if sign == '<' && signs == 2 {
            return self.here_document();
        }
        let mut copied = false;
        if self.chars.next_if(|c| matches!(c, '|' | '&')) == Some('&') {
            while self
                .chars
                .next_if(|c| c.is_ascii_digit() || *c == '-')
                .is_some()
            {
                copied = true;
            }
        }
        self.target_next = sign == '>' && !copied;
        if sign == '<' {
            self.skip_blanks();
        }
    }

    fn skip_blanks(&mut self) {
        while self.chars.next_if(|c| matches!(c, ' ' | '\t')).is_some() {}
    }

    /// The delimiter after `<<`; the body comes after the end of the line.
    fn here_document(&mut self) {
        let _tabs = self.chars.next_if_eq(&'-');
        self.skip_blanks();
        let mut delimiter = String::new();
        let mut quoted = false;
        while let Some(c) = self.chars.next_if(|c| !" \t\n;&|<>()".contains(*c)) {
            if matches!(c, '\'' | '"' | '\\') {
                quoted = true;
            } else {
                delimiter.push(c);
            }
        }
        self.here.push((delimiter, quoted));
    }

    fn skip_here_documents(&mut self) {
        for (delimiter, quoted) in std::mem::take(&mut self.here) {
            let mut body = String::new();
            while self.chars.peek().is_some() {
                let line: String = self.chars.by_ref().take_while(|c| *c != '\n').collect();
                if line.trim_start_matches('\t') == delimiter {
                    break;
                }
                body.push_str(&line);
                body.push('\n');
            }
            if !quoted {
                self.expansions(&body);
            }
        }
    }

    fn double_quoted(&mut self) {
        self.word.get_or_insert_default();
        while let Some(c) = self.chars.next() {
            match c {
                '"' => return,
                '\\' => {
                    if let Some(c) = self.chars.next().filter(|c| *c != '\n') {
                        let word = self.word.get_or_insert_default();
                        if !matches!(c, '$' | '`' | '"' | '\\') {
                            word.push('\\');
                        }
                        word.push(c);
                    }
                }
                '`' => self.backticks(),
                '$' => self.dollar(),
                c => self.word.get_or_insert_default().push(c),
            }
        }
    }

    /// After `$`: a substitution, an expansion, ANSI-C quoting, or a variable left as it is written.
    fn dollar(&mut self) {
        match self.chars.peek() {
            Some('(') => {
                self.chars.next();
                self.substitution();
            }
            Some('{') => {
                self.chars.next();
                let body = self.until_closed('{', '}');
                self.expansions(&body);
                self.word.get_or_insert_default().push_str("${}");
            }
            Some('\'') => {
                self.chars.next();
                let text = self.ansi_c();
                self.word.get_or_insert_default().push_str(&text);
            }
            Some('"') => {}
            _ => self.word.get_or_insert_default().push('$'),
        }
    }

    fn substitution(&mut self) {
        let body = self.until_closed('(', ')');
        self.inner(&body);
        self.word.get_or_insert_default().push_str("$()");
    }

    fn backticks(&mut self) {
        let body: String = self.chars.by_ref().take_while(|c| *c != '`').collect();
        self.inner(&body);
        self.word.get_or_insert_default().push_str("$()");
    }

    fn inner(&mut self, text: &str) {
        if self.depth < DEEPEST {
            Scan::new(text, self.depth + 1, self.found).commands();
        }
    }

    /// Text in which only substitutions run: expansions and here-documents.
    fn expansions(&mut self, text: &str) {
        if self.depth < DEEPEST {
            let mut scan = Scan::new(text, self.depth + 1, self.found);
            while let Some(c) = scan.chars.next() {
                match c {
                    '`' => scan.backticks(),
                    '$' => scan.dollar(),
                    // An escaped one may run when the text is read again.
                    _ => {}
                }
            }
        }
    }

    /// The text up to the sign that closes this level; quoted signs do not count.
    fn until_closed(&mut self, open: char, close: char) -> String {
        let mut body = String::new();
        let mut level = 1;
        let mut quote = None;
        while let Some(c) = self.chars.next() {
            match (quote, c) {
                (None, '\'' | '"') => quote = Some(c),
                (Some(q), c) if q == c => quote = None,
                (_, '\\') if quote != Some('\'') => {
                    body.push(c);
                    body.extend(self.chars.next());
                    continue;
                }
                // Within double quotes a substitution opens and closes, too.
                (None | Some('"'), c) if c == open => level += 1,
                (None | Some('"'), c) if c == close => level -= 1,
                _ => {}
            }
            if level == 0 {
                break;
            }
            body.push(c);
        }
        body
    }

    /// The inside of `$'…'`.
    fn ansi_c(&mut self) -> String {
        let mut text = String::new();
        while let Some(c) = self.chars.next() {
            match c {
                '\'' => break,
                '\\' => {
                    let Some(kind) = self.chars.next() else { break };
                    match kind {
                        'x' => text.extend(self.code("", 2, 16)),
                        'u' => text.extend(self.code("", 4, 16)),
                        'U' => text.extend(self.code("", 8, 16)),
                        '0'..='7' => text.extend(self.code(kind.encode_utf8(&mut [0; 4]), 2, 8)),
                        'n' => text.push('\n'),
                        't' => text.push('\t'),
                        other => text.push(other),
                    }
                }
                c => text.push(c),
            }
        }
        text
    }

    fn code(&mut self, first: &str, most: usize, radix: u32) -> Option<char> {
        let mut digits = first.to_owned();
        for _ in 0..most {
            digits.extend(self.chars.next_if(|c| c.is_digit(radix)));
        }
        u32::from_str_radix(&digits, radix)
            .ok()
            .and_then(char::from_u32)
    }
}
