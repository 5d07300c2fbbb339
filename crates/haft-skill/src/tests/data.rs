//! The recorded skills: each one loads leniently and has the recorded result in the strict check.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;

use crate::check::{Rigour, check};
use crate::{Severity, Skill, SkillSource, walk};

/// Minimum number of skills in the file.
const SKILLS: usize = 120;

#[derive(Debug, Deserialize)]
struct Verdict {
    strict_ok: bool,
    messages: Vec<String>,
    name: String,
    description_chars: usize,
}

fn recorded() -> Option<(std::path::PathBuf, BTreeMap<String, Verdict>)> {
    let Some(folder) = std::env::var_os("HAFT_DATA") else {
        eprintln!("SKIPPED: HAFT_DATA is not set, the recorded skills are not read");
        return None;
    };
    let folder = Path::new(&folder).join("skills").canonicalize().unwrap();
    let text = std::fs::read_to_string(folder.join("verdicts.json")).unwrap();
    let verdicts: BTreeMap<String, Verdict> = serde_json::from_str(&text).unwrap();
    assert!(verdicts.len() >= SKILLS, "{} skills", verdicts.len());
    Some((folder, verdicts))
}

fn load(dir: &Path) -> Skill {
    let source = SkillSource::User(dir.into());
    walk::read(dir, "SKILL.md", &source).unwrap_or_else(|broken| panic!("{broken:?}"))
}

#[test]
fn every_recorded_skill_loads_with_its_name_and_description() {
    let Some((folder, verdicts)) = recorded() else {
        return;
    };
    for (dir, verdict) in &verdicts {
        let skill = load(&folder.join(dir));
        assert_eq!(skill.name(), verdict.name, "{dir}");
        // Trimmed here, while the record counts a block's last line break.
        let (count, recorded) = (
            skill.description().chars().count(),
            verdict.description_chars,
        );
        let near = count + 1 >= recorded.min(1024) && count <= recorded;
        assert!(near, "{dir}: {count} of {recorded}");
        assert!(!skill.instructions().unwrap().is_empty(), "{dir}");
        assert!(skill.resources().unwrap().problems.is_empty(), "{dir}");
        let report = check(&folder.join(dir), Rigour::Lenient).unwrap();
        assert!(
            report.ok && report.name == verdict.name,
            "{dir}: {report:?}"
        );
    }
}

#[test]
fn strict_verdicts_are_those_recorded() {
    let Some((folder, verdicts)) = recorded() else {
        return;
    };
    for (dir, verdict) in &verdicts {
        let report = check(&folder.join(dir), Rigour::Strict).unwrap();
        assert_eq!(report.ok, verdict.strict_ok, "{dir}: {report:?}");
        let errors = report
            .problems
            .iter()
            .filter(|p| p.level == Severity::Error);
        let ours: Vec<&str> = errors.map(|p| p.message.as_str()).collect();
        assert_eq!(ours.len(), verdict.messages.len(), "{dir}: {ours:?}");
        for (ours, theirs) in ours.iter().zip(&verdict.messages) {
            assert_eq!(gist(ours), gist(theirs), "{dir}");
        }
    }
}

/// Reduces a message to its subject, independent of its wording.
fn gist(message: &str) -> String {
    let lower = message.to_lowercase();
    let subject = ["unknown field", "description", "directory"];
    let about = match &lower {
        m if m.contains("unexpected fields") || m.contains("unknown fields") => subject[0],
        m if m.contains("description") => subject[1],
        m if m.contains("directory name") || m.contains("its folder's") => subject[2],
        _ => message,
    };
    let numbers = |c: char| !c.is_ascii_digit();
    let mut numbers: Vec<&str> = message.split(numbers).filter(|n| !n.is_empty()).collect();
    numbers.sort_unstable();
    let fields = ["argument-hint", "user-invocable", "authors"];
    let fields: Vec<&str> = fields.into_iter().filter(|f| message.contains(f)).collect();
    format!("{about} {numbers:?} {fields:?}")
}
