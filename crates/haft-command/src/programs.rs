//! The programs that are known, each form in a file of its own, and [`meaning`]: what a command means.
//!
//! A program that no file names is unknown. To add one, write its file with a test table and its line in the list below.

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
    awk, base64, bash, cat, cd, checksum, comm, command, cp, cut, date, df, diff, du, echo, file,
    find, git, grep, hexdump, jq, ln, ls, mkdir, mv, printf, rg, rm, sed, seq, shell, sort, stat,
    tar, tee, test, touch, tr, tree, uname, uniq, version, wc, which, xargs, xxd,
];

/// The programs by the first letter of their names: quicker than hashing, and asked of each command several times.
static BY_LETTER: LazyLock<[Vec<(&str, &Program)>; 128]> = LazyLock::new(|| {
    let mut all = [const { Vec::new() }; 128];
    for program in PROGRAMS {
        for name in program.names {
            all[usize::from(name.as_bytes()[0])].push((*name, *program));
        }
    }
    all
});

/// Returns the program of this name, which may be a path.
fn named(name: &str) -> Option<&'static Program> {
    let base = base_name(name);
    let some = BY_LETTER.get(usize::from(*base.as_bytes().first()?))?;
    let mut some = some.iter();
    some.find(|(known, _)| *known == base)
        .map(|(_, program)| *program)
}

/// Asks the file of a command's program; `None` if no file names it.
fn ask<W: AsWord, T>(
    layer: Layer<'_, W>,
    question: impl FnOnce(&Program, ProgramCall<'_>) -> T,
) -> Option<T> {
    let (name, rest) = layer.words.split_first()?;
    let program = named(name.text())?;
    let base = base_name(name.text());
    let is_replaced = |word: &W| word.is_known() && !layer.knows(word);
    let words: Vec<CommandWord<'_>> = rest
        .iter()
        .map(|word| CommandWord::of(word, is_replaced(word)))
        .collect();
    let call = ProgramCall {
        name: base,
        words: &words,
        fed: layer.fed,
        // A path may lead to another program of this name.
        is_certain: layer.knows(name) && base.len() == name.text().len(),
    };
    Some(question(program, call))
}

/// Returns what a command means: the only answer to what it reads, changes and removes. Everything else is derived from it.
///
/// It may be written as a path, and its words may be known only when it runs; then it may do more than its meaning says.
pub fn meaning<W: AsWord>(layer: Layer<'_, W>) -> CommandMeaning {
    CommandMeaning {
        only_reads: only_reads(layer),
        ..uses_of(layer)
    }
}

/// Returns the meaning without `only_reads`, for questions that do not need it.
pub(crate) fn uses_of<W: AsWord>(layer: Layer<'_, W>) -> CommandMeaning {
    let found = ask(layer, |program, call| {
        let call = ProgramCall {
            is_certain: call.is_certain && !call.is_open(program),
            ..call
        };
        let asks_version =
            matches!(call.words, [word] if word.text == "--version" && word.is_known());
        let found = if program.is_versioned && asks_version {
            print_words(&call)
        } else {
            (program.meaning)(&call)
        };
        CommandMeaning {
            unknown: found.unknown || !call.is_certain,
            ..found
        }
    });
    found.unwrap_or_else(CommandMeaning::unknown)
}

/// Whether the command, with all wrappers removed, needs no rule in a jail: clause 4 of the shell rules.
pub fn only_reads<W: AsWord>(layer: Layer<'_, W>) -> bool {
    let answer = ask(layer, |program, call| {
        call.is_certain && (program.only_reads)(&call)
    });
    answer.unwrap_or(false)
}

/// Whether this program may remove files or folders.
pub(crate) fn may_remove(name: &str) -> bool {
    named(name).is_some_and(|program| program.removes)
}

/// Whether a word of this program that turned out to be an option could write or run something.
pub(crate) fn options_act(name: &str) -> bool {
    named(name).is_some_and(|program| program.options == OptionHarm::Acts)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::fs;
    use std::path::Path;

    use haft_shell::inner_command;

    use super::{PROGRAMS, meaning, named};

    #[test]
    fn each_name_belongs_to_one_file() {
        let names = || PROGRAMS.iter().flat_map(|program| program.names);
        let once: HashSet<&&str> = names().collect();
        assert_eq!(once.len(), names().count());
        assert!(names().all(|name| named(name).is_some()));
        assert!(named("").is_none() && named("ünknown").is_none());
    }

    #[test]
    fn clause_14_names_the_programs_that_show_files() {
        let page =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/shell-rules.md");
        let page = fs::read_to_string(page).unwrap();
        let (_, clause) = page.split_once("### Clause 14: ").unwrap();
        let clause = clause.split("A deny of\n`Edit").next().unwrap();
        let listed: HashSet<&str> = clause.split('`').skip(1).step_by(2).collect();
        let shows = |name: &str| {
            let words = [name.to_owned(), "a".to_owned()];
            meaning(inner_command(&words)).shows
        };
        for name in PROGRAMS.iter().flat_map(|program| program.names) {
            // Only its reading forms do.
            let expect = shows(name) || *name == "git";
            assert_eq!(listed.contains(name), expect, "{name}");
        }
    }
}
