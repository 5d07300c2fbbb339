//! The table of commands that run other commands, and how to read their own words.

use crate::looks::FirstLook;
use crate::options::Options;

/// Whether a wrapper does nothing but run its command: clause 5 of the shell rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Transparency {
    /// The wrapper may change what the command does: its user, its variables, its root.
    None,
    /// The wrapper changes nothing if it has no options.
    Bare,
    /// The wrapper changes nothing, even with its known options.
    WithOptions,
}

/// How to read the words of a wrapper up to the command that it runs.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wrapper {
    pub(crate) name: &'static str,
    pub(crate) transparency: Transparency,
    pub(crate) options: Options,
    /// Number of its own words after the options; `None` if options and words mix, so that any word may begin the command.
    pub(crate) operands: Option<usize>,
}

impl Wrapper {
    const fn new(name: &'static str, transparency: Transparency, options: Options) -> Self {
        Self {
            name,
            transparency,
            options,
            operands: Some(0),
        }
    }

    /// Creates a wrapper without known options: after any option, each word may begin the command.
    const fn plain(name: &'static str) -> Self {
        Self::new(name, Transparency::None, Options::NONE)
    }

    /// Creates a wrapper whose options and words mix.
    const fn with_mixed_options(name: &'static str) -> Self {
        Self {
            operands: None,
            ..Self::plain(name)
        }
    }

    const fn with_operands(mut self, operands: usize) -> Self {
        self.operands = Some(operands);
        self
    }
}

const TIMEOUT: Options = Options {
    flags: "fpv",
    valued: "ks",
    long: &["foreground", "preserve-status", "verbose"],
    long_valued: &["kill-after", "signal"],
    ..Options::NONE
};
const NICE: Options = Options {
    valued: "n",
    long_valued: &["adjustment"],
    number: true,
    ..Options::NONE
};
const STDBUF: Options = Options {
    valued: "eio",
    long_valued: &["error", "input", "output"],
    ..Options::NONE
};
const XARGS: Options = Options {
    flags: "0oprtx",
    valued: "EILPadns",
    joined: "eil",
    long: &[
        "eof",
        "exit",
        "interactive",
        "max-lines",
        "no-run-if-empty",
        "null",
        "open-tty",
        "replace",
        "verbose",
    ],
    long_valued: &[
        "arg-file",
        "delimiter",
        "max-args",
        "max-chars",
        "max-procs",
        "process-slot-var",
    ],
    ..Options::NONE
};
const ENV: Options = Options {
    flags: "0iv",
    valued: "Cu",
    long: &["debug", "ignore-environment", "null"],
    long_valued: &["chdir", "unset"],
    ..Options::NONE
};
const SUDO: Options = Options {
    flags: "AEHKPSbikns",
    valued: "CDRTUghpru",
    ..Options::NONE
};
const EXEC: Options = Options {
    flags: "cl",
    valued: "a",
    ..Options::NONE
};
const IONICE: Options = Options {
    flags: "t",
    valued: "cn",
    ..Options::NONE
};

/// Every command that the rules look through.
const WRAPPERS: &[Wrapper] = &[
    Wrapper::new("timeout", Transparency::WithOptions, TIMEOUT).with_operands(1),
    Wrapper::new("nice", Transparency::WithOptions, NICE),
    Wrapper::new("stdbuf", Transparency::WithOptions, STDBUF),
    Wrapper::new(
        "time",
        Transparency::WithOptions,
        Options {
            flags: "p",
            ..Options::NONE
        },
    ),
    Wrapper::new("nohup", Transparency::Bare, Options::NONE),
    Wrapper::new(
        "command",
        Transparency::Bare,
        Options {
            flags: "p",
            ..Options::NONE
        },
    ),
    Wrapper::new("builtin", Transparency::Bare, Options::NONE),
    Wrapper::new("noglob", Transparency::Bare, Options::NONE),
    Wrapper::new("xargs", Transparency::Bare, XARGS),
    Wrapper::new("env", Transparency::None, ENV),
    Wrapper::new("sudo", Transparency::None, SUDO),
    Wrapper::new("exec", Transparency::None, EXEC),
    Wrapper::new(
        "jobs",
        Transparency::None,
        Options {
            flags: "lnprsx",
            ..Options::NONE
        },
    ),
    Wrapper::new("ionice", Transparency::None, IONICE),
    Wrapper::new(
        "setsid",
        Transparency::None,
        Options {
            flags: "cfw",
            ..Options::NONE
        },
    ),
    Wrapper::plain("busybox"),
    Wrapper::plain("chroot").with_operands(1),
    Wrapper::plain("chrt").with_operands(1),
    Wrapper::plain("doas"),
    Wrapper::plain("fakeroot"),
    Wrapper::with_mixed_options("flock"),
    Wrapper::plain("ltrace"),
    Wrapper::plain("nsenter"),
    Wrapper::with_mixed_options("parallel"),
    Wrapper::plain("pkexec"),
    Wrapper::plain("prlimit"),
    Wrapper::with_mixed_options("runuser"),
    Wrapper::with_mixed_options("script"),
    Wrapper::with_mixed_options("setarch"),
    Wrapper::plain("setpriv"),
    Wrapper::plain("strace"),
    Wrapper::with_mixed_options("su"),
    Wrapper::with_mixed_options("systemd-run"),
    Wrapper::plain("taskset").with_operands(1),
    Wrapper::plain("unshare"),
    Wrapper::plain("watch"),
];

const FIRST_LOOK: FirstLook = {
    let (mut look, mut at) = (FirstLook::NONE, 0);
    while at < WRAPPERS.len() {
        look = look.with_name(WRAPPERS[at].name);
        at += 1;
    }
    look
};

/// Returns the wrapper with this name.
pub(crate) fn wrapper(name: &str) -> Option<&'static Wrapper> {
    if !FIRST_LOOK.may_be(name) {
        return None;
    }
    WRAPPERS.iter().find(|wrapper| wrapper.name == name)
}
