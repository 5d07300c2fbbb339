//! The variables that arithmetic may use: those that the line always sets to a whole number.

use crate::error::ParseError;

/// How a line uses its variables.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Variables {
    /// Variables set to a whole number.
    numbers: Vec<String>,
    /// Variables set to anything else.
    others: Vec<String>,
    /// Variables used in arithmetic.
    computed: Vec<String>,
}

impl Variables {
    /// Records that the line sets a variable, and whether to a whole number.
    pub(crate) fn set(&mut self, name: &str, is_number: bool) {
        let names = if is_number {
            &mut self.numbers
        } else {
            &mut self.others
        };
        note(names, name);
    }

    /// Records that arithmetic uses a variable.
    pub(crate) fn compute(&mut self, name: &str) {
        note(&mut self.computed, name);
    }

    /// Merges in the variables of another text of the same line.
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

    /// Returns true if the line computes with variables.
    pub(crate) fn are_computed(&self) -> bool {
        !self.computed.is_empty()
    }

    /// Fails if arithmetic uses a variable that may hold more than a whole number: bash would evaluate that text.
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

/// Returns true if only the line itself reads the variable. Bash and the programs it starts read variables with capitals in their
/// names, and those for proxy addresses.
pub(crate) fn is_private(name: &str) -> bool {
    let mut signs = name.bytes();
    let begins = signs
        .next()
        .is_some_and(|b| b == b'_' || b.is_ascii_lowercase());
    let fine = |b: u8| b == b'_' || b.is_ascii_lowercase() || b.is_ascii_digit();
    begins && signs.all(fine) && !name.ends_with("_proxy")
}

/// Returns true for `5` or `-5`.
pub(crate) fn is_number(text: &str) -> bool {
    let digits = text.strip_prefix('-').unwrap_or(text);
    !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit())
}
