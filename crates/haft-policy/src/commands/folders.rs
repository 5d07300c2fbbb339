//! The folders in which a call's commands run, where their relative paths start.

use haft_command::folder_of;
use haft_shell::may_spell;

use crate::commands::remembered::parse_line;
use crate::judged_call::JudgedCall;
use haft_files::paths::clean;
use haft_types::permission::{Effect, Permission};

/// Whether a command that is only partly known before run time may change the folder. One that cannot be parsed may.
pub(crate) fn may_move(command: &str) -> bool {
    let named = ["cd", "pushd", "popd"];
    named.iter().any(|name| may_spell(command, name))
        && parse_line(command).map_or(true, |read| {
            let mut parts = read.commands.iter();
            parts.any(|part| folder_of(&part.words).is_some())
        })
}

/// Returns where a command goes if it changes the folder for those after it; empty where that is unknown.
pub(crate) fn moves(permission: &Permission) -> Option<&str> {
    match &permission.effect {
        Effect::Run {
            argv: Some(words), ..
        } => folder_of(words),
        Effect::Run { command, .. } => may_move(command).then_some(""),
        _ => None,
    }
}

/// Returns the folder that the call names in `cwd`, cleaned; `.` where it names none.
fn start(call: &JudgedCall<'_>) -> String {
    let cwd = call.value().get("cwd");
    clean(cwd.and_then(serde_json::Value::as_str).unwrap_or(""))
}

/// Whether its commands may run in a folder other than the workspace's root.
pub(crate) fn may_change_folder(call: &JudgedCall<'_>) -> bool {
    start(call) != "." || changes_folder(call)
}

/// Whether one of its commands changes to another folder.
pub(crate) fn changes_folder(call: &JudgedCall<'_>) -> bool {
    // Asked for each of thousands of changed files, by calls that run nothing.
    call.runs_command() && call.permissions.iter().any(|p| moves(p).is_some())
}

/// Returns every folder that a relative path of its commands may start at: the initial one, and the target of each `cd`. Each is
/// relative to the workspace, or absolute.
pub(crate) fn folders(call: &JudgedCall<'_>) -> Vec<String> {
    let mut folders = vec![start(call)];
    for folder in call.permissions.iter().filter_map(moves) {
        if let Some(last) = folders.last() {
            folders.push(within(last, folder));
        }
    }
    folders
}

/// Whether it changes to an unknown folder.
pub(crate) fn changes_to_unknown_folder(call: &JudgedCall<'_>) -> bool {
    call.permissions.iter().any(|p| moves(p) == Some(""))
}

/// Returns a path that a command names in a folder, as rules on files see it. A path that leaves the workspace by `..` becomes
/// absolute, since it may lead back in.
pub(crate) fn named(folder: &str, path: &str, workspace: Option<&str>) -> String {
    let path = within(folder, path);
    match workspace {
        Some(root) if path.split('/').next() == Some("..") => within(root, &path),
        _ => path,
    }
}

/// Resolves a path against a folder.
pub(crate) fn within(folder: &str, path: &str) -> String {
    if path.starts_with('/') || folder == "." {
        clean(path)
    } else {
        clean(&format!("{folder}/{path}"))
    }
}
