//! `awk`: prints what a program makes of files.

use haft_shell::Options;

use crate::forms::{ScriptRules, has_late_option, script_reader, suspect};
use crate::meaning::CommandMeaning;
use crate::program::{Program, ProgramCall};

mod script;

pub(super) const PROGRAM: Program = Program::new(&["awk", "gawk", "mawk", "nawk"], meaning);

/// Without program files and libraries.
const OPTIONS: Options = Options {
    flags: "",
    valued: "Fv",
    joined: "",
    // The awk of BSD and macOS ignores long options, and takes the word behind for the program.
    long: &[],
    long_valued: &[],
    number: false,
};

/// Names permitted in an `awk` program: none of them starts a program or names a file.
const AWK_NAMES: &[&str] = &[
    "print", "printf", "NR", "FNR", "NF", "FS", "OFS", "RS", "ORS", "BEGIN", "END", "length",
    "substr", "if", "else", "next", "exit", "gsub", "sub", "toupper", "tolower", "index", "int",
    "a", "b", "c", "i", "n", "s", "x", "y", "sum", "count", "total", "max", "min", "line", "last",
    "seen", "in", "for", "found", "f", "p",
];

const RULES: ScriptRules = ScriptRules {
    is_fine: only_shows,
    files: script::files,
};

fn meaning(call: &ProgramCall<'_>) -> CommandMeaning {
    // To some, the words of a late option are files.
    if has_late_option(&OPTIONS, call.words) != Some(false) {
        return suspect(call);
    }
    script_reader(&OPTIONS, call, RULES)
}

/// Whether an `awk` program has no pipe, no redirection and no unknown names. Words in its strings and patterns count as names, too.
fn only_shows(script: &str) -> bool {
    let signs = "_{}()[]$ ,;:.+-*/%=!~^\"\t&#'\\";
    let fine = |c: char| c.is_ascii_alphanumeric() || signs.contains(c);
    let is_part = |c: char| c == '_' || c.is_ascii_alphanumeric();
    let known = |name: &str| {
        name.is_empty() || name.bytes().all(|b| b.is_ascii_digit()) || AWK_NAMES.contains(&name)
    };
    !script.is_empty() && script.chars().all(fine) && script.split(|c| !is_part(c)).all(known)
}

#[cfg(test)]
mod tests {
    use crate::tests::check;

    #[test]
    fn awk_means_what_its_words_say() {
        check(&[
            ("awk '{print $1}' a", "Reads a"),
            ("awk -F : '{print}' a x=/b", "Reads a, Reads x=/b"),
            (
                "awk '{system(\"x\")}' a",
                "Reads a, Reads x, shows more, unknown",
            ),
            (
                "awk '{while (getline l < \"b\") print l}' a",
                "Reads a, Reads b, shows more, unknown",
            ),
            (
                "awk '{print | \"b\"}' a",
                "Reads a, Reads b, shows more, unknown",
            ),
            (
                "awk '/a|\"/ || $1 ~ /b|c/ {print $NF}' a",
                "Reads a, unknown",
            ),
            (
                "awk '{print 1 / 2 | x / 3}' a",
                "Reads a, shows more, unknown",
            ),
            ("awk '{print # |\n}' a", "Reads a, unknown"),
            ("awk '{print toupper(\"' a", "Reads a"),
            ("awk '{print q \"' a", "Reads a, shows more, unknown"),
            (
                "awk '{print}' a -v a",
                "Reads {print}, Reads a, Reads a, shows more, unknown",
            ),
            ("awk '/.env/ {print}' log", "Reads log, unknown"),
            ("awk -f p a", "Reads p, Reads a, shows more, unknown"),
        ]);
    }
}
