//! Commands at whose prompt a typed line is a command line: shells, and programs that start one.

use haft::policy::{CommandLine, CommandPart};

/// Shells: what they read from a terminal they run, unless they run a script.
const SHELLS: [&str; 19] = [
    "sh", "bash", "rbash", "dash", "ash", "zsh", "ksh", "mksh", "pdksh", "yash", "posh", "fish",
    "csh", "tcsh", "busybox", "nu", "elvish", "pwsh", "xonsh",
];
/// Programs that start a shell, here or elsewhere, if nothing else is asked of them.
const STARTERS: [&str; 21] = [
    "script",
    "tmux",
    "screen",
    "zellij",
    "su",
    "sudo",
    "doas",
    "run0",
    "login",
    "newgrp",
    "sg",
    "chroot",
    "unshare",
    "nsenter",
    "ssh",
    "mosh",
    "expect",
    "nix-shell",
    "fakeroot",
    "systemd-run",
    "machinectl",
];

/// Returns whether something that this line starts may run what is typed as a command line. It errs on that side.
pub(super) fn reads_commands(command: &str, argv: Option<&Vec<String>>) -> bool {
    let line = match argv {
        Some(words) => CommandLine::of_argv(command.to_owned(), words.clone()),
        None => CommandLine::new(command),
    };
    line.parts.iter().any(part_reads_commands)
}

fn part_reads_commands(part: &CommandPart) -> bool {
    let Some(words) = &part.argv else {
        return true;
    };
    let name = |word: &str| word.rsplit('/').next().unwrap_or(word).to_owned();
    let starts = |name: &str| STARTERS.contains(&name);
    let program = words.first().map(|word| name(word)).unwrap_or_default();
    if starts(&program) || part.program().is_some_and(|program| starts(&name(program))) {
        return true;
    }
    let shells = words.iter().enumerate();
    let mut shells = shells.filter(|(_, word)| SHELLS.contains(&&*name(word)));
    shells.any(|(at, _)| is_prompt(&words[at + 1..]))
}

/// Returns whether a shell with these arguments reads its terminal: it has no script, is told to be interactive, or its script
/// may start a shell.
fn is_prompt(arguments: &[String]) -> bool {
    let is_option = |word: &&String| word.starts_with(['-', '+']);
    let asks = |word: &String| {
        word == "--interactive" || !word.starts_with("--") && word.contains(['i', 's'])
    };
    if arguments.iter().take_while(is_option).any(asks) {
        return true;
    }
    let Some(script) = arguments.iter().find(|word| !is_option(word)) else {
        return true;
    };
    let words = script.split(|c: char| !c.is_ascii_alphanumeric() && c != '-' && c != '_');
    words
        .into_iter()
        .any(|word| SHELLS.contains(&word) || STARTERS.contains(&word))
        && script.contains(char::is_whitespace)
        || SHELLS.contains(&script.as_str())
}

#[cfg(test)]
mod tests {
    use haft::policy::join_words;

    use super::reads_commands;

    #[test]
    fn line_when_it_starts_a_prompt_for_commands_is_known() {
        let rows = [
            ("bash", true),
            ("/bin/bash -i", true),
            ("bash --norc", true),
            ("env FOO=1 bash", true),
            ("timeout 9 sh", true),
            ("cd src && zsh", true),
            ("cat x | sh", true),
            ("bash -c 'echo 1; exec bash'", true),
            ("bash -ic 'read x'", true),
            ("tmux", true),
            ("script -q /dev/null", true),
            ("docker exec -it x bash", true),
            ("$SHELL", true),
            ("eval \"$x\"", true),
            ("python3", false),
            ("python3 -i x.py", false),
            ("bash install.sh", false),
            ("bash -c 'read x; echo $x'", false),
            ("npm init", false),
            ("git add -p", false),
            ("vim README.md", false),
        ];
        for (line, expect) in rows {
            assert_eq!(reads_commands(line, None), expect, "{line}");
        }
        let argv = ["bash".to_owned()].to_vec();
        assert!(reads_commands(&join_words(&argv), Some(&argv)));
    }
}
