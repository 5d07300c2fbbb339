//! `FateTable`: the fate of each change of a command, as a number beside the change: there may be 200,000 of them.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::path::Path;
use std::sync::Arc;

use haft::change::PathText;
use haft::change::collect::ChangeList;
use serde::{Deserialize, Serialize, Serializer};

/// Number of fates that are compared with a new one: neighbours have the same reasons.
const MAX_COMPARED: usize = 8;

/// The fate of a change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Fate {
    /// It is applied without asking.
    Allowed,
    /// The user decides.
    Asked,
    /// It was applied.
    Applied,
    /// It is not applied, for this reason.
    Refused(String),
    /// Another program changed the same file.
    Conflict(String),
    /// It could not be applied, for this reason.
    Failed(String),
}

/// The fates of a command's changes.
#[derive(Debug)]
pub(super) struct FateTable {
    changes: Arc<ChangeList>,
    /// For each change, the number of its fate, counted from 1.
    numbers: Vec<Option<NonZeroU32>>,
    fates: Vec<Fate>,
    /// The fates of paths that no longer differ.
    others: BTreeMap<PathText, Fate>,
}

impl FateTable {
    /// Creates a table of these fates, one for each change; the changes beyond them have none.
    pub(super) fn new(changes: Arc<ChangeList>, fates: impl IntoIterator<Item = Fate>) -> Self {
        let mut table = Self {
            numbers: vec![None; changes.len()],
            changes,
            fates: Vec::new(),
            others: BTreeMap::new(),
        };
        for (at, fate) in fates.into_iter().enumerate() {
            table.set_at(at, fate);
        }
        table
    }

    /// Creates the table of fates that were stored by their paths.
    pub(super) fn of_stored(
        changes: &Arc<ChangeList>,
        mut stored: BTreeMap<PathText, Fate>,
    ) -> Self {
        let mut table = Self::new(Arc::clone(changes), []);
        for (at, path) in changes.paths().enumerate() {
            if let Some(fate) = stored.remove(path) {
                table.set_at(at, fate);
            }
        }
        table.others = stored;
        table
    }

    /// Returns the fate of a path.
    pub(super) fn get(&self, path: &Path) -> Option<&Fate> {
        match self.changes.position(path) {
            Some(at) => self.at(at),
            None => self.others.get(path),
        }
    }

    /// Returns the fate of the change with this number.
    pub(super) fn at(&self, at: usize) -> Option<&Fate> {
        let number = (*self.numbers.get(at)?)?;
        self.fates.get(number.get() as usize - 1)
    }

    /// Sets the fate of a change.
    pub(super) fn set(&mut self, path: &Path, fate: Fate) {
        match self.changes.position(path) {
            Some(at) => self.set_at(at, fate),
            None => _ = self.others.insert(path.into(), fate),
        }
    }

    /// Sets the new fate of everything that has the fate `from`.
    pub(super) fn decide(&mut self, from: &Fate, to: impl Fn(&Path) -> Fate) {
        let changes = Arc::clone(&self.changes);
        for (at, path) in changes.paths().enumerate() {
            if self.at(at) == Some(from) {
                self.set_at(at, to(path));
            }
        }
        for (path, fate) in &mut self.others {
            if fate == from {
                *fate = to(path);
            }
        }
    }

    /// Returns all paths that have a fate.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&Path, &Fate)> {
        let changes = self.changes.paths().enumerate();
        let of_changes = changes.filter_map(|(at, path)| Some((path, self.at(at)?)));
        of_changes.chain(self.others.iter().map(|(path, fate)| (&**path, fate)))
    }

    fn set_at(&mut self, at: usize, fate: Fate) {
        let first = self.fates.len().saturating_sub(MAX_COMPARED);
        let recent = self.fates.iter().enumerate().skip(first);
        let known = recent
            .filter(|(_, known)| **known == fate)
            .map(|(number, _)| number)
            .next();
        let number = known.unwrap_or_else(|| {
            self.fates.push(fate);
            self.fates.len() - 1
        });
        if let Some(place) = self.numbers.get_mut(at) {
            *place = u32::try_from(number + 1).ok().and_then(NonZeroU32::new);
        }
    }
}

impl Serialize for FateTable {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let each = self.iter();
        serializer.collect_map(each.map(|(path, fate)| (PathText::from(path), fate)))
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use haft::change::collect::{CollectedChanges, ViewCreation};
    use haft::workspace::Workspace;

    use super::*;

    /// Returns the changes of a command that left these files.
    fn changes(files: &[&str]) -> Arc<ChangeList> {
        let folder = tempfile::tempdir().unwrap();
        for name in ["work", "upper"] {
            fs::create_dir(folder.path().join(name)).unwrap();
        }
        for file in files {
            fs::write(folder.path().join("upper").join(file), file).unwrap();
        }
        let workspace = Workspace::open(&folder.path().join("work")).unwrap();
        let upper = folder.path().join("upper");
        let since = ViewCreation::of(&upper).unwrap();
        CollectedChanges::collect(&workspace, &upper, since)
            .unwrap()
            .changes
    }

    fn refused(why: usize) -> Fate {
        Fate::Refused(why.to_string())
    }

    #[test]
    fn table_when_stored_and_read_about_the_same_changes_is_the_same() {
        let names: Vec<String> = (0..40).map(|nth| format!("f{nth:02}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let changes = changes(&names);
        // More reasons than are compared with a new one.
        let fates = (0..40).map(|nth| {
            if nth % 3 == 0 {
                Fate::Asked
            } else {
                refused(nth % 20)
            }
        });
        let table = FateTable::new(Arc::clone(&changes), fates.clone());
        assert!(table.iter().map(|(_, fate)| fate.clone()).eq(fates));
        let json = serde_json::to_string(&table).unwrap();
        let mut stored: BTreeMap<PathText, Fate> = serde_json::from_str(&json).unwrap();
        let gone = PathText::from(Path::new("gone"));
        stored.insert(gone, refused(1));
        let read = FateTable::of_stored(&changes, stored);
        let without_gone = read.iter().filter(|(path, _)| *path != Path::new("gone"));
        assert!(without_gone.eq(table.iter()));
        assert_eq!(read.get(Path::new("gone")), Some(&refused(1)));
        assert_eq!(read.get(Path::new("other")), None);
    }

    #[test]
    fn table_when_decided_changes_exactly_the_fates_that_are_meant() {
        let changes = changes(&["a", "b", "c", "d"]);
        let fates = [Fate::Asked, Fate::Allowed, Fate::Asked, refused(1)];
        let mut table = FateTable::new(changes, fates);
        table.set(Path::new("gone"), Fate::Asked);
        table.decide(&Fate::Asked, |path| {
            if path == Path::new("c") {
                Fate::Applied
            } else {
                refused(2)
            }
        });
        let found: Vec<_> = table
            .iter()
            .map(|(path, fate)| (path, fate.clone()))
            .collect();
        let expect = [
            ("a", refused(2)),
            ("b", Fate::Allowed),
            ("c", Fate::Applied),
            ("d", refused(1)),
            ("gone", refused(2)),
        ];
        assert_eq!(found, expect.map(|(path, fate)| (Path::new(path), fate)));
    }
}
