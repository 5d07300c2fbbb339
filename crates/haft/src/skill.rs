//! `Skill`: a folder of know-how with a `SKILL.md`, read by the Agent Skills format, leniently.
//!
//! Loading reads name, description and front matter alone; [`Skill::instructions`] and the files beside it are read
//! when they are wanted. What a skill asks for and what it limits itself to stay apart: [`Skill::requests`] never
//! grants anything, [`Skill::restricts_to`] and [`Skill::excludes`] can only narrow.

use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::Serialize;

pub mod check;
mod error;
mod folder;
mod front;
mod lenient;
mod overlay;
mod project;
mod resources;
mod rules;
pub mod set;
mod split;
mod strict;
mod walk;
mod yaml;

#[cfg(test)]
mod tests;

pub use error::SkillError;
pub use folder::Slice;
pub use front::FrontMatter;
pub use project::{ProjectError, Projected};
pub use resources::{Resource, Resources};

use crate::skill::folder::Folder;
use crate::skill::lenient::Declared;

/// The most that is read of a `SKILL.md`: 1 MiB.
pub const MAX_INSTRUCTIONS: u64 = 1024 * 1024;

/// What a text in YAML says, read as front matters are: scalars stay texts, nothing is repeated by aliases.
///
/// # Errors
/// The text is not YAML, nests too deep, or has aliases.
pub fn read_yaml(text: &str) -> Result<serde_json::Value, String> {
    Ok(yaml::read(text, 0)?.node.to_value())
}

/// How bad a problem is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// The skill works.
    Warning,
    /// It does not.
    Error,
}

/// What is wrong with a skill, for its author.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
pub struct Problem {
    /// How bad it is.
    pub level: Level,
    /// What it is.
    pub message: String,
}

impl Problem {
    pub(crate) fn error(message: impl Into<String>) -> Self {
        Self {
            level: Level::Error,
            message: message.into(),
        }
    }

    pub(crate) fn warning(message: impl Into<String>) -> Self {
        Self {
            level: Level::Warning,
            message: message.into(),
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

/// Where a skill was found: which sort of root, and the root's folder.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Source {
    /// A folder of the workspace's, which must be trusted.
    Workspace(Arc<Path>),
    /// A folder that the settings name.
    Configured(Arc<Path>),
    /// A folder of the user's own.
    User(Arc<Path>),
}

impl Source {
    /// The root's folder.
    pub fn root(&self) -> &Path {
        match self {
            Self::Workspace(root) | Self::Configured(root) | Self::User(root) => root,
        }
    }

    /// `workspace`, `settings` or `user`.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Workspace(_) => "workspace",
            Self::Configured(_) => "settings",
            Self::User(_) => "user",
        }
    }
}

/// A skill. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Skill {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    declared: Declared,
    dir: PathBuf,
    /// `SKILL.md` or `skill.md`.
    file: &'static str,
    source: Source,
}

impl Skill {
    fn new(declared: Declared, dir: PathBuf, file: &'static str, source: Source) -> Self {
        Self {
            inner: Arc::new(Inner {
                declared,
                dir,
                file,
                source,
            }),
        }
    }

    /// Its name: one line without path separators or control characters, never empty, fit for a folder's name. It need
    /// not be its folder's.
    pub fn name(&self) -> &str {
        &self.inner.declared.name
    }

    /// What it is for and when to use it; at most 1,024 characters, never empty.
    pub fn description(&self) -> &str {
        &self.inner.declared.description
    }

    /// Its folder, without links.
    pub fn dir(&self) -> &Path {
        &self.inner.dir
    }

    /// Where it was found.
    pub fn source(&self) -> &Source {
        &self.inner.source
    }

    /// Its `SKILL.md`.
    pub fn location(&self) -> PathBuf {
        self.inner.dir.join(self.inner.file)
    }

    /// The name of that file in the folder: `SKILL.md` or `skill.md`.
    pub fn file_name(&self) -> &'static str {
        self.inner.file
    }

    /// What else it says of itself.
    pub fn front(&self) -> &FrontMatter {
        &self.inner.declared.front
    }

    /// The rules it asks for (`allowed-tools`). Shown to people; they grant nothing.
    pub fn requests(&self) -> &[String] {
        &self.inner.declared.tools.requests
    }

    /// The only rules that may be used while it is active (`allowed_tools`); an empty list is none at all.
    pub fn restricts_to(&self) -> Option<&[String]> {
        self.inner.declared.tools.restricts_to.as_deref()
    }

    /// The rules that may not be used while it is active (`disallowed-tools`).
    pub fn excludes(&self) -> &[String] {
        &self.inner.declared.tools.excludes
    }

    /// What its author should mend; warnings alone, else it would not have loaded.
    pub fn problems(&self) -> &[Problem] {
        &self.inner.declared.problems
    }

    /// Whether both are the same skill as read at the same time.
    pub fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.inner, &other.inner)
    }

    /// The instructions, read now: what stands below the front matter, at most [`MAX_INSTRUCTIONS`].
    ///
    /// # Errors
    /// [`SkillError::TooLarge`] where they are longer, [`SkillError::Changed`] where the folder is another one by now, [`SkillError::Io`]
    /// where the file cannot be read.
    pub fn instructions(&self) -> Result<String, SkillError> {
        let folder = Folder::open(&self.inner.dir)?;
        let bytes = folder.whole(Path::new(self.inner.file), MAX_INSTRUCTIONS)?;
        Ok(split::body(&folder::as_text(&bytes)).to_owned())
    }

    /// All other files below its folder, listed now, in the order of their paths.
    ///
    /// # Errors
    /// [`SkillError::Changed`] where the folder is another one by now, [`SkillError::Io`] where it cannot be listed.
    pub fn resources(&self) -> Result<Resources, SkillError> {
        resources::list(&self.inner.dir, self.inner.file)
    }

    /// Bytes of one of its files; at most 1 MiB at once. A path that leaves the folder, also by a link, is refused.
    ///
    /// # Errors
    /// [`SkillError::NotFound`], [`SkillError::Outside`] or [`SkillError::NotAFile`] for a path that names no regular file of the skill,
    /// [`SkillError::Malformed`] for one that is not relative, [`SkillError::Io`] where it cannot be read.
    pub fn read_resource(&self, path: &str, range: Range<u64>) -> Result<Slice, SkillError> {
        Folder::open(&self.inner.dir)?.slice(path, range)
    }
}
