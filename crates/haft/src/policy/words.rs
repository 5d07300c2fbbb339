//! Reads a command line that is nothing but words, and writes words so that every spelling of them looks the same.

use haft_shell::is_too_long;

use super::glob::Piece;

/// Words that begin a construct of the shell when they stand first.
const RESERVED: &[&str] = &[
    "if", "then", "else", "elif", "fi", "do", "done", "case", "esac", "while", "until", "for",
    "in", "select", "function", "coproc", "[[", "]]",
];

/// Why a text is not plain words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NotPlain {
    /// It holds syntax of the shell.
    Syntax,
    /// A quote or an escape is open at its end.
    Open,
}

/// The words of a command line that uses no syntax of the shell but quotes and blanks; `None` for every other line, and for
/// one longer than 10,000 characters.
pub fn plain_words(line: &str) -> Option<Vec<String>> {
    if is_too_long(line) {
        return None;
    }
    let line = line.trim_matches([' ', '\t', '\n']);
    let words: Vec<String> = Reader::new(line, false)
        .read()
        .ok()?
        .iter()
        .map(|word| literal(word))
        .collect();
    let first = words.first()?;
    (!RESERVED.contains(&first.as_str())).then_some(words)
}

/// May a word of the line, once its quotes are undone, hold this name? A quick look that spares reading the line.
pub(crate) fn may_spell(line: &str, name: &str) -> bool {
    line.contains(name) || line.contains(['\\', '\'', '"'])
}

/// The words of a command pattern; `*` is a star unless a backslash stands before it.
pub(crate) fn pattern_words(pattern: &str) -> Result<Vec<Vec<Piece>>, NotPlain> {
    Reader::new(pattern, true).read()
}

/// A word without stars as text.
fn literal(word: &[Piece]) -> String {
    word.iter()
        .map(|piece| match piece {
            Piece::Literal(c) => *c,
            Piece::Star => '*',
        })
        .collect()
}

/// Words as one command line with the least quoting: equal lines mean equal words.
pub fn join_words<S: AsRef<str>>(words: &[S]) -> String {
    let mut line = String::new();
    for (at, word) in words.iter().enumerate() {
        if at > 0 {
            line.push(' ');
        }
        let word = word.as_ref();
        if is_plain(word) {
            line.push_str(word);
            continue;
        }
        quote(word.chars().map(Piece::Literal), &mut |piece| {
            if let Piece::Literal(c) = piece {
                line.push(c);
            }
        });
    }
    line
}

/// For each byte, whether the shell would read it otherwise outside quotes. No part of a longer character is such a byte.
const SPECIAL: [bool; 256] = {
    let mut table = [false; 256];
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

/// Does the word stand for itself without quotes?
fn is_plain(word: &str) -> bool {
    !word.is_empty() && !word.bytes().any(|byte| SPECIAL[usize::from(byte)])
}

/// A pattern's words in the form of `join_words`.
pub(crate) fn join_pieces(words: &[Vec<Piece>]) -> Vec<Piece> {
    let mut pieces = Vec::new();
    for (at, word) in words.iter().enumerate() {
        if at > 0 {
            pieces.push(Piece::Literal(' '));
        }
        quote(word.iter().copied(), &mut |piece| pieces.push(piece));
    }
    pieces
}

/// Writes one word, in single quotes where it holds anything the shell would read otherwise.
fn quote(word: impl Iterator<Item = Piece> + Clone, out: &mut dyn FnMut(Piece)) {
    let special = |piece: Piece| match piece {
        Piece::Star => false,
        Piece::Literal(c) => {
            u8::try_from(c).is_ok_and(|byte| byte.is_ascii() && SPECIAL[usize::from(byte)])
        }
    };
    let mut empty = true;
    let needed = word.clone().any(|piece| {
        empty = false;
        special(piece)
    });
    let quoted = needed || empty;
    if quoted {
        out(Piece::Literal('\''));
    }
    for piece in word {
        if piece == Piece::Literal('\'') {
            "'\\'".chars().map(Piece::Literal).for_each(&mut *out);
        }
        out(piece);
    }
    if quoted {
        out(Piece::Literal('\''));
    }
}

/// Splits a text into words and gives up at the first sign of syntax.
struct Reader<'a> {
    chars: std::iter::Peekable<std::str::Chars<'a>>,
    pattern: bool,
    words: Vec<Vec<Piece>>,
    word: Option<Vec<Piece>>,
}

impl<'a> Reader<'a> {
    fn new(text: &'a str, pattern: bool) -> Self {
        Self {
            chars: text.chars().peekable(),
            pattern,
            words: Vec::new(),
            word: None,
        }
    }

    fn read(mut self) -> Result<Vec<Vec<Piece>>, NotPlain> {
        while let Some(c) = self.chars.next() {
            match c {
                ' ' | '\t' => self.words.extend(self.word.take()),
                '\\' => self.escaped()?,
                '\'' => self.single_quoted()?,
                '"' => self.double_quoted()?,
                ';' | '&' | '|' | '<' | '>' | '(' | ')' | '`' | '\n' | '\0' => {
                    return Err(NotPlain::Syntax);
                }
                '*' if self.pattern => self.push(Piece::Star),
                c if !self.pattern && self.means_more(c) => return Err(NotPlain::Syntax),
                c => self.push(Piece::Literal(c)),
            }
        }
        self.words.extend(self.word.take());
        Ok(self.words)
    }

    fn push(&mut self, piece: Piece) {
        self.word.get_or_insert_default().push(piece);
    }

    /// An unquoted character that the shell expands, or that makes the word another thing than a word.
    fn means_more(&self, c: char) -> bool {
        match c {
            '$' | '*' | '?' | '[' | '{' | '}' | '!' => true,
            '#' => self.word.is_none(),
            // Bash expands a tilde at the start of a word and in what looks like an assignment.
            '~' => self
                .word
                .as_deref()
                .is_none_or(|word| matches!(word.last(), Some(Piece::Literal('=' | ':')))),
            '=' => self.words.is_empty(),
            _ => false,
        }
    }

    fn escaped(&mut self) -> Result<(), NotPlain> {
        match self.chars.next() {
            None => Err(NotPlain::Open),
            // Joined lines: bash joins before it looks for words, so a word that goes on is not a plain one.
            Some('\n') => match self.chars.peek() {
                Some(c) if self.word.is_some() && !" \t\\".contains(*c) => Err(NotPlain::Syntax),
                _ => Ok(()),
            },
            Some(c) => {
                self.push(Piece::Literal(c));
                Ok(())
            }
        }
    }

    fn single_quoted(&mut self) -> Result<(), NotPlain> {
        self.word.get_or_insert_default();
        loop {
            match self.chars.next() {
                None => return Err(NotPlain::Open),
                Some('\'') => return Ok(()),
                Some('*') if self.pattern => self.push(Piece::Star),
                Some(c) => self.push(Piece::Literal(c)),
            }
        }
    }

    fn double_quoted(&mut self) -> Result<(), NotPlain> {
        self.word.get_or_insert_default();
        loop {
            match self.chars.next() {
                None => return Err(NotPlain::Open),
                Some('"') => return Ok(()),
                Some('\\') => match self.chars.next() {
                    None => return Err(NotPlain::Open),
                    Some('\n') => {}
                    Some(c @ ('$' | '`' | '"' | '\\')) => self.push(Piece::Literal(c)),
                    Some('*') if self.pattern => self.push(Piece::Literal('*')),
                    Some(c) => {
                        self.push(Piece::Literal('\\'));
                        self.push(Piece::Literal(c));
                    }
                },
                Some('$' | '`') if !self.pattern => return Err(NotPlain::Syntax),
                Some('*') if self.pattern => self.push(Piece::Star),
                Some(c) => self.push(Piece::Literal(c)),
            }
        }
    }
}
