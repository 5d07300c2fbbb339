//! Which settings of git name files, and the words of their command lines.

use crate::workspace::git_file::Setting;

/// The names of hooks (githooks(5)).
pub(super) const HOOKS: [&str; 28] = [
    "applypatch-msg",
    "commit-msg",
    "fsmonitor-watchman",
    "p4-changelist",
    "p4-post-changelist",
    "p4-pre-submit",
    "p4-prepare-changelist",
    "post-applypatch",
    "post-checkout",
    "post-commit",
    "post-index-change",
    "post-merge",
    "post-receive",
    "post-rewrite",
    "post-update",
    "pre-applypatch",
    "pre-auto-gc",
    "pre-commit",
    "pre-merge-commit",
    "pre-push",
    "pre-rebase",
    "pre-receive",
    "prepare-commit-msg",
    "proc-receive",
    "push-to-checkout",
    "reference-transaction",
    "sendemail-validate",
    "update",
];

/// Programs that run a file that a plain name among their arguments names.
const INTERPRETERS: &str = "sh bash dash zsh ksh fish source . exec env sudo nohup awk gawk sed make node deno bun perl ruby php lua \
    python python2 python3 osascript pwsh tclsh";

/// What a setting names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SettingTarget {
    Nothing,
    /// A folder of hooks.
    Hooks,
    /// A folder with what each new repository gets.
    Template,
    /// A file that git reads.
    File,
    /// A file of further settings.
    Settings,
    /// Programs, as a command line for a shell.
    Programs,
}

/// Returns what a setting names. One that is not known may name programs.
pub(super) fn naming(setting: &Setting) -> SettingTarget {
    let is_url = |value: &str| !value.contains("::");
    match (&*setting.section, &*setting.key) {
        ("core", "hookspath") => SettingTarget::Hooks,
        ("init", "templatedir") => SettingTarget::Template,
        ("core", "attributesfile" | "excludesfile") => SettingTarget::File,
        ("include" | "includeif", "path") => SettingTarget::Settings,
        // Where files lie and what refs are called; nothing of it runs.
        ("core", "worktree")
        | ("branch", "merge" | "remote" | "pushremote" | "rebase" | "description")
        | ("remote", "fetch" | "push")
        | ("user" | "author" | "committer" | "color", _) => SettingTarget::Nothing,
        ("remote", "url" | "pushurl") | ("submodule", "url") if is_url(&setting.value) => {
            SettingTarget::Nothing
        }
        ("url", "insteadof" | "pushinsteadof") if is_url(&setting.value) => SettingTarget::Nothing,
        _ => SettingTarget::Programs,
    }
}

/// A word of a command line that may be a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Word {
    pub(super) text: String,
    /// Whether an interpreter is given it, which runs a file in a folder too.
    pub(super) is_interpreted: bool,
    /// Whether it is a path even if nothing exists there.
    pub(super) is_certain: bool,
}

/// Returns the words of a value that may be paths: those with a slash, also behind the letter of an option or a variable, and what an
/// interpreter is given.
pub(super) fn program_words(value: &str) -> Vec<Word> {
    let is_end = |c: char| {
        c.is_whitespace() || matches!(c, '"' | '\'' | '=' | ',' | '<' | '>' | '`' | '{' | '}')
    };
    let value = value.replace('\\', "");
    let mut found = Vec::new();
    for command in value.split([';', '|', '&', '(', ')', '!', '\n']) {
        let mut words = command.split(is_end).filter(|word| !word.is_empty());
        let Some(program) = words.next() else {
            continue;
        };
        let name = program.rsplit('/').next().unwrap_or(program);
        let interprets = INTERPRETERS.split(' ').any(|known| known == name);
        for (nth, word) in std::iter::once(program).chain(words).enumerate() {
            let has_slash = word.contains('/');
            if !has_slash && (nth == 0 || !interprets) {
                continue;
            }
            let add = |text: &str, is_certain| Word {
                text: text.to_owned(),
                is_interpreted: interprets && nth > 0,
                is_certain: is_certain && has_slash,
            };
            // The command of a remote helper: `ext::./x`.
            let word = word.rsplit_once("::").map_or(word, |(_, command)| command);
            found.push(add(word, !word.starts_with(['-', '$', '/'])));
            // Behind `-f`, `$HOME` and what a substitution makes.
            let at = word.find('/').unwrap_or_default();
            let rests = [
                word.get(2..).unwrap_or_default(),
                word.get(at + 1..).unwrap_or_default(),
            ];
            let rests = rests.into_iter().filter(|rest| !rest.is_empty());
            if word.starts_with(['-', '$', '/']) {
                found.extend(rests.map(|rest| add(rest, false)));
            }
        }
    }
    found
}
