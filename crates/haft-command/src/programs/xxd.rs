//! `xxd`: prints the bytes of a file. With `-r` or a second file it writes one.

use haft_shell::AsWord as _;

use crate::forms::{each_file, suspect};
use crate::meaning::CommandMeaning;
use crate::path_use::{PathAccess, PathUse};
use crate::program::{Program, ProgramCall};
use crate::word::{CommandWord, WordForm};

pub(super) const PROGRAM: Program = Program::new(&["xxd"], meaning);

/// Options without a value. It reads only the first letter of most; those that are spelled out are the ones in use.
const FLAGS: &[&str] = &[
    "-C",
    "-E",
    "-a",
    "-autoskip",
    "-b",
    "-bits",
    "-capitalize",
    "-d",
    "-e",
    "-h",
    "-help",
    "-i",
    "-include",
    "-p",
    "-plain",
    "-postscript",
    "-ps",
    "-u",
    "-uppercase",
    "-v",
    "-version",
];
/// Options whose value is the next word.
const VALUED: &[&str] = &[
    "-R",
    "-c",
    "-cols",
    "-g",
    "-groupsize",
    "-l",
    "-len",
    "-n",
    "-name",
    "-o",
    "-offset",
    "-s",
    "-seek",
    "-skip",
];
/// Letters that a number may follow in the same word: `-c16`, `-s+4`.
const NUMBERED: &str = "cglos";

fn meaning(call: &ProgramCall<'_>) -> CommandMeaning {
    let Some(files) = files(call.words) else {
        return writes(call);
    };
    match files[..] {
        // A pattern may match two files, the second of which is written.
        [] => CommandMeaning::showing(Vec::new()),
        [one]
            if !matches!(
                one.form,
                WordForm::Pattern | WordForm::Here { splits: true }
            ) =>
        {
            CommandMeaning::showing(each_file(files, PathAccess::Reads))
        }
        _ => writes(call),
    }
}

/// Returns the words that are files, if every option is known and only prints.
fn files<'w>(words: &'w [CommandWord<'w>]) -> Option<Vec<&'w CommandWord<'w>>> {
    let mut rest = words.iter();
    let mut found = Vec::new();
    while let Some(word) = rest.next() {
        if !word.is_option() || word.text == "-" {
            // Behind the first file, all words are files.
            found.push(word);
            found.extend(rest.by_ref());
        } else if word.text == "--" {
            found.extend(rest.by_ref());
        } else if !word.is_known() {
            return None;
        } else if VALUED.contains(&word.text) {
            rest.next().filter(|value| value.is_known())?;
        } else if !FLAGS.contains(&word.text) && !is_numbered(word.text) {
            return None;
        }
    }
    Some(found)
}

fn is_numbered(text: &str) -> bool {
    let Some((letter, number)) = text
        .strip_prefix('-')
        .and_then(|rest| rest.split_at_checked(1))
    else {
        return false;
    };
    let letter = NUMBERED.contains(letter);
    let number = number.strip_prefix(['+', '-']).unwrap_or(number);
    letter && !number.is_empty() && number.chars().all(|c| c.is_ascii_hexdigit() || c == 'x')
}

/// Returns the meaning of a command that may write any of the files that it names.
fn writes(call: &ProgramCall<'_>) -> CommandMeaning {
    let mut found = suspect(call);
    let edited: Vec<PathUse> = found
        .uses
        .iter()
        .map(|one| PathUse {
            how: PathAccess::Edits,
            ..one.clone()
        })
        .collect();
    found.uses.extend(edited);
    found
}

#[cfg(test)]
mod tests {
    use crate::tests::check;

    #[test]
    fn xxd_means_what_its_words_say() {
        check(&[
            ("xxd a", "Reads a"),
            ("xxd", "nothing"),
            ("xxd -l 16 -s +4 -g1 -c8 a", "Reads a"),
            ("xxd -p -u -cols 4 a", "Reads a"),
            ("xxd -s -0x10 a", "Reads a"),
            ("xxd -", "Reads -"),
            (
                "xxd a b",
                "Reads a, Reads b, Edits a, Edits b, shows more, unknown",
            ),
            ("xxd -r a", "Reads a, Edits a, shows more, unknown"),
            (
                "xxd -revert a",
                "Reads evert, Reads vert, Reads ert, Reads rt, Reads t, Reads a, Edits evert, Edits vert, Edits ert, Edits rt, Edits t, Edits a, shows more, unknown",
            ),
            ("xxd --r a", "Reads a, Edits a, shows more, unknown"),
            ("xxd -p -r a", "Reads a, Edits a, shows more, unknown"),
            ("xxd -- a", "Reads a"),
            ("xxd a -r", "Reads a, Edits a, shows more, unknown"),
            ("xxd *", "Reads *, Edits *, shows more, unknown"),
            ("xxd a*", "Reads a*, Edits a*, shows more, unknown"),
            ("xxd \"$x\"", "Reads $x, unknown"),
        ]);
    }
}
