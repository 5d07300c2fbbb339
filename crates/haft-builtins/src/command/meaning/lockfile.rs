//! Lockfiles: which packages are added, removed and changed, where they come from and came from before, and what else changes in them.

mod cargo;
mod compare;
mod go;
mod lock;
mod npm;
mod package;
mod pnpm;
mod source;
mod yaml;
mod yarn;

#[cfg(test)]
mod tests;

use haft::approval::meaning::{Meaning, MeaningKind};
use haft::approval::preview::FileChange;

use self::compare::compare;
use self::lock::{BlockStyle, Lockfile, OtherLines, other_lines};
use super::budget::Budget;
use super::lines::count_lines;
use super::words::{count, name, size};

/// Maximum size of a lockfile that is read, with what it was before, in bytes: comparing its packages takes five times as much memory.
pub(super) const MAX_LOCKFILE: usize = 12 << 20;

/// A kind of lockfile.
#[derive(Clone, Copy)]
struct LockfileFormat {
    /// Reads the text; `None` if it is not understood.
    parse: for<'t> fn(&'t str) -> Option<Lockfile<'t>>,
    style: BlockStyle,
}

/// Returns how to read a file of this name.
fn format_of(path: &str) -> Option<LockfileFormat> {
    let json = BlockStyle {
        spread: npm::spread,
        is_known: |line| {
            let facts = ["\"version\": ", "\"resolved\": ", "\"integrity\": "];
            facts.iter().any(|fact| line.starts_with(fact))
        },
    };
    let lines = |is_known| BlockStyle {
        spread: str::to_owned,
        is_known,
    };
    let name = path.rsplit('/').next().unwrap_or(path);
    let (parse, style): (for<'t> fn(&'t str) -> Option<Lockfile<'t>>, _) = match name {
        "package-lock.json" | "npm-shrinkwrap.json" => (npm::parse, json),
        "pnpm-lock.yaml" => (
            pnpm::parse,
            lines(|line| line.starts_with("resolution: {integrity: ") && !line.contains(',')),
        ),
        "yarn.lock" => (
            yarn::parse,
            lines(|line| {
                let facts = ["version", "resolved", "integrity", "resolution", "checksum"];
                let key = line.split([' ', ':']).next().unwrap_or_default();
                facts.contains(&key)
            }),
        ),
        "Cargo.lock" | "uv.lock" | "poetry.lock" => (cargo::parse, lines(cargo::is_known)),
        "go.sum" => (go::parse, lines(|_| true)),
        _ => return None,
    };
    Some(LockfileFormat { parse, style })
}

/// Returns true if the path names a lockfile.
pub(super) fn is_named(path: &str) -> bool {
    format_of(path).is_some()
}

/// Returns what the change of a lockfile means; `None` if the path names no lockfile.
pub(super) fn meaning(
    path: &str,
    before: Option<&[u8]>,
    after: Option<&[u8]>,
    budget: &mut Budget,
) -> Option<Meaning> {
    let format = format_of(path)?;
    let shown = name(path.as_bytes());
    let length = |side: Option<&[u8]>| side.map_or(0, <[u8]>::len);
    let both = length(before) + length(after);
    if both > MAX_LOCKFILE {
        let title = format!(
            "packages in {shown} are not read: with what it was before it has {}",
            size(both as u64)
        );
        return Some(Meaning::new(MeaningKind::Lockfile, title));
    }
    let conflict = after.is_some_and(has_conflict);
    let sides = (read(format, before), read(format, after));
    let not_understood = || {
        let title = format!("packages in {shown} are not understood");
        Meaning::new(MeaningKind::Lockfile, title)
    };
    let mut meaning = if let (Some(before), Some(after)) = &sides {
        let compared = compare(&shown, before, after);
        // Which side of a conflict holds is not known: that nothing differs cannot be said.
        let is_open = conflict && compared.lines.is_empty();
        let mut meaning = if is_open { not_understood() } else { compared };
        let others = other_lines(before, after, format.style);
        add_other_lines(&mut meaning, path, &others, budget);
        meaning
    } else {
        not_understood()
    };
    if conflict {
        let why = format!("{shown} has conflict markers: a merge was left unfinished in it");
        meaning.warnings.insert(0, why);
    }
    Some(meaning)
}

fn read(format: LockfileFormat, side: Option<&[u8]>) -> Option<Lockfile<'_>> {
    let Some(bytes) = side else {
        return Some(Lockfile::default());
    };
    let text = std::str::from_utf8(bytes).ok()?;
    (format.parse)(text.trim_start_matches('\u{feff}'))
}

fn has_conflict(bytes: &[u8]) -> bool {
    let mut lines = bytes.split(|byte| *byte == b'\n');
    lines.any(|line| {
        let marks: [&[u8]; 2] = [b"<<<<<<<", b">>>>>>>"];
        let rest = marks.iter().find_map(|mark| line.strip_prefix(*mark));
        rest.is_some_and(|rest| matches!(rest.first(), None | Some(b' ' | b'\r')))
    })
}

/// Adds the changed lines that say nothing of which packages there are, such as what depends on what.
fn add_other_lines(meaning: &mut Meaning, path: &str, others: &OtherLines, budget: &mut Budget) {
    let lines = count_lines(others.before.as_bytes(), others.after.as_bytes());
    let number = lines.added.max(lines.removed);
    if number == 0 && !others.clipped {
        return;
    }
    let more = if others.clipped { "more than " } else { "" };
    let changed = count(number, "other changed line");
    meaning.title = format!("{}, {more}{changed}", meaning.title);
    let (was, is) = (others.before.as_bytes(), others.after.as_bytes());
    let mut file = FileChange::new(path, Some(was), Some(is));
    // It is a part of the file, with the names of the blocks.
    (file.before_sha256, file.after_sha256) = (None, None);
    (file.before_bytes, file.after_bytes) = (None, None);
    if !budget.may_show(was.len() + is.len()) {
        file.fold("the request has no room for it");
    }
    meaning.files.push(file);
}
