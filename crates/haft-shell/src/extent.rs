//! Finds where a substitution, a bracketed group or a quoted text ends, in a single pass with an explicit stack.

use crate::error::{MAX_DEPTH, ParseError};

/// An open bracket or quote.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Bracket {
    /// `(…)`, including `$(…)`, `<(…)` and arithmetic.
    Round,
    /// `${…}`.
    Curly,
    /// `"…"`.
    Double,
}

/// Returns the position of the character that closes what was opened just before `from`.
///
/// Does not parse the commands within `(…)`. A bracket that closes nothing (in a `case`, in a here-document) therefore gives
/// an end where the parser of these commands finds none, and so the parser reports it.
pub(crate) fn end_of(text: &str, from: usize, first: Bracket) -> Result<usize, ParseError> {
    let bytes = text.as_bytes();
    let mut open = vec![first];
    let mut at = from;
    while let (Some(&byte), Some(&top)) = (bytes.get(at), open.last()) {
        let next = bytes.get(at + 1).copied();
        let closes = matches!(
            (top, byte),
            (Bracket::Round, b')') | (Bracket::Curly, b'}') | (Bracket::Double, b'"')
        );
        if closes {
            open.pop();
            if open.is_empty() {
                return Ok(at);
            }
        }
        match (top, byte) {
            _ if closes => {}
            (_, b'\\') => at += 1,
            (_, b'`') => at = end_of_backticks(text, at + 1)?,
            (_, b'$') if next == Some(b'(') => {
                open.push(Bracket::Round);
                at += 1;
            }
            (_, b'$') if next == Some(b'{') => {
                open.push(Bracket::Curly);
                at += 1;
            }
            (Bracket::Double, _) => {}
            (Bracket::Curly, b'\'') if is_in_double_quotes(&open) => {
                return Err(ParseError::Syntax("a quote within ${…} within quotes"));
            }
            (_, b'$') if next == Some(b'\'') && !is_in_double_quotes(&open) => {
                at = end_of_ansi(text, at + 2)?;
            }
            (_, b'\'') => at = end_of_single(text, at + 1)?,
            (_, b'"') => open.push(Bracket::Double),
            (Bracket::Round, b'(') => open.push(Bracket::Round),
            (Bracket::Round, b'#') if starts_word(bytes, at) => {
                at += text[at..].find('\n').unwrap_or(text.len() - at) - 1;
            }
            _ => {}
        }
        if open.len() > MAX_DEPTH {
            return Err(ParseError::TooDeep);
        }
        at += 1;
    }
    Err(ParseError::Syntax("something is not closed"))
}

/// Returns true within a `${…}` in double quotes, where its operator decides whether a single quote quotes.
fn is_in_double_quotes(open: &[Bracket]) -> bool {
    let level = open.iter().rev().take_while(|b| **b != Bracket::Round);
    level.into_iter().any(|b| *b == Bracket::Double)
}

fn starts_word(bytes: &[u8], at: usize) -> bool {
    at.checked_sub(1)
        .is_none_or(|before| b" \t\n;&|()<>".contains(&bytes[before]))
}

/// Returns the position of the closing, unescaped backtick.
pub(crate) fn end_of_backticks(text: &str, from: usize) -> Result<usize, ParseError> {
    escaped_until(text, from, b'`', "an open backtick")
}

/// Returns the end of `$'…'`.
pub(crate) fn end_of_ansi(text: &str, from: usize) -> Result<usize, ParseError> {
    escaped_until(text, from, b'\'', "an open quote")
}

/// Returns the end of `'…'`.
pub(crate) fn end_of_single(text: &str, from: usize) -> Result<usize, ParseError> {
    let end = text.get(from..).and_then(|rest| rest.find('\''));
    end.map(|at| from + at)
        .ok_or(ParseError::Syntax("an open quote"))
}

fn escaped_until(
    text: &str,
    from: usize,
    sign: u8,
    problem: &'static str,
) -> Result<usize, ParseError> {
    let bytes = text.as_bytes();
    let mut at = from;
    while let Some(&byte) = bytes.get(at) {
        if byte == sign {
            return Ok(at);
        }
        at += if byte == b'\\' { 2 } else { 1 };
    }
    Err(ParseError::Syntax(problem))
}

/// Returns true if the body of `$(…)` is arithmetic: a single pair of brackets around all of it.
pub(crate) fn is_arithmetic(body: &str) -> bool {
    body.starts_with('(') && end_of(body, 1, Bracket::Round).is_ok_and(|end| end + 1 == body.len())
}
