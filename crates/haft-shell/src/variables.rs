//! The variables of a line that arithmetic may use: those that hold a whole number wherever the line sets them.

use crate::error::ParseError;

/// What a line does with its variables.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Variables {
    /// Set to a whole number.
    numbers: Vec<String>,
    /// Set to anything else.
    others: Vec<String>,
    /// Used in arithmetic.
    computed: Vec<String>,
}

impl Variables {
    /// Notes that the line sets a variable, and whether to a whole number.
    pub(crate) fn set(&mut self, name: &str, is_number: bool) {
        let names = if is_number {
            &mut self.numbers
        } else {
            &mut self.others
        };
        note(names, name);
    }

    /// Notes that arithmetic uses a variable.
    pub(crate) fn compute(&mut self, name: &str) {
        note(&mut self.computed, name);
    }

    /// Adds what another text of the same line does.
    pub(crate) fn add(&mut self, other: &Self) {
        for (names, more) in [
            (&mut self.numbers, &other.numbers),
            (&mut self.others, &other.others),
            (&mut self.computed, &other.computed),
        ] {
            for name in more {
                note(names, name);
            }
        }
    }

    /// Does the line compute with variables?
    pub(crate) fn are_computed(&self) -> bool {
        !self.computed.is_empty()
    }

    /// Fails where arithmetic uses a variable that may hold more than a whole number: bash would evaluate that text.
    pub(crate) fn check(&self) -> Result<(), ParseError> {
        let is_number = |name: &String| self.numbers.contains(name) && !self.others.contains(name);
        if self.computed.iter().all(is_number) {
            return Ok(());
        }
        Err(ParseError::Syntax(
            "arithmetic uses a variable that may hold more than a number",
        ))
    }
}

fn note(names: &mut Vec<String>, name: &str) {
    if !names.iter().any(|known| known == name) {
        names.push(name.to_owned());
    }
}

/// Can nothing but the line itself look at the variable? Bash and the programs it starts read variables written with capitals,
/// and the addresses of proxies.
pub(crate) fn is_private(name: &str) -> bool {
    let mut signs = name.bytes();
    let begins = signs
        .next()
        .is_some_and(|b| b == b'_' || b.is_ascii_lowercase());
    let fine = |b: u8| b == b'_' || b.is_ascii_lowercase() || b.is_ascii_digit();
    begins && signs.all(fine) && !name.ends_with("_proxy")
}

/// `5` or `-5`.
pub(crate) fn is_number(text: &str) -> bool {
    let digits = text.strip_prefix('-').unwrap_or(text);
    !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit())
}
