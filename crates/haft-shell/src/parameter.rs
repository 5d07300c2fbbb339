//! `${…}` expansions of the supported subset.

use crate::arithmetic;
use crate::error::ParseError;
use crate::walk::Walk;

/// Parameters whose name is a single special character.
const SPECIAL_PARAMETERS: &[char] = &['@', '*', '#', '?', '-', '$', '!'];

impl Walk<'_> {
    /// Reads the inside of `${…}` and returns the expansion for display, without what it might run. It is the bare `${name}` only if
    /// that is what the text holds: of anything else, a reader must see that the variable's value is not all.
    pub(crate) fn parameter(&mut self, body: &str) -> Result<String, ParseError> {
        if body.contains("\\\n") {
            return Err(ParseError::Syntax("a line is joined within ${…}"));
        }
        let unread = Err(ParseError::Syntax("a form of ${…} that is not known"));
        let (length, inner) = match body.strip_prefix('#') {
            Some(inner) if !inner.is_empty() => (true, inner),
            _ => (false, body),
        };
        let (name, rest) = split_name(inner);
        if name.is_empty() {
            return unread;
        }
        let (index, operation) = split_index(name, rest)?;
        if !matches!(index, "" | "@" | "*") {
            arithmetic::read(index, &mut self.variables)?;
        }
        if length && !operation.is_empty() {
            return unread;
        }
        let offset = self.operation(name, operation)?;
        let neutral = |text: &str| !text.contains(|c: char| c.is_ascii_alphabetic() || c == '_');
        let plain = !body.contains(['$', '`', '<', '>', '(', '\'', '"', '\\'])
            && neutral(index)
            && (!offset || neutral(operation));
        Ok(if plain {
            format!("${{{body}}}")
        } else {
            hidden(name, index, operation, offset)
        })
    }

    /// Reads what follows the parameter and returns whether it is an offset.
    fn operation(&mut self, name: &str, operation: &str) -> Result<bool, ParseError> {
        if operation.is_empty() {
            return Ok(false);
        }
        let word = [":-", ":+", ":?", "-", "+", "?", "#", "%", "/", "^", ","];
        let special = name.starts_with(SPECIAL_PARAMETERS);
        if !special && word.iter().any(|sign| operation.starts_with(sign)) {
            self.expansions(operation, true)?;
            return Ok(false);
        }
        // Anything else with a colon is an offset, except `:=`, which sets the variable.
        let offset = operation.strip_prefix(':').filter(|o| !o.starts_with('='));
        let Some(offset) = offset.filter(|_| !special || matches!(name, "@" | "*")) else {
            return Err(ParseError::Syntax("a form of ${…} that is not known"));
        };
        // `${name::=value}` sets the variable in zsh.
        if offset.contains('?') || offset.starts_with(":=") {
            return Err(ParseError::Syntax("an offset that is not a plain number"));
        }
        for number in offset.splitn(2, ':') {
            arithmetic::read(number, &mut self.variables)?;
        }
        Ok(true)
    }
}

/// Returns an expansion whose words are not shown: `${x:-…}`.
fn hidden(name: &str, index: &str, operation: &str, offset: bool) -> String {
    let index = if index.is_empty() { "" } else { "[0]" };
    if offset {
        return format!("${{{name}{index}:0}}");
    }
    let sign: String = operation
        .chars()
        .take_while(|c| ":-+?".contains(*c))
        .collect();
    let sign = match operation.chars().next() {
        Some(first) if sign.is_empty() => first.to_string(),
        _ => sign,
    };
    let more = if sign.is_empty() { "" } else { "…" };
    format!("${{{name}{index}{sign}{more}}}")
}

/// Splits the parameter's name from what follows it; the name is empty if there is none.
fn split_name(body: &str) -> (&str, &str) {
    let end = match body.chars().next() {
        Some(c) if c == '_' || c.is_ascii_alphabetic() => {
            let word = |c: char| c != '_' && !c.is_ascii_alphanumeric();
            body.find(word).unwrap_or(body.len())
        }
        Some(c) if c.is_ascii_digit() => {
            let digit = |c: char| !c.is_ascii_digit();
            body.find(digit).unwrap_or(body.len())
        }
        Some(c) if SPECIAL_PARAMETERS.contains(&c) => 1,
        _ => 0,
    };
    body.split_at(end)
}

/// Splits the index in `[…]`, if there is one, from what follows it.
fn split_index<'a>(name: &str, rest: &'a str) -> Result<(&'a str, &'a str), ParseError> {
    let Some(inner) = rest.strip_prefix('[') else {
        return Ok(("", rest));
    };
    let named = name.starts_with(|c: char| c == '_' || c.is_ascii_alphabetic());
    match inner.split_once(']') {
        Some((index, rest)) if named && !index.is_empty() => Ok((index, rest)),
        _ => Err(ParseError::Syntax("an index that is not a plain number")),
    }
}
