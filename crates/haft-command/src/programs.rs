//! The programs that are known, each form in a file of its own, and [`meaning`]: what a command means.
//!
//! A program that no file names is unknown. To add one, write its file with a test table and its line in the list below.

use std::collections::HashMap;
use std::sync::LazyLock;

use haft_shell::{AsWord, Layer, base_name};

use crate::forms::print_words;
use crate::meaning::CommandMeaning;
use crate::program::{OptionHarm, Program, ProgramCall};
use crate::word::CommandWord;

pub use cd::folder_of;
pub(crate) use git::is_message;

/// Declares the files and collects their `PROGRAM`.
macro_rules! programs {
    ($($file:ident),* $(,)?) => {
        $(mod $file;)*

        const PROGRAMS: &[&Program] = &[$(&$file::PROGRAM),*];
    };
}

programs![
    awk, base64, cat, cd, checksum, cp, cut, date, diff, du, echo, find, git, grep, jq, ln, ls,
    mkdir, mv, printf, rg, rm, sed, seq, sort, stat, tee, test, touch, tr, uname, uniq, version,
    wc, which,
];

static BY_NAME: LazyLock<HashMap<&str, &Program>> = LazyLock::new(|| {
    let each = PROGRAMS.iter();
    each.flat_map(|program| program.names.iter().map(|name| (*name, *program)))
        .collect()
});

/// Returns what a command means: the only answer to what it reads, changes and removes. Everything else is derived from it.
///
/// It may be written as a path, and its words may be known only when it runs; then it may do more than its meaning says.
pub fn meaning<W: AsWord>(layer: Layer<'_, W>) -> CommandMeaning {
    let Some((name, rest)) = layer.words.split_first() else {
        return CommandMeaning::unknown();
    };
    let base = base_name(name.text());
    let Some(program) = BY_NAME.get(base) else {
        return CommandMeaning::unknown();
    };
    let is_replaced = |word: &W| word.is_known() && !layer.knows(word);
    let words: Vec<CommandWord<'_>> = rest
        .iter()
        .map(|word| CommandWord::of(word, is_replaced(word)))
        .collect();
    let mut call = ProgramCall {
        name: base,
        words: &words,
        fed: layer.fed,
        // A path may lead to another program of this name.
        is_certain: layer.knows(name) && base.len() == name.text().len(),
    };
    let is_named = call.is_certain;
    call.is_certain &= !call.is_open(program);
    let asks_version = matches!(&words[..], [word] if word.text == "--version" && word.is_known());
    let found = if program.is_versioned && asks_version {
        print_words(&call)
    } else {
        (program.meaning)(&call)
    };
    CommandMeaning {
        only_reads: found.only_reads && is_named,
        unknown: found.unknown || !call.is_certain,
        ..found
    }
}

/// Whether a word of this program that turned out to be an option could write or run something.
pub(crate) fn options_act(name: &str) -> bool {
    let program = BY_NAME.get(base_name(name));
    program.is_some_and(|program| program.options == OptionHarm::Acts)
}

#[cfg(test)]
mod tests {
    use super::{BY_NAME, PROGRAMS};

    #[test]
    fn each_name_belongs_to_one_file() {
        let names: usize = PROGRAMS.iter().map(|program| program.names.len()).sum();
        assert_eq!(BY_NAME.len(), names);
    }
}
