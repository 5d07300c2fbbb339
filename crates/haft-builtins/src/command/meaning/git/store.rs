//! `ObjectDatabase`: the objects of a repository, in packs and alone, before and after the changes.

use std::cell::{OnceCell, RefCell};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use super::entries::{TreeEntry, parse_tree};
use super::headers::{Commit, parse_tag};
use super::id::ObjectId;
use super::object::{GitObject, ObjectKind, id_of, loose};
use super::pack::Pack;
use crate::command::meaning::budget::Budget;
use crate::command::meaning::sides::{ChangeSides, Side};

/// Maximum size of a commit or tag, in bytes.
const MAX_COMMIT: u64 = 1 << 20;
/// Maximum size of a tree, in bytes: about a million names.
const MAX_TREE: u64 = 64 << 20;
/// Maximum number of packs.
const MAX_PACKS: usize = 1_000;
/// Maximum number of commits and trees kept in memory.
const MAX_CACHED: usize = 50_000;
/// Maximum size of a file that names other folders of objects, in bytes.
const MAX_ALTERNATES: u64 = 64 << 10;

/// Why an object cannot be read, as the end of a sentence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ObjectError(pub(super) String);

/// The objects of a repository.
pub(super) struct ObjectDatabase<'s> {
    sides: &'s ChangeSides<'s>,
    repository: PathBuf,
    /// The folders with objects.
    folders: Vec<PathBuf>,
    packs: OnceCell<Vec<Pack>>,
    commits: RefCell<HashMap<ObjectId, Rc<Commit>>>,
    trees: RefCell<HashMap<ObjectId, Rc<Vec<TreeEntry>>>>,
    /// Why objects may be missing that are no damage: the clone is shallow or partial, or shares another's objects.
    incomplete: Option<&'static str>,
}

impl<'s> ObjectDatabase<'s> {
    /// Returns the store of the repository in a folder.
    pub(super) fn new(
        sides: &'s ChangeSides<'s>,
        repository: &Path,
        incomplete: Option<&'static str>,
    ) -> Self {
        let own = repository.join("objects");
        let (others, all_inside) = alternates(sides, &own);
        let mut folders = vec![own];
        folders.extend(others);
        let elsewhere = "some of its objects are in a folder outside the workspace";
        Self {
            sides,
            repository: repository.to_owned(),
            folders,
            packs: OnceCell::new(),
            commits: RefCell::default(),
            trees: RefCell::default(),
            incomplete: if all_inside {
                incomplete
            } else {
                Some(elsewhere)
            },
        }
    }

    /// Returns the repository's folder.
    pub(super) fn repository(&self) -> &Path {
        &self.repository
    }

    /// Returns an object, with its content if it has at most `most` bytes. What is stored under another object's name is not believed.
    pub(super) fn object(&self, id: &ObjectId, most: u64) -> Result<GitObject, ObjectError> {
        let object = self.stored(id, most)?;
        let content = object.content.as_deref();
        if content.is_some_and(|content| id_of(object.kind, content) != *id) {
            let why = format!("object {} is not what its name says", id.short());
            return Err(ObjectError(why));
        }
        Ok(object)
    }

    /// Returns what is stored under a name. Like git, it looks into packs first.
    fn stored(&self, id: &ObjectId, most: u64) -> Result<GitObject, ObjectError> {
        for pack in self.packs.get_or_init(|| self.open_packs()) {
            if let Some(at) = pack.find(id) {
                return pack.read(at, most).ok_or_else(|| damaged(id));
            }
        }
        let hex = id.hex();
        let (folder, name) = hex.split_at(2);
        for side in [Side::After, Side::Before] {
            for objects in &self.folders {
                if let Some(content) = self.sides.open(side, &objects.join(folder).join(name)) {
                    return loose(&content, most).ok_or_else(|| damaged(id));
                }
            }
        }
        let why = self.incomplete.unwrap_or("it is not in the repository");
        Err(ObjectError(format!(
            "object {} cannot be read: {why}",
            id.short()
        )))
    }

    fn content(&self, id: &ObjectId, kind: ObjectKind, most: u64) -> Result<Vec<u8>, ObjectError> {
        let object = self.object(id, most)?;
        if object.kind != kind {
            return Err(damaged(id));
        }
        object
            .content
            .ok_or_else(|| ObjectError(format!("object {} is too long to be read", id.short())))
    }

    /// Returns a commit.
    pub(super) fn commit(&self, id: &ObjectId) -> Result<Rc<Commit>, ObjectError> {
        if let Some(known) = self.commits.borrow().get(id) {
            return Ok(Rc::clone(known));
        }
        let content = self.content(id, ObjectKind::Commit, MAX_COMMIT)?;
        let commit = Rc::new(Commit::parse(*id, &content).ok_or_else(|| damaged(id))?);
        let mut commits = self.commits.borrow_mut();
        if commits.len() < MAX_CACHED {
            commits.insert(*id, Rc::clone(&commit));
        }
        Ok(commit)
    }

    /// Returns the entries of a tree.
    pub(super) fn tree(&self, id: &ObjectId) -> Result<Rc<Vec<TreeEntry>>, ObjectError> {
        if let Some(known) = self.trees.borrow().get(id) {
            return Ok(Rc::clone(known));
        }
        let content = self.content(id, ObjectKind::Tree, MAX_TREE)?;
        let tree = Rc::new(parse_tree(&content).ok_or_else(|| damaged(id))?);
        let mut trees = self.trees.borrow_mut();
        if trees.len() < MAX_CACHED {
            trees.insert(*id, Rc::clone(&tree));
        }
        Ok(tree)
    }

    /// Returns the entry of a path in a tree; `None` if it has none.
    pub(super) fn lookup(
        &self,
        tree: &ObjectId,
        path: &[u8],
    ) -> Result<Option<TreeEntry>, ObjectError> {
        let mut tree = *tree;
        let mut names = path.split(|byte| *byte == b'/').peekable();
        while let Some(name) = names.next() {
            let entries = self.tree(&tree)?;
            let Some(entry) = entries.iter().find(|entry| entry.name == name) else {
                return Ok(None);
            };
            if names.peek().is_none() {
                return Ok(Some(entry.clone()));
            }
            if !entry.is_folder() {
                return Ok(None);
            }
            tree = entry.id;
        }
        Ok(None)
    }

    /// Returns the commit that a ref leads to, through tags, and the message of the first tag.
    pub(super) fn peel(&self, id: &ObjectId) -> Result<(Rc<Commit>, Option<String>), ObjectError> {
        const MAX_TAGS: usize = 5;
        let (mut id, mut message, mut stated) = (*id, None, None);
        for _ in 0..=MAX_TAGS {
            let object = self.object(&id, MAX_COMMIT)?;
            if stated.is_some_and(|stated| stated != object.kind) {
                return Err(damaged(&id));
            }
            match (object.kind, object.content) {
                (ObjectKind::Commit, _) => return Ok((self.commit(&id)?, message)),
                (ObjectKind::Tag, Some(content)) => {
                    let (target, kind, text) = parse_tag(&content).ok_or_else(|| damaged(&id))?;
                    message.get_or_insert(text);
                    stated = Some(kind);
                    id = target;
                }
                _ => break,
            }
        }
        Err(ObjectError(format!("{} is not a commit", id.short())))
    }

    /// Returns true if the loose object at a path of the repository is in a pack, with the content that its name says.
    pub(super) fn is_packed(&self, path: &Path) -> bool {
        let mut names = path.iter().rev().filter_map(|part| part.to_str());
        let (name, folder) = (names.next().unwrap_or_default(), names.next());
        let hex = format!("{}{name}", folder.unwrap_or_default());
        let id = ObjectId::from_hex(hex.as_bytes());
        let packs = self.packs.get_or_init(|| self.open_packs());
        id.is_some_and(|id| {
            let mut lasting = packs.iter().filter(|pack| pack.lasts);
            let object = lasting.find_map(|pack| pack.read(pack.find(&id)?, MAX_TREE));
            let content = object.and_then(|object| Some((object.kind, object.content?)));
            content.is_some_and(|(kind, content)| id_of(kind, &content) == id)
        })
    }

    /// Returns whether all objects of a new pack are what their names say; `None` if there are too many to be checked.
    pub(super) fn is_true(&self, path: &Path, time: &Budget) -> Option<bool> {
        let open = |path: &Path| self.sides.open(Side::After, path);
        let (index, pack) = open(&path.with_extension("idx")).zip(open(path))?;
        let pack = Pack::open(index, pack, true)?;
        let ids = pack.ids()?;
        for id in ids {
            let object = pack.find(&id).and_then(|at| pack.read(at, MAX_TREE));
            let object = object.filter(|_| !time.is_over())?;
            if id_of(object.kind, &object.content?) != id {
                return Some(false);
            }
        }
        Some(true)
    }

    /// Returns true if all objects of a deleted pack are in other packs, or alone.
    pub(super) fn is_repacked(&self, path: &Path) -> bool {
        let index = path.with_extension("idx");
        let open = |path: &Path| self.sides.open(Side::Before, path);
        let pack = open(&index).zip(open(&path.with_extension("pack")));
        let pack = pack.and_then(|(index, pack)| Pack::open(index, pack, false));
        let packs = self.packs.get_or_init(|| self.open_packs());
        let is_there = |id: &ObjectId| {
            let mut lasting = packs.iter().filter(|pack| pack.lasts);
            let hex = id.hex();
            let (folder, name) = hex.split_at(2);
            let loose = || self.folders[0].join(folder).join(name);
            lasting.any(|pack| pack.find(id).is_some())
                || self.sides.kind(Side::After, &loose()).is_some()
        };
        let ids = pack.and_then(|pack| pack.ids());
        ids.is_some_and(|ids| ids.iter().all(is_there))
    }

    fn open_packs(&self) -> Vec<Pack> {
        let mut packs = Vec::new();
        for folder in &self.folders {
            let folder = folder.join("pack");
            let mut seen = std::collections::BTreeSet::new();
            for side in [Side::After, Side::Before] {
                let names = self.sides.names(side, &folder, MAX_PACKS * 8);
                for name in names.unwrap_or_default().into_keys() {
                    let index = folder.join(&name);
                    if index.extension().is_none_or(|end| end != "idx") || !seen.insert(name) {
                        continue;
                    }
                    let pack = self.sides.open(side, &index.with_extension("pack"));
                    let open = self.sides.open(side, &index).zip(pack);
                    let lasts = side == Side::After;
                    packs.extend(open.and_then(|(index, pack)| Pack::open(index, pack, lasts)));
                    if packs.len() >= MAX_PACKS {
                        return packs;
                    }
                }
            }
        }
        packs
    }
}

fn damaged(id: &ObjectId) -> ObjectError {
    ObjectError(format!("object {} is damaged", id.short()))
}

/// Returns the other folders with objects that a repository uses, and whether all of them are in the workspace.
fn alternates(sides: &ChangeSides<'_>, objects: &Path) -> (Vec<PathBuf>, bool) {
    let file = objects.join("info/alternates");
    let text = sides.read(Side::After, &file, MAX_ALTERNATES);
    let text = String::from_utf8(text.unwrap_or_default()).unwrap_or_default();
    let (mut folders, mut all_inside) = (Vec::new(), true);
    for line in text
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
    {
        match sides.named_in(objects, line) {
            Some(inside) => folders.push(inside),
            None => all_inside = false,
        }
    }
    (folders, all_inside)
}
