//! Command rules that may be proposed: an exact line, or a known subcommand followed by any words.

use haft_shell::{base_name, is_shell, is_wrapper};

use crate::rules::words::pattern_words;
use haft_files::glob::GlobToken;

/// Programs that run code from their standard input or from an argument. A number after the name is a version.
const INTERPRETERS: &[&str] = &[
    "awk",
    "bb",
    "bun",
    "deno",
    "elixir",
    "emacs",
    "expect",
    "gawk",
    "groovy",
    "guile",
    "ipython",
    "julia",
    "lua",
    "luajit",
    "m4",
    "mawk",
    "nawk",
    "node",
    "nodejs",
    "octave",
    "osascript",
    "perl",
    "php",
    "powershell",
    "pwsh",
    "pypy",
    "python",
    "r",
    "racket",
    "rscript",
    "ruby",
    "scala",
    "sed",
    "tclsh",
    "ts-node",
    "tsx",
    "wish",
];

/// Programs whose arguments or input are a command of their own, besides the shells and wrappers of `haft-shell`.
const RUNNERS: &[&str] = &[
    ".", "at", "batch", "coproc", "csh", "eval", "fish", "mksh", "nu", "rbash", "source", "ssh",
    "tcsh", "toybox", "trap", "xonsh", "yash",
];

/// Programs that do what their input says, whatever their arguments: a rule for their arguments says nothing about that.
const READERS: &[&str] = &[
    "bc",
    "clickhouse-client",
    "cpio",
    "cqlsh",
    "dc",
    "duckdb",
    "ed",
    "erl",
    "ex",
    "ftp",
    "gdb",
    "ghci",
    "gnuplot",
    "iex",
    "irb",
    "jdb",
    "jshell",
    "lftp",
    "lldb",
    "mariadb",
    "mongo",
    "mongosh",
    "mysql",
    "nc",
    "ncat",
    "netcat",
    "nvim",
    "patch",
    "psql",
    "redis-cli",
    "sftp",
    "socat",
    "sqlite",
    "sqlplus",
    "swipl",
    "telnet",
    "vi",
    "view",
    "vim",
];

/// Git subcommands that change files according to their input where no argument names a file.
const GIT_READERS: &[&str] = &["am", "apply", "fast-import"];

/// Subcommands that any words may follow: none of their options names a file to write or a program to start. Calls that an allow rule
/// covers run without approval, so one such option would let everything in (`git log --output=FILE`, `cargo tree --config …`,
/// `go list -toolexec …`, `npm test --script-shell=…`, `pip list --log FILE`).
const SUBCOMMANDS: &[(&str, &[&str])] = &[(
    "git",
    &[
        "add",
        "commit",
        "describe",
        "ls-files",
        "rev-parse",
        "status",
    ],
)];

/// Says why a pattern for commands may not be proposed.
pub(crate) fn refuse(pattern: &str) -> Option<String> {
    // Split as the pattern itself splits: without quotes and escapes, with stars distinguished.
    let Ok(words) = pattern_words(pattern.trim()) else {
        return Some(TOO_WIDE.to_owned());
    };
    let is_star = |word: &Vec<GlobToken>| word.as_slice() == [GlobToken::Star];
    let (open, literal) = match words.split_last() {
        Some((last, before)) if is_star(last) => (true, before),
        _ => (false, words.as_slice()),
    };
    let Some(literal) = literal
        .iter()
        .map(|word| plain(word))
        .collect::<Option<Vec<String>>>()
    else {
        return Some(TOO_WIDE.to_owned());
    };
    match literal.as_slice() {
        [program, first, rest @ ..] => refuse_program(program).or_else(|| {
            if open {
                refuse_star(program, first)
            } else {
                refuse_exact(program, first, rest)
            }
        }),
        [program] => Some(refuse_program(program).unwrap_or_else(|| TOO_WIDE.to_owned())),
        [] => Some(TOO_WIDE.to_owned()),
    }
}

const TOO_WIDE: &str = "it is too wide: write the program and its first argument; a * may only be the last word, after a known subcommand, as in Bash(npm run test) or Bash(git add *)";

/// Returns a word without stars as text.
fn plain(word: &[GlobToken]) -> Option<String> {
    let sign = |piece: &GlobToken| match piece {
        GlobToken::Literal(c) => Some(*c),
        GlobToken::Star => None,
    };
    word.iter().map(sign).collect()
}

/// Returns the name of a program without folder and version: `python` for `/usr/bin/python3.11`.
fn stem(program: &str) -> String {
    let name = base_name(program).to_lowercase();
    let bare = name.trim_end_matches(|c: char| c.is_ascii_digit() || matches!(c, '.' | '-' | '_'));
    // A name of punctuation only, such as `.`, remains as it is.
    if bare.is_empty() {
        name
    } else {
        bare.to_owned()
    }
}

fn matches_program(program: &str, holds: impl Fn(&str) -> bool) -> bool {
    holds(base_name(program)) || holds(&stem(program))
}

/// Says what is wrong with the first word, whatever follows it.
fn refuse_program(program: &str) -> Option<String> {
    let fine = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-' | '+' | '/');
    if program.contains('=') {
        return Some("it sets a variable: write the program first".to_owned());
    }
    if program.starts_with('-') || base_name(program).is_empty() || !program.chars().all(fine) {
        return Some(format!(
            "its first word {program:?} is not a plain program name"
        ));
    }
    let runs = |name: &str| is_shell(name) || is_wrapper(name) || RUNNERS.contains(&name);
    matches_program(program, runs)
        .then(|| format!("{program} runs any command that it is given: name that command instead"))
}

/// Refuses an exact line only if the program runs what it reads or takes an argument as code; otherwise the line shows all that runs.
fn refuse_exact(program: &str, first: &str, rest: &[String]) -> Option<String> {
    let is_file = |word: &String| !word.starts_with('-');
    let git_reads = base_name(program) == "git" && GIT_READERS.contains(&first);
    if matches_program(program, |name| READERS.contains(&name))
        || git_reads && !rest.iter().any(is_file)
    {
        return Some(format!(
            "{program} does whatever its input says: the user has to decide each call"
        ));
    }
    let reads_code = matches_program(program, |name| INTERPRETERS.contains(&name));
    if reads_code && first.starts_with(['-', '+']) {
        return Some(format!(
            "{program} runs code that its options or its input hold: name a script"
        ));
    }
    let input = |word: &str| word == "-" || word.starts_with("/dev/");
    let mut words = std::iter::once(first).chain(rest.iter().map(String::as_str));
    words
        .any(input)
        .then(|| format!("{program} would work on whatever it reads: name a file"))
}

/// Refuses a pattern that ends in a star unless it is a known subcommand: a star matches any words, so they must not decide what runs.
fn refuse_star(program: &str, first: &str) -> Option<String> {
    if matches_program(program, |name| INTERPRETERS.contains(&name)) {
        return Some(format!(
            "a pattern for {program} covers anything: write the exact command"
        ));
    }
    let known = SUBCOMMANDS
        .iter()
        .find(|(name, _)| *name == program || *name == stem(program) && !program.contains('/'));
    let Some((_, subcommands)) = known else {
        return Some(format!(
            "a * may only follow a known subcommand, as in Bash(git add *), and {program} has none: write the exact command"
        ));
    };
    (!subcommands.contains(&first)).then(|| {
        format!(
            "{program} {first} has options that write a file or start a program, and a * lets them in: write the exact command, \
            or one of {}",
            subcommands.join(", ")
        )
    })
}
