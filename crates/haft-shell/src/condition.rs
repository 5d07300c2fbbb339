//! `[[ … ]]`: tests of files and texts, and of numbers in supported arithmetic. Only substitutions can run commands in it.

use crate::arithmetic;
use crate::error::{MAX_DEPTH, ParseError};
use crate::lexer::{Redirect, Sign, Token};
use crate::parser::Parser;

/// Unary tests that inspect a file or a text.
const UNARY_TESTS: &[&str] = &[
    "-b", "-c", "-d", "-e", "-f", "-g", "-h", "-k", "-n", "-p", "-r", "-s", "-u", "-w", "-x", "-z",
    "-G", "-L", "-N", "-O", "-S",
];

/// Binary tests that compare files or texts.
const BINARY_TESTS: &[&str] = &["=", "==", "!=", "=~", "-nt", "-ot", "-ef"];

/// Binary tests that evaluate both words as arithmetic.
const NUMERIC_TESTS: &[&str] = &["-eq", "-ne", "-lt", "-le", "-gt", "-ge"];

impl<'a> Parser<'a> {
    /// Reads `[[ … ]]`, starting at `[[`.
    pub(crate) fn condition(&mut self) -> Result<(), ParseError> {
        self.found.structured = true;
        self.take()?;
        self.or_expression(self.depth)?;
        self.expect_word("]]")
    }

    /// Reads tests joined by `&&` and `||`, at the given bracket depth.
    fn or_expression(&mut self, depth: usize) -> Result<(), ParseError> {
        if depth > MAX_DEPTH {
            return Err(ParseError::TooDeep);
        }
        loop {
            while self.eat_word("!")? {}
            if self.eat_sign(Sign::Open)? {
                // To fish, a command in parentheses.
                self.found.ambiguous = true;
                self.or_expression(depth + 1)?;
                if !self.eat_sign(Sign::Close)? {
                    return Err(ParseError::Syntax("a bracket in a condition is not closed"));
                }
            } else {
                self.test()?;
            }
            if !self.eat_sign(Sign::And)? && !self.eat_sign(Sign::Or)? {
                return Ok(());
            }
            self.skip_lines()?;
            // Without `[[`, as in sh and fish, the next word is a command; none has a name like `-f`.
            self.found.ambiguous |= !self.raw()?.is_some_and(|word| word.starts_with('-'));
        }
    }

    fn test(&mut self) -> Result<(), ParseError> {
        let first = self.operand()?;
        if first.len() == 2 && first.starts_with('-') {
            if !UNARY_TESTS.contains(&first) {
                return Err(ParseError::Syntax("a test that is not known"));
            }
            return self.operand().map(drop);
        }
        match self.peek()? {
            // In `[[`, `<` and `>` compare texts.
            Token::Redirect(Redirect::Read(_) | Redirect::Write(_)) => {
                // Without `[[`, as in sh and fish, they are redirections.
                self.found.ambiguous = true;
                self.take().map(drop)
            }
            Token::Word(_) => match self.raw()?.unwrap_or_default() {
                "]]" => Ok(()),
                test if BINARY_TESTS.contains(&test) => {
                    self.take()?;
                    self.operand().map(drop)
                }
                test if NUMERIC_TESTS.contains(&test) => {
                    self.take()?;
                    let second = self.operand()?;
                    self.number(first)?;
                    self.number(second)
                }
                _ => Err(ParseError::Syntax("a test that is not known")),
            },
            _ => Ok(()),
        }
    }

    /// Takes the next word and returns it as written.
    fn operand(&mut self) -> Result<&'a str, ParseError> {
        match self.raw()? {
            Some(word) if word != "]]" => {
                self.take()?;
                Ok(word)
            }
            _ => Err(ParseError::Syntax("a condition is not complete")),
        }
    }

    fn number(&mut self, word: &str) -> Result<(), ParseError> {
        let quoted = word.strip_prefix('"').and_then(|w| w.strip_suffix('"'));
        arithmetic::read(quoted.unwrap_or(word), &mut self.lexer.walk.variables)
    }
}
