//! `NameProgress`: what the names below a path can add to what rules, secrets and protected names cover.

use crate::protected::{
    GIT, is_git_setting, names_for_commands, protected_endings, protected_from_commands,
};
use haft_files::paths::segments;

/// The bit for a path that a protected name covers, with everything below it.
const COVERED: u128 = 1 << 127;
/// The bit for a path that is protected itself: the last part of it has a protected ending, or a protected name lies below it.
const ITSELF: u128 = 1 << 126;
/// The bit for a path in a repository's folder that is a setting.
const SETTING: u128 = 1 << 125;
/// The first of the bits for paths in a repository's folder, which depend on the first name in it.
const REPOSITORY: u32 = 100;
/// The number of these bits.
const REPOSITORIES: u32 = 24;
/// Maximum number of parts of a protected name; a test compares both limits with the names.
const MAX_PARTS: usize = 3;
/// Maximum number of protected names of several parts that have bits of their own.
const MAX_NAMES: usize = REPOSITORY as usize / MAX_PARTS;

/// How far a path matches what rules and protected names name. If a link gives a folder a further name, this tells whether any path
/// by that name could be judged otherwise than by the folder's other names.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NameProgress(Vec<u128>);

impl NameProgress {
    /// Creates the progress of a path from that of each pattern, and whether it is a secret.
    pub(crate) fn new(patterns: impl Iterator<Item = u128>, is_secret: bool, path: &str) -> Self {
        let mut bits: Vec<u128> = vec![u128::from(is_secret), of_protected_names(path)];
        bits.extend(patterns);
        Self(bits)
    }

    /// Whether it matches anything that `known` does not.
    pub fn adds_to(&self, known: &Self) -> bool {
        let mut both = self.0.iter().zip(&known.0);
        self.0.len() != known.0.len() || both.any(|(own, known)| own & !known != 0)
    }

    /// Adds what another name of the same place matches.
    pub fn merge(&mut self, other: &Self) {
        for (own, other) in self.0.iter_mut().zip(&other.0) {
            *own |= other;
        }
    }
}

/// Whether a path may be protected because of a part with this name.
pub(crate) fn is_protected_part(part: &str) -> bool {
    let mut parts = names_for_commands().flat_map(|name| name.path.split('/'));
    parts.any(|name| name.eq_ignore_ascii_case(part)) || protected_from_commands(part).is_some()
}

/// Returns the parts of protected names, and the texts of protected endings.
pub(crate) fn protected_parts() -> (Vec<&'static str>, Vec<String>) {
    let parts = names_for_commands().flat_map(|name| name.path.split('/'));
    let endings = protected_endings().map(str::to_owned);
    (parts.collect(), endings.collect())
}

fn of_protected_names(path: &str) -> u128 {
    let parts = segments(path);
    let mut bits = protected_from_commands(path).map_or(0, |_| ITSELF);
    let mut long = 0;
    for name in names_for_commands() {
        let entry: Vec<&str> = name.path.split('/').collect();
        let matches = |from: usize| {
            let same = |(a, b): &(&&str, &&str)| a.eq_ignore_ascii_case(b);
            parts[from..].iter().zip(&entry).take_while(same).count()
        };
        let at = long;
        long += usize::from(entry.len() > 1);
        for from in 0..parts.len() {
            let met = matches(from);
            if met == entry.len() && name.path == GIT {
                bits |= in_repository(&parts[from + 1..]);
            } else if met == entry.len() {
                bits |= COVERED;
            } else if met > 0 && from + met == parts.len() {
                let bit = at.min(MAX_NAMES - 1) * MAX_PARTS + met.min(MAX_PARTS) - 1;
                bits |= 1 << bit;
            }
        }
    }
    bits
}

fn in_repository(within: &[&str]) -> u128 {
    let setting = if is_git_setting(&within.join("/")) {
        SETTING
    } else {
        0
    };
    let first = within.first().unwrap_or(&"");
    let sum: u32 = first.bytes().map(u32::from).sum();
    setting | 1 << (REPOSITORY + sum % REPOSITORIES)
}

#[cfg(test)]
mod tests {
    use super::{MAX_NAMES, MAX_PARTS, NameProgress};
    use crate::protected::names_for_commands;

    /// Whether the name of a link adds to what its target is judged by.
    fn adds(link: &str, target: &str) -> bool {
        let of = |path: &str| NameProgress::new(std::iter::empty(), false, path);
        of(link).adds_to(&of(target))
    }

    #[test]
    fn each_protected_name_of_several_parts_has_its_own_bits() {
        let parts = names_for_commands().map(|name| name.path.split('/').count());
        let long: Vec<usize> = parts.filter(|parts| *parts > 1).collect();
        assert!(long.len() <= MAX_NAMES, "{}", long.len());
        assert!(long.iter().all(|parts| *parts <= MAX_PARTS));
    }

    #[test]
    fn a_name_adds_when_it_is_protected_or_leads_to_names_for_commands() {
        for (link, target, expect) in [
            (".mcp.json", ".local/mcp.json", true),
            ("a/.MCP.json", "b", true),
            ("a", "b", false),
            (".claude", "x", true),
            (".claude/skills", "skills", true),
            (".claude/skills", ".vscode/skills", false),
            (".config", "x", true),
            (".config", "y/.config", false),
            (".git/hooks", "hooks", true),
            (".git/objects", "store", true),
            ("x.code-workspace", "y", true),
            (".mcp.json.bak", "y", false),
            ("", "y", false),
        ] {
            assert_eq!(adds(link, target), expect, "{link} -> {target}");
        }
    }
}
