//! Variables whose values a shell, or a program that looks for them, runs.

use crate::variables::is_private;
use crate::word::is_assignment;

/// What becomes of a variable's value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ValueUse {
    /// A shell prints it as a prompt, and runs the substitutions in it.
    Prompt,
    /// A shell runs the file that it names.
    Script,
    /// A shell defines a function by it.
    Function,
    /// A shell or another program runs it as a command.
    Command,
    /// A program may read it, and do with it what it likes.
    Read,
    /// Nothing but the line itself reads it.
    Private,
}

/// Variables that bash prints as prompts (bash(1) "PROMPTING"): `PS4` before each command of a shell with `set -x`.
const PROMPTS: &[&str] = &["PS0", "PS1", "PS2", "PS3", "PS4"];
/// Files that shells run when they start (bash(1) "INVOCATION").
const SCRIPTS: &[&str] = &["BASH_ENV", "ENV"];
/// The beginning of the names by which bash takes functions from its environment.
const FUNCTIONS: &str = "BASH_FUNC_";
/// Commands that shells, git, pagers and other common programs start. A list of all programs cannot be whole: what it lacks is [`ValueUse::Read`].
const COMMANDS: &[&str] = &[
    "BAT_PAGER",
    "BROWSER",
    "CVS_RSH",
    "DELTA_PAGER",
    "EDITOR",
    "FCEDIT",
    "FZF_DEFAULT_COMMAND",
    "GH_EDITOR",
    "GH_PAGER",
    "GIT_ASKPASS",
    "GIT_EDITOR",
    "GIT_EXTERNAL_DIFF",
    "GIT_PAGER",
    "GIT_PROXY_COMMAND",
    "GIT_SEQUENCE_EDITOR",
    "GIT_SSH",
    "GIT_SSH_COMMAND",
    "HGEDITOR",
    "KUBE_EDITOR",
    "LESSCLOSE",
    "LESSOPEN",
    "MANPAGER",
    "PAGER",
    "PROMPT_COMMAND",
    "PSQL_EDITOR",
    "PSQL_PAGER",
    "RSYNC_RSH",
    "SHELL",
    "SSH_ASKPASS",
    "SUDO_ASKPASS",
    "SUDO_EDITOR",
    "SVN_EDITOR",
    "SVN_SSH",
    "SYSTEMD_EDITOR",
    "SYSTEMD_PAGER",
    "TAR_RSH",
    "VISUAL",
    "npm_config_editor",
    "npm_config_script_shell",
];

/// Returns what becomes of the value of a variable.
///
/// ```
/// use haft_shell::{ValueUse, value_use};
///
/// assert_eq!(value_use("PS4"), ValueUse::Prompt);
/// assert_eq!(value_use("GIT_EDITOR"), ValueUse::Command);
/// assert_eq!(value_use("RUSTFLAGS"), ValueUse::Read);
/// assert_eq!(value_use("file"), ValueUse::Private);
/// ```
pub fn value_use(name: &str) -> ValueUse {
    match name {
        name if PROMPTS.contains(&name) => ValueUse::Prompt,
        name if SCRIPTS.contains(&name) => ValueUse::Script,
        name if name.starts_with(FUNCTIONS) => ValueUse::Function,
        name if COMMANDS.contains(&name) => ValueUse::Command,
        name if is_private(name) => ValueUse::Private,
        _ => ValueUse::Read,
    }
}

/// Returns true if bash reads the variable when it starts, and runs what it says.
pub fn runs_at_start(name: &str) -> bool {
    matches!(value_use(name), ValueUse::Script | ValueUse::Function)
}

/// Splits `NAME=VALUE`, `NAME+=VALUE` and `NAME[INDEX]=VALUE`, and a function as `env` can set one.
pub fn split_assignment(word: &str) -> Option<(&str, &str)> {
    let (left, value) = word.split_once('=')?;
    if left.starts_with(FUNCTIONS) {
        return Some((left, value));
    }
    if !is_assignment(word) {
        return None;
    }
    let name = left.split(['[', '+']).next().unwrap_or(left);
    Some((name, value))
}
