//! Parses the words of a command pattern, and writes them in one canonical spelling.
//!
//! A pattern quotes like a command line, but `*` is a wildcard in it unless a backslash precedes it.

use haft_shell::needs_quotes;

use haft_files::glob::GlobToken;

/// Why a pattern is not plain words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PlainWordsError {
    /// It has shell syntax.
    Syntax,
    /// A quote or an escape is open at its end.
    Open,
}

/// Parses the words of a command pattern; `*` is a wildcard unless a backslash precedes it.
pub(crate) fn pattern_words(pattern: &str) -> Result<Vec<Vec<GlobToken>>, PlainWordsError> {
    PatternSplitter::new(pattern).read()
}

/// Returns a pattern's words in the form of `join_words`.
pub(crate) fn join_pieces(words: &[Vec<GlobToken>]) -> Vec<GlobToken> {
    let mut pieces = Vec::new();
    for (at, word) in words.iter().enumerate() {
        if at > 0 {
            pieces.push(GlobToken::Literal(' '));
        }
        quote(word.iter().copied(), &mut |piece| pieces.push(piece));
    }
    pieces
}

/// Writes one word, in single quotes if the shell would interpret any of it.
fn quote(word: impl Iterator<Item = GlobToken> + Clone, out: &mut dyn FnMut(GlobToken)) {
    let special = |piece: GlobToken| match piece {
        GlobToken::Star => false,
        GlobToken::Literal(c) => needs_quotes(c),
    };
    let mut empty = true;
    let needed = word.clone().any(|piece| {
        empty = false;
        special(piece)
    });
    let quoted = needed || empty;
    if quoted {
        out(GlobToken::Literal('\''));
    }
    for piece in word {
        if piece == GlobToken::Literal('\'') {
            "'\\'".chars().map(GlobToken::Literal).for_each(&mut *out);
        }
        out(piece);
    }
    if quoted {
        out(GlobToken::Literal('\''));
    }
}

/// Splits a pattern into words; stops at the first shell syntax.
struct PatternSplitter<'a> {
    chars: std::str::Chars<'a>,
    words: Vec<Vec<GlobToken>>,
    word: Option<Vec<GlobToken>>,
}

impl<'a> PatternSplitter<'a> {
    fn new(pattern: &'a str) -> Self {
        Self {
            chars: pattern.chars(),
            words: Vec::new(),
            word: None,
        }
    }

    fn read(mut self) -> Result<Vec<Vec<GlobToken>>, PlainWordsError> {
        while let Some(c) = self.chars.next() {
            match c {
                ' ' | '\t' => self.words.extend(self.word.take()),
                '\\' => self.escaped()?,
                quote @ ('\'' | '"') => self.quoted(quote)?,
                ';' | '&' | '|' | '<' | '>' | '(' | ')' | '`' | '\n' | '\0' => {
                    return Err(PlainWordsError::Syntax);
                }
                '*' => self.push(GlobToken::Star),
                c => self.push(GlobToken::Literal(c)),
            }
        }
        self.words.extend(self.word.take());
        Ok(self.words)
    }

    fn push(&mut self, piece: GlobToken) {
        self.word.get_or_insert_default().push(piece);
    }

    fn escaped(&mut self) -> Result<(), PlainWordsError> {
        match self.chars.next() {
            None => Err(PlainWordsError::Open),
            // Joined lines: bash joins them before it splits words, so a word that continues after the break is not plain.
            Some('\n') => match self.chars.clone().next() {
                Some(c) if self.word.is_some() && !" \t\\".contains(c) => {
                    Err(PlainWordsError::Syntax)
                }
                _ => Ok(()),
            },
            Some(c) => {
                self.push(GlobToken::Literal(c));
                Ok(())
            }
        }
    }

    fn quoted(&mut self, quote: char) -> Result<(), PlainWordsError> {
        self.word.get_or_insert_default();
        loop {
            match self.chars.next() {
                None => return Err(PlainWordsError::Open),
                Some(c) if c == quote => return Ok(()),
                Some('*') => self.push(GlobToken::Star),
                Some('\\') if quote == '"' => match self.chars.next() {
                    None => return Err(PlainWordsError::Open),
                    Some('\n') => {}
                    Some(c @ ('$' | '`' | '"' | '\\' | '*')) => self.push(GlobToken::Literal(c)),
                    Some(c) => {
                        self.push(GlobToken::Literal('\\'));
                        self.push(GlobToken::Literal(c));
                    }
                },
                Some(c) => self.push(GlobToken::Literal(c)),
            }
        }
    }
}
