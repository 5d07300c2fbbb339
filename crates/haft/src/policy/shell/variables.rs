//! The variables of a line that arithmetic may use: those that hold a whole number wherever the line sets them.

use super::Unread;

/// What a line does with its variables.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Variables {
    /// Set to a whole number.
    numbers: Vec<String>,
    /// Set to anything else.
    others: Vec<String>,
    /// Used in arithmetic.
    computed: Vec<String>,
}

impl Variables {
    /// Notes that the line sets a variable, and whether to a whole number.
    pub(super) fn set(&mut self, name: &str, is_number: bool) {
        let names = if is_number {
            &mut self.numbers
        } else {
            &mut self.others
        };
        note(names, name);
    }

    /// Notes that arithmetic uses a variable.
    pub(super) fn compute(&mut self, name: &str) {
        note(&mut self.computed, name);
    }

    /// Adds what another text of the same line does.
    pub(super) fn add(&mut self, other: &Self) {
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
    pub(super) fn are_computed(&self) -> bool {
        !self.computed.is_empty()
    }

    /// Fails where arithmetic uses a variable that may hold more than a whole number: bash would evaluate that text.
    pub(super) fn check(&self) -> Result<(), Unread> {
        let is_number = |name: &String| self.numbers.contains(name) && !self.others.contains(name);
        if self.computed.iter().all(is_number) {
            return Ok(());
        }
        Err(Unread::Syntax(
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
pub(super) fn is_private(name: &str) -> bool {
    let mut signs = name.bytes();
    let begins = signs
        .next()
        .is_some_and(|b| b == b'_' || b.is_ascii_lowercase());
    let fine = |b: u8| b == b'_' || b.is_ascii_lowercase() || b.is_ascii_digit();
    begins && signs.all(fine) && !name.ends_with("_proxy")
}

/// `5` or `-5`.
pub(super) fn is_number(text: &str) -> bool {
    let digits = text.strip_prefix('-').unwrap_or(text);
    !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit())
}
