//! The grammar of the shell, as far as it takes to find every simple command: lists, groups, compound commands, functions.

use super::extent::{Bracket, end_of};
use super::lexer::{Lexer, Redirect, Sign, Token};
use super::word::ReadWord;
use super::{DEEPEST, Inner, Simple, Unread, Word};
use crate::policy::wrapper::is_assignment;

/// Words that end a list of commands.
const ENDS: &[&str] = &["then", "elif", "else", "fi", "do", "done", "esac", "}"];

/// Builtins that expand an index in their arguments once more, and conditions do as well.
const READ_TWICE: &[&str] = &[
    "printf",
    "read",
    "test",
    "[",
    "unset",
    "declare",
    "typeset",
    "local",
    "export",
    "readonly",
    "let",
    "mapfile",
    "readarray",
    "getopts",
    "wait",
];

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
}

/// Where a command is named, and whether right after a prefix.
#[derive(Debug, Clone, Copy)]
pub(super) struct Name {
    pub(super) at: usize,
    pub(super) prefixed: bool,
}

/// Reads a text that lies at this depth.
pub(super) fn read(text: &str, depth: usize) -> Result<Found, Unread> {
    // Bash joins lines first; what a dollar stands before then is not what is read here.
    if ["$\\\n", "@\\\n", "{\\\n", "`\\\n"]
        .iter()
        .any(|sign| text.contains(sign))
    {
        return Err(Unread::Syntax("a line joined within an expansion"));
    }
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
    Ok(found)
}

struct Parser<'a> {
    lexer: Lexer<'a>,
    ahead: Option<(Token, usize)>,
    found: Found,
    depth: usize,
}

impl<'a> Parser<'a> {
    fn text(&self) -> &'a str {
        self.lexer.walk.text
    }

    fn take(&mut self) -> Result<(Token, usize), Unread> {
        match self.ahead.take() {
            Some(token) => Ok(token),
            None => self.lexer.next(),
        }
    }

    fn peek(&mut self) -> Result<&Token, Unread> {
        if self.ahead.is_none() {
            self.ahead = Some(self.lexer.next()?);
        }
        Ok(self.ahead.as_ref().map_or(&Token::End, |(token, _)| token))
    }

    /// The next word as it is written, if a word comes next.
    fn raw(&mut self) -> Result<Option<&'a str>, Unread> {
        let text = self.text();
        Ok(match self.peek()? {
            Token::Word(word) => Some(&text[word.span.clone()]),
            _ => None,
        })
    }

    fn at_sign(&mut self, wanted: Sign) -> Result<bool, Unread> {
        Ok(matches!(self.peek()?, Token::Sign(sign) if *sign == wanted))
    }

    fn eat_sign(&mut self, wanted: Sign) -> Result<bool, Unread> {
        let found = self.at_sign(wanted)?;
        if found {
            self.take()?;
        }
        Ok(found)
    }

    fn eat_word(&mut self, wanted: &str) -> Result<bool, Unread> {
        let found = self.raw()? == Some(wanted);
        if found {
            self.take()?;
        }
        Ok(found)
    }

    fn expect_word(&mut self, wanted: &str) -> Result<(), Unread> {
        if self.eat_word(wanted)? {
            return Ok(());
        }
        Err(Unread::Syntax("a compound command is not complete"))
    }

    fn skip_lines(&mut self) -> Result<(), Unread> {
        while matches!(self.peek()?, Token::Newline) {
            self.take()?;
        }
        Ok(())
    }

    /// Goes one level deeper, to where a compound command may lie within another.
    fn deeper(&mut self, inner: fn(&mut Self) -> Result<(), Unread>) -> Result<(), Unread> {
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
    fn list(&mut self) -> Result<bool, Unread> {
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
    fn some_list(&mut self) -> Result<(), Unread> {
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

    fn command(&mut self) -> Result<(), Unread> {
        let mut prefixed = false;
        loop {
            match self.raw()? {
                Some("!") => {
                    self.found.structured = true;
                    self.take()?;
                    prefixed = true;
                }
                Some("time" | "coproc") => {
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
            Some("for" | "select") => self.deeper(Self::each)?,
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

    /// `(…)` or `((…))`.
    fn bracketed(&mut self) -> Result<(), Unread> {
        let (_, at) = self.take()?;
        if self.arithmetic(at)? {
            return Ok(());
        }
        self.deeper(|p| {
            p.some_list()?;
            if p.eat_sign(Sign::Close)? {
                return Ok(());
            }
            Err(Unread::Syntax("a bracket is not closed"))
        })
    }

    /// `((…))` whose first bracket, at this place, was just taken.
    fn arithmetic(&mut self, at: usize) -> Result<bool, Unread> {
        let text = self.text();
        if !text[at..].starts_with("((") {
            return Ok(false);
        }
        let end = end_of(text, at + 1, Bracket::Round)?;
        let inner = end_of(text, at + 2, Bracket::Round)?;
        if inner + 1 != end {
            return Ok(false);
        }
        self.found.structured = true;
        self.lexer.walk.expansions(&text[at + 2..inner], false)?;
        self.lexer.walk.at = end + 1;
        self.ahead = None;
        Ok(true)
    }

    fn conditional(&mut self) -> Result<(), Unread> {
        self.take()?;
        loop {
            self.some_list()?;
            self.expect_word("then")?;
            self.some_list()?;
            if self.eat_word("elif")? {
                continue;
            }
            if self.eat_word("else")? {
                self.some_list()?;
            }
            return self.expect_word("fi");
        }
    }

    /// `do … done`.
    fn body(&mut self) -> Result<(), Unread> {
        self.skip_lines()?;
        self.expect_word("do")?;
        self.some_list()?;
        self.expect_word("done")
    }

    fn each(&mut self) -> Result<(), Unread> {
        self.take()?;
        if self.at_sign(Sign::Open)? {
            let (_, at) = self.take()?;
            if !self.arithmetic(at)? {
                return Err(Unread::Syntax("a loop without a variable"));
            }
        } else {
            let name = self.raw()?.unwrap_or_default();
            let fine = |c: char| c == '_' || c.is_ascii_alphanumeric();
            if name.is_empty() || !name.chars().all(fine) {
                return Err(Unread::Syntax("a loop without a variable"));
            }
            self.take()?;
            // A loop may set any variable; those of the environment are not written in small letters.
            if name.contains(|c: char| c.is_ascii_uppercase()) {
                self.found.parts.push(Simple {
                    assigned: vec![name.to_owned()],
                    words: Vec::new(),
                    shown: format!("{name}="),
                });
            }
            self.skip_lines()?;
            if self.eat_word("in")? {
                while let Token::Word(_) = self.peek()? {
                    self.take()?;
                }
            }
        }
        if !self.eat_sign(Sign::Semicolon)? && matches!(self.peek()?, Token::Sign(_)) {
            return Err(Unread::Syntax("a loop over more than words"));
        }
        self.body()
    }

    fn case(&mut self) -> Result<(), Unread> {
        self.take()?;
        if self.raw()?.is_none() {
            return Err(Unread::Syntax("a case of nothing"));
        }
        self.take()?;
        self.skip_lines()?;
        self.expect_word("in")?;
        loop {
            self.skip_lines()?;
            if self.eat_word("esac")? {
                return Ok(());
            }
            self.eat_sign(Sign::Open)?;
            loop {
                if self.raw()?.is_none() {
                    return Err(Unread::Syntax("a case without a pattern"));
                }
                self.take()?;
                if self.eat_sign(Sign::Close)? {
                    break;
                }
                if !self.eat_sign(Sign::Pipe)? {
                    return Err(Unread::Syntax("a case without a pattern"));
                }
            }
            self.list()?;
            if !self.eat_sign(Sign::CaseEnd)? {
                return self.expect_word("esac");
            }
        }
    }

    /// `[[ … ]]`: no commands but in substitutions.
    fn condition(&mut self) -> Result<(), Unread> {
        self.found.structured = true;
        self.take()?;
        let mut open = 0_usize;
        loop {
            match self.take()?.0 {
                Token::Word(word) => {
                    if &self.text()[word.span.clone()] == "]]" {
                        return Ok(());
                    }
                    self.lexer.walk.doubly_read(&word.word.text)?;
                }
                Token::Redirect(Redirect::Write(word) | Redirect::Read(word)) => {
                    self.lexer.walk.doubly_read(&word.text)?;
                }
                Token::Sign(Sign::Open) => open += 1,
                Token::Sign(Sign::Close) => open = open.saturating_sub(1),
                Token::Sign(Sign::And | Sign::Or | Sign::Pipe) | Token::Newline => {}
                Token::Sign(_) | Token::Redirect(Redirect::NoFile) | Token::End => {
                    return Err(Unread::Syntax("an open condition"));
                }
            }
            if open + self.depth > DEEPEST {
                return Err(Unread::TooDeep);
            }
        }
    }

    /// `function name { … }`.
    fn function(&mut self) -> Result<(), Unread> {
        self.take()?;
        let (Token::Word(name), _) = self.take()? else {
            return Err(Unread::Syntax("a function without a name"));
        };
        if self.eat_sign(Sign::Open)? && !self.eat_sign(Sign::Close)? {
            return Err(Unread::Syntax("a function without a body"));
        }
        self.function_body(&name)
    }

    fn function_body(&mut self, name: &ReadWord) -> Result<(), Unread> {
        if !name.word.open.is_nothing() {
            return Err(Unread::Syntax("a function without a name"));
        }
        self.skip_lines()?;
        let compound = ["{", "if", "while", "until", "for", "select", "case", "[["];
        let begins = match self.raw()? {
            Some(raw) => compound.contains(&raw),
            None => self.at_sign(Sign::Open)?,
        };
        if !begins {
            return Err(Unread::Syntax("a function without a body"));
        }
        self.command()
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
                    if words.is_empty() && is_assignment(raw) {
                        self.lexer.walk.doubly_read(&word.word.text)?;
                        assigned.push((variable(raw), word));
                    } else {
                        if words.is_empty() {
                            if begins_subscript(raw) {
                                return Err(Unread::Syntax("a subscript in a command's name"));
                            }
                            self.found.names.push(Name { at, prefixed });
                        }
                        words.push(word);
                    }
                }
                Token::Redirect(_) => self.redirections()?,
                Token::Sign(Sign::Open) => {
                    let [name] = words.as_slice() else {
                        return Err(Unread::Syntax("a bracket in a command"));
                    };
                    if any && assigned.is_empty() && words.len() == 1 {
                        let name = name.clone();
                        self.take()?;
                        self.found.names.pop();
                        if !self.eat_sign(Sign::Close)? {
                            return Err(Unread::Syntax("a bracket in a command"));
                        }
                        return self.in_function(&name);
                    }
                    return Err(Unread::Syntax("a bracket in a command"));
                }
                _ => break,
            }
            any = true;
        }
        if !any {
            return Err(Unread::Syntax("a command is missing"));
        }
        self.finish(&assigned, &words)
    }

    fn in_function(&mut self, name: &ReadWord) -> Result<(), Unread> {
        self.found.structured = true;
        if self.depth >= DEEPEST {
            return Err(Unread::TooDeep);
        }
        self.depth += 1;
        self.function_body(name)?;
        self.depth -= 1;
        Ok(())
    }

    fn finish(
        &mut self,
        assigned: &[(String, ReadWord)],
        words: &[ReadWord],
    ) -> Result<(), Unread> {
        if assigned.is_empty() && words.is_empty() {
            return Ok(());
        }
        if words
            .iter()
            .any(|word| READ_TWICE.contains(&word.word.text.as_str()))
        {
            for word in words {
                self.lexer.walk.doubly_read(&word.word.text)?;
            }
        }
        let text = self.text();
        let mut shown = String::new();
        for word in assigned.iter().map(|(_, word)| word).chain(words) {
            if !shown.is_empty() {
                shown.push(' ');
            }
            word.shown(text, &mut shown);
        }
        self.found.parts.push(Simple {
            assigned: assigned.iter().map(|(name, _)| name.clone()).collect(),
            words: words.iter().map(|word| word.word.clone()).collect(),
            shown,
        });
        Ok(())
    }
}

/// Do these words hold a substitution that a builtin among them would run, though it is quoted?
pub(crate) fn reads_twice(words: &[String]) -> bool {
    words
        .iter()
        .any(|word| word.contains("$(") || word.contains('`'))
        && words.iter().any(|word| READ_TWICE.contains(&word.as_str()))
}

/// Is this `NAME[…`? There bash reads on to the closing bracket, spaces and all.
fn begins_subscript(raw: &str) -> bool {
    let name = raw.split_once('[').map_or("", |(name, _)| name);
    !name.starts_with(|c: char| c.is_ascii_digit())
        && !name.is_empty()
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
}

/// The variable that `NAME=…`, `NAME+=…` or `NAME[…]=…` sets.
fn variable(raw: &str) -> String {
    let end = raw.find(['=', '+', '[']).unwrap_or(raw.len());
    raw[..end].to_owned()
}
