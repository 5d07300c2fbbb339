//! `tree`: lists the folders below a folder.

use haft_shell::Options;

use crate::forms::{each_file, plain};
use crate::meaning::CommandMeaning;
use crate::path_use::{PathAccess, PathUse};
use crate::program::{Program, ProgramCall};

pub(super) const PROGRAM: Program = Program::new(&["tree"], meaning);

/// Without `-o`, which writes the list, `-R`, which writes one into folders, and the options that name files or print what notes in the
/// folders say (`--fromfile`, `--gitfile`, `--infofile`, `--info`).
const OPTIONS: Options = Options {
    flags: "ACDFJNQSUXacdfghilnpqrstuvx",
    valued: "HILPT",
    joined: "",
    long: &[
        "device",
        "dirsfirst",
        "du",
        "filesfirst",
        "gitignore",
        "help",
        "ignore-case",
        "inodes",
        "matchdirs",
        "metafirst",
        "nolinks",
        "noreport",
        "prune",
        "si",
        "version",
    ],
    long_valued: &["charset", "filelimit", "sort", "timefmt"],
    number: false,
};

fn meaning(call: &ProgramCall<'_>) -> CommandMeaning {
    let Some(given) = plain(&OPTIONS, call.words) else {
        return CommandMeaning::unknown();
    };
    let follows = given.flags.contains(&"l");
    let how = if follows {
        PathAccess::NamesBelow
    } else {
        PathAccess::Names
    };
    let mut uses = each_file(given.words, how);
    if uses.is_empty() {
        uses.push(PathUse::known(".", how));
    }
    CommandMeaning::of(uses)
}

#[cfg(test)]
mod tests {
    use crate::tests::check;

    #[test]
    fn tree_means_what_its_words_say() {
        check(&[
            ("tree", "Names ."),
            ("tree -L 2 -I 'node_modules|target' src", "Names src"),
            ("tree -aL 1 --dirsfirst a b", "Names a, Names b"),
            ("tree -l", "NamesBelow ."),
            ("tree -fl a", "NamesBelow a"),
            ("tree -o a", "unknown"),
            ("tree -ao a", "unknown"),
            ("tree -R -H . -L 1", "unknown"),
            ("tree --fromfile a", "unknown"),
            ("tree --output a", "unknown"),
            ("tree -J a", "Names a"),
            ("tree -L 1 *", "Names *, unknown"),
            ("tree \"$x\"", "Names $x, unknown"),
        ]);
    }
}
