//! `PointerFile`: whether git takes from a changed file of refs, logs and HEADs what haft takes from it.
//!
//! Git follows a ref's name to any file in the repository's folder, and takes branches for `git checkout -` from the words of a log.

use std::os::unix::ffi::OsStrExt as _;
use std::path::{Component, Path, PathBuf};

use super::super::id::{HEX, ObjectId};
use super::super::refs::{is_name_of_ref, read_target};
use crate::command::meaning::sides::{ChangeSides, Side};
use crate::command::meaning::words::name;

/// Maximum size of a file that names objects, in bytes.
pub(super) const MAX_FILE: u64 = 16 << 20;
/// The file with what is checked out.
pub(super) const HEAD: &str = "HEAD";
/// The file with refs that have none of their own.
pub(super) const PACKED: &str = "packed-refs";
/// The refs that lead to what git reads in place of other objects.
const REPLACED: &str = "refs/replace/";
/// Files whose names look like those of pseudo refs, and which git reads as something else.
const NO_REFS: [&str; 2] = ["MERGE_MODE", "MERGE_RR"];

/// A changed file of a repository that names objects.
pub(super) struct PointerFile<'p> {
    pub(super) sides: &'p ChangeSides<'p>,
    pub(super) repository: &'p Path,
    /// Its path in the repository.
    pub(super) inner: &'p Path,
}

impl PointerFile<'_> {
    /// Returns why git may take something else from the file than haft does, as a clause. `path` is its path below the root.
    pub(super) fn oddity(&self, path: &Path) -> Option<String> {
        let text = self.sides.read(Side::After, path, MAX_FILE)?;
        let before = self.sides.read(Side::Before, path, MAX_FILE);
        let before = before.unwrap_or_default();
        // What is written at the end of a log is all that is new of it.
        let fresh = text.strip_prefix(&*before).unwrap_or(&text);
        let inner = self.inner.to_string_lossy();
        let last = self.inner.file_name().unwrap_or_default();
        if inner == PACKED || NO_REFS.iter().any(|file| last == *file) {
            return None;
        }
        if is_log(&inner) {
            let lines = fresh.split(|byte| *byte == b'\n');
            return lines.filter_map(left).find_map(|from| self.odd_place(from));
        }
        let lines = text.split(|byte| *byte == b'\n');
        let mut lines = lines.filter(|line| !line.trim_ascii().is_empty());
        lines.find_map(|line| self.odd_line(line))
    }

    fn display_name(&self) -> String {
        name(self.inner.as_os_str().as_bytes())
    }

    /// Looks at a line of a ref or HEAD.
    fn odd_line(&self, line: &[u8]) -> Option<String> {
        let shown = self.display_name();
        let Some(target) = line.strip_prefix(b"ref:") else {
            let is_id = line
                .get(..HEX)
                .is_some_and(|id| id.iter().all(u8::is_ascii_hexdigit));
            let is_end = line.get(HEX).is_none_or(u8::is_ascii_whitespace);
            return (!is_id || !is_end)
                .then(|| format!("{shown} names something else than an object"));
        };
        let target = target.trim_ascii();
        if self.inner.starts_with(REPLACED) {
            return Some(format!(
                "git is told by {shown} to read another object in place of one"
            ));
        }
        (!is_name_of_ref(target))
            .then(|| format!("{shown} leads to {}, which is no ref", name(target)))
    }

    /// Looks at the name of a place that HEAD left: git takes it for a ref, wherever in the repository's folder that leads.
    fn odd_place(&self, from: &[u8]) -> Option<String> {
        let is_known = ObjectId::from_hex(from).is_some() || is_name_of_ref(from);
        let text = std::str::from_utf8(from).ok().filter(|_| !is_known)?;
        // Others are refs that are judged as such.
        let is_pseudo = text
            .bytes()
            .all(|byte| byte.is_ascii_uppercase() || byte == b'_');
        let part = self.inner.iter().take_while(|part| *part != "logs");
        let part = self.repository.join(part.collect::<PathBuf>());
        let leads = |folder: &Path| {
            let file = folder.join(text);
            let is_inside = Path::new(text)
                .components()
                .all(|part| matches!(part, Component::Normal(_)));
            !is_inside || read_target(self.sides, Side::After, &file).is_some()
        };
        let is_odd = !is_pseudo && (leads(self.repository) || leads(&part));
        is_odd.then(|| {
            format!(
                "{} says that {} was left, which is no branch",
                self.display_name(),
                name(from)
            )
        })
    }
}

/// Whether a file of a repository is a log.
pub(super) fn is_log(inner: &str) -> bool {
    inner.starts_with("logs/") || inner.contains("/logs/")
}

/// Returns what HEAD left, by the message of a line in its log: `git checkout -` goes back to it.
pub(super) fn left(line: &[u8]) -> Option<&[u8]> {
    let at = memchr::memchr(b'\t', line)?;
    let places = line[at + 1..].strip_prefix(b"checkout: moving from ")?;
    let end = memchr::memmem::find(places, b" to ")?;
    Some(&places[..end])
}
