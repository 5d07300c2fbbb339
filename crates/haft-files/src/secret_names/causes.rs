//! `SecretCauses`: the entries by which a path is secret, and whether a rule names each of them.
//!
//! A rule opens a path only if its pattern names every cause. An entry more is at most a cause more, never one less, so that no entry
//! added to the list can make more readable, wherever it stands (one that begins with `!` exempts, and takes the causes before it away).

use super::{SECRET_NAMES, SecretNamePattern, SecretNames, SegmentNames, decides};
use crate::paths::PathPattern;

/// Why a path is secret: the built-in entries together, and each added entry that matches it and that no later one exempts it from.
#[derive(Debug)]
pub struct SecretCauses<'n> {
    standard: Option<&'n [SecretNamePattern]>,
    added: Vec<&'n SecretNamePattern>,
}

/// Which entries of a list a pattern names: the built-in ones together, and of the added ones each.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct NamedSecrets {
    standard: bool,
    /// Positions among the added entries, ascending.
    added: Vec<usize>,
}

impl NamedSecrets {
    /// Whether it is none.
    pub fn is_empty(&self) -> bool {
        !self.standard && self.added.is_empty()
    }

    /// Whether all entries of another are among these.
    pub fn include(&self, other: &Self) -> bool {
        let has = |at| self.added.binary_search(at).is_ok();
        (self.standard || !other.standard) && other.added.iter().all(has)
    }
}

impl SecretNames {
    fn parts(&self) -> (&[SecretNamePattern], &[SecretNamePattern]) {
        self.entries
            .split_at(SECRET_NAMES.len().min(self.entries.len()))
    }

    /// Returns why a file at this path is secret; nothing if it is not.
    pub fn causes(&self, path: &str) -> SecretCauses<'_> {
        let parts = SegmentNames::all(path);
        let folders = &parts[..parts.len().saturating_sub(1)];
        self.causes_by(|entry| entry.fits_file(&parts, folders))
    }

    /// Returns why everything in this folder is secret; nothing if it is not.
    pub fn causes_of_folder(&self, path: &str) -> SecretCauses<'_> {
        let parts = SegmentNames::all(path);
        self.causes_by(|entry| entry.folder && entry.holds(&parts))
    }

    fn causes_by(&self, matches: impl Fn(&SecretNamePattern) -> bool) -> SecretCauses<'_> {
        let (standard, added) = self.parts();
        let mut causes = SecretCauses {
            standard: Some(standard).filter(|entries| decides(entries, &matches)),
            added: Vec::new(),
        };
        for entry in added.iter().filter(|entry| matches(entry)) {
            if entry.secret {
                causes.added.push(entry);
            } else {
                (causes.standard, causes.added) = (None, Vec::new());
            }
        }
        causes
    }

    /// Whether a rule with this pattern names secrets, rather than covering some among other files.
    pub fn are_named_by(&self, pattern: &PathPattern) -> bool {
        let (standard, added) = self.parts();
        let names = PatternNames::of(pattern);
        names.standard(standard) || added.iter().any(|entry| names.entry(entry))
    }

    /// Returns the entries that a rule with this pattern names.
    pub fn named_by(&self, pattern: &PathPattern) -> NamedSecrets {
        let (standard, added) = self.parts();
        let names = PatternNames::of(pattern);
        let each = added.iter().enumerate();
        NamedSecrets {
            standard: names.standard(standard),
            added: each
                .filter(|(_, entry)| names.entry(entry))
                .map(|(at, _)| at)
                .collect(),
        }
    }
}

impl SecretCauses<'_> {
    /// Whether there is none: the path is not secret.
    pub fn is_empty(&self) -> bool {
        self.standard.is_none() && self.added.is_empty()
    }

    /// Whether a rule with this pattern names every one of them.
    pub fn are_named_by(&self, pattern: &PathPattern) -> bool {
        let names = PatternNames::of(pattern);
        self.standard.is_none_or(|entries| names.standard(entries))
            && self.added.iter().all(|entry| names.entry(entry))
    }
}

/// Paths that a pattern matches, by which it names an entry.
struct PatternNames {
    /// From its last `**` on.
    ends: [String; 2],
    /// As a whole.
    whole: [String; 2],
}

impl PatternNames {
    fn of(pattern: &PathPattern) -> Self {
        let said = |path: String| {
            let says = path.rsplit('/').next().is_some_and(|last| !last.is_empty());
            if says { path } else { String::new() }
        };
        Self {
            ends: pattern.samples().map(said),
            whole: pattern.whole_samples().map(said),
        }
    }

    /// Whether the pattern names one of the built-in entries.
    fn standard(&self, entries: &[SecretNamePattern]) -> bool {
        self.ends.iter().any(|sample| {
            let parts = SegmentNames::all(sample);
            let Some((_, folders)) = parts.split_last() else {
                return false;
            };
            decides(entries, |entry| entry.fits_file(&parts, folders))
                || decides(entries, |entry| entry.folder && entry.holds(&parts))
        })
    }

    /// Whether it names this added entry, whatever the other entries are.
    fn entry(&self, entry: &SecretNamePattern) -> bool {
        entry.secret
            && self.ends.iter().chain(&self.whole).any(|sample| {
                let parts = SegmentNames::all(sample);
                !parts.is_empty()
                    && if entry.folder {
                        entry.holds(&parts)
                    } else {
                        entry.fits_end(&parts)
                    }
            })
    }
}
