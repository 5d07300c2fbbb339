//! The grammar of the shell, as far as it takes to find every simple command: lists, groups, compound commands, functions.

use super::lexer::{Lexer, Redirect, Sign, Token};
use super::variables::{Variables, is_number};
use super::word::ReadWord;
use super::{DEEPEST, Inner, Simple, Unread, Word};
use crate::policy::wrapper::is_assignment;

/// Words that end a list of commands.
const ENDS: &[&str] = &["then", "elif", "else", "fi", "do", "done", "esac", "}"];

/// What one text holds; what its substitutions run is in `inner`.
#[derive(Debug, Default)]
pub(super) struct Found {
    pub(super) parts: Vec<Simple>,
    pub(super) writes: Vec<Word>,
    pub(super) reads: Vec<Word>,
    pub(super) inner: Vec<Inner>,
    /// More than words and lists of them: the grammar is asked, too.
    pub(super) structured: bool,
    /// Where commands are named.
    pub(super) names: Vec<Name>,
    /// Words before a command that look like one.
    pub(super) prefixes: Vec<usize>,
    /// What it does with variables.
    pub(super) variables: Variables,
}

/// Where a command is named, and whether right after a prefix.
#[derive(Debug, Clone, Copy)]
pub(super) struct Name {
    pub(super) at: usize,
    pub(super) prefixed: bool,
}

/// Reads a text that lies at this depth.
pub(super) fn read(text: &str, depth: usize) -> Result<Found, Unread> {
    let mut parser = Parser {
        lexer: Lexer::new(text, depth),
        ahead: None,
        found: Found::default(),
        depth,
    };
    parser.list()?;
    match parser.take()? {
        (Token::End, _) => {}
        _ => return Err(Unread::Syntax("something ends that was not begun")),
    }
    let Parser {
        lexer, mut found, ..
    } = parser;
    found.structured |= lexer.walk.structured;
    found.inner = lexer.walk.inner;
    found.variables = lexer.walk.variables;
    Ok(found)
}

/// Reads one text token by token.
pub(super) struct Parser<'a> {
    pub(super) lexer: Lexer<'a>,
    pub(super) ahead: Option<(Token, usize)>,
    pub(super) found: Found,
    pub(super) depth: usize,
}

impl<'a> Parser<'a> {
    pub(super) fn text(&self) -> &'a str {
        self.lexer.walk.text
    }

    pub(super) fn take(&mut self) -> Result<(Token, usize), Unread> {
        match self.ahead.take() {
            Some(token) => Ok(token),
            None => self.lexer.next(),
        }
    }

    pub(super) fn peek(&mut self) -> Result<&Token, Unread> {
        if self.ahead.is_none() {
            self.ahead = Some(self.lexer.next()?);
        }
        Ok(self.ahead.as_ref().map_or(&Token::End, |(token, _)| token))
    }

    /// The next word as it is written, if a word comes next.
    pub(super) fn raw(&mut self) -> Result<Option<&'a str>, Unread> {
        let text = self.text();
        Ok(match self.peek()? {
            Token::Word(word) => Some(&text[word.span.clone()]),
            _ => None,
        })
    }

    pub(super) fn at_sign(&mut self, wanted: Sign) -> Result<bool, Unread> {
        Ok(matches!(self.peek()?, Token::Sign(sign) if *sign == wanted))
    }

    pub(super) fn eat_sign(&mut self, wanted: Sign) -> Result<bool, Unread> {
        let found = self.at_sign(wanted)?;
        if found {
            self.take()?;
        }
        Ok(found)
    }

    pub(super) fn eat_word(&mut self, wanted: &str) -> Result<bool, Unread> {
        let found = self.raw()? == Some(wanted);
        if found {
            self.take()?;
        }
        Ok(found)
    }

    pub(super) fn expect_word(&mut self, wanted: &str) -> Result<(), Unread> {
        if self.eat_word(wanted)? {
            return Ok(());
        }
        Err(Unread::Syntax("a compound command is not complete"))
    }

    pub(super) fn skip_lines(&mut self) -> Result<(), Unread> {
        while matches!(self.peek()?, Token::Newline) {
            self.take()?;
        }
        Ok(())
    }

    /// Goes one level deeper, to where a compound command may lie within another.
    pub(super) fn deeper(
        &mut self,
        inner: fn(&mut Self) -> Result<(), Unread>,
    ) -> Result<(), Unread> {
        self.found.structured = true;
        if self.depth >= DEEPEST {
            return Err(Unread::TooDeep);
        }
        self.depth += 1;
        self.lexer.walk.depth = self.depth;
        inner(self)?;
        self.depth -= 1;
        self.lexer.walk.depth = self.depth;
        Ok(())
    }

    /// Commands up to what ends a list; whether there was one.
    pub(super) fn list(&mut self) -> Result<bool, Unread> {
        let mut any = false;
        loop {
            self.skip_lines()?;
            if self.at_end()? {
                return Ok(any);
            }
            self.and_or()?;
            any = true;
            let separated = matches!(
                self.peek()?,
                Token::Sign(Sign::Semicolon | Sign::Ampersand) | Token::Newline
            );
            if separated {
                self.take()?;
            } else if self.at_end()? {
                return Ok(any);
            } else {
                return Err(Unread::Syntax("a sign that nothing comes before"));
            }
        }
    }

    /// A list that must not be empty.
    pub(super) fn some_list(&mut self) -> Result<(), Unread> {
        if self.list()? {
            return Ok(());
        }
        Err(Unread::Syntax("an empty list of commands"))
    }

    fn at_end(&mut self) -> Result<bool, Unread> {
        if self.raw()?.is_some_and(|raw| ENDS.contains(&raw)) {
            return Ok(true);
        }
        Ok(matches!(
            self.peek()?,
            Token::End | Token::Sign(Sign::Close | Sign::CaseEnd)
        ))
    }

    fn and_or(&mut self) -> Result<(), Unread> {
        loop {
            self.pipeline()?;
            if !self.eat_sign(Sign::And)? && !self.eat_sign(Sign::Or)? {
                return Ok(());
            }
            self.skip_lines()?;
        }
    }

    fn pipeline(&mut self) -> Result<(), Unread> {
        loop {
            self.command()?;
            if !self.eat_sign(Sign::Pipe)? {
                return Ok(());
            }
            self.skip_lines()?;
        }
    }

    pub(super) fn command(&mut self) -> Result<(), Unread> {
        let mut prefixed = false;
        loop {
            match self.raw()? {
                Some("!") => {
                    self.found.structured = true;
                    self.take()?;
                    prefixed = true;
                }
                Some("time") => {
                    self.found.structured = true;
                    let (_, at) = self.take()?;
                    self.found.prefixes.push(at);
                    self.eat_word("-p")?;
                    prefixed = true;
                }
                _ => break,
            }
        }
        match self.raw()? {
            None if self.at_sign(Sign::Open)? => self.bracketed()?,
            Some("{") => {
                self.take()?;
                self.deeper(|p| {
                    p.some_list()?;
                    p.expect_word("}")
                })?;
            }
            Some("if") => self.deeper(Self::conditional)?,
            Some("while" | "until") => self.deeper(|p| {
                p.take()?;
                p.some_list()?;
                p.body()
            })?,
            Some("for") => self.deeper(Self::each)?,
            Some("select") => {
                return Err(Unread::Syntax("select sets a variable to what it is given"));
            }
            Some("coproc") => return Err(Unread::Syntax("coproc sets the variable it names")),
            Some("case") => self.deeper(Self::case)?,
            Some("[[") => self.condition()?,
            Some("function") => return self.deeper(Self::function),
            Some(raw) if ENDS.contains(&raw) || matches!(raw, "in" | "]]") => {
                return Err(Unread::Syntax("a word that belongs elsewhere"));
            }
            _ => return self.simple(prefixed),
        }
        self.redirections()
    }

    fn redirections(&mut self) -> Result<(), Unread> {
        while let Token::Redirect(_) = self.peek()? {
            if let (Token::Redirect(redirect), _) = self.take()? {
                self.redirected(redirect);
            }
        }
        Ok(())
    }

    fn redirected(&mut self, redirect: Redirect) {
        match redirect {
            Redirect::Write(target) => self.found.writes.push(target),
            Redirect::Read(target) => self.found.reads.push(target),
            Redirect::NoFile => {}
        }
    }

    fn simple(&mut self, prefixed: bool) -> Result<(), Unread> {
        let mut words: Vec<ReadWord> = Vec::new();
        let mut assigned: Vec<(String, ReadWord)> = Vec::new();
        let mut any = false;
        loop {
            match self.peek()? {
                Token::Word(_) => {
                    let (Token::Word(word), at) = self.take()? else {
                        break;
                    };
                    let raw = &self.text()[word.span.clone()];
                    if !words.is_empty() {
                        words.push(word);
                    } else if begins_index(raw) {
                        return Err(Unread::Syntax("an index where a command begins"));
                    } else if is_assignment(raw) {
                        assigned.push((self.assignment(&word), word));
                    } else {
                        self.found.names.push(Name { at, prefixed });
                        words.push(word);
                    }
                }
                Token::Redirect(_) => self.redirections()?,
                Token::Sign(Sign::Open) => {
                    return match words.as_slice() {
                        [name] if assigned.is_empty() => self.named_function(&name.clone()),
                        _ => Err(Unread::Syntax("a bracket in a command")),
                    };
                }
                _ => break,
            }
            any = true;
        }
        if !any {
            return Err(Unread::Syntax("a command is missing"));
        }
        self.finish(assigned, words);
        Ok(())
    }

    /// Notes the variable that `NAME=…` or `NAME+=…` sets; its name.
    fn assignment(&mut self, word: &ReadWord) -> String {
        let text = self.text();
        let raw = &text[word.span.clone()];
        let (name, _) = raw.split_once('=').unwrap_or((raw, ""));
        let value = name.len() + 1;
        let known = word.word.open.is_nothing() && is_number(&word.word.text[value..]);
        let number = known || word.is_arithmetic_from(text, word.span.start + value);
        let (name, added) = match name.strip_suffix('+') {
            Some(name) => (name, true),
            None => (name, false),
        };
        let variables = &mut self.lexer.walk.variables;
        variables.set(name, number && !added);
        name.to_owned()
    }

    fn finish(&mut self, assigned: Vec<(String, ReadWord)>, words: Vec<ReadWord>) {
        if assigned.is_empty() && words.is_empty() {
            return;
        }
        let text = self.text();
        let mut shown = String::new();
        for word in assigned.iter().map(|(_, word)| word).chain(&words) {
            if !shown.is_empty() {
                shown.push(' ');
            }
            word.shown(text, &mut shown);
        }
        self.found.parts.push(Simple {
            assigned: assigned.into_iter().map(|(name, _)| name).collect(),
            words: words.into_iter().map(|word| word.word).collect(),
            shown,
        });
    }
}

/// Is this `NAME[…`? There bash reads on to the closing bracket, spaces and all, and evaluates what it finds.
fn begins_index(raw: &str) -> bool {
    let name = raw.split_once('[').map_or("", |(name, _)| name);
    !name.starts_with(|c: char| c.is_ascii_digit())
        && !name.is_empty()
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
}
