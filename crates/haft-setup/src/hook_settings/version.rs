//! The version of an agent's program, as the program prints it.

use std::ffi::OsStr;
use std::path::PathBuf;
use std::time::Duration;

use haft_hook::Agent;
use haft_sandbox::{HostProgram, Places};

use crate::environment::Environment;
use crate::programs;

/// Maximum time for a program to print its version. Programs in JavaScript need seconds on a slow disk.
const LIMIT: Duration = Duration::from_secs(10);

/// Maximum number of bytes that are read of it.
const MOST: usize = 4096;

/// The user's variables that such a program gets.
const VARIABLES: [&str; 8] = [
    "HOME",
    "PATH",
    "LANG",
    "LC_ALL",
    "TMPDIR",
    "USER",
    "XDG_CONFIG_HOME",
    "XDG_CACHE_HOME",
];

/// An agent's program on this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AgentProgram {
    pub(crate) program: PathBuf,
    pub(crate) version: Option<String>,
}

/// Finds an agent's program on `PATH` and asks it for its version.
///
/// # Errors
/// Why the program was not started: a tool could have put it there.
pub(crate) fn find_program(
    agent: Agent,
    environment: &Environment,
    places: &Places,
) -> Result<Option<AgentProgram>, String> {
    let path = OsStr::new(environment.get("PATH").unwrap_or_default());
    for name in programs::hooks(agent).programs {
        match places.program(name, path) {
            None => {}
            Some(Err(refused)) => return Err(refused.to_string()),
            Some(Ok(program)) => {
                let set = environment.iter();
                let set = set.filter(|(name, _)| VARIABLES.contains(name));
                // It may start others: `#!/usr/bin/env node`.
                let set = places.own_variables(set);
                let set = set.iter().map(|(name, value)| (&**name, &**value));
                let output = HostProgram::new(&program, name)
                    .with_arguments(["--version"])
                    .with_variables(set)
                    .output(LIMIT, MOST);
                let version = match output {
                    Ok(bytes) => version_in(&String::from_utf8_lossy(&bytes)),
                    Err(error) => {
                        tracing::debug!(%error, name, "ask an agent for its version");
                        None
                    }
                };
                return Ok(Some(AgentProgram { program, version }));
            }
        }
    }
    Ok(None)
}

/// Finds the first number with a point in it, as in `codex-cli 0.169.0` or `2.1.332 (Claude Code)`.
pub(crate) fn version_in(text: &str) -> Option<String> {
    let words = text.split(|c: char| c.is_whitespace() || matches!(c, '(' | ')' | ','));
    let words = words.map(|word| word.trim_start_matches('v').trim_end_matches('.'));
    let mut versions = words.filter(|word| {
        let mut parts = word.split('.');
        let is_number = |part: &str| part.bytes().all(|b| b.is_ascii_digit()) && !part.is_empty();
        parts.next().is_some_and(is_number)
            && parts
                .next()
                .is_some_and(|part| part.starts_with(|c: char| c.is_ascii_digit()))
    });
    versions.next().map(str::to_owned)
}

/// Whether a version is older than another; false for a version that cannot be read.
pub(crate) fn is_older(version: &str, than: &str) -> bool {
    let parts = |version: &str| -> Vec<u64> {
        let parts = version.split(['.', '-', '+']);
        parts.map_while(|part| part.parse().ok()).collect()
    };
    parts(version) < parts(than) && !parts(version).is_empty()
}

/// Whether a sentence is true for a version: a sentence about `versions before` another is true only for those.
pub(crate) fn is_about(sentence: &str, version: Option<&str>) -> bool {
    let Some(version) = version else {
        return true;
    };
    let mut bounds = sentence
        .split("versions before ")
        .skip(1)
        .filter_map(version_in)
        .peekable();
    bounds.peek().is_none() || bounds.any(|bound| is_older(version, &bound))
}

#[cfg(test)]
mod tests {
    use super::{is_about, is_older, version_in};

    #[test]
    fn a_sentence_about_older_versions_counts_for_them_alone() {
        let old = "versions before 1.48 ignore it; versions before 1.38 have no hooks";
        for (sentence, version, expected) in [
            (old, Some("1.40.0"), true),
            (old, Some("1.48.0"), false),
            (old, None, true),
            ("a file is read without a hook", Some("9.9"), true),
        ] {
            assert_eq!(is_about(sentence, version), expected, "{version:?}");
        }
    }

    #[test]
    fn a_version_is_found_in_what_programs_print() {
        let rows = [
            ("2.1.332 (Claude Code)\n", Some("2.1.332")),
            ("codex-cli 0.169.0\n", Some("0.169.0")),
            (
                "GitHub Copilot CLI 1.0.102.\nRun 'copilot update'",
                Some("1.0.102"),
            ),
            ("goose version: v3.26.1\n", Some("3.26.1")),
            ("2026.07.16-abc123\n", Some("2026.07.16-abc123")),
            ("no version here. 3\n", None),
            ("", None),
        ];
        for (text, expected) in rows {
            assert_eq!(version_in(text).as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn versions_are_compared_by_their_numbers() {
        for (version, than, expected) in [
            ("2.1.89", "2.1.295", true),
            ("2.1.332", "2.1.295", false),
            ("1.38.0", "1.38", false),
            ("1.37.9", "1.38", true),
            ("0.122.0-alpha.1", "0.122.0", false),
            ("odd", "1.0", false),
        ] {
            assert_eq!(is_older(version, than), expected, "{version} {than}");
        }
    }
}
