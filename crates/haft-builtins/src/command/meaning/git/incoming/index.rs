//! What an index records otherwise than before.

use std::collections::BTreeSet;
use std::path::Path;

use haft::git_index::ObjectHash;

use super::super::cached::cached_trees;
use super::super::id::{ID_HASH, ObjectId};
use super::super::store::ObjectDatabase;
use super::pointers::Pointers;
use super::trees::{KnownTree, NewEntry, TreeAt, new_entries};
use super::{Carrier, IncomingReader, PathRole};
use crate::command::index::{MAX_INDEX, each_entry, extensions};
use crate::command::meaning::sides::{ChangeSides, PathChange, Side};

/// A record of an index: the path, the mode and the object. A file with conflicts has several.
type EntryRecord = (Vec<u8>, u32, Vec<u8>);

/// Returns the records of an index; none if there is none.
///
/// # Errors
/// Why it is not understood, as a clause.
fn records(
    sides: &ChangeSides<'_>,
    side: Side,
    path: &Path,
    hash: ObjectHash,
) -> Result<BTreeSet<EntryRecord>, &'static str> {
    let mut found = BTreeSet::new();
    if sides.kind(side, path).is_none() {
        return Ok(found);
    }
    let bytes = sides.read(side, path, MAX_INDEX);
    let bytes = bytes.ok_or("git's index cannot be read, or is too long")?;
    let read = each_entry(&bytes, hash, &mut |entry| {
        found.insert((entry.name().to_vec(), entry.mode(), entry.object().to_vec()));
        true
    });
    read.ok_or("git's index is damaged or split, or programs may read it in several ways")?;
    let resolved = extensions(&bytes, hash, *b"REUC");
    for content in resolved.ok_or("git's index is damaged")? {
        let all = of_conflicts(content, hash);
        found.extend(all.ok_or("git's index does not say rightly which conflicts were resolved")?);
    }
    Ok(found)
}

/// Returns the records of files in conflict that were resolved: git brings the conflicts back when it is told to.
fn of_conflicts(mut content: &[u8], hash: ObjectHash) -> Option<Vec<EntryRecord>> {
    let mut found = Vec::new();
    while !content.is_empty() {
        let mut text = || {
            let (text, rest) = content.split_at(memchr::memchr(0, content)?);
            content = &rest[1..];
            Some(text)
        };
        let name = text()?;
        let modes = [text()?, text()?, text()?];
        for mode in modes {
            let mode = std::str::from_utf8(mode).ok()?;
            let mode = u32::from_str_radix(mode, 8).ok()?;
            if mode != 0 {
                let (object, rest) = content.split_at_checked(hash.bytes())?;
                content = rest;
                found.push((name.to_vec(), mode, object.to_vec()));
            }
        }
    }
    Some(found)
}

/// Returns true if an index records what it did before.
pub(super) fn is_same(sides: &ChangeSides<'_>, path: &Path) -> bool {
    [ObjectHash::Sha1, ObjectHash::Sha256]
        .into_iter()
        .any(|hash| {
            let of = |side| records(sides, side, path, hash);
            match (of(Side::Before), of(Side::After)) {
                (Ok(before), Ok(after)) => before == after,
                _ => false,
            }
        })
}

impl IncomingReader<'_> {
    /// Reads what changed indexes record.
    pub(super) fn read_indexes(
        &mut self,
        store: &ObjectDatabase<'_>,
        pointers: &Pointers,
        changes: &[(PathRole, PathChange<'_>)],
    ) {
        for (role, change) in changes {
            if *role == PathRole::Index
                && !self.is_over(change.path)
                && let Err(why) = self.read_index(store, pointers, change.path)
            {
                self.doubt(change.path, why);
            }
        }
    }

    fn read_index(
        &mut self,
        store: &ObjectDatabase<'_>,
        pointers: &Pointers,
        path: &Path,
    ) -> Result<(), String> {
        let of = |side| records(self.sides, side, path, ID_HASH);
        let (before, after) = (of(Side::Before)?, of(Side::After)?);
        let carrier = Carrier {
            path,
            is_fetched: false,
        };
        for (name, mode, object) in after.difference(&before) {
            let id = ObjectId::from_bytes(object).ok_or("git's index is damaged")?;
            if let Some(folder) = name.strip_suffix(b"/") {
                // A sparse index has the tree of a folder in place of its files.
                let heads = pointers.old.first().and_then(|head| store.peel(head).ok());
                let was = heads.and_then(|(head, _)| store.lookup(&head.tree, folder).ok()?);
                let was = was.iter().map(|entry| KnownTree::only(entry.id)).collect();
                let (path, tree) = (folder.to_vec(), id);
                for entry in new_entries(store, was, TreeAt { path, tree }, self.budget)? {
                    self.add(store, &carrier, entry);
                }
            } else {
                let (path, file) = (name.clone(), Some((*mode, id)));
                self.add(store, &carrier, NewEntry { path, file });
            }
        }
        let names = |all: &BTreeSet<EntryRecord>| -> BTreeSet<Vec<u8>> {
            all.iter().map(|(name, ..)| name.clone()).collect()
        };
        // A repository whose index goes is no longer one.
        if self.sides.kind(Side::After, path).is_some() {
            let lost = names(&before);
            for path in lost.difference(&names(&after)) {
                if path.last() != Some(&b'/') {
                    let path = path.clone();
                    self.add(store, &carrier, NewEntry { path, file: None });
                }
            }
        }
        if path
            .parent()
            .is_some_and(|part| cached_trees(self.sides, part).is_some())
        {
            return Err(
                "git's index keeps trees for the next commit that are not those of its files"
                    .to_owned(),
            );
        }
        Ok(())
    }
}
