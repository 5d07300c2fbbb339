//! Copies a skill's files into a workspace, where the user may change them; changed files are never overwritten.

use std::collections::BTreeMap;
use std::io::Read as _;

use sha2::{Digest, Sha256};

use crate::Skill;
use crate::error::SkillError;
use haft_files::workspace::{EntryKind, ResolvedPath, Workspace, WorkspaceError, WriteMode};
use haft_types::text::hex;

/// The folder for copies, below the workspace: the first place where its skills are searched.
const COPIES: &str = ".haft/skills";
/// The folder beside it for records of copies, with the digest of each file.
const RECORDS: &str = ".haft/copied-skills";
/// Maximum size of a copied file, in bytes.
const MAX_FILE: u64 = 16 * 1024 * 1024;
/// Maximum total size of the copied files, in bytes.
const MAX_TOTAL: u64 = 64 * 1024 * 1024;

/// The result of a copy.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SkillCopy {
    /// The copy's folder, below the workspace.
    pub folder: String,
    /// Files that were written, new or replacing an older copy.
    pub written: Vec<String>,
    /// Files left alone because the user changed them, or because they are not from a copy.
    pub kept: Vec<String>,
}

/// The reason why a skill was not copied, or not completely.
#[derive(Debug, thiserror::Error)]
pub enum ProjectError {
    /// One of its files could not be read.
    #[error("copy the skill: {0}")]
    Skill(#[from] SkillError),
    /// A file could not be written.
    #[error("copy the skill: {0}")]
    Workspace(#[from] WorkspaceError),
    /// The files exceed the size limit.
    #[error("copy the skill: its files have more than {0} bytes")]
    TooLarge(u64),
}

impl Skill {
    /// Copies its files to `.haft/skills/NAME` of a workspace. Replaces an existing file only if it is unchanged since an
    /// earlier copy; keeps files that the skill no longer has. A host calls it when the user asks for it; no tool does.
    ///
    /// # Errors
    /// [`ProjectError::Skill`] if the skill cannot be read, [`ProjectError::Workspace`] if a file cannot be written,
    /// [`ProjectError::TooLarge`] if its files exceed the total size.
    pub fn project_into(&self, workspace: &Workspace) -> Result<SkillCopy, ProjectError> {
        let folder = format!("{COPIES}/{}", self.name());
        let record = format!("{RECORDS}/{}.json", self.name());
        let mut digests = read_digests(workspace, &record);
        let mut done = SkillCopy {
            folder: folder.clone(),
            ..SkillCopy::default()
        };
        let mut total = 0;
        let others = self.resources()?.files.into_iter().map(|file| file.path);
        for path in std::iter::once(self.file_name().to_owned()).chain(others) {
            let bytes = self.whole(&path)?;
            total += bytes.len() as u64;
            if total > MAX_TOTAL {
                return Err(ProjectError::TooLarge(MAX_TOTAL));
            }
            let new = digest(&bytes);
            let place = workspace.place(&format!("{folder}/{path}"))?;
            let mut expected = None;
            if place.kind().is_some() {
                // Compare and replace a file under one stamp, so that a concurrent change is not overwritten.
                expected = workspace.stamp(&place)?;
                let old = digest_of_file(workspace, &place)?;
                if old.as_deref() == Some(&*new) {
                    digests.insert(path, new);
                    continue;
                }
                if old.is_none() || digests.get(&path) != old.as_ref() {
                    done.kept.push(path);
                    continue;
                }
            }
            workspace.write(&place, &bytes, WriteMode::Overwrite, expected.as_ref())?;
            digests.insert(path.clone(), new);
            done.written.push(path);
        }
        // A map of texts is always valid JSON.
        let text = serde_json::to_vec_pretty(&digests).unwrap_or_default();
        let place = workspace.place(&record)?;
        workspace.write(&place, &text, WriteMode::Overwrite, None)?;
        Ok(done)
    }

    fn whole(&self, path: &str) -> Result<Vec<u8>, ProjectError> {
        let mut bytes = Vec::new();
        loop {
            let slice = self.read_resource(path, bytes.len() as u64..MAX_FILE)?;
            if slice.total > MAX_FILE {
                return Err(ProjectError::TooLarge(MAX_FILE));
            }
            let end = slice.bytes.is_empty();
            bytes.extend_from_slice(&slice.bytes);
            if end || bytes.len() as u64 >= slice.total {
                return Ok(bytes);
            }
        }
    }
}

/// Returns the digests of the last copy, or none if they cannot be read: then every other file counts as changed.
fn read_digests(workspace: &Workspace, record: &str) -> BTreeMap<String, String> {
    let read = || {
        let place = workspace.existing(record).ok()?;
        serde_json::from_slice(&content(workspace, &place).ok()??).ok()
    };
    read().unwrap_or_default()
}

/// Returns the digest of the file there; `None` if it is not a file, or larger than a copy can be.
fn digest_of_file(
    workspace: &Workspace,
    place: &ResolvedPath,
) -> Result<Option<String>, WorkspaceError> {
    Ok(content(workspace, place)?.map(|bytes| digest(&bytes)))
}

fn content(workspace: &Workspace, place: &ResolvedPath) -> Result<Option<Vec<u8>>, WorkspaceError> {
    if place.kind() != Some(EntryKind::File) {
        return Ok(None);
    }
    let opened = workspace.read(place)?;
    if opened.stamp.bytes() > MAX_FILE {
        return Ok(None);
    }
    let mut bytes = Vec::new();
    let read = opened.file.take(MAX_FILE).read_to_end(&mut bytes);
    Ok(read.is_ok().then_some(bytes))
}

fn digest(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}
