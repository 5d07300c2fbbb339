//! `xargs`: reads words from a file or from its input, and gives them to a command, which is judged by itself.

use haft_shell::{AsWord as _, Options};

use crate::forms::suspect;
use crate::meaning::CommandMeaning;
use crate::path_use::{PathAccess, PathUse};
use crate::program::{Program, ProgramCall};

pub(super) const PROGRAM: Program = Program::new(&["xargs"], meaning);

/// All options before the command, of GNU's and BSD's.
const OPTIONS: Options = Options {
    flags: "0oprtx",
    valued: "EIJLPRSadns",
    joined: "eil",
    long: &[
        "eof",
        "exit",
        "help",
        "interactive",
        "max-lines",
        "no-run-if-empty",
        "null",
        "open-tty",
        "replace",
        "show-limits",
        "verbose",
        "version",
    ],
    long_valued: &[
        "arg-file",
        "delimiter",
        "eof",
        "max-args",
        "max-chars",
        "max-lines",
        "max-procs",
        "process-slot-var",
        "replace",
    ],
    number: false,
};

fn meaning(call: &ProgramCall<'_>) -> CommandMeaning {
    let known = call.words.iter().take_while(|word| word.is_known());
    let Some(own) = OPTIONS.count(&call.words[..known.count()]) else {
        return suspect(call);
    };
    let Some(given) = OPTIONS.split(&call.words[..own]) else {
        return suspect(call);
    };
    let files = given.values.iter();
    let files = files.filter(|one| matches!(one.name, "a" | "arg-file"));
    let uses: Vec<PathUse> = files
        .map(|one| PathUse::known(one.value, PathAccess::Reads))
        .collect();
    CommandMeaning {
        shows: !uses.is_empty(),
        uses,
        ..CommandMeaning::unknown()
    }
}

#[cfg(test)]
mod tests {
    use haft_shell::{layers, parse};

    use crate::touched::touched;

    #[test]
    fn xargs_reads_the_file_of_an_option() {
        for (line, reads, more) in [
            ("xargs -a a cat b", &["a"][..], false),
            ("xargs -n 1 -aa", &["a"], false),
            ("xargs --arg-file=a cat", &["a"], false),
            ("xargs -0 cat -a b", &[], false),
            ("xargs -I a cat a", &[], false),
            ("xargs --unknown a cat", &["a", "cat"], true),
        ] {
            let read = parse(line).unwrap();
            let all = layers(&read.commands[0].words);
            let found = touched(all.commands[0]);
            assert_eq!(
                (&*found.reads, found.unknown),
                (
                    &*reads
                        .iter()
                        .map(|one| (*one).to_owned())
                        .collect::<Vec<_>>(),
                    more
                ),
                "{line}"
            );
        }
    }
}
