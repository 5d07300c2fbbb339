//! `sed`: prints or changes what a script makes of files.

use haft_shell::Options;

use crate::forms::{ScriptRules, is_short, script_reader};
use crate::meaning::CommandMeaning;
use crate::path_use::{PathAccess, PathUse};
use crate::program::{OptionHarm, Program, ProgramCall};

mod script;

pub(super) const PROGRAM: Program = Program::new(&["sed"], meaning).with_options(OptionHarm::Acts);

/// Without `-i` and script files.
const OPTIONS: Options = Options {
    flags: "nErsuz",
    valued: "e",
    joined: "",
    long: &[
        "quiet",
        "silent",
        "regexp-extended",
        "separate",
        "unbuffered",
        "null-data",
        "posix",
        "sandbox",
    ],
    long_valued: &["expression"],
    number: false,
};

/// With `-i`, which changes the files in place.
const IN_PLACE: Options = Options {
    joined: "i",
    long: &[
        "quiet",
        "silent",
        "regexp-extended",
        "separate",
        "unbuffered",
        "null-data",
        "posix",
        "sandbox",
        "in-place",
    ],
    long_valued: &["expression", "in-place"],
    ..OPTIONS
};

const RULES: ScriptRules = ScriptRules {
    is_fine: only_prints,
    files: script::files,
};

fn meaning(call: &ProgramCall<'_>) -> CommandMeaning {
    let in_place = |text: &str| (is_short(text) && text.contains('i')) || text.starts_with("--i");
    if !call.words.iter().any(|word| in_place(word.text)) {
        return script_reader(&OPTIONS, call, RULES);
    }
    let mut found = script_reader(&IN_PLACE, call, RULES);
    let edited = found.uses.iter().map(|one| PathUse {
        how: PathAccess::Edits,
        ..one.clone()
    });
    let edited: Vec<PathUse> = edited.collect();
    found.uses.extend(edited);
    found.or_more()
}

/// Whether a `sed` script only prints, counts and skips lines by number: `1,5p`, `$=`, `3q`. Writing, reading and running need others.
fn only_prints(script: &str) -> bool {
    !script.is_empty()
        && script
            .chars()
            .all(|c| c.is_ascii_digit() || ",$;p=qd! ~+".contains(c))
}

#[cfg(test)]
mod tests {
    use crate::tests::check;

    #[test]
    fn sed_means_what_its_words_say() {
        check(&[
            ("sed -n 5p a", "Reads a"),
            ("sed -n -e 5p -e 7p a b", "Reads a, Reads b"),
            ("sed s/a/b/ c", "Reads c, unknown"),
            ("sed -i s/a/b/ c", "Reads c, Edits c, unknown"),
            ("sed -f p c", "Reads p, Reads c, shows more, unknown"),
            ("sed -n 5w a", "Reads a, shows more, unknown"),
            ("sed 'r b' a", "Reads a, Reads b, unknown"),
            ("sed '/x/,+2!{s,a,b,gw c\n}' a", "Reads a, Edits c, unknown"),
            ("sed -e 'a\\' -e 'r b' a", "Reads a, unknown"),
            ("sed 's/[/r b]/c/;y/r/s/' a", "Reads a, unknown"),
            ("sed 's/a/b/e' a", "Reads a, shows more, unknown"),
            ("sed 'e b' a", "Reads a, shows more, unknown"),
            ("sed 's/a' a", "Reads a, shows more, unknown"),
            ("sed -n -i.bak -e s/a/b/ c", "Reads c, Edits c, unknown"),
            (
                "sed -n -l5 s/a/b/ c",
                "Reads 5, Reads s/a/b/, Reads c, shows more, unknown",
            ),
        ]);
    }
}
