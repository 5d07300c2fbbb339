//! Shell arithmetic: numbers, operators, `$#`, `$?` and counter variables.
//!
//! Inside arithmetic, bash evaluates the text of every variable and every index as arithmetic again, which can run commands. So the
//! reader rejects everything that is not listed here.

use crate::error::ParseError;
use crate::variables::{Variables, is_number, may_count};

const OPERATORS: &str = "+-*/%<>=!&|^~?:,() \t\n";

/// Reads the text of `((…))` or `$((…))`, an offset, an index, or a number that a condition compares.
pub(crate) fn read(text: &str, variables: &mut Variables) -> Result<(), ParseError> {
    let mut at = 0;
    while let Some(c) = text[at..].chars().next() {
        let rest = &text[at..];
        at += match c {
            '0'..='9' => word_length(rest),
            'A'..='Z' | 'a'..='z' | '_' => {
                let (name, after) = rest.split_at(word_length(rest));
                if gives_value(after) {
                    let around = variables.certain().len();
                    variables.make_certain(name);
                    compute(name, variables)?;
                    variables.forget_after(around);
                    variables.set(name, true);
                } else {
                    compute(name, variables)?;
                }
                name.len()
            }
            '$' => expansion(text, at, variables)?,
            c if OPERATORS.contains(c) => 1,
            _ => return Err(ParseError::Syntax("arithmetic holds more than numbers")),
        };
    }
    Ok(())
}

/// Reads the text of a command `((…))`, or a part of a loop's. `NAME = 5` sets the variable in any case; anything else may be an error.
pub(crate) fn read_command(text: &str, variables: &mut Variables) -> Result<(), ParseError> {
    let set = text
        .split_once('=')
        .map(|(name, value)| (name.trim(), value.trim()));
    let set = set.filter(|(name, value)| may_count(name) && is_number(value));
    let Some((name, _)) = set else {
        return read(text, variables);
    };
    variables.set(name, true);
    variables.make_certain(name);
    Ok(())
}

/// Returns the length of the `$#`, `$?`, `$name` or `${name}` at `at`. Fails if it touches a word, because bash would join the two.
fn expansion(text: &str, at: usize, variables: &mut Variables) -> Result<usize, ParseError> {
    let unread = Err(ParseError::Syntax("arithmetic holds an expansion"));
    let rest = &text[at + 1..];
    let length = match rest.bytes().next() {
        Some(b'#' | b'?') => 2,
        Some(b'{') => {
            let Some((name, _)) = rest[1..].split_once('}') else {
                return unread;
            };
            compute(name, variables)?;
            name.len() + 3
        }
        _ => {
            let name = &rest[..word_length(rest)];
            compute(name, variables)?;
            name.len() + 1
        }
    };
    let word = |b: &u8| b.is_ascii_alphanumeric() || *b == b'_';
    let bytes = text.as_bytes();
    let touched =
        bytes[..at].last().is_some_and(word) || bytes[at + length..].first().is_some_and(word);
    if touched { unread } else { Ok(length) }
}

fn compute(name: &str, variables: &mut Variables) -> Result<(), ParseError> {
    if !may_count(name) {
        return Err(ParseError::Syntax(
            "arithmetic uses a variable that is not the line's own",
        ));
    }
    variables.compute(name);
    Ok(())
}

fn word_length(text: &str) -> usize {
    let word = |c: char| c != '_' && !c.is_ascii_alphanumeric();
    text.find(word).unwrap_or(text.len())
}

/// Returns true if an assignment (`=`, but not `==`) follows.
fn gives_value(after: &str) -> bool {
    let after = after.trim_start_matches([' ', '\t', '\n']);
    after.starts_with('=') && !after.starts_with("==")
}
