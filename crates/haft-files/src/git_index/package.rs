//! The form of an index in which files outside of a folder count as left alone.
//!
//! A command in a package of a larger repository sees no file outside of the package. Git would take them for deleted, and a commit would
//! delete them. Git's own mark for such entries is `skip-worktree`: it is set on the command's view, and taken away before anything is
//! applied.

use std::collections::BTreeMap;
use std::path::Path;

use super::{EXTENDED, HEADER, Index, IndexEntry, ObjectHash, SKIP_WORKTREE, SPLIT, STAGE};

/// Extensions that state offsets, or what lies in folders: git makes them again.
const DROPPED: [&[u8; 4]; 4] = [b"EOIE", b"IEOT", b"UNTR", b"FSMN"];

impl Index<'_> {
    /// Returns the index with other extended flags: `flags` returns those of an entry.
    fn with_flags(&self, flags: &dyn Fn(&IndexEntry<'_>) -> u16) -> Option<Vec<u8>> {
        let mut out = Vec::with_capacity(self.bytes.len() + 8 * self.count as usize);
        out.extend_from_slice(self.bytes.get(..HEADER)?);
        let mut any = false;
        let end = self.each(&mut |entry| {
            let begin = out.len();
            let more = flags(entry);
            any |= more != 0;
            let extended = if more == 0 { 0 } else { EXTENDED };
            out.extend_from_slice(entry.fixed);
            out.extend_from_slice(&(entry.flags & !EXTENDED | extended).to_be_bytes());
            if more != 0 {
                out.extend_from_slice(&more.to_be_bytes());
            }
            out.extend_from_slice(entry.tail);
            let padding = if self.version == 4 {
                1
            } else {
                8 - (out.len() - begin) % 8
            };
            out.resize(out.len() + padding, 0);
            true
        })?;
        let version: u32 = match (self.version, any) {
            (4, _) => 4,
            (_, true) => 3,
            (_, false) => 2,
        };
        out.get_mut(4..8)?.copy_from_slice(&version.to_be_bytes());
        // They hold for other flags too, unless entries lie in another file.
        for one in self.extensions(end)? {
            if one.name == SPLIT {
                return None;
            }
            if !DROPPED.contains(&one.name) {
                out.extend_from_slice(one.whole);
            }
        }
        let trailer = self.bytes.len().checked_sub(self.hash.bytes())?;
        // Git writes zeros with `index.skipHash`.
        let skips = self.bytes.get(trailer..)?.iter().all(|byte| *byte == 0);
        let hash = if skips {
            vec![0; self.hash.bytes()]
        } else {
            self.hash.of(&out)
        };
        out.extend(hash);
        Some(out)
    }
}

/// Returns the index in which git leaves alone what lies outside of a folder. Returns `None` for an index in several files, and a damaged
/// one.
pub fn without_others(index: &[u8], hash: ObjectHash, folder: &Path) -> Option<Vec<u8>> {
    let inside = folder.as_os_str().as_encoded_bytes();
    Index::of(index, hash)?.with_flags(&|entry| {
        if is_below(entry.name, inside) || entry.flags & STAGE != 0 {
            entry.more
        } else {
            entry.more | SKIP_WORKTREE
        }
    })
}

/// Returns the index that a command left, with the marks of [`without_others`] taken away. `before` is the index without them, empty if
/// there was none.
///
/// # Errors
/// Why the index cannot be applied: it records another state of a file outside of the folder, or cannot be read.
pub fn with_others(
    left: &[u8],
    before: &[u8],
    hash: ObjectHash,
    folder: &Path,
) -> Result<Vec<u8>, String> {
    let unread = || "the index that git left cannot be read".to_owned();
    let inside = folder.as_os_str().as_encoded_bytes();
    let records = |bytes: &[u8]| {
        let mut all = BTreeMap::new();
        Index::of(bytes, hash)?.each(&mut |entry| {
            if !is_below(entry.name, inside) {
                let (mode, stage, object) = entry.record();
                all.insert(
                    (entry.name.to_vec(), stage),
                    (mode, object.to_vec(), entry.more),
                );
            }
            true
        })?;
        Some(all)
    };
    let was = if before.is_empty() {
        BTreeMap::new()
    } else {
        records(before).ok_or_else(unread)?
    };
    let is = records(left).ok_or_else(unread)?;
    let record =
        |found: Option<&(u32, Vec<u8>, u16)>| found.map(|(mode, id, _)| (*mode, id.clone()));
    let mut names = was.keys().chain(is.keys());
    if let Some((name, _)) = names.find(|name| record(was.get(*name)) != record(is.get(*name))) {
        return Err(format!(
            "git changes {}, which lies outside of the workspace",
            haft_types::text::visible::path_of_bytes(name)
        ));
    }
    let restored = Index::of(left, hash).and_then(|index| {
        index.with_flags(&|entry| {
            let (_, stage, _) = entry.record();
            match was.get(&(entry.name.to_vec(), stage)) {
                Some((_, _, more)) if !is_below(entry.name, inside) => {
                    entry.more & !SKIP_WORKTREE | more & SKIP_WORKTREE
                }
                _ => entry.more,
            }
        })
    });
    restored.ok_or_else(unread)
}

/// Whether a name in an index lies below a folder.
fn is_below(name: &[u8], folder: &[u8]) -> bool {
    let rest = name.strip_prefix(folder);
    folder.is_empty() || rest.is_some_and(|rest| rest.starts_with(b"/"))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use sha1::{Digest as _, Sha1};

    use super::super::tests::{Row, made_index};
    use super::{Index, ObjectHash, with_others, without_others};

    /// Makes an index of these names, each with the number of its object and its flags.
    fn index(version: u32, entries: &[(&str, u8, u16)]) -> Vec<u8> {
        let rows: Vec<Row> = entries
            .iter()
            .map(|(name, object, more)| Row {
                object: *object,
                more: *more,
                ..Row::of(name)
            })
            .collect();
        let has_flags = entries.iter().any(|(.., more)| *more != 0);
        let mut made = made_index(version.max(if has_flags { 3 } else { 2 }), &rows);
        let end = u32::try_from(made.len()).unwrap();
        made.extend(*b"TREE\0\0\0\x02ab");
        made.extend(*b"EOIE\0\0\0\x18");
        made.extend(end.to_be_bytes());
        made.extend([0; 20]);
        let hash = Sha1::digest(&made);
        made.extend(hash);
        made
    }

    fn flags(bytes: &[u8]) -> Vec<(String, u16)> {
        let mut found = Vec::new();
        Index::of(bytes, ObjectHash::Sha1)
            .unwrap()
            .each(&mut |entry| {
                found.push((String::from_utf8_lossy(entry.name).into_owned(), entry.more));
                true
            })
            .unwrap();
        found
    }

    #[test]
    fn marks_of_others_are_set_and_taken_away() {
        let before = [
            ("a/f", 1, 0),
            ("ab", 2, 0),
            ("b/f", 3, 0x2000),
            ("c", 4, 0x4000),
        ];
        let folder = Path::new("a");
        for version in [2, 3, 4] {
            let whole = index(version, &before);
            let seen = without_others(&whole, ObjectHash::Sha1, folder).unwrap();
            let own = |name: &str, more| (name.to_owned(), more);
            let expect = [
                own("a/f", 0),
                own("ab", 0x4000),
                own("b/f", 0x6000),
                own("c", 0x4000),
            ];
            assert_eq!(flags(&seen), expect, "{version}");
            let (content, hash) = seen.split_at(seen.len() - 20);
            assert_eq!(&*Sha1::digest(content), hash, "{version}");
            assert!(!seen.windows(4).any(|name| name == b"EOIE"), "{version}");
            assert!(seen.windows(4).any(|name| name == b"TREE"), "{version}");
            let back = with_others(&seen, &whole, ObjectHash::Sha1, folder).unwrap();
            assert_eq!(flags(&back), flags(&whole), "{version}");
        }
    }

    #[test]
    fn another_state_of_what_lies_outside_is_refused() {
        let before = index(2, &[("a/f", 1, 0), ("b/f", 3, 0)]);
        let folder = Path::new("a");
        for (left, expect) in [
            (
                index(3, &[("a/f", 9, 0), ("a/g", 9, 0), ("b/f", 3, 0x4000)]),
                None,
            ),
            (index(2, &[("b/f", 3, 0)]), None),
            (index(2, &[("a/f", 1, 0)]), Some("git changes b/f")),
            (
                index(2, &[("a/f", 1, 0), ("b/f", 4, 0)]),
                Some("git changes b/f"),
            ),
            (
                index(2, &[("a/f", 1, 0), ("aa", 4, 0), ("b/f", 3, 0)]),
                Some("git changes aa"),
            ),
            (b"DIRC".to_vec(), Some("cannot be read")),
        ] {
            let found = with_others(&left, &before, ObjectHash::Sha1, folder);
            match expect {
                None => assert!(found.is_ok(), "{found:?}"),
                Some(why) => assert!(found.unwrap_err().contains(why), "{why}"),
            }
        }
        let mut split = before.clone();
        split.splice(split.len() - 20.., *b"link\0\0\0\0aaaaaaaaaaaaaaaaaaaa");
        assert_eq!(without_others(&split, ObjectHash::Sha1, folder), None);
        assert_eq!(
            without_others(&before[..40], ObjectHash::Sha1, folder),
            None
        );
    }
}
