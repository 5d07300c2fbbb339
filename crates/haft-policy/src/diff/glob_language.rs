//! The texts that a glob matches: commands, tool names, values of arguments.

use super::automaton::{Automaton, StateId, Symbol};
use haft_files::glob::GlobToken;

/// Writes a glob whose stars match any text without these characters; returns the state at its end.
pub(super) fn write_glob(
    automaton: &mut Automaton,
    from: StateId,
    pieces: &[GlobToken],
    without: &[char],
) -> StateId {
    let mut at = from;
    let mut last = None;
    for piece in pieces {
        at = match piece {
            GlobToken::Literal(c) => automaton.step(at, Symbol::Char(*c)),
            // A star after a star matches nothing more.
            GlobToken::Star if last == Some(piece) => at,
            GlobToken::Star => automaton.repeat(at, Symbol::but(without)),
        };
        last = Some(piece);
    }
    at
}
