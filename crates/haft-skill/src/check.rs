//! Checking skills for their authors: whether a skill would load, and whether it strictly follows the format.

use std::path::Path;

use serde::Serialize;

use crate::error::SkillError;
use crate::folder::{FILES, FolderHandle, OVERLAY};
use crate::lenient::{TextHead, declare};
use crate::{MAX_INSTRUCTIONS, Severity, SkillProblem, folder, split, strict};

/// Maximum number of lines of instructions that the format recommends.
const RECOMMENDED_LINES: usize = 500;

/// The result of a check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SkillReport {
    /// The skill's name, or its folder's if it has none.
    pub name: String,
    /// Whether there are no errors.
    pub ok: bool,
    /// Errors and warnings.
    pub problems: Vec<SkillProblem>,
}

/// How strictly to check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rigour {
    /// Report as an error what keeps a skill from loading.
    Lenient,
    /// Report as an error what the format forbids.
    Strict,
}

/// Checks the skill in a folder. Problems inside the folder are in the report.
///
/// # Errors
/// [`SkillError`] if the folder cannot be opened.
pub fn check(dir: &Path, rigour: Rigour) -> Result<SkillReport, SkillError> {
    let real = dir.canonicalize().map_err(|source| SkillError::Io {
        verb: "open",
        path: dir.to_string_lossy().into_owned(),
        source,
    })?;
    let opened = FolderHandle::open(&real)?;
    let name = real
        .file_name()
        .map(|name| name.to_string_lossy().into_owned());
    let name = name.unwrap_or_default();
    let text = match read(&opened, &FILES, MAX_INSTRUCTIONS) {
        Ok(Some(bytes)) => bytes,
        Ok(None) => {
            return Ok(report(
                name,
                vec![SkillProblem::error("there is no SKILL.md")],
            ));
        }
        Err(e) => return Ok(report(name, vec![SkillProblem::error(e.to_string())])),
    };
    let overlay = match read(&opened, &[OVERLAY], folder::MAX_HEAD) {
        Ok(overlay) => overlay,
        Err(e) => return Ok(report(name, vec![SkillProblem::error(e.to_string())])),
    };
    Ok(check_text(&text, overlay.as_deref(), &name, rigour))
}

fn read(folder: &FolderHandle, names: &[&str], most: u64) -> Result<Option<Vec<u8>>, SkillError> {
    for name in names {
        match folder.whole(Path::new(name), most) {
            Ok(bytes) => return Ok(Some(bytes)),
            Err(SkillError::NotFound(_)) => {}
            Err(e) => return Err(e),
        }
    }
    Ok(None)
}

/// Checks the bytes of a `SKILL.md` and of the `skill.yaml` beside it, as if they were in a folder of this name.
pub fn check_text(
    bytes: &[u8],
    overlay: Option<&[u8]>,
    folder: &str,
    rigour: Rigour,
) -> SkillReport {
    let text = String::from_utf8_lossy(bytes);
    let overlay = overlay.map(String::from_utf8_lossy);
    let cut = text.floor_char_boundary(usize::try_from(folder::MAX_HEAD).unwrap_or(usize::MAX));
    let head = TextHead {
        text: &text[..cut],
        whole: cut == text.len(),
    };
    let declared = declare(&head, overlay.as_deref(), folder);
    let utf8 = std::str::from_utf8(bytes).is_ok();
    let no_text = || "SKILL.md contains bytes that are not UTF-8".to_owned();
    let mut problems = declared.problems;
    match rigour {
        Rigour::Lenient if !utf8 => problems.push(SkillProblem::warning(no_text())),
        Rigour::Lenient => {}
        Rigour::Strict => {
            let faults = if utf8 {
                strict::faults(&text, folder)
            } else {
                vec![no_text()]
            };
            // The overlay is not part of the format: its problems keep their level.
            problems.retain(|problem| problem.message.contains(OVERLAY));
            problems.extend(faults.into_iter().map(SkillProblem::error));
        }
    }
    let lines = split::body(&text).lines().count();
    if lines > RECOMMENDED_LINES {
        problems.push(SkillProblem::warning(format!(
            "the instructions have {lines} lines; put what is not always needed into files beside them"
        )));
    }
    problems.sort_by_key(|problem| std::cmp::Reverse(problem.level));
    let name = if declared.name.is_empty() {
        folder.to_owned()
    } else {
        declared.name
    };
    report(name, problems)
}

fn report(name: String, problems: Vec<SkillProblem>) -> SkillReport {
    SkillReport {
        ok: problems
            .iter()
            .all(|problem| problem.level == Severity::Warning),
        name,
        problems,
    }
}
