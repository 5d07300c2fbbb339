//! `jq`: prints what a filter makes of JSON files.

use haft_shell::{AsWord as _, Options};

use crate::forms::{ScriptRules, script_reader};
use crate::meaning::CommandMeaning;
use crate::path_use::{PathAccess, PathUse};
use crate::program::{Program, ProgramCall};
use crate::script_files::ScriptFiles;

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
    long_valued: &["indent"],
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

const RULES: ScriptRules = ScriptRules {
    is_fine: only_filters,
    files: modules,
};

/// Options with a name and a value.
const NAMING: &[&str] = &[
    "--arg",
    "--argjson",
    "--argfile",
    "--rawfile",
    "--slurpfile",
];

fn meaning(call: &ProgramCall<'_>) -> CommandMeaning {
    let (mut words, mut uses) = (Vec::new(), Vec::new());
    let mut rest = call.words.iter();
    while let Some(word) = rest.next() {
        if !word.is_known() || !NAMING.contains(&word.text) {
            words.push(*word);
            continue;
        }
        let (_, value) = (rest.next(), rest.next());
        if let Some(value) = value.filter(|_| word.text.ends_with("file")) {
            uses.push(PathUse::of(*value, PathAccess::Reads));
        }
    }
    let mut found = script_reader(
        &OPTIONS,
        &ProgramCall {
            words: &words,
            ..*call
        },
        RULES,
    );
    found.unknown |= words.len() < call.words.len();
    found.uses.extend(uses);
    found
}

/// Returns the files that a filter reads: any, if it loads modules.
fn modules(filter: &str) -> ScriptFiles {
    let is_part = |c: char| c == '_' || c.is_ascii_alphanumeric();
    let mut names = filter.split(|c| !is_part(c));
    ScriptFiles {
        more: names.any(|name| matches!(name, "include" | "import")),
        ..ScriptFiles::default()
    }
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
            ("jq -n --rawfile x y '$x' a", "Reads a, Reads y, unknown"),
            ("jq --arg x y '.[$x]' a", "Reads a, unknown"),
            (
                "jq -L m 'import \"a\" as $a; .' b",
                "Reads m, Reads import \"a\" as $a; ., Reads b, shows more, unknown",
            ),
            ("jq 'include \"a\"; .' b", "Reads b, shows more, unknown"),
            ("jq --version", "prints words"),
        ]);
    }
}
