//! The files beside a `SKILL.md`: listed on demand, without reading them.

use std::path::{Path, PathBuf};

use rustix::fs::{Dir, FileType, OFlags};
use rustix::io::Errno;

use crate::SkillProblem;
use crate::error::SkillError;
use crate::folder::{self, FolderHandle};

/// Maximum number of files listed.
const MAX_FILES: usize = 10_000;

/// Maximum number of entries inspected, including folders and entries left out.
const MAX_ENTRIES: usize = 4 * MAX_FILES;

/// Maximum depth of folders inspected.
const MAX_DEPTH: usize = 16;

/// Maximum number of problems reported.
const MAX_PROBLEMS: usize = 20;

/// Folders that are searched neither for resources nor for skills.
pub(super) const SKIPPED: [&str; 2] = [".git", "node_modules"];

/// A file beside a `SKILL.md`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkillResource {
    /// The path relative to the skill's folder, with `/`.
    pub path: String,
    /// Its size in bytes.
    pub bytes: u64,
}

/// The files beside a `SKILL.md`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SkillResources {
    /// The files in the order of their paths; at most 10,000.
    pub files: Vec<SkillResource>,
    /// What was left out and why: links that leave the folder, pipes, files beyond the limits.
    pub problems: Vec<SkillProblem>,
}

/// Lists the files below a skill's folder, except its own file.
pub(super) fn list(dir: &Path, own: &str) -> Result<SkillResources, SkillError> {
    let mut walk = ResourceWalk {
        folder: FolderHandle::open(dir)?,
        own,
        found: SkillResources::default(),
        looked: 0,
        more: 0,
    };
    walk.list_below(&PathBuf::new(), 0);
    let ResourceWalk {
        mut found, more, ..
    } = walk;
    if more > MAX_PROBLEMS {
        let message = format!("{} more files are left out", more - MAX_PROBLEMS);
        found.problems.push(SkillProblem::warning(message));
    }
    found.files.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(found)
}

struct ResourceWalk<'a> {
    folder: FolderHandle,
    own: &'a str,
    found: SkillResources,
    looked: usize,
    more: usize,
}

impl ResourceWalk<'_> {
    fn list_below(&mut self, relative: &Path, depth: usize) {
        let mut entries = match self.entries(relative) {
            Ok(entries) => entries,
            Err(e) => return self.skip_with_problem(relative, &format!("cannot be listed: {e}")),
        };
        entries.sort_unstable_by(|a, b| a.0.cmp(&b.0));
        for (name, kind) in entries {
            if self.found.files.len() >= MAX_FILES {
                let message =
                    format!("there are more than {MAX_FILES} files; the rest is left out");
                if !self.found.problems.iter().any(|p| p.message == message) {
                    self.found.problems.push(SkillProblem::warning(message));
                }
                return;
            }
            let path = relative.join(&name);
            if !(depth == 0 && name == self.own) {
                self.entry(&path, kind, depth);
            }
        }
    }

    /// Returns the entries of a folder, up to the limit on entries; reports a name that is not text.
    fn entries(&mut self, relative: &Path) -> Result<Vec<(String, FileType)>, Errno> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY;
        let fd = self.folder.beneath(relative_or_dot(relative), flags)?;
        let mut entries = Vec::new();
        for entry in Dir::new(fd)? {
            let entry = entry?;
            let name = entry.file_name();
            if matches!(name.to_bytes(), b"." | b"..") {
                continue;
            }
            self.looked += 1;
            if self.looked > MAX_ENTRIES {
                self.skip_with_problem(relative, "the skill's folder holds too many entries");
                break;
            }
            if let Ok(name) = name.to_str() {
                entries.push((name.to_owned(), entry.file_type()));
            } else {
                let name = name.to_string_lossy().into_owned();
                self.skip_with_problem(&relative.join(name), "its name is not UTF-8");
            }
        }
        Ok(entries)
    }

    fn entry(&mut self, path: &Path, listed: FileType, depth: usize) {
        match self.folder.look(path) {
            Ok((FileType::RegularFile, stat)) => self.found.files.push(SkillResource {
                path: path.to_string_lossy().into_owned(),
                bytes: u64::try_from(stat.st_size).unwrap_or(0),
            }),
            Ok((FileType::Directory, _)) => {
                let skipped = SKIPPED.iter().any(|name| path.ends_with(name));
                // Some file systems do not report the kind: skip such a folder, since it could be a link to a parent.
                if listed != FileType::Directory {
                    self.skip_with_problem(path, "a link to a folder is not followed");
                } else if depth + 1 > MAX_DEPTH {
                    self.skip_with_problem(path, "too deep");
                } else if !skipped {
                    self.list_below(path, depth + 1);
                }
            }
            Ok((kind, _)) => self.skip_with_problem(path, folder::word(kind)),
            Err(Errno::XDEV | Errno::LOOP) => {
                self.skip_with_problem(path, "a link that leaves the skill's folder");
            }
            Err(Errno::NOENT) => self.skip_with_problem(path, "a link to nothing"),
            Err(e) => self.skip_with_problem(path, &std::io::Error::from(e).to_string()),
        }
    }

    fn skip_with_problem(&mut self, path: &Path, why: &str) {
        self.more += 1;
        if self.more <= MAX_PROBLEMS {
            let message = format!("{:?} is left out: {why}", path.to_string_lossy());
            self.found.problems.push(SkillProblem::warning(message));
        }
    }
}

fn relative_or_dot(relative: &Path) -> &Path {
    if relative.as_os_str().is_empty() {
        Path::new(".")
    } else {
        relative
    }
}
