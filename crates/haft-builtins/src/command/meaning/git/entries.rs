//! The entries of a tree, parsed as git parses them: modes as git takes them, and no tree that git might read otherwise.

use std::cmp::Ordering;

use super::id::{ID_BYTES, ObjectId};

/// An entry of a tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TreeEntry {
    pub(super) name: Vec<u8>,
    /// One of the modes that git writes itself.
    pub(super) mode: u32,
    pub(super) id: ObjectId,
}

impl TreeEntry {
    pub(super) fn is_folder(&self) -> bool {
        self.mode == MODE_FOLDER
    }

    /// Compares as git sorts the entries of a tree: the name of a folder counts as ending with a slash.
    fn order(&self, other: &Self) -> Ordering {
        let same = self.name.len().min(other.name.len());
        let end = |one: &Self| if one.is_folder() { b'/' } else { 0 };
        let next = |one: &Self| one.name.get(same).copied().unwrap_or(end(one));
        let first = self.name[..same].cmp(&other.name[..same]);
        first.then_with(|| next(self).cmp(&next(other)))
    }
}

/// The mode of a folder's entry.
pub(super) const MODE_FOLDER: u32 = 0o040_000;
/// The mode of a link.
pub(super) const MODE_LINK: u32 = 0o120_000;
/// The mode of a submodule: its object is a commit of another repository.
pub(super) const MODE_SUBMODULE: u32 = 0o160_000;
/// The modes of files.
const MODE_FILE: u32 = 0o100_644;
const MODE_EXECUTABLE: u32 = 0o100_755;
/// The bits of a mode above its permissions, and the kind of a file.
const KIND: u32 = 0o170_000;
const KIND_FILE: u32 = 0o100_000;

/// Returns what git takes a mode in a tree for, compare `canon_mode` in its source; `None` for one of another kind.
fn canonical_mode(mode: u32) -> Option<u32> {
    match mode & KIND {
        _ if mode > 0o177_777 => None,
        KIND_FILE if mode & 0o100 != 0 => Some(MODE_EXECUTABLE),
        KIND_FILE => Some(MODE_FILE),
        kind @ (MODE_FOLDER | MODE_LINK | MODE_SUBMODULE) => Some(kind),
        _ => None,
    }
}

/// Parses a tree's content; `None` if it is damaged, out of order, or has a name twice or one that git does not allow.
pub(super) fn parse_tree(content: &[u8]) -> Option<Vec<TreeEntry>> {
    let (mut entries, mut rest): (Vec<TreeEntry>, &[u8]) = (Vec::new(), content);
    while !rest.is_empty() {
        let space = memchr::memchr(b' ', rest.get(..8.min(rest.len()))?)?;
        let (digits, after) = (&rest[..space], &rest[space + 1..]);
        let is_octal =
            !digits.is_empty() && digits.iter().all(|digit| (b'0'..b'8').contains(digit));
        let mode = std::str::from_utf8(digits).ok().filter(|_| is_octal)?;
        let mode = canonical_mode(u32::from_str_radix(mode, 8).ok()?)?;
        let end = memchr::memchr(0, after)?;
        let (name, after) = (&after[..end], after.get(end + 1..)?);
        if name.is_empty() || name == b"." || name == b".." || name.contains(&b'/') {
            return None;
        }
        let entry = TreeEntry {
            name: name.to_vec(),
            mode,
            id: ObjectId::from_bytes(after.get(..ID_BYTES)?)?,
        };
        let is_next = |last: &TreeEntry| last.order(&entry) == Ordering::Less;
        if !entries.last().is_none_or(is_next) || has_file(&entries, &entry) {
            return None;
        }
        entries.push(entry);
        rest = &after[ID_BYTES..];
    }
    Some(entries)
}

/// Whether a folder has the name of a file before it. Others may stand between the two: `a`, `a-b`, `a/`.
fn has_file(entries: &[TreeEntry], folder: &TreeEntry) -> bool {
    let file = TreeEntry {
        mode: MODE_FILE,
        ..folder.clone()
    };
    folder.is_folder() && entries.binary_search_by(|one| one.order(&file)).is_ok()
}

#[cfg(test)]
mod tests {
    use super::parse_tree;

    #[test]
    fn tree_that_git_might_read_otherwise_is_refused() {
        for (rows, expect) in [
            (&[][..], Some("")),
            (
                &["100644 a", "100664 b", "100600 c", "100755 d", "100700 e"][..],
                Some("100644 100644 100644 100755 100755"),
            ),
            (
                &["40000 a", "040000 b", "40755 c"],
                Some("40000 40000 40000"),
            ),
            (
                &["120000 a", "120777 b", "160000 c"],
                Some("120000 120000 160000"),
            ),
            (
                &["100644 a", "100644 a-b", "40000 aa"],
                Some("100644 100644 40000"),
            ),
            (
                &["100644 a-b", "40000 a", "100644 a0"],
                Some("100644 40000 100644"),
            ),
            (&["0 a"], None),
            (&["20000 a"], None),
            (&["140000 a"], None),
            (&["1040000 a"], None),
            (&["+40000 a"], None),
            (&["-1 a"], None),
            (&[" a"], None),
            (&["40008 a"], None),
            (&["100644 b", "100644 a"], None),
            (&["100644 a", "100644 a"], None),
            (&["100644 a", "40000 a"], None),
            (&["100644 a", "100644 a-b", "40000 a"], None),
            (&["120000 a", "100644 a-b", "40000 a"], None),
            (&["40000 a", "100644 a-b"], None),
            (&["100644 a/b"], None),
            (&["100644 "], None),
            (&["100644 .."], None),
        ] {
            let content: Vec<u8> = rows
                .iter()
                .flat_map(|row| [row.as_bytes(), &[0], &[7; 20]].concat())
                .collect();
            let modes = parse_tree(&content).map(|all| {
                let modes: Vec<String> = all.iter().map(|one| format!("{:o}", one.mode)).collect();
                modes.join(" ")
            });
            assert_eq!(modes.as_deref(), expect, "{rows:?}");
        }
        assert_eq!(parse_tree(b"100644 a\0short"), None);
    }
}
