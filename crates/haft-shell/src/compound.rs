//! Compound commands: groups, conditions, loops, cases, functions. The parser reads every list of commands in them.

use crate::arithmetic;
use crate::command::{AssignedValue, SimpleCommand};
use crate::counting::prints_numbers;
use crate::each::Loop;
use crate::error::{MAX_DEPTH, ParseError};
use crate::extent::{Bracket, end_of};
use crate::lexer::{Sign, Token};
use crate::parser::Parser;
use crate::variables::{is_number, is_private};
use crate::walk::ReadWord;
use crate::word::{Expansions, Word};

impl<'a> Parser<'a> {
    /// Reads `(…)` or `((…))`.
    pub(crate) fn parse_parentheses(&mut self) -> Result<(), ParseError> {
        let (_, at) = self.take()?;
        if self.text()[at..].starts_with("((") {
            // To dash, a group within a group.
            self.found.ambiguous = true;
            let text = self.arithmetic(at)?;
            return arithmetic::read_command(text, &mut self.lexer.walk.variables);
        }
        self.one_level_deeper(|p| {
            p.uncertain_list()?;
            if p.eat_sign(Sign::Close)? {
                return Ok(());
            }
            Err(ParseError::Syntax("a bracket is not closed"))
        })
    }

    /// Returns the inside of `((…))`; `at` is its first bracket, which was just taken. Rejects two brackets that open a group within
    /// a group: only bash knows when it reads those as arithmetic.
    fn arithmetic(&mut self, at: usize) -> Result<&'a str, ParseError> {
        let text = self.text();
        let end = end_of(text, at + 1, Bracket::Round)?;
        let inner = end_of(text, at + 2, Bracket::Round)?;
        if !text[at..].starts_with("((") || inner + 1 != end {
            return Err(ParseError::Syntax("(( that may be arithmetic or a group"));
        }
        self.found.structured = true;
        self.lexer.walk.at = end + 1;
        self.ahead = None;
        Ok(&text[at + 2..inner])
    }

    pub(crate) fn conditional(&mut self) -> Result<(), ParseError> {
        self.take()?;
        self.nonempty_list()?;
        // The first condition runs in any case.
        let certain = self.certain();
        loop {
            self.expect_word("then")?;
            self.uncertain_list()?;
            if self.eat_word("elif")? {
                self.nonempty_list()?;
                continue;
            }
            if self.eat_word("else")? {
                self.uncertain_list()?;
            }
            self.forget_after(certain);
            return self.expect_word("fi");
        }
    }

    /// Reads `do … done`.
    pub(crate) fn body(&mut self) -> Result<(), ParseError> {
        self.skip_lines()?;
        self.expect_word("do")?;
        self.uncertain_list()?;
        self.expect_word("done")
    }

    pub(crate) fn each(&mut self) -> Result<(), ParseError> {
        self.found.repeats = true;
        self.take()?;
        let outside = self.certain();
        let variable = if self.at_sign(Sign::Open)? {
            self.arithmetic_loop()?;
            None
        } else {
            self.word_loop()?
        };
        // Over nothing but what commands print, it may not run at all.
        let is_printed = |word: &Word| word.expansions.intersects(Expansions::OUTPUT);
        let words = self.found.loops.last().map(|one| one.words.iter());
        let may_skip = variable.is_some() && words.is_some_and(|mut words| words.all(is_printed));
        if !self.eat_sign(Sign::Semicolon)? && matches!(self.peek()?, Token::Sign(_)) {
            return Err(ParseError::Syntax("a loop over more than words"));
        }
        let around = self.lexer.walk.within.clone();
        self.lexer.walk.within.extend(variable);
        self.body()?;
        if may_skip {
            self.forget_after(outside);
        }
        self.lexer.walk.within = around;
        Ok(())
    }

    /// Reads the `((…; …; …))` of a loop.
    fn arithmetic_loop(&mut self) -> Result<(), ParseError> {
        let (_, at) = self.take()?;
        let text = self.arithmetic(at)?;
        if text.split(';').count() != 3 {
            return Err(ParseError::Syntax("a loop that does not count"));
        }
        let variables = &mut self.lexer.walk.variables;
        // The first part runs before all else, the third only after the body.
        for (at, part) in text.split(';').enumerate() {
            if at == 0 {
                arithmetic::read_command(part, variables)?;
            } else {
                arithmetic::read(part, variables)?;
            }
        }
        Ok(())
    }

    /// Reads the `NAME in WORDS` of a loop, and returns the name if the words are listed.
    fn word_loop(&mut self) -> Result<Option<String>, ParseError> {
        let name = self.raw()?.unwrap_or_default();
        let fine = |c: char| c == '_' || c.is_ascii_alphanumeric();
        if name.is_empty() || !name.chars().all(fine) {
            return Err(ParseError::Syntax("a loop without a variable"));
        }
        self.take()?;
        if !is_private(name) {
            self.found.commands.push(SimpleCommand {
                assignments: vec![name.to_owned()],
                values: vec![AssignedValue::Unknown],
                words: Vec::new(),
                within: Vec::new(),
                // Its value is one that the line alone does not tell.
                text: format!("{name}=${name}"),
            });
        }
        self.skip_lines()?;
        let listed = self.eat_word("in")?;
        let (mut numbers, mut printed) = (listed, false);
        let text = self.text();
        let mut words = Vec::new();
        while listed && let Token::Word(word) = self.peek()? {
            let listed = prints_numbers(&text[word.span.clone()]);
            numbers &= listed || is_counted(word);
            printed |= listed;
            words.push(word.word.clone());
            self.take()?;
        }
        self.lexer.walk.variables.set(name, numbers);
        self.lexer.walk.variables.printed |= printed;
        if numbers && !words.is_empty() {
            self.lexer.walk.variables.make_certain(name);
        }
        let name = name.to_owned();
        if !listed {
            self.found.unlisted.push(name);
            return Ok(None);
        }
        self.found.loops.push(Loop {
            name: name.clone(),
            words,
        });
        Ok(Some(name))
    }

    pub(crate) fn case(&mut self) -> Result<(), ParseError> {
        self.take()?;
        if self.raw()?.is_none() {
            return Err(ParseError::Syntax("a case of nothing"));
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
                    return Err(ParseError::Syntax("a case without a pattern"));
                }
                self.take()?;
                if self.eat_sign(Sign::Close)? {
                    break;
                }
                if !self.eat_sign(Sign::Pipe)? {
                    return Err(ParseError::Syntax("a case without a pattern"));
                }
            }
            let certain = self.certain();
            self.list()?;
            self.forget_after(certain);
            if !self.eat_sign(Sign::CaseEnd)? {
                return self.expect_word("esac");
            }
        }
    }

    /// Reads `function name { … }`.
    pub(crate) fn function(&mut self) -> Result<(), ParseError> {
        self.take()?;
        let (Token::Word(name), _) = self.take()? else {
            return Err(ParseError::Syntax("a function without a name"));
        };
        if self.eat_sign(Sign::Open)? && !self.eat_sign(Sign::Close)? {
            return Err(ParseError::Syntax("a function without a body"));
        }
        self.function_body(&name)
    }

    fn function_body(&mut self, name: &ReadWord) -> Result<(), ParseError> {
        // The function may call itself.
        self.found.repeats = true;
        if !name.word.expansions.is_empty() {
            return Err(ParseError::Syntax("a function without a name"));
        }
        self.found.functions.push(name.word.text.clone());
        self.skip_lines()?;
        let compound = ["{", "if", "while", "until", "for", "case", "[["];
        let begins = match self.raw()? {
            Some(raw) => compound.contains(&raw),
            None => self.at_sign(Sign::Open)?,
        };
        if !begins {
            return Err(ParseError::Syntax("a function without a body"));
        }
        // It may be called anywhere.
        let around = std::mem::take(&mut self.lexer.walk.within);
        let certain = self.certain();
        self.command()?;
        self.forget_after(certain);
        self.lexer.walk.within = around;
        Ok(())
    }

    /// Reads `NAME () BODY`, starting at the bracket.
    pub(crate) fn named_function(&mut self, name: &ReadWord) -> Result<(), ParseError> {
        self.take()?;
        self.found.names.pop();
        if !self.eat_sign(Sign::Close)? {
            return Err(ParseError::Syntax("a bracket in a command"));
        }
        self.found.structured = true;
        if self.depth >= MAX_DEPTH {
            return Err(ParseError::TooDeep);
        }
        self.depth += 1;
        self.function_body(name)?;
        self.depth -= 1;
        Ok(())
    }
}

/// Returns true if every word that this one expands to is a whole number: `5` or `{1..5}`.
fn is_counted(word: &ReadWord) -> bool {
    let text = word.word.text.as_str();
    let ends = || {
        let range = text.strip_prefix('{')?.strip_suffix('}')?;
        range.split_once("..")
    };
    let open = word.word.expansions;
    if open == Expansions::BRACE | Expansions::SPLIT {
        return ends().is_some_and(|(from, to)| is_number(from) && is_number(to));
    }
    open.is_empty() && is_number(text)
}
