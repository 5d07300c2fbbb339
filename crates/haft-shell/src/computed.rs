//! Commands within arithmetic: `$(($(wc -l < a) + 1))`.

use crate::error::ParseError;
use crate::extent::{Bracket, end_of};
use crate::walk::Walk;

impl Walk<'_> {
    /// Queues the commands whose output arithmetic uses, and returns its text with a number in place of each.
    pub(crate) fn computed(&mut self, text: &str) -> Result<String, ParseError> {
        let mut read = String::new();
        let mut rest = text;
        while let Some(at) = rest
            .find("$(")
            .filter(|at| !rest[at + 2..].starts_with('('))
        {
            let end = end_of(rest, at + 2, Bracket::Round)?;
            let word = |c: char| c == '_' || c.is_ascii_alphanumeric();
            if rest[..at].ends_with(word) || rest[end + 1..].starts_with(word) {
                return Err(ParseError::Syntax(
                    "arithmetic joins an expansion to a word",
                ));
            }
            let known = self.inner.len();
            self.commands(rest[at + 2..end].to_owned())?;
            for inner in &mut self.inner[known..] {
                inner.is_computed = true;
            }
            read.push_str(&rest[..at]);
            read.push('0');
            rest = &rest[end + 1..];
        }
        read.push_str(rest);
        Ok(read)
    }
}
