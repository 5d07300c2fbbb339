//! `jq`: prints what a filter makes of JSON files.

use haft_shell::Options;

use crate::forms::script_reader;
use crate::meaning::CommandMeaning;
use crate::program::{Program, ProgramCall};

pub(super) const PROGRAM: Program = Program::new(&["jq"], meaning).versioned();

/// Without options that read modules, files or the environment.
const OPTIONS: Options = Options {
    flags: "rcejMCSsnRa",
    valued: "",
    joined: "",
    long: &[
        "ascii-output",
        "color-output",
        "compact-output",
        "exit-status",
        "join-output",
        "monochrome-output",
        "null-input",
        "raw-input",
        "raw-output",
        "slurp",
        "sort-keys",
        "tab",
    ],
    long_valued: &[],
    number: false,
};

/// Words in a `jq` filter that read more than the input, or the environment.
const FILTER_READS: &[&str] = &[
    "env",
    "include",
    "import",
    "input",
    "inputs",
    "input_filename",
    "debug",
    "stderr",
    "halt",
    "halt_error",
    "get_search_list",
    "modulemeta",
];

fn meaning(call: &ProgramCall<'_>) -> CommandMeaning {
    script_reader(&OPTIONS, call, only_filters)
}

/// Whether a `jq` filter reads only its input: no variables, no formats, no word that reads more.
fn only_filters(filter: &str) -> bool {
    let signs = "_.[]|,:\"' (){}?-+*/=<>!;#%";
    let fine = |c: char| c.is_ascii_alphanumeric() || signs.contains(c);
    let is_part = |c: char| c == '_' || c.is_ascii_alphanumeric();
    let mut names = filter.split(|c| !is_part(c));
    filter.chars().all(fine) && !names.any(|name| FILTER_READS.contains(&name))
}

#[cfg(test)]
mod tests {
    use crate::tests::check;

    #[test]
    fn jq_means_what_its_words_say() {
        check(&[
            ("jq .a b", "Reads b"),
            ("jq -r '.a[] | .b' c d", "Reads c, Reads d"),
            ("jq env a", "Reads a, unknown"),
            (
                "jq -n --rawfile x y '$x' a",
                "Reads x, Reads y, Reads $x, Reads a, unknown",
            ),
            ("jq --version", "prints words"),
        ]);
    }
}
