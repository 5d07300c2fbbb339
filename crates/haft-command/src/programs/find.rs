//! `find`: the tests and actions that only look. Those not listed here may run, write or delete.

use crate::forms::{each_file, each_path};
use crate::meaning::CommandMeaning;
use crate::path_use::{PathAccess, PathUse};
use crate::program::{OptionHarm, Program, ProgramCall};
use crate::word::CommandWord;

pub(super) const PROGRAM: Program = Program::new(&["find"], meaning)
    .with_options(OptionHarm::Acts)
    .reading(|call| call.is_known() && only_looks(call.words));

/// Expression words that take no value.
const FLAGS: &str = "! ( ) , -H -L -P -a -and -d -daystart -depth -empty -executable -false -follow \
    -ignore_readdir_race -ls -mount -nogroup -noignore_readdir_race -noleaf -not -nouser -nowarn \
    -o -or -print -print0 -prune -quit -readable -true -warn -writable -xdev";

/// Expression words that take the next word as value.
const VALUE_OPTIONS: &str = "-amin -anewer -atime -cmin -cnewer -ctime -fstype -gid -group -ilname -iname -inum -ipath \
    -iregex -iwholename -links -lname -maxdepth -mindepth -mmin -mtime -name -path -perm -printf \
    -regex -regextype -samefile -size -type -uid -used -user -wholename -xtype";

fn meaning(call: &ProgramCall<'_>) -> CommandMeaning {
    if call
        .words
        .iter()
        .any(|word| word.text.starts_with("-files0"))
    {
        // A list of files, which it repeats where they do not exist.
        return CommandMeaning {
            shows_more: true,
            ..CommandMeaning::showing(each_path(call.words, PathAccess::Reads)).or_more()
        };
    }
    if !call.is_known() || !only_looks(call.words) {
        return CommandMeaning::unknown();
    }
    let places = call.words.iter().filter(|word| names_place(word.text));
    let mut uses = each_file(places, PathAccess::Names);
    let first = call.words.first();
    if first.is_none_or(|word| word.text.starts_with(['-', '(', '!'])) {
        uses.push(PathUse::known(".", PathAccess::Names));
    }
    let follows = |word: &CommandWord<'_>| matches!(word.text, "-L" | "-follow");
    CommandMeaning {
        // Where links lead, it lists what lies there.
        unknown: call.words.iter().any(follows),
        ..CommandMeaning::of(uses)
    }
}

/// Whether every possible test or action only reads.
fn only_looks(words: &[CommandWord<'_>]) -> bool {
    let mut words = words.iter().map(|word| word.text);
    while let Some(text) = words.next() {
        // Skip the value of a word that takes one: `-mtime -7`.
        let valued = lists(VALUE_OPTIONS, text) || text.starts_with("-newer");
        let listed = valued && words.next().is_some();
        if !listed && text.starts_with('-') && !lists(FLAGS, text) {
            return false;
        }
    }
    true
}

fn lists(table: &str, word: &str) -> bool {
    table.split(' ').any(|listed| listed == word)
}

fn names_place(word: &str) -> bool {
    !word.starts_with(['-', '(', '!', ')']) && word != "{}"
}

#[cfg(test)]
mod tests {
    use crate::tests::check;

    #[test]
    fn find_looks_if_each_test_and_action_is_known() {
        check(&[
            ("find a -name b", "only reads, Names a, Names b"),
            ("find -mtime -7", "only reads, Names ."),
            ("find -L a", "only reads, Names a, Names ., unknown"),
            ("find . -delete", "unknown"),
            (
                "find -files0-from a",
                "Reads iles0-from, Reads les0-from, Reads es0-from, Reads s0-from, Reads 0-from, Reads -from, Reads from, Reads rom, Reads om, Reads m, Reads a, shows more, unknown",
            ),
            ("find . -name -- -delete", "unknown"),
            ("find . -name *.rs", "unknown"),
            ("find \"$x\"", "unknown"),
            ("xargs find", "unknown"),
            ("/usr/bin/find a", "Names a, unknown"),
        ]);
    }
}
