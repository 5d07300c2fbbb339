//! Whether the objects that a change set stores are what their names say: git believes the name, and takes packs before single objects.

use std::collections::BTreeSet;
use std::io::{self, BufReader, Read as _};
use std::path::{Path, PathBuf};

use flate2::bufread::ZlibDecoder;
use sha1::{Digest as _, Sha1};

use haft::change::EntryState;

use super::super::id::ObjectId;
use super::super::object::{ContentReader, MAX_LOOSE_HEADER, loose_header};
use super::super::store::ObjectDatabase;
use super::{Budget, IncomingReader, PathRole};
use crate::command::meaning::sides::{PathChange, PathContent, Side};
use crate::command::meaning::words::name;

impl IncomingReader<'_> {
    /// Checks new and changed objects. A commit that names them may be old.
    pub(super) fn check_objects(
        &mut self,
        store: &ObjectDatabase<'_>,
        changes: &[(PathRole, PathChange<'_>)],
    ) {
        let mut packs: BTreeSet<PathBuf> = BTreeSet::new();
        for (role, change) in changes {
            let inner = change.path.strip_prefix(self.repository);
            let (Ok(inner), Some(state)) = (inner, change.state(Side::After)) else {
                continue;
            };
            if self.is_over(change.path) {
                return;
            }
            let is_true = match role {
                PathRole::Large => is_large(change.path, state),
                PathRole::Object => match ObjectFile::of(inner) {
                    ObjectFile::Loose(id) => {
                        let open = self.sides.open(Side::After, change.path);
                        open.is_some_and(|open| is_loose(&open, &id, self.budget))
                    }
                    ObjectFile::Pack => {
                        packs.insert(change.path.with_extension("pack"));
                        true
                    }
                    ObjectFile::Graph => {
                        let open = self.sides.open(Side::After, change.path);
                        open.is_some_and(|open| super::graph::is_true(store, &open, self.budget))
                    }
                    ObjectFile::Believed => false,
                    ObjectFile::Other => true,
                },
                _ => true,
            };
            if !is_true {
                self.doubt_object(change.path);
            }
        }
        for pack in packs {
            let is_there = self.sides.kind(Side::After, &pack).is_some();
            if is_there && store.is_true(&pack, self.budget) != Some(true) {
                self.doubt_object(&pack);
            }
        }
    }

    fn doubt_object(&mut self, path: &Path) {
        let shown = name(path.as_os_str().as_encoded_bytes());
        let why = format!(
            "{shown} is not what its name says, or cannot be checked in time, and git believes it"
        );
        // The index of a pack may be all that changed.
        let is_changed = self.sides.is_changed(path);
        let index = path.with_extension("idx");
        self.doubt(if is_changed { path } else { &index }, why);
    }
}

/// What a file among the objects is.
enum ObjectFile {
    Loose(ObjectId),
    /// A pack or its index.
    Pack,
    /// The trees and parents of commits, as git believes them.
    Graph,
    /// Something else that git believes.
    Believed,
    /// Nothing that says what an object holds.
    Other,
}

impl ObjectFile {
    fn of(inner: &Path) -> Self {
        let parts: Vec<&str> = inner
            .iter()
            .skip(1)
            .map(|part| part.to_str().unwrap_or(""))
            .collect();
        let ending = inner.extension().and_then(|end| end.to_str());
        match parts.as_slice() {
            ["pack", file] if file.starts_with("multi-pack-index") => Self::Believed,
            ["pack", "multi-pack-index.d", ..] => Self::Believed,
            ["pack", _] if matches!(ending, Some("pack" | "idx")) => Self::Pack,
            ["info", "commit-graph"] => Self::Graph,
            ["info", "commit-graphs", ..] if ending == Some("graph") => Self::Graph,
            ["info" | "pack", ..] => Self::Other,
            [folder, file] if folder.len() == 2 && file.len() == 38 => {
                let id = ObjectId::from_hex([*folder, *file].concat().as_bytes());
                id.map_or(Self::Other, Self::Loose)
            }
            _ => Self::Other,
        }
    }
}

/// Whether a file of git-lfs has the hash that is its name.
fn is_large(path: &Path, state: &EntryState) -> bool {
    match state {
        EntryState::File { sha256, bytes, .. } => {
            let named = path.file_name().and_then(|name| name.to_str());
            let digest = sha256.map(|sha256| sha256.to_string());
            // Unfinished ones lie elsewhere.
            *bytes == 0 || digest.as_deref() == named
        }
        _ => true,
    }
}

/// Whether an object that is stored alone has the name of its content.
fn is_loose(content: &PathContent, id: &ObjectId, budget: &Budget) -> bool {
    matches!(loose_id(content, budget), Ok(Some(found)) if found == *id)
}

/// Returns the name that an object stored alone should have; `None` if it is damaged or the time is over.
fn loose_id(content: &PathContent, budget: &Budget) -> io::Result<Option<ObjectId>> {
    let from = BufReader::with_capacity(32 << 10, ContentReader { content, at: 0 });
    let mut unpacked = BufReader::new(ZlibDecoder::new(from));
    let (mut header, mut byte) = (Vec::new(), [0]);
    while header.last() != Some(&0) {
        if header.len() >= MAX_LOOSE_HEADER || unpacked.read(&mut byte)? == 0 {
            return Ok(None);
        }
        header.push(byte[0]);
    }
    let Some((_, size)) = loose_header(&header[..header.len() - 1]) else {
        return Ok(None);
    };
    let mut hash = Sha1::new();
    hash.update(&header);
    let (mut piece, mut read) = (vec![0; 64 << 10], 0);
    loop {
        let count = unpacked.read(&mut piece)?;
        read += count as u64;
        if count == 0 {
            break;
        }
        if read > size || budget.is_over() {
            return Ok(None);
        }
        hash.update(&piece[..count]);
    }
    Ok((read == size).then(|| ObjectId(hash.finalize().into())))
}
