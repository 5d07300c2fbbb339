//! The kinds of tools that most agents have, and what a call of each would do, from its input.
//!
//! Versions of an agent spell members differently (`file_path`, `path`, `filePath`), and only the agent knows which spelling counts. So
//! every spelling in the input is judged. A call whose input lacks what its kind of tool needs is [`CallAction::Other`], never a note.

use haft_json::view::View;

use crate::action::{AgentCommand, CallAction, EditKind};
use crate::input::{MemberTexts, ScannedJson, is_json};
use crate::patch;

/// Members that hold one path.
pub(crate) const PATHS: [&str; 8] = [
    "file_path",
    "path",
    "filePath",
    "absolute_path",
    "notebook_path",
    "target_file",
    "filename",
    "file",
];

/// Members that hold the folder of a search or a listing.
const FOLDERS: [&str; 7] = [
    "path",
    "dir_path",
    "file_path",
    "directory",
    "directory_path",
    "folder",
    "target_directory",
];

/// Members that hold patterns of paths. Patterns of text are not among them.
const PATTERNS: [&str; 6] = [
    "glob",
    "include",
    "include_pattern",
    "glob_pattern",
    "file_pattern",
    "filePattern",
];

/// Members that hold the folder in which a command starts.
const STARTS_IN: [&str; 6] = [
    "cwd",
    "workdir",
    "dir_path",
    "working_directory",
    "workingDirectory",
    "directory",
];

/// Members that say whether the agent goes on while a command runs.
const BACKGROUND: [&str; 4] = [
    "run_in_background",
    "is_background",
    "isBackground",
    "background",
];

/// Members that hold a patch.
const PATCHES: [&str; 6] = [
    "command",
    "patch",
    "patchText",
    "input",
    "patch_text",
    "diff",
];

/// Why haft does not read a PowerShell line.
pub(crate) const POWERSHELL: &str = "it is a line of PowerShell, which haft does not read";

/// Why haft does not judge a text in JSON as a line: the tool may start the commands in it.
pub(crate) const JSON_COMMAND: &str = "the command is JSON, not a line of a shell";

/// A tool that starts a command. In this agent's tools the members `names` hold the command and `folders` hold where it starts. Another
/// spelling of such a folder may or may not count in an unknown version, so it makes the call unknown.
pub(crate) fn command(
    input: &ScannedJson<'_>,
    names: &[&str],
    folders: &[&str],
) -> Vec<CallAction> {
    let known = input.texts(folders);
    let cwd = known.texts.first();
    let mut actions = Vec::new();
    for member in names.iter().filter_map(|name| input.get(name)) {
        match member.as_str() {
            Some(line) if line.trim().is_empty() => {}
            Some(line) if is_json(&line) => actions.push(CallAction::unknown_command(
                Some(line.into_owned()),
                JSON_COMMAND,
            )),
            Some(line) => actions.push(CallAction::line(line.into_owned(), cwd.cloned())),
            None => actions.push(argv(member, cwd)),
        }
    }
    let mut goes_on = BACKGROUND.iter().filter_map(|name| input.get(name));
    if goes_on.any(|member| member.as_bool() == Some(true)) {
        for action in &mut actions {
            if let CallAction::Command(command) = action {
                command.background = true;
            }
        }
    }
    let mut others = STARTS_IN.iter().filter(|name| !folders.contains(name));
    let is_odd = known.is_odd || known.texts.len() > 1;
    if is_odd || others.any(|name| input.get(name).is_some()) {
        actions.push(CallAction::other(
            "it may start in another folder than haft knows",
        ));
    }
    or_other(actions, "a command without a line")
}

/// A program and its arguments, as a list of strings.
fn argv(member: View<'_>, cwd: Option<&String>) -> CallAction {
    let words = member.items().map(|item| Some(item.as_str()?.into_owned()));
    match words.collect::<Option<Vec<String>>>() {
        Some(words) if !words.is_empty() => CallAction::Command(AgentCommand {
            argv: Some(words),
            cwd: cwd.cloned(),
            ..AgentCommand::default()
        }),
        _ => CallAction::unknown_command(None, "the command is neither a line nor a list of words"),
    }
}

/// A tool that starts commands in a shell that haft does not read.
pub(crate) fn foreign_command(input: &ScannedJson<'_>, why: &'static str) -> Vec<CallAction> {
    vec![CallAction::unknown_command(
        input.any_text(&["command", "input"]),
        why,
    )]
}

/// A tool that reads files.
pub(crate) fn read(input: &ScannedJson<'_>, names: &[&str]) -> Vec<CallAction> {
    let MemberTexts { texts, is_odd } = input.texts(names);
    let actions = texts.into_iter().map(|path| CallAction::Read { path });
    finish(
        actions.collect(),
        is_odd,
        "it reads a file that it does not name",
    )
}

/// A tool that changes files.
pub(crate) fn edit(input: &ScannedJson<'_>, change: EditKind) -> Vec<CallAction> {
    let MemberTexts { texts, is_odd } = input.texts(&PATHS);
    let actions = texts
        .into_iter()
        .map(|path| CallAction::Edit { path, change });
    let why = "it changes a file that it does not name";
    finish(actions.collect(), is_odd, why)
}

/// A tool that lists or searches the files below folders, by patterns of paths. In this agent's tools the members `own` hold the folder;
/// without one the tool searches the folder that the agent works in.
pub(crate) fn search(input: &ScannedJson<'_>, own: &[&str]) -> Vec<CallAction> {
    below(input, own, &PATTERNS)
}

/// A tool that lists files by a `pattern` of paths.
pub(crate) fn glob(input: &ScannedJson<'_>, own: &[&str]) -> Vec<CallAction> {
    let mut names = PATTERNS.to_vec();
    names.push("pattern");
    below(input, own, &names)
}

/// A tool that reads every file that patterns match, without a folder of its own.
pub(crate) fn read_patterns(input: &ScannedJson<'_>, names: &[&str]) -> Vec<CallAction> {
    let MemberTexts { texts, is_odd } = input.texts(names);
    let mut actions = Vec::new();
    for pattern in texts {
        if reaches_by_choice(&pattern) {
            actions.push(CallAction::other("a pattern with a choice of folders"));
        }
        if pattern.contains(['*', '?', '[', '{']) {
            actions.push(CallAction::Read {
                path: fixed_part(&pattern),
            });
        }
        actions.push(CallAction::Read { path: pattern });
    }
    finish(actions, is_odd, "it reads files that it does not name")
}

fn below(input: &ScannedJson<'_>, own: &[&str], names: &[&str]) -> Vec<CallAction> {
    if !input.is_object() {
        return vec![CallAction::other("its input is not an object")];
    }
    let patterns = input.texts(names);
    let folders = input.texts(&FOLDERS);
    let is_odd = folders.is_odd || patterns.is_odd;
    let mut folders = folders.texts;
    if input.any_text(own).is_none() {
        folders.push(".".to_owned());
    }
    let mut actions: Vec<CallAction> = Vec::new();
    for pattern in &patterns.texts {
        if reaches_by_choice(pattern) {
            actions.push(CallAction::other("a pattern with a choice of folders"));
        }
        for folder in &folders {
            let path = join(folder, pattern);
            if leaves(pattern) {
                actions.push(CallAction::Read {
                    path: fixed_part(&path),
                });
            }
            actions.push(CallAction::Read { path });
        }
    }
    actions.extend(folders.into_iter().map(|path| CallAction::Read { path }));
    finish(
        actions,
        is_odd,
        "it searches a folder that it does not name",
    )
}

/// Joins a pattern to a folder, unless the pattern is absolute.
fn join(folder: &str, pattern: &str) -> String {
    if folder == "." || is_absolute(pattern) {
        return pattern.to_owned();
    }
    format!("{}/{pattern}", folder.trim_end_matches('/'))
}

fn is_absolute(path: &str) -> bool {
    let drive = path.as_bytes().get(1) == Some(&b':');
    path.starts_with(['/', '\\', '~']) || drive
}

/// Whether a pattern may match files outside its folder.
fn leaves(pattern: &str) -> bool {
    is_absolute(pattern) || pattern.split(['/', '\\']).any(|part| part == "..")
}

/// Whether a pattern has folders within `{…}`, so that its beginning does not tell what it reaches.
fn reaches_by_choice(pattern: &str) -> bool {
    let mut choices = pattern.split('{').skip(1);
    choices.any(|choice| choice.contains(['/', '\\', '~']) || choice.contains(".."))
}

/// Returns the folders of a pattern before its first wildcard.
fn fixed_part(pattern: &str) -> String {
    let fixed: Vec<&str> = pattern
        .split('/')
        .take_while(|part| !part.contains(['*', '?', '[', '{']))
        .collect();
    match fixed.join("/") {
        fixed if !fixed.is_empty() => fixed,
        _ if pattern.starts_with('/') => "/".to_owned(),
        _ => ".".to_owned(),
    }
}

/// A tool that fetches pages by their URLs.
pub(crate) fn fetch(input: &ScannedJson<'_>, names: &[&str]) -> Vec<CallAction> {
    let MemberTexts { texts, is_odd } = input.texts(names);
    let actions = texts.into_iter().map(|url| CallAction::Fetch { url });
    finish(
        actions.collect(),
        is_odd,
        "it fetches a page that it does not name",
    )
}

/// Finds the URLs in a text that a model wrote.
pub(crate) fn addresses(text: &str) -> Vec<CallAction> {
    let words = text.split_whitespace();
    let urls = words.filter(|word| word.contains("://"));
    urls.map(|word| CallAction::Fetch {
        url: address_in(word).to_owned(),
    })
    .collect()
}

/// Strips a URL of the punctuation around it: `(https://a.example/b),` becomes `https://a.example/b`.
fn address_in(word: &str) -> &str {
    let scheme_end = word.find("://").unwrap_or_default();
    let before = &word[..scheme_end];
    let scheme = before
        .rfind(|c: char| !c.is_ascii_alphanumeric() && !matches!(c, '+' | '-' | '.'))
        .and_then(|at| before[at..].chars().next().map(|c| at + c.len_utf8()))
        .unwrap_or_default();
    word[scheme..].trim_end_matches(['.', ',', ';', '!', ')', ']', '}', '>', '"', '\'', '`'])
}

/// A tool that applies a patch.
pub(crate) fn apply_patch(input: &ScannedJson<'_>) -> Vec<CallAction> {
    if let Some(text) = input.view().as_str() {
        return patch::files(&text);
    }
    let MemberTexts { texts, is_odd } = input.texts(&PATCHES);
    let actions = texts.iter().flat_map(|text| patch::files(text)).collect();
    finish(actions, is_odd, "a patch without its text")
}

/// A tool that touches nothing outside the conversation, if its input has one of these members. Without names, its input must be an empty
/// object.
pub(crate) fn note(input: &ScannedJson<'_>, names: &[&str]) -> Vec<CallAction> {
    let fits = match names {
        [] => input.is_object() && input.view().members().next().is_none(),
        names => names.iter().any(|name| input.get(name).is_some()),
    };
    if fits {
        return vec![CallAction::Note];
    }
    vec![CallAction::other("its input is not what this tool takes")]
}

/// A tool that this crate does not know.
pub(crate) fn unknown() -> Vec<CallAction> {
    vec![CallAction::other("the tool is not known to haft")]
}

/// A known tool whose effects no rule of haft can cover.
pub(crate) fn ungoverned() -> Vec<CallAction> {
    vec![CallAction::ungoverned()]
}

/// A tool that searches the web: the agent's vendor does it, and strangers wrote what it finds.
pub(crate) fn web_search() -> Vec<CallAction> {
    vec![CallAction::other(
        "no kind of rule covers a search of the web",
    )]
}

fn finish(mut actions: Vec<CallAction>, is_odd: bool, why: &'static str) -> Vec<CallAction> {
    if is_odd {
        actions.push(CallAction::other(
            "a member of its input is of an unexpected type",
        ));
    }
    or_other(actions, why)
}

pub(crate) fn or_other(actions: Vec<CallAction>, why: &'static str) -> Vec<CallAction> {
    if actions.is_empty() {
        return vec![CallAction::other(why)];
    }
    actions
}
