//! `pwd`, `whoami`, `uname` and others that print facts about the system. With other words than these options, some of them would change it.

use haft_shell::{AsWord as _, Options};

use crate::forms::print_words;
use crate::meaning::CommandMeaning;
use crate::program::{Program, ProgramCall};
use crate::word::CommandWord;

pub(super) const PROGRAM: Program = Program::new(
    &[
        "pwd", "whoami", "uname", "nproc", "arch", "uptime", "hostname", "id", "wait", "free",
        "lscpu", "logname", "tty", "sw_vers",
    ],
    meaning,
)
.printing()
.reading(|call| call.name == "pwd");

/// Options of a program that only choose what it prints: GNU's and BSD's.
const fn choosing(flags: &'static str, long: &'static [&'static str]) -> Options {
    Options {
        flags,
        long,
        ..Options::NONE
    }
}

/// Returns the options that only choose what the program prints.
fn options(name: &str) -> Options {
    match name {
        // `pwd -P` prints the folder without links.
        "pwd" => choosing("LP", &["logical", "physical"]),
        "uname" => choosing(
            "amnoprsv",
            &[
                "all",
                "kernel-name",
                "kernel-release",
                "kernel-version",
                "machine",
                "nodename",
                "operating-system",
                "hardware-platform",
                "processor",
            ],
        ),
        "nproc" => choosing("", &["all"]),
        "uptime" => choosing("ps", &["pretty", "since"]),
        // `-F` sets the name from a file, `-b` sets it, too.
        "hostname" => choosing("fisdAI", &["fqdn", "long", "short", "ip-address"]),
        "id" => choosing("GgnruzZ", &["group", "groups", "name", "real", "user"]),
        "free" => Options {
            flags: "bkmghltvw",
            long: &["bytes", "kibi", "mebi", "gibi", "human", "total", "wide"],
            ..Options::NONE
        },
        "lscpu" => choosing("abceJxy", &["all", "json", "hex", "bytes"]),
        "tty" => choosing("s", &["quiet", "silent"]),
        _ => Options::NONE,
    }
}

fn meaning(call: &ProgramCall<'_>) -> CommandMeaning {
    // Each word must be an option: a name sets the host's, a user is looked up.
    let is_flag = |word: &CommandWord<'_>| word.is_known() && word.is_option();
    let plain = call.words.iter().all(is_flag)
        && options(call.name)
            .split(call.words)
            .is_some_and(|given| given.words.is_empty() && given.values.is_empty());
    CommandMeaning {
        unknown: !plain,
        ..print_words(call)
    }
}

#[cfg(test)]
mod tests {
    use crate::tests::check;

    #[test]
    fn uname_means_what_its_words_say() {
        check(&[
            ("pwd", "only reads, prints words"),
            ("pwd -P", "only reads, prints words"),
            ("pwd -x", "only reads, prints words, unknown"),
            ("uname -a", "prints words"),
            ("uname -s -rm", "prints words"),
            ("uname -S a", "prints words, unknown"),
            ("uname --machine", "prints words"),
            ("uname a", "prints words, unknown"),
            ("uname \"$x\"", "unknown"),
            ("uname *", "Names *, unknown"),
            ("id -un", "prints words"),
            ("id root", "prints words, unknown"),
            ("nproc --all", "prints words"),
            ("free -h", "prints words"),
            ("free -s 1", "prints words, unknown"),
            ("uptime -p", "prints words"),
            ("whoami", "prints words"),
            ("wait -p x", "prints words, unknown"),
            ("hostname", "prints words"),
            ("hostname -f", "prints words"),
            ("hostname a", "prints words, unknown"),
            ("hostname -F a", "prints words, unknown"),
            ("hostname -", "prints words, unknown"),
        ]);
    }
}
