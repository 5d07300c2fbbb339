//! Splits a text into the tokens of the shell grammar: words, signs, redirections and newlines.

use crate::dialects;
use crate::error::ParseError;
use crate::walk::{ReadWord, Walk};
use crate::word::Word;

/// Maximum here-documents per text, and maximum length of their delimiters: the grammar stores them in a small fixed space.
const MAX_HERE_DOCUMENTS: usize = 8;
const MAX_DELIMITER: usize = 32;

/// Maximum number of digits in a descriptor.
const MAX_DESCRIPTOR: usize = 4;

/// An operator between words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sign {
    And,
    Or,
    Semicolon,
    /// `;;`, `;&`, `;;&`.
    CaseEnd,
    Pipe,
    Ampersand,
    Open,
    Close,
}

/// The effect of a redirection.
#[derive(Debug, Clone)]
pub(crate) enum Redirect {
    Write(Word),
    Read(Word),
    /// `<>`, which opens a file for both.
    Both(Word),
    /// The text of a here-string.
    Text(Word),
    /// A descriptor or a here-document, so no file.
    NoFile,
}

#[derive(Debug, Clone)]
pub(crate) enum Token {
    Word(ReadWord),
    Sign(Sign),
    Redirect(Redirect),
    Newline,
    End,
}

/// A here-document whose body is yet to be read.
#[derive(Debug)]
struct HereDocument {
    delimiter: String,
    expands: bool,
    tabs: bool,
    /// The variables that are set to a whole number where it is announced, and so read.
    certain: Vec<String>,
}

/// Reads a text token by token.
#[derive(Debug)]
pub(crate) struct Lexer<'a> {
    pub(crate) walk: Walk<'a>,
    here: Vec<HereDocument>,
    seen_here: usize,
}

impl<'a> Lexer<'a> {
    pub(crate) fn new(text: &'a str, depth: usize) -> Self {
        Self {
            walk: Walk::new(text, depth),
            here: Vec::new(),
            seen_here: 0,
        }
    }

    /// Creates a lexer for a text that is only searched.
    pub(crate) fn tolerant(text: &'a str, depth: usize) -> Self {
        Self {
            walk: Walk::new(text, depth).tolerant(),
            ..Self::new(text, depth)
        }
    }

    /// Returns the next token and its position.
    pub(crate) fn next(&mut self) -> Result<(Token, usize), ParseError> {
        self.skip_blanks();
        let start = self.walk.at;
        if self.walk.peek() == Some('#') {
            self.comment()?;
        }
        let Some(c) = self.walk.peek() else {
            if !self.here.is_empty() {
                self.walk.refuse("a here-document without its end")?;
            }
            return Ok((Token::End, start));
        };
        if c == '\n' {
            self.walk.at += 1;
            self.bodies()?;
            return Ok((Token::Newline, start));
        }
        if let Some(token) = self.redirect()? {
            return Ok((token, start));
        }
        if let Some(sign) = self.sign() {
            return Ok((Token::Sign(sign), start));
        }
        let word = self.walk.word()?;
        if word.span.is_empty() {
            return Err(ParseError::Syntax("a sign that stands for nothing"));
        }
        let raw = &self.walk.text[word.span.clone()];
        if !self.walk.rest().starts_with(['<', '>']) {
            return Ok((Token::Word(word), start));
        }
        if raw.starts_with('{') && raw.ends_with('}') {
            self.walk.refuse("{…}> sets the variable that it names")?;
        }
        if !is_descriptor(raw) {
            return Ok((Token::Word(word), start));
        }
        // A number too large for a descriptor is a word of the command.
        if raw.len() > MAX_DESCRIPTOR {
            self.walk.refuse("a descriptor of too many digits")?;
            return Ok((Token::Word(word), start));
        }
        let token = self.redirect()?;
        Ok((token.unwrap_or(Token::Word(word)), start))
    }

    fn skip_blanks(&mut self) {
        while self.walk.eat(" ") || self.walk.eat("\t") || self.walk.eat("\\\n") {}
    }

    /// Skips a comment. Rejects one that runs to the end of a substitution, because there it may extend beyond the text.
    fn comment(&mut self) -> Result<(), ParseError> {
        let rest = self.walk.rest();
        let length = rest.find('\n');
        if length.is_none() && self.walk.depth > 0 {
            self.walk.refuse("a comment within a substitution")?;
        }
        let length = length.unwrap_or(rest.len());
        let before = &self.walk.text[..self.walk.at];
        let alone = before
            .lines()
            .next_back()
            .is_none_or(|line| line.trim().is_empty())
            || before.ends_with('\n');
        self.walk.ambiguous |= dialects::comment_acts(&rest[..length], alone);
        self.walk.at += length;
        Ok(())
    }

    fn sign(&mut self) -> Option<Sign> {
        if !self.walk.rest().starts_with(['&', '|', ';', '(', ')']) {
            return None;
        }
        let signs = [
            ("&&", Sign::And),
            ("||", Sign::Or),
            (";;&", Sign::CaseEnd),
            (";;", Sign::CaseEnd),
            (";&", Sign::CaseEnd),
            (";", Sign::Semicolon),
            ("|&", Sign::Pipe),
            ("|", Sign::Pipe),
            ("&", Sign::Ampersand),
            ("(", Sign::Open),
            (")", Sign::Close),
        ];
        let found = signs.into_iter().find(|(text, _)| self.walk.eat(text));
        found.map(|(_, sign)| sign)
    }

    /// Reads a redirection and its target, if one starts here.
    fn redirect(&mut self) -> Result<Option<Token>, ParseError> {
        let rest = self.walk.rest();
        let begins = rest.starts_with(['&', '<', '>']);
        if !begins || rest.starts_with("<(") || rest.starts_with(">(") {
            return Ok(None);
        }
        let signs = [
            "&>>", "&>", "<<<", "<<-", "<<", "<>", "<&", "<", ">>", ">|", ">&", ">",
        ];
        let Some(sign) = signs.into_iter().find(|sign| self.walk.eat(sign)) else {
            return Ok(None);
        };
        if matches!(sign, "<<" | "<<-") {
            self.delimiter(sign == "<<-")?;
            return Ok(Some(Token::Redirect(Redirect::NoFile)));
        }
        self.skip_blanks();
        let target = self.walk.word()?;
        if target.span.is_empty() {
            self.walk.refuse("a redirection without a target")?;
            return Ok(Some(Token::Redirect(Redirect::NoFile)));
        }
        let raw = &self.walk.text[target.span.clone()];
        self.walk.ambiguous |= dialects::redirects_elsewhere(sign, raw);
        let copies = sign.ends_with('&') && copies_descriptor(raw);
        let found = match sign {
            _ if copies => Redirect::NoFile,
            "<<<" => Redirect::Text(target.word),
            "<&" => {
                self.walk.refuse("a descriptor that is not a number")?;
                Redirect::NoFile
            }
            // The target is a process substitution, so it is not a file.
            _ if target.is_process(self.walk.text) => Redirect::NoFile,
            "<" => Redirect::Read(target.word),
            "<>" => Redirect::Both(target.word),
            _ => Redirect::Write(target.word),
        };
        Ok(Some(Token::Redirect(found)))
    }

    fn delimiter(&mut self, tabs: bool) -> Result<(), ParseError> {
        self.skip_blanks();
        let inner = self.walk.inner.len();
        let word = self.walk.word()?;
        let raw = &self.walk.text[word.span.clone()];
        self.seen_here += 1;
        self.walk.structured = true;
        if raw.is_empty()
            || raw.len() > MAX_DELIMITER
            || self.walk.inner.len() > inner
            || raw.contains(['$', '`', '\n'])
            || self.seen_here > MAX_HERE_DOCUMENTS
        {
            self.walk
                .refuse("a here-document's last line cannot be told")?;
            if raw.contains('\n') {
                self.walk.commands(word.word.text.clone())?;
            }
        }
        self.here.push(HereDocument {
            expands: !raw.contains(['\'', '"', '\\']),
            delimiter: word.word.text,
            tabs,
            certain: self.walk.variables.certain().to_vec(),
        });
        Ok(())
    }

    /// Skips the bodies of the here-documents announced on this line.
    fn bodies(&mut self) -> Result<(), ParseError> {
        for here in std::mem::take(&mut self.here) {
            let certain = here.certain.clone();
            let around = self.walk.variables.replace_certain(certain);
            let read = self.body(&here);
            self.walk.variables.replace_certain(around);
            if read? {
                break;
            }
        }
        Ok(())
    }

    /// Skips the body of a here-document, and returns whether the text ends without its end.
    fn body(&mut self, here: &HereDocument) -> Result<bool, ParseError> {
        let start = self.walk.at;
        let end = loop {
            let rest = self.walk.rest();
            if rest.is_empty() {
                self.walk.refuse("a here-document without its end")?;
                let body = &self.walk.text[start..];
                if here.expands {
                    self.walk.expansions(body, false)?;
                } else {
                    self.walk.commands(body.to_owned())?;
                }
                return Ok(true);
            }
            let line = rest.split('\n').next().unwrap_or(rest);
            let shown = if here.tabs {
                line.trim_start_matches('\t')
            } else {
                line
            };
            let end = self.walk.at;
            self.walk.at = (end + line.len() + 1).min(self.walk.text.len());
            if shown == here.delimiter {
                break end;
            }
            // Bash would join this line with the next before it compares.
            if here.expands && line.ends_with('\\') {
                self.walk.refuse("a joined line in a here-document")?;
            }
        };
        if here.expands {
            let body = &self.walk.text[start..end];
            self.walk.expansions(body, false)?;
        }
        Ok(false)
    }
}

/// Returns true for a number such as the `2` directly before a redirection.
fn is_descriptor(raw: &str) -> bool {
    raw.bytes().all(|byte| byte.is_ascii_digit())
}

/// Returns true for `1`, `-` or `1-`.
fn copies_descriptor(raw: &str) -> bool {
    let number = raw.strip_suffix('-').unwrap_or(raw);
    !raw.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
}
