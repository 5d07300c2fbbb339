//! Git's commit-graph, from which it takes the tree and the parents of a commit without reading the commit. Format: gitformat-commit-graph(5).

use super::super::id::{ID_BYTES, ObjectId};
use super::super::store::ObjectDatabase;
use super::Budget;
use crate::command::meaning::sides::PathContent;

/// Maximum size of a graph, in bytes.
const MAX_GRAPH: u64 = 16 << 20;
/// The beginning of a graph of version 1 with SHA-1.
const MAGIC: &[u8] = b"CGPH\x01\x01";
/// The size of the header, and of an entry in the table of chunks.
const HEADER: usize = 8;
const CHUNK: usize = 12;
/// The size of what is stored of a commit: tree, two parents, times.
const COMMIT: usize = ID_BYTES + 16;
/// The place of a parent that there is not.
const NO_PARENT: u32 = 0x7000_0000;

/// Whether each commit in a graph has the tree and the parents that the graph says. One that builds on others, or holds commits with
/// more than two parents, is not understood.
pub(super) fn is_true(store: &ObjectDatabase<'_>, content: &PathContent, budget: &Budget) -> bool {
    let size = usize::try_from(content.len().min(MAX_GRAPH + 1)).unwrap_or(usize::MAX);
    let fits = content.len() <= MAX_GRAPH;
    let bytes = fits.then(|| content.exact_at(0, size).ok()).flatten();
    bytes.is_some_and(|bytes| agrees(store, &bytes, budget).unwrap_or(false))
}

fn agrees(store: &ObjectDatabase<'_>, bytes: &[u8], budget: &Budget) -> Option<bool> {
    let is_alone = bytes.starts_with(MAGIC) && bytes.get(7) == Some(&0);
    if !is_alone {
        return None;
    }
    let (names, data) = (chunk(bytes, *b"OIDL")?, chunk(bytes, *b"CDAT")?);
    let count = names.len() / ID_BYTES;
    if data.len() != count * COMMIT {
        return None;
    }
    let name = |at: u32| ObjectId::from_bytes(names.chunks_exact(ID_BYTES).nth(at as usize)?);
    for (id, stored) in names.chunks_exact(ID_BYTES).zip(data.chunks_exact(COMMIT)) {
        if budget.is_over() {
            return None;
        }
        let commit = store.commit(&ObjectId::from_bytes(id)?).ok()?;
        let (tree, rest) = stored.split_at(ID_BYTES);
        let mut parents = Vec::new();
        for at in [word(rest, 0)?, word(rest, 4)?] {
            if at != NO_PARENT {
                parents.push(name(at)?);
            }
        }
        if commit.tree != ObjectId::from_bytes(tree)? || commit.parents != parents {
            return Some(false);
        }
    }
    Some(true)
}

/// Returns the content of a chunk.
fn chunk(bytes: &[u8], wanted: [u8; 4]) -> Option<&[u8]> {
    let count = usize::from(*bytes.get(6)?);
    let offset = |at: usize| {
        let entry = bytes.get(HEADER + at * CHUNK..)?.get(4..CHUNK)?;
        usize::try_from(u64::from_be_bytes(entry.try_into().ok()?)).ok()
    };
    let mut numbers = 0..count;
    let is_it = |at: &usize| {
        bytes
            .get(HEADER + at * CHUNK..)
            .is_some_and(|entry| entry.starts_with(&wanted))
    };
    let at = numbers.find(is_it)?;
    bytes.get(offset(at)?..offset(at + 1)?)
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}
