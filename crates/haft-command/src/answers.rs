//! What is derived from the meaning of a command: what it removes, and whether a pattern may make it do more.

use haft_shell::{AsWord, Expansions, Layer};

use crate::programs::{may_remove, options_act, uses_of};

/// Returns the words whose files or folders the command removes: clause 15 of the shell rules. `None` if it removes none; a program
/// that feeds it may add some.
pub fn removed<W: AsWord>(layer: Layer<'_, W>) -> Option<Vec<&W>> {
    if !may_remove(layer.words.first()?.text()) {
        return None;
    }
    let positions = uses_of(layer).destroys?.into_iter();
    Some(positions.filter_map(|at| layer.words.get(at)).collect())
}

/// Whether a pattern among the words could become an option that writes or runs something.
pub fn may_act_by_pattern<W: AsWord>(layer: Layer<'_, W>) -> bool {
    let is_pattern = |word: &W| {
        word.expansions()
            .intersects(Expansions::GLOB | Expansions::BRACE)
    };
    let name = layer.words.first();
    name.is_some_and(|name| options_act(name.text())) && layer.words.iter().any(is_pattern)
}
