//! `Skill`: a folder of instructions with a `SKILL.md`, read leniently according to the Agent Skills format.
//!
//! Loading reads only name, description and front matter; [`Skill::instructions`] and other files are read on demand. What a
//! skill requests and how it limits itself are separate: [`Skill::requests`] never grants anything, [`Skill::restricts_to`] and
//! [`Skill::excludes`] can only narrow.

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
mod quote;
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
pub use folder::ResourceSlice;
pub use front::FrontMatter;
pub use project::{ProjectError, SkillCopy};
pub use resources::{SkillResource, SkillResources};

use crate::folder::FolderHandle;
use crate::lenient::SkillDeclaration;

/// Maximum number of bytes read from a `SKILL.md`: 1 MiB.
pub const MAX_INSTRUCTIONS: u64 = 1024 * 1024;

/// Parses YAML as front matter is parsed: scalars remain texts, and aliases are not allowed.
///
/// # Errors
/// The text is not YAML, is nested too deeply, or has aliases.
pub fn read_yaml(text: &str) -> Result<serde_json::Value, String> {
    Ok(yaml::read(text, 0)?.node.to_value())
}

/// The severity of a problem.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// The skill works.
    Warning,
    /// The skill does not work.
    Error,
}

/// A problem with a skill, for its author.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
pub struct SkillProblem {
    /// The severity.
    pub level: Severity,
    /// The description.
    pub message: String,
}

impl SkillProblem {
    pub(crate) fn error(message: impl Into<String>) -> Self {
        Self {
            level: Severity::Error,
            message: message.into(),
        }
    }

    pub(crate) fn warning(message: impl Into<String>) -> Self {
        Self {
            level: Severity::Warning,
            message: message.into(),
        }
    }
}

impl fmt::Display for SkillProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

/// Where a skill was found: the kind of root, and the root's folder.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum SkillSource {
    /// A folder in the workspace, which must be trusted.
    Workspace(Arc<Path>),
    /// A folder that the settings name.
    Configured(Arc<Path>),
    /// A folder of the user.
    User(Arc<Path>),
}

impl SkillSource {
    /// Returns the root's folder.
    pub fn root(&self) -> &Path {
        match self {
            Self::Workspace(root) | Self::Configured(root) | Self::User(root) => root,
        }
    }

    /// Returns `workspace`, `settings` or `user`.
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
    declared: SkillDeclaration,
    dir: PathBuf,
    /// `SKILL.md` or `skill.md`.
    file: &'static str,
    source: SkillSource,
}

impl Skill {
    fn new(
        declared: SkillDeclaration,
        dir: PathBuf,
        file: &'static str,
        source: SkillSource,
    ) -> Self {
        Self {
            inner: Arc::new(Inner {
                declared,
                dir,
                file,
                source,
            }),
        }
    }

    /// Returns its name: one line without path separators or control characters, never empty, usable as a folder name. It may
    /// differ from its folder's name.
    pub fn name(&self) -> &str {
        &self.inner.declared.name
    }

    /// Returns what it is for and when to use it; at most 1,024 characters, never empty.
    pub fn description(&self) -> &str {
        &self.inner.declared.description
    }

    /// Returns its folder, without links.
    pub fn dir(&self) -> &Path {
        &self.inner.dir
    }

    /// Returns where it was found.
    pub fn source(&self) -> &SkillSource {
        &self.inner.source
    }

    /// Returns the path of its `SKILL.md`.
    pub fn location(&self) -> PathBuf {
        self.inner.dir.join(self.inner.file)
    }

    /// Returns the name of that file in the folder: `SKILL.md` or `skill.md`.
    pub fn file_name(&self) -> &'static str {
        self.inner.file
    }

    /// Returns the rest of its front matter.
    pub fn front(&self) -> &FrontMatter {
        &self.inner.declared.front
    }

    /// Returns the rules it asks for (`allowed-tools`). They are shown to the user and grant nothing.
    pub fn requests(&self) -> &[String] {
        &self.inner.declared.tools.requests
    }

    /// Returns the only rules that calls may match while it is active (`allowed_tools`); an empty list permits nothing.
    pub fn restricts_to(&self) -> Option<&[String]> {
        self.inner.declared.tools.restricts_to.as_deref()
    }

    /// Returns the rules that no call may match while it is active (`disallowed-tools`).
    pub fn excludes(&self) -> &[String] {
        &self.inner.declared.tools.excludes
    }

    /// Returns what its author should fix; only warnings, since errors prevent loading.
    pub fn problems(&self) -> &[SkillProblem] {
        &self.inner.declared.problems
    }

    /// Whether both are the same skill, read at the same time.
    pub fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.inner, &other.inner)
    }

    /// Reads the instructions now: the text below the front matter, at most [`MAX_INSTRUCTIONS`] bytes.
    ///
    /// # Errors
    /// [`SkillError::TooLarge`] if they are longer, [`SkillError::Changed`] if the folder was replaced, [`SkillError::Io`]
    /// if the file cannot be read.
    pub fn instructions(&self) -> Result<String, SkillError> {
        let folder = FolderHandle::open(&self.inner.dir)?;
        let bytes = folder.whole(Path::new(self.inner.file), MAX_INSTRUCTIONS)?;
        Ok(split::body(&folder::as_text(&bytes)).to_owned())
    }

    /// Lists all other files below its folder now, in the order of their paths.
    ///
    /// # Errors
    /// [`SkillError::Changed`] if the folder was replaced, [`SkillError::Io`] if it cannot be listed.
    pub fn resources(&self) -> Result<SkillResources, SkillError> {
        resources::list(&self.inner.dir, self.inner.file)
    }

    /// Reads bytes of one of its files, at most 1 MiB at once. Refuses a path that leaves the folder, also by a link.
    ///
    /// # Errors
    /// [`SkillError::NotFound`], [`SkillError::Outside`] or [`SkillError::NotAFile`] for a path that names no regular
    /// file of the skill, [`SkillError::Malformed`] for one that is not relative, [`SkillError::Changed`] if the folder
    /// was replaced, [`SkillError::Io`] if it cannot be read.
    pub fn read_resource(
        &self,
        path: &str,
        range: Range<u64>,
    ) -> Result<ResourceSlice, SkillError> {
        FolderHandle::open(&self.inner.dir)?.slice(path, range)
    }
}
