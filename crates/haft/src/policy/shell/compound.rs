//! Compound commands: groups, conditions, loops, cases, functions. Every list of commands in them is read.

use super::extent::{Bracket, end_of};
use super::grammar::Parser;
use super::lexer::{Sign, Token};
use super::variables::{is_number, is_private};
use super::word::{Open, ReadWord};
use super::{DEEPEST, Simple, Unread, arithmetic};

impl<'a> Parser<'a> {
    /// `(…)` or `((…))`.
    pub(super) fn bracketed(&mut self) -> Result<(), Unread> {
        let (_, at) = self.take()?;
        if self.text()[at..].starts_with("((") {
            let text = self.arithmetic(at)?;
            return arithmetic::read(text, &mut self.lexer.walk.variables);
        }
        self.deeper(|p| {
            p.some_list()?;
            if p.eat_sign(Sign::Close)? {
                return Ok(());
            }
            Err(Unread::Syntax("a bracket is not closed"))
        })
    }

    /// The inside of `((…))` whose first bracket, at this place, was just taken. Two brackets that begin a group in a group are
    /// not read: only bash knows when it takes them for arithmetic.
    fn arithmetic(&mut self, at: usize) -> Result<&'a str, Unread> {
        let text = self.text();
        let end = end_of(text, at + 1, Bracket::Round)?;
        let inner = end_of(text, at + 2, Bracket::Round)?;
        if !text[at..].starts_with("((") || inner + 1 != end {
            return Err(Unread::Syntax("(( that may be arithmetic or a group"));
        }
        self.found.structured = true;
        self.lexer.walk.at = end + 1;
        self.ahead = None;
        Ok(&text[at + 2..inner])
    }

    pub(super) fn conditional(&mut self) -> Result<(), Unread> {
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
    pub(super) fn body(&mut self) -> Result<(), Unread> {
        self.skip_lines()?;
        self.expect_word("do")?;
        self.some_list()?;
        self.expect_word("done")
    }

    pub(super) fn each(&mut self) -> Result<(), Unread> {
        self.take()?;
        if self.at_sign(Sign::Open)? {
            self.counting()?;
        } else {
            self.over_words()?;
        }
        if !self.eat_sign(Sign::Semicolon)? && matches!(self.peek()?, Token::Sign(_)) {
            return Err(Unread::Syntax("a loop over more than words"));
        }
        self.body()
    }

    /// `((…; …; …))` of a loop.
    fn counting(&mut self) -> Result<(), Unread> {
        let (_, at) = self.take()?;
        let text = self.arithmetic(at)?;
        if text.split(';').count() != 3 {
            return Err(Unread::Syntax("a loop that does not count"));
        }
        let variables = &mut self.lexer.walk.variables;
        text.split(';')
            .try_for_each(|part| arithmetic::read(part, variables))
    }

    /// `NAME in WORDS` of a loop.
    fn over_words(&mut self) -> Result<(), Unread> {
        let name = self.raw()?.unwrap_or_default();
        let fine = |c: char| c == '_' || c.is_ascii_alphanumeric();
        if name.is_empty() || !name.chars().all(fine) {
            return Err(Unread::Syntax("a loop without a variable"));
        }
        self.take()?;
        if !is_private(name) {
            self.found.parts.push(Simple {
                assigned: vec![name.to_owned()],
                words: Vec::new(),
                shown: format!("{name}="),
            });
        }
        self.skip_lines()?;
        let listed = self.eat_word("in")?;
        let mut numbers = listed;
        while listed && let Token::Word(word) = self.peek()? {
            numbers &= is_counted(word);
            self.take()?;
        }
        self.lexer.walk.variables.set(name, numbers);
        Ok(())
    }

    pub(super) fn case(&mut self) -> Result<(), Unread> {
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

    /// `function name { … }`.
    pub(super) fn function(&mut self) -> Result<(), Unread> {
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
        let compound = ["{", "if", "while", "until", "for", "case", "[["];
        let begins = match self.raw()? {
            Some(raw) => compound.contains(&raw),
            None => self.at_sign(Sign::Open)?,
        };
        if !begins {
            return Err(Unread::Syntax("a function without a body"));
        }
        self.command()
    }

    /// `NAME () BODY`, at the bracket.
    pub(super) fn named_function(&mut self, name: &ReadWord) -> Result<(), Unread> {
        self.take()?;
        self.found.names.pop();
        if !self.eat_sign(Sign::Close)? {
            return Err(Unread::Syntax("a bracket in a command"));
        }
        self.found.structured = true;
        if self.depth >= DEEPEST {
            return Err(Unread::TooDeep);
        }
        self.depth += 1;
        self.function_body(name)?;
        self.depth -= 1;
        Ok(())
    }
}

/// Is every word that this one stands for a whole number: `5` or `{1..5}`?
fn is_counted(word: &ReadWord) -> bool {
    let text = word.word.text.as_str();
    let ends = || {
        let range = text.strip_prefix('{')?.strip_suffix('}')?;
        range.split_once("..")
    };
    let open = word.word.open;
    if open == Open::BRACE | Open::SEVERAL {
        return ends().is_some_and(|(from, to)| is_number(from) && is_number(to));
    }
    open.is_nothing() && is_number(text)
}
