//! A skill's files copied into a workspace, where a person may change them: what was changed there is never overwritten.

use std::collections::BTreeMap;
use std::io::Read as _;

use sha2::{Digest, Sha256};

use crate::skill::{Skill, SkillError};
use crate::text::hex;
use crate::workspace::{Kind, Place, Workspace, WorkspaceError, WriteMode};

/// Where copies go, below the workspace: the first place where its skills are looked for.
const COPIES: &str = ".haft/skills";
/// What was copied is remembered beside them, by the digest each file had.
const RECORDS: &str = ".haft/copied-skills";
/// The largest file that is copied.
const FILE: u64 = 16 * 1024 * 1024;
/// The most bytes of all.
const WHOLE: u64 = 64 * 1024 * 1024;

/// What a copying came to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Projected {
    /// The copy's folder, below the workspace.
    pub folder: String,
    /// Files that were written, new or in the place of an older copy.
    pub written: Vec<String>,
    /// Files that a person changed, or that are not of a copy: left as they are.
    pub kept: Vec<String>,
}

/// Why a skill was not copied, or not whole.
#[derive(Debug, thiserror::Error)]
pub enum ProjectError {
    /// One of its files could not be read.
    #[error("copy the skill: {0}")]
    Skill(#[from] SkillError),
    /// One could not be written.
    #[error("copy the skill: {0}")]
    Workspace(#[from] WorkspaceError),
    /// There is more than is copied.
    #[error("copy the skill: its files have more than {0} bytes")]
    TooLarge(u64),
}

impl Skill {
    /// Copies its files to `.haft/skills/NAME` of a workspace. A file that is there already is replaced only where it is as an
    /// earlier copying left it; files that the skill no longer has stay. A host calls it when a person wants that; no tool does.
    ///
    /// # Errors
    /// [`ProjectError::Skill`] where the skill cannot be read, [`ProjectError::Workspace`] where a file cannot be written,
    /// [`ProjectError::TooLarge`] where its files are too large together.
    pub fn project_into(&self, workspace: &Workspace) -> Result<Projected, ProjectError> {
        let folder = format!("{COPIES}/{}", self.name());
        let record = format!("{RECORDS}/{}.json", self.name());
        let mut digests = remembered(workspace, &record);
        let mut done = Projected {
            folder: folder.clone(),
            ..Projected::default()
        };
        let mut total = 0;
        let others = self.resources()?.files.into_iter().map(|file| file.path);
        for path in std::iter::once(self.file_name().to_owned()).chain(others) {
            let bytes = self.whole(&path)?;
            total += bytes.len() as u64;
            if total > WHOLE {
                return Err(ProjectError::TooLarge(WHOLE));
            }
            let new = digest(&bytes);
            let place = workspace.place(&format!("{folder}/{path}"))?;
            let mut expected = None;
            if place.kind().is_some() {
                // A file is read and replaced under one stamp: what is written in between stays.
                expected = workspace.stamp(&place)?;
                let old = present(workspace, &place)?;
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
        // A map of texts is always JSON.
        let text = serde_json::to_vec_pretty(&digests).unwrap_or_default();
        let place = workspace.place(&record)?;
        workspace.write(&place, &text, WriteMode::Overwrite, None)?;
        Ok(done)
    }

    fn whole(&self, path: &str) -> Result<Vec<u8>, ProjectError> {
        let mut bytes = Vec::new();
        loop {
            let slice = self.read_resource(path, bytes.len() as u64..FILE)?;
            if slice.total > FILE {
                return Err(ProjectError::TooLarge(FILE));
            }
            let end = slice.bytes.is_empty();
            bytes.extend_from_slice(&slice.bytes);
            if end || bytes.len() as u64 >= slice.total {
                return Ok(bytes);
            }
        }
    }
}

/// The digests that the last copying left, or none where that cannot be read: then every other file counts as changed.
fn remembered(workspace: &Workspace, record: &str) -> BTreeMap<String, String> {
    let read = || {
        let place = workspace.existing(record).ok()?;
        serde_json::from_slice(&content(workspace, &place).ok()??).ok()
    };
    read().unwrap_or_default()
}

/// The digest of what is there; nothing for what is no file, or none of a copy's size.
fn present(workspace: &Workspace, place: &Place) -> Result<Option<String>, WorkspaceError> {
    Ok(content(workspace, place)?.map(|bytes| digest(&bytes)))
}

fn content(workspace: &Workspace, place: &Place) -> Result<Option<Vec<u8>>, WorkspaceError> {
    if place.kind() != Some(Kind::File) {
        return Ok(None);
    }
    let opened = workspace.read(place)?;
    if opened.stamp.bytes() > FILE {
        return Ok(None);
    }
    let mut bytes = Vec::new();
    let read = opened.file.take(FILE).read_to_end(&mut bytes);
    Ok(read.is_ok().then_some(bytes))
}

fn digest(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}
