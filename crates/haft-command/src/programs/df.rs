//! `df`: prints how full file systems are.

use haft_shell::Options;

use crate::forms::{each_file, plain};
use crate::meaning::CommandMeaning;
use crate::path_use::PathAccess;
use crate::program::{OptionHarm, Program, ProgramCall};

pub(super) const PROGRAM: Program = Program::new(&["df"], meaning).with_options(OptionHarm::None);

/// Options of GNU's `df` and of BSD's, without `--sync`, which has the system write what it holds.
const OPTIONS: Options = Options {
    flags: "HPTYabcghiklmn",
    valued: "Btx",
    joined: "",
    long: &[
        "all",
        "help",
        "human-readable",
        "inodes",
        "local",
        "no-sync",
        "output",
        "portability",
        "print-type",
        "si",
        "total",
        "version",
    ],
    long_valued: &["block-size", "exclude-type", "type"],
    number: false,
};

fn meaning(call: &ProgramCall<'_>) -> CommandMeaning {
    let Some(given) = plain(&OPTIONS, call.words) else {
        return CommandMeaning::unknown();
    };
    // The root is always there: naming it tells nothing of any file.
    let named = given.words.into_iter().filter(|word| word.text != "/");
    CommandMeaning::of(each_file(named, PathAccess::Names))
}

#[cfg(test)]
mod tests {
    use crate::tests::check;

    #[test]
    fn df_means_what_its_words_say() {
        check(&[
            ("df", "nothing"),
            ("df -h", "nothing"),
            ("df -hT /", "nothing"),
            ("df -h . a", "Names ., Names a"),
            ("df -t ext4 --total", "nothing"),
            ("df --output", "nothing"),
            ("df -- -x", "Names -x"),
            ("df --sync", "unknown"),
            ("df --outp", "unknown"),
            ("df *", "Names *"),
            ("df \"$x\"", "Names $x, unknown"),
        ]);
    }
}
