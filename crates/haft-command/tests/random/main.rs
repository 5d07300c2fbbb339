//! What is derived from the meaning of a command never contradicts it, and never trusts what is not known.

#![expect(
    clippy::unwrap_used,
    reason = "a test whose vocabulary cannot be read has failed"
)]

mod generator;
mod vocabulary;

use haft_command::{Bindings, PathAccess, ShellWord, meaning, only_reads, removed, touched, uses};
use haft_shell::{AsWord, Expansions, Layer, layers, parse};

use generator::Generator;

/// Number of lines.
const LINES: usize = 4_000;

/// Checks one command.
fn check<W: AsWord>(layer: Layer<'_, W>, line: &str) {
    let found = meaning(layer);
    let changes = |how: PathAccess| {
        matches!(
            how,
            PathAccess::Writes
                | PathAccess::Edits
                | PathAccess::Removes
                | PathAccess::Moves
                | PathAccess::Carries
        )
    };
    if only_reads(layer) {
        let changed = found.uses.iter().any(|one| changes(one.how));
        assert!(
            !changed && !found.links && found.destroys.is_none(),
            "{line}"
        );
    }
    let name = layer.words.first();
    let by_path = name.is_none_or(|name| name.text().contains('/') || !layer.knows(name));
    if by_path {
        assert!(found.unknown && !found.only_reads, "{line}");
    }
    let is_anything = |word: &W| {
        let open = word.expansions();
        open.intersects(Expansions::VALUE | Expansions::BRACE)
            || (word.is_known() && !layer.knows(word))
    };
    if layer.fed || layer.words.iter().any(is_anything) {
        assert!(found.unknown, "{line}");
    }
    let shown = touched(layer);
    assert!(
        shown.below.iter().all(|one| shown.reads.contains(one)),
        "{line}"
    );
    assert!(shown.edits.is_empty() || found.unknown, "{line}");
    assert_eq!(removed(layer).is_some(), found.destroys.is_some(), "{line}");
}

#[test]
fn derived_answers_never_contradict_the_meaning_of_a_command() {
    let mut generator = Generator::new(31);
    let mut read_lines = 0;
    for _ in 0..LINES {
        let line = generator.line();
        let Ok(read) = parse(&line) else {
            continue;
        };
        read_lines += 1;
        for command in &read.commands {
            for layer in &layers(&command.words).commands {
                check(*layer, &line);
            }
            let bindings = Bindings::of(&read, command);
            let words = command.words.iter();
            let words: Vec<ShellWord> = words
                .flat_map(|word| ShellWord::of(word, &bindings))
                .collect();
            let outside = uses(&words);
            let open = outside
                .paths
                .iter()
                .any(|one| one.how == PathAccess::MayUse);
            assert!(!(open && outside.understood), "{line}");
        }
    }
    assert!(read_lines > LINES / 2, "{read_lines} lines were read");
}
