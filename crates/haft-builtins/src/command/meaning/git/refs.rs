//! `Refs`: the branches, tags and other names of a repository on one side of a change set.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use haft::workspace::EntryKind;

use super::id::{HEX, ObjectId};
use crate::command::meaning::sides::{ChangeSides, Side};

/// Maximum number of refs that are read.
const MAX_REFS: usize = 100_000;
/// Maximum depth of folders of refs.
const MAX_DEPTH: usize = 16;
/// Maximum size of a ref's file, in bytes.
const MAX_REF: u64 = 4 << 10;
/// Maximum size of the file with packed refs, in bytes.
const MAX_PACKED: u64 = 16 << 20;
/// Maximum number of refs that one leads through, as in git.
const MAX_SYMBOLIC: usize = 5;

/// What a ref is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Target {
    /// An object.
    Id(ObjectId),
    /// Another ref.
    Ref(String),
}

/// The names of a repository.
#[derive(Debug, Default)]
pub(super) struct Refs {
    all: BTreeMap<String, Target>,
}

impl Refs {
    /// Reads the refs of the repository in a folder.
    ///
    /// # Errors
    /// Why they are not understood, as the end of a sentence.
    pub(super) fn read(
        sides: &ChangeSides<'_>,
        side: Side,
        repository: &Path,
    ) -> Result<Self, String> {
        let mut refs = Self::default();
        let packed = repository.join("packed-refs");
        if let Some(file) = sides.open(side, &packed) {
            let bytes = file
                .whole(MAX_PACKED)
                .ok_or("its packed refs are too long")?;
            for line in bytes.split(|byte| *byte == b'\n') {
                if line.starts_with(b"#") || line.starts_with(b"^") || line.is_empty() {
                    continue;
                }
                let id = line.get(..HEX).and_then(ObjectId::from_hex);
                let name = line.get(HEX..).and_then(|rest| rest.strip_prefix(b" "));
                let (id, name) = id.zip(name).ok_or("its packed refs are damaged")?;
                let name = String::from_utf8_lossy(name).into_owned();
                // Git looks for names by halving.
                if refs.all.contains_key(&name) {
                    return Err(format!("its packed refs name {name:?} twice"));
                }
                refs.insert(name, Target::Id(id))?;
            }
        }
        refs.walk(sides, side, repository)?;
        Ok(refs)
    }

    fn insert(&mut self, name: String, target: Target) -> Result<(), String> {
        if self.all.len() >= MAX_REFS {
            return Err(format!("it has more than {MAX_REFS} refs"));
        }
        self.all.insert(name, target);
        Ok(())
    }

    fn walk(
        &mut self,
        sides: &ChangeSides<'_>,
        side: Side,
        repository: &Path,
    ) -> Result<(), String> {
        let mut left: Vec<(PathBuf, usize)> = vec![(repository.join("refs"), 0)];
        while let Some((folder, depth)) = left.pop() {
            if depth > MAX_DEPTH {
                return Err("its refs are in too many folders".to_owned());
            }
            let names = sides.names(side, &folder, MAX_REFS);
            let names = names.ok_or_else(|| format!("it has more than {MAX_REFS} refs"))?;
            for (name, kind) in names {
                let path = folder.join(&name);
                let shown = path.strip_prefix(repository).unwrap_or(&path);
                let shown = shown.to_string_lossy().into_owned();
                match kind {
                    EntryKind::Directory => left.push((path, depth + 1)),
                    EntryKind::File if is_lock(&shown) => {}
                    EntryKind::File => {
                        let target = read_target(sides, side, &path);
                        let target = target.ok_or_else(|| format!("{shown:?} is damaged"))?;
                        self.insert(shown, target)?;
                    }
                    _ => return Err(format!("{shown:?} is a link or no file")),
                }
            }
        }
        Ok(())
    }

    /// Returns the object that a ref leads to; `None` if there is none or the refs lead in a circle.
    pub(super) fn resolve(&self, target: &Target) -> Option<ObjectId> {
        let mut target = target;
        for _ in 0..=MAX_SYMBOLIC {
            match target {
                Target::Id(id) => return Some(*id),
                Target::Ref(name) => target = self.all.get(name)?,
            }
        }
        None
    }

    /// Returns the object of a ref.
    pub(super) fn get(&self, name: &str) -> Option<ObjectId> {
        self.resolve(self.all.get(name)?)
    }

    /// Returns all refs with what they are.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&str, &Target)> {
        self.all.iter().map(|(name, target)| (&**name, target))
    }

    /// Returns the objects of the refs whose names begin so.
    pub(super) fn below(&self, folder: &str) -> Vec<ObjectId> {
        let all = self.all.iter();
        let inside = all.filter(|(name, _)| name.starts_with(folder));
        inside.filter_map(|(_, to)| self.resolve(to)).collect()
    }

    /// Returns the objects of all refs.
    pub(super) fn ids(&self) -> Vec<ObjectId> {
        let mut ids: Vec<ObjectId> = self
            .all
            .values()
            .filter_map(|to| self.resolve(to))
            .collect();
        ids.sort_unstable();
        ids.dedup();
        ids
    }
}

/// Reads a file such as HEAD; `None` if it is damaged.
pub(super) fn read_target(sides: &ChangeSides<'_>, side: Side, path: &Path) -> Option<Target> {
    let bytes = sides.read(side, path, MAX_REF)?;
    let text = bytes.trim_ascii_end();
    if let Some(name) = text.strip_prefix(b"ref:") {
        let name = String::from_utf8_lossy(name.trim_ascii()).into_owned();
        return Some(Target::Ref(name));
    }
    // FETCH_HEAD and its like have more words.
    Some(Target::Id(ObjectId::from_hex(text.get(..40)?)?))
}

/// Whether git takes a name for one of a ref in the folder of refs, compare `check_refname_format` in its source.
pub(super) fn is_name_of_ref(name: &[u8]) -> bool {
    let is_part = |part: &[u8]| {
        !part.is_empty()
            && !part.starts_with(b".")
            && !part.ends_with(b".")
            && !part.ends_with(b".lock")
    };
    let is_allowed = |byte: &u8| {
        !matches!(
            byte,
            0..=b' ' | b'~' | b'^' | b':' | b'?' | b'*' | b'[' | b'\\' | 0x7f
        )
    };
    let holds = |text: &[u8]| memchr::memmem::find(name, text).is_some();
    name.starts_with(b"refs/")
        && name.split(|byte| *byte == b'/').all(is_part)
        && name.iter().all(is_allowed)
        && !holds(b"..")
        && !holds(b"@{")
}

/// A ref that differs between the two sides.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RefUpdate {
    pub(super) name: String,
    pub(super) old: Option<ObjectId>,
    pub(super) new: Option<ObjectId>,
    /// The other ref that it leads to from now on.
    pub(super) leads_to: Option<String>,
}

/// Returns the refs that differ, sorted by name.
pub(super) fn updates(before: &Refs, after: &Refs) -> Vec<RefUpdate> {
    let names: std::collections::BTreeSet<&str> = before
        .iter()
        .filter(|(name, was)| after.all.get(*name) != Some(*was))
        .chain(
            after
                .iter()
                .filter(|(name, is)| before.all.get(*name) != Some(*is)),
        )
        .map(|(name, _)| name)
        .collect();
    names
        .into_iter()
        .map(|name| RefUpdate {
            name: name.to_owned(),
            old: before.get(name),
            new: after.get(name),
            leads_to: match after.all.get(name) {
                Some(Target::Ref(to)) => Some(to.clone()),
                _ => None,
            },
        })
        .collect()
}

/// Returns whether it is the lock of a ref: git writes the name in lower case.
#[expect(
    clippy::case_sensitive_file_extension_comparisons,
    reason = "git's own name"
)]
fn is_lock(name: &str) -> bool {
    name.ends_with(".lock")
}
