//! `Lockfile`: a lockfile as it is compared: its packages, and all of its text by blocks, so that nothing in it changes unsaid.

use std::collections::{BTreeMap, BTreeSet};

use super::package::{Package, Packages};

/// Maximum length of the blocks that are shown, in bytes.
const MAX_TEXT: usize = 256 << 10;

/// The name and the version of a package.
pub(super) type PackageKey = (String, String);

/// A part of the text.
#[derive(Debug, Default)]
struct LockBlock<'t> {
    /// The package that it is about.
    owner: Option<PackageKey>,
    texts: Vec<&'t str>,
}

/// A lockfile.
#[derive(Debug, Default)]
pub(super) struct Lockfile<'t> {
    pub(super) packages: Packages,
    /// What changes the choice of packages, or what is in them, one sentence each.
    pub(super) steering: BTreeSet<String>,
    blocks: BTreeMap<String, LockBlock<'t>>,
}

impl<'t> Lockfile<'t> {
    /// Adds a package; `None` if there are too many.
    pub(super) fn add(&mut self, key: PackageKey, package: Package) -> Option<()> {
        let (name, version) = key;
        self.packages.add(&name, &version, package)
    }

    /// Adds a part of the text, about a package or about anything else.
    pub(super) fn add_text(&mut self, name: String, owner: Option<PackageKey>, text: &'t str) {
        let block = self.blocks.entry(name).or_default();
        block.owner = block.owner.take().or(owner);
        block.texts.push(text);
    }
}

/// The lines that differ and say nothing of what is compared of packages.
#[derive(Debug, Default)]
pub(super) struct OtherLines {
    pub(super) before: String,
    pub(super) after: String,
    /// Whether there are more.
    pub(super) clipped: bool,
}

/// How a format shows its blocks.
#[derive(Clone, Copy)]
pub(super) struct BlockStyle {
    /// Spreads a block over lines.
    pub(super) spread: fn(&str) -> String,
    /// Whether a line says what is compared of packages.
    pub(super) is_known: fn(&str) -> bool,
}

/// Returns the other lines that differ. A package that is added or removed is named as such, with all of its lines.
pub(super) fn other_lines(
    before: &Lockfile<'_>,
    after: &Lockfile<'_>,
    style: BlockStyle,
) -> OtherLines {
    let mut found = OtherLines::default();
    let names: BTreeSet<&String> = before.blocks.keys().chain(after.blocks.keys()).collect();
    for name in names {
        let (was, is) = (before.blocks.get(name), after.blocks.get(name));
        let texts = |block: Option<&LockBlock<'_>>| block.map(|block| block.texts.concat());
        if texts(was) == texts(is) {
            continue;
        }
        let owner = is.or(was).and_then(|block| block.owner.as_ref());
        let is_listed = owner.is_some_and(|(name, version)| {
            let there = |lock: &Lockfile<'_>| lock.packages.get(name, version).is_some();
            !there(before) || !there(after)
        });
        if is_listed {
            continue;
        }
        let lines = |block: Option<&LockBlock<'_>>| -> String {
            let texts = block.iter().flat_map(|block| &block.texts);
            let spread: String = texts.map(|text| (style.spread)(text)).collect();
            let lines = spread.lines().filter(|line| !line.trim().is_empty());
            // What is about no package is compared nowhere else.
            let lines = lines.filter(|line| owner.is_none() || !(style.is_known)(line.trim()));
            let lines: Vec<String> = lines.map(|line| format!("  {line}\n")).collect();
            lines.concat()
        };
        let (was, is) = (lines(was), lines(is));
        if was == is {
            continue;
        }
        let room = MAX_TEXT.checked_sub(found.before.len().max(found.after.len()));
        if room.is_none_or(|room| was.len().max(is.len()) > room) {
            found.clipped = true;
            continue;
        }
        for (side, lines) in [(&mut found.before, was), (&mut found.after, is)] {
            side.push_str(name);
            side.push('\n');
            side.push_str(&lines);
        }
    }
    found
}
