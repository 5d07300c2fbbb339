//! Finding skills below a root: level by level, with limits, and with a list of what to check for changes.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet, VecDeque};
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD};

use crate::error::SkillError;
use crate::folder::{FILES, FolderHandle, MAX_HEAD, OVERLAY};
use crate::lenient::{SkillDeclaration, TextHead, declare};
use crate::resources::SKIPPED;
use crate::{Skill, SkillProblem, SkillSource};
use haft_files::workspace::FileStamp;
use haft_types::clock;

/// Maximum depth of folders inspected below a root.
const MAX_DEPTH: usize = 6;

/// Maximum number of folders inspected below a root.
const MAX_DIRS: usize = 2000;

/// Folders that the format reserves for resources: they are not searched for skills.
const RESOURCE_FOLDERS: [&str; 3] = ["scripts", "references", "assets"];

/// A file changed this recently may change again within one tick of the file system's clock, undetected. In nanoseconds.
const SETTLE_NANOS: i128 = 50_000_000;

/// A path to check for changes.
#[derive(Debug)]
pub(super) struct WatchedPath {
    path: PathBuf,
    stamp: Option<FileStamp>,
}

impl WatchedPath {
    /// Records the current state of a path.
    pub(super) fn on(path: PathBuf) -> Self {
        let stamp = stamp_of(&path);
        Self { path, stamp }
    }

    /// Whether something was there.
    pub(super) fn is_there(&self) -> bool {
        self.stamp.is_some()
    }

    /// Whether it is unchanged since then.
    pub(super) fn holds(&self) -> bool {
        stamp_of(&self.path) == self.stamp
    }
}

fn stamp_of(path: &Path) -> Option<FileStamp> {
    let stat = rustix::fs::statat(CWD, path, AtFlags::empty()).ok()?;
    Some(FileStamp::of(&stat))
}

/// A folder with a `SKILL.md`, as read.
#[derive(Debug, Clone)]
pub(super) struct SkillFolder {
    pub(super) dir: PathBuf,
    /// The stamps of the skill's file and its overlay.
    stamps: [Option<FileStamp>; 2],
    /// Whether any further change would change a stamp.
    settled: bool,
    /// The skill, or why it did not load.
    pub(super) read: Result<Skill, BrokenSkill>,
}

/// A `SKILL.md` that did not load.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BrokenSkill {
    /// The name if known, otherwise the folder's.
    pub name: String,
    /// The description, if known.
    pub description: String,
    /// Its `SKILL.md`.
    pub location: PathBuf,
    /// Where it was found.
    pub source: SkillSource,
    /// The problems that keep it from loading, and all others.
    pub problems: Vec<SkillProblem>,
}

/// The skills below a root.
#[derive(Debug, Default)]
pub(super) struct RootScan {
    /// The skill folders, by depth, then by path.
    pub(super) found: Vec<SkillFolder>,
    pub(super) watches: Vec<WatchedPath>,
    pub(super) problems: Vec<SkillProblem>,
}

impl RootScan {
    /// Whether nothing has changed since then.
    pub(super) fn holds(&self) -> bool {
        self.found.iter().all(|found| found.settled) && self.watches.iter().all(WatchedPath::holds)
    }
}

/// Finds skills below a root that is a folder without links; does not read unchanged skills again.
pub(super) fn walk(
    source: &SkillSource,
    root: &Path,
    edge: Option<&Path>,
    old: &[SkillFolder],
) -> RootScan {
    let mut walk = SkillWalk {
        source,
        edge,
        old: old
            .iter()
            .map(|found| (found.dir.as_path(), found))
            .collect(),
        below: RootScan::default(),
        seen: HashSet::new(),
        queue: VecDeque::from([(root.to_path_buf(), 0, false)]),
    };
    let mut looked = 0;
    while let Some((dir, depth, in_skill)) = walk.queue.pop_front() {
        looked += 1;
        if looked > MAX_DIRS {
            walk.report(
                root,
                &format!("holds more than {MAX_DIRS} folders; the rest is left out"),
            );
            break;
        }
        walk.scan_folder(&dir, depth, in_skill);
    }
    walk.below
}

struct SkillWalk<'a> {
    source: &'a SkillSource,
    /// No link may lead out of this folder.
    edge: Option<&'a Path>,
    old: HashMap<&'a Path, &'a SkillFolder>,
    below: RootScan,
    seen: HashSet<(u64, u64)>,
    queue: VecDeque<(PathBuf, usize, bool)>,
}

/// The position of folders in the tree.
#[derive(Clone, Copy)]
struct FolderLevel {
    depth: usize,
    /// Whether it is below a skill, whose resource folders contain no skills.
    in_skill: bool,
}

impl SkillWalk<'_> {
    fn scan_folder(&mut self, dir: &Path, depth: usize, in_skill: bool) {
        // Record the state before reading, so that a change in between is found next time.
        let watch = WatchedPath::on(dir.to_path_buf());
        let Some(stamp) = watch.stamp else { return };
        self.below.watches.push(watch);
        if !self.seen.insert(stamp.identity()) {
            return;
        }
        let entries = match fs::read_dir(dir) {
            Ok(entries) => entries,
            Err(e) => return self.report(dir, &format!("cannot be listed: {e}")),
        };
        let mut folders = Vec::new();
        let mut file = None;
        for entry in entries.flatten() {
            let name = entry.file_name();
            if let Some(at) = FILES.iter().position(|known| name == *known) {
                file = Some(file.map_or(at, |before: usize| before.min(at)));
            } else if entry
                .file_type()
                .is_ok_and(|kind| kind.is_dir() || kind.is_symlink())
            {
                folders.push((name, entry.file_type().is_ok_and(|kind| kind.is_symlink())));
            }
        }
        if let Some(at) = file {
            self.skill(dir, FILES[at]);
        }
        if depth < MAX_DEPTH {
            let level = FolderLevel {
                depth: depth + 1,
                in_skill: in_skill || file.is_some(),
            };
            self.descend(dir, folders, level);
        }
    }

    fn descend(&mut self, dir: &Path, mut folders: Vec<(OsString, bool)>, level: FolderLevel) {
        folders.sort_unstable();
        let FolderLevel { depth, in_skill } = level;
        for (name, link) in folders {
            let skipped = SKIPPED.iter().any(|s| name == *s);
            if skipped || (in_skill && (link || RESOURCE_FOLDERS.iter().any(|r| name == *r))) {
                continue;
            }
            let mut path = dir.join(name);
            if link {
                // A link to a file is not worth reporting.
                let Some(real) = path.canonicalize().ok().filter(|real| real.is_dir()) else {
                    continue;
                };
                if self.edge.is_some_and(|edge| !real.starts_with(edge)) {
                    self.report(
                        &path,
                        "is a link that leaves the workspace and is not followed",
                    );
                    continue;
                }
                path = real;
            }
            self.queue.push_back((path, depth, in_skill));
        }
    }

    fn skill(&mut self, dir: &Path, file: &'static str) {
        let watches = [file, OVERLAY].map(|name| WatchedPath::on(dir.join(name)));
        let stamps = [watches[0].stamp, watches[1].stamp];
        // A missing overlay needs no watch: creating it changes the folder.
        let there = watches.into_iter().filter(|watch| watch.stamp.is_some());
        self.below.watches.extend(there);
        let old = self.old.get(dir).copied();
        let same = old.filter(|old| old.stamps == stamps);
        if let Some(old) = same.filter(|old| old.settled) {
            self.below.found.push(old.clone());
            return;
        }
        let settled = stamps.iter().flatten().all(|stamp| is_settled(*stamp));
        let mut read = read(dir, file, self.source);
        // Read again only because of the clock, with the same result: keep the instance that callers may hold.
        if let (Some(old), Ok(new)) = (same, &read)
            && let Ok(before) = &old.read
            && before.inner.declared == new.inner.declared
        {
            read = Ok(before.clone());
        }
        self.below.found.push(SkillFolder {
            dir: dir.to_path_buf(),
            stamps,
            settled,
            read,
        });
    }

    fn report(&mut self, path: &Path, what: &str) {
        let message = format!("{:?} {what}", path.to_string_lossy());
        self.below.problems.push(SkillProblem::warning(message));
    }
}

fn is_settled(stamp: FileStamp) -> bool {
    clock::now() - stamp.changed_at() > SETTLE_NANOS
}

/// Reads the skill in one folder.
pub(super) fn read(
    dir: &Path,
    file: &'static str,
    source: &SkillSource,
) -> Result<Skill, BrokenSkill> {
    let folder_name = dir
        .file_name()
        .map(|name| name.to_string_lossy().into_owned());
    let folder_name = folder_name.unwrap_or_default();
    match declared(dir, file, &folder_name) {
        Ok(declared) if declared.loads() => Ok(Skill::new(
            declared,
            dir.to_path_buf(),
            file,
            source.clone(),
        )),
        Ok(declared) => Err(BrokenSkill {
            name: if declared.name.is_empty() {
                folder_name
            } else {
                declared.name
            },
            description: declared.description,
            location: dir.join(file),
            source: source.clone(),
            problems: declared.problems,
        }),
        Err(e) => Err(BrokenSkill {
            name: folder_name,
            description: String::new(),
            location: dir.join(file),
            source: source.clone(),
            problems: vec![SkillProblem::error(e.to_string())],
        }),
    }
}

fn declared(dir: &Path, file: &str, folder_name: &str) -> Result<SkillDeclaration, SkillError> {
    let folder = FolderHandle::open(dir)?;
    let head = folder.read_beginning(Path::new(file), MAX_HEAD)?;
    let overlay = match folder.whole(Path::new(OVERLAY), MAX_HEAD) {
        Ok(bytes) => Some(bytes),
        Err(SkillError::NotFound(_)) => None,
        Err(e) => return Err(e),
    };
    let overlay = overlay.as_deref().map(String::from_utf8_lossy);
    let text = String::from_utf8_lossy(&head.bytes);
    let head = TextHead {
        text: &text,
        whole: head.whole,
    };
    let mut declared = declare(&head, overlay.as_deref(), folder_name);
    if matches!(text, Cow::Owned(_)) && head.whole {
        let message = "SKILL.md contains bytes that are not UTF-8";
        declared.problems.push(SkillProblem::warning(message));
    }
    Ok(declared)
}
