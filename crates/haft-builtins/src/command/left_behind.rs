//! Says in a command's result what it left that is gone: processes, and files in its own HOME. Else a model believes that a package is
//! installed, or that a server runs.

use std::path::Path;

use haft::text::visible;
use haft_sandbox::Exit;

/// How the note on processes begins.
pub(super) const PROCESSES_NOTE: &str = "Ended with the command that left them running";
/// How the note on files begins.
pub(super) const HOME_NOTE: &str = "Written in the command's own home, and gone with it";
/// Maximum number of names in a note.
const MAX_NAMED: usize = 6;

/// Programs that others leave behind without being asked; the next command starts them anew.
const HELPERS: [&str; 9] = [
    "dbus-daemon",
    "dconf-service",
    "dirmngr",
    "git",
    "git-maintenance",
    "gpg-agent",
    "keyboxd",
    "sccache",
    "scdaemon",
];

/// Caches, logs and histories below HOME, by how their paths begin, and what programs put into `/tmp`, which HOME is, under such names.
const PASSING: [&str; 62] = [
    ".ICE-unix",
    ".Test-unix",
    ".X",
    ".android/cache",
    ".bash_history",
    ".bun/install",
    ".bundle/cache",
    ".cache",
    ".cargo/.global-cache",
    ".cargo/.package-cache",
    ".com.google.",
    ".composer/cache",
    ".config/chromium",
    ".config/configstore",
    ".config/go",
    ".config/google-chrome",
    ".config/matplotlib",
    ".config/nextjs-nodejs",
    ".dotnet/TelemetryStorageService",
    ".dotnet/corefx",
    ".font-unix",
    ".fuse",
    ".gnupg/.#",
    ".gnupg/S.",
    // haft puts public keys there, and gpg writes beside them.
    ".gnupg/pubring.gpg",
    ".gnupg/random_seed",
    ".gnupg/trustdb.gpg",
    ".gradle",
    ".ivy2",
    ".java",
    ".konan",
    ".kotlin",
    ".lesshst",
    ".local/share/NuGet",
    ".local/share/pnpm/store",
    ".local/share/virtualenv",
    ".local/state",
    ".m2/repository",
    ".m2/wrapper",
    ".mono",
    ".nfs",
    ".node_repl_history",
    ".npm/_cacache",
    ".npm/_logs",
    ".npm/_npx",
    ".npm/_prebuilds",
    ".npm/_update-notifier-last-checked",
    ".nuget",
    ".nv",
    ".org.chromium.",
    ".pki",
    ".psql_history",
    ".python_history",
    ".s.PGSQL",
    ".sqlite_history",
    ".templateengine",
    ".tmp",
    ".v8flags",
    ".viminfo",
    ".wget-hsts",
    ".yarnrc",
    "go/pkg",
];

/// Folders of which a note names what is in them.
const SHARED: [&str; 6] = [".cargo", ".config", ".dotnet", ".m2", ".npm", "go"];

/// Returns the notes on what a command left.
pub(super) fn notes(exit: &Exit) -> Vec<String> {
    let processes = exit.left.processes.iter().map(String::as_str);
    let processes = processes.filter(|name| !HELPERS.contains(name));
    let processes: Vec<String> = processes.map(visible::line).collect();
    let mut files: Vec<String> = Vec::new();
    for path in exit.left.home.iter().filter(|path| !is_passing(path)) {
        let name = format!("~/{}", visible::line(&named(path).to_string_lossy()));
        if !files.contains(&name) {
            files.push(name);
        }
    }
    let mut notes = Vec::new();
    if !processes.is_empty() {
        notes.push(format!(
            "{PROCESSES_NOTE}: {}. A server that is to go on is started by a command of its own in the background",
            listed(&processes)
        ));
    }
    if !files.is_empty() {
        notes.push(format!(
            "{HOME_NOTE}: {}. Install into the workspace (`python3 -m venv .venv`, `npm install`), or have the user name a folder in sandbox.write",
            listed(&files)
        ));
    }
    notes
}

/// Whether a path of HOME is one that nobody misses.
fn is_passing(path: &Path) -> bool {
    let path = path.to_string_lossy();
    PASSING.iter().any(|start| path.starts_with(start))
}

/// Returns what a note names for a path: the first folder, or the second where the first is shared by many things.
fn named(path: &Path) -> &Path {
    let mut above: Vec<&Path> = path.ancestors().collect();
    above.retain(|one| !one.as_os_str().is_empty());
    let is_shared = SHARED.iter().any(|shared| path.starts_with(shared));
    let level = if is_shared { 2 } else { 1 };
    let at = above.len().saturating_sub(level);
    above.get(at).copied().unwrap_or(path)
}

fn listed(names: &[String]) -> String {
    let quoted: Vec<String> = names
        .iter()
        .take(MAX_NAMED)
        .map(|name| format!("`{name}`"))
        .collect();
    let more = names.len().saturating_sub(MAX_NAMED);
    let more = if more > 0 {
        format!(" and {more} more")
    } else {
        String::new()
    };
    quoted.join(", ") + &more
}

#[cfg(test)]
mod tests {
    use haft_sandbox::LeftBehind;

    use super::*;

    #[test]
    fn what_a_command_left_is_named_and_what_nobody_misses_is_not() {
        let exit = |processes: &[&str], home: &[&str]| Exit {
            left: LeftBehind {
                processes: processes.iter().map(ToString::to_string).collect(),
                home: home.iter().map(Into::into).collect(),
            },
            ..exit()
        };
        for (processes, home, expect) in [
            (&[][..], &[][..], vec![]),
            (
                &["node", "gpg-agent"],
                &[],
                vec!["left them running: `node`. A"],
            ),
            (
                &[],
                &[".gitconfig", ".local/lib/python3.11", ".local/bin/x"],
                vec!["gone with it: `~/.gitconfig`, `~/.local`. Install"],
            ),
            (
                &[],
                &[".cargo/bin", ".npm/_logs", ".npmrc", "go/bin", "go/pkg"],
                vec!["gone with it: `~/.cargo/bin`, `~/.npmrc`, `~/go/bin`. Install"],
            ),
            (&["git"], &[".cache/x", ".local/state/y", ".tmpAb3"], vec![]),
            (
                &["a\u{1b}[2J", "b"],
                &[".1", ".2", ".3", ".4", ".5", ".6", ".7"],
                vec!["running: `a", "`~/.6` and 1 more. Install"],
            ),
        ] {
            let notes = notes(&exit(processes, home));
            assert_eq!(notes.len(), expect.len(), "{notes:?}");
            for (note, part) in notes.iter().zip(expect) {
                assert!(note.contains(part) && !note.contains('\u{1b}'), "{note}");
            }
        }
    }

    fn exit() -> Exit {
        Exit {
            code: Some(0),
            signal: None,
            timed_out: false,
            killed: false,
            over_memory: false,
            took: std::time::Duration::ZERO,
            guard_events: Vec::new(),
            left: LeftBehind::default(),
        }
    }
}
