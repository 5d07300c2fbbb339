//! Tables of the options with which commands remain understood.

use haft_shell::Options;

/// `sort`, without options that write (`-o`, `-T`) or run a program.
pub(super) const SORT: Options = Options {
    flags: "bdfgiMhnRrVCcmsuz",
    valued: "ktS",
    joined: "",
    long: &[
        "check",
        "dictionary-order",
        "general-numeric-sort",
        "human-numeric-sort",
        "ignore-case",
        "ignore-leading-blanks",
        "ignore-nonprinting",
        "merge",
        "month-sort",
        "numeric-sort",
        "reverse",
        "stable",
        "unique",
        "version-sort",
        "zero-terminated",
    ],
    long_valued: &["buffer-size", "field-separator", "key", "parallel", "sort"],
    number: false,
};

pub(super) const UNIQ: Options = Options {
    flags: "cdDuiz",
    valued: "fsw",
    joined: "",
    long: &[
        "count",
        "repeated",
        "ignore-case",
        "unique",
        "zero-terminated",
    ],
    long_valued: &["check-chars", "skip-chars", "skip-fields"],
    number: false,
};

/// `jq`, without options that read modules, files or the environment.
pub(super) const JQ: Options = Options {
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

/// `rg`, without options that run a program (`--pre`, `-z`) or read patterns from a file.
pub(super) const RG: Options = Options {
    flags: "acFHhIiLlNnopqSsUuvwx0.P",
    valued: "ABCEegjMmrTt",
    joined: "",
    long: &[
        "case-sensitive",
        "column",
        "count",
        "count-matches",
        "crlf",
        "debug",
        "files",
        "files-with-matches",
        "files-without-match",
        "fixed-strings",
        "follow",
        "glob-case-insensitive",
        "heading",
        "hidden",
        "ignore-case",
        "invert-match",
        "json",
        "line-number",
        "line-regexp",
        "max-columns-preview",
        "multiline",
        "multiline-dotall",
        "no-column",
        "no-config",
        "no-filename",
        "no-heading",
        "no-ignore",
        "no-ignore-vcs",
        "no-line-number",
        "no-messages",
        "null",
        "null-data",
        "one-file-system",
        "only-matching",
        "passthru",
        "pcre2",
        "pretty",
        "quiet",
        "smart-case",
        "stats",
        "text",
        "trim",
        "type-list",
        "unicode",
        "unrestricted",
        "vimgrep",
        "with-filename",
        "word-regexp",
    ],
    long_valued: &[
        "after-context",
        "before-context",
        "color",
        "colors",
        "context",
        "encoding",
        "glob",
        "iglob",
        "max-columns",
        "max-count",
        "max-depth",
        "max-filesize",
        "path-separator",
        "regexp",
        "replace",
        "sort",
        "sortr",
        "threads",
        "type",
        "type-not",
    ],
    number: false,
};

/// `cp` of files, without folders, links and backups.
pub(super) const CP: Options = Options {
    flags: "finupv",
    valued: "",
    joined: "",
    long: &[
        "force",
        "interactive",
        "no-clobber",
        "preserve",
        "update",
        "verbose",
    ],
    long_valued: &[],
    number: false,
};

pub(super) const MV: Options = Options {
    flags: "finuv",
    valued: "",
    joined: "",
    long: &["force", "interactive", "no-clobber", "update", "verbose"],
    long_valued: &[],
    number: false,
};

/// `rm` of files, without folders.
pub(super) const RM: Options = Options {
    flags: "fiIv",
    valued: "",
    joined: "",
    long: &["force", "verbose"],
    long_valued: &[],
    number: false,
};

/// `mkdir` without modes.
pub(super) const MKDIR: Options = Options {
    flags: "pv",
    valued: "",
    joined: "",
    long: &["parents", "verbose"],
    long_valued: &[],
    number: false,
};

/// `touch` with the current time.
pub(super) const TOUCH: Options = Options {
    flags: "acm",
    valued: "",
    joined: "",
    long: &["no-create"],
    long_valued: &[],
    number: false,
};

pub(super) const TEE: Options = Options {
    flags: "ai",
    valued: "",
    joined: "",
    long: &["append", "ignore-interrupts"],
    long_valued: &[],
    number: false,
};
