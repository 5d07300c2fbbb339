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
    pieces.iter().fold(from, |at, piece| match piece {
        GlobToken::Literal(c) => automaton.step(at, Symbol::Char(*c)),
        GlobToken::Star => automaton.repeat(at, Symbol::but(without)),
    })
}
