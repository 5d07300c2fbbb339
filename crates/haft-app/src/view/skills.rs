//! Skills as data: lists and details.

use std::path::Path;

use haft::skill::set::{BrokenSkill, Catalogue};
use haft::skill::{Skill, SkillProblem as Fault, SkillResources};
use serde::Serialize;
use serde_json::{Value, json};

use crate::app::App;
use crate::nearest::nearest;
use crate::problem::Problem;

/// A skill in a list (contract §9); `valid` says whether it loads.
#[derive(Debug, Serialize)]
pub struct SkillListItem<'a> {
    /// Its name.
    pub name: &'a str,
    /// What it is for.
    pub description: &'a str,
    /// Its folder.
    pub path: String,
    /// Where it was found: `workspace`, `settings` or `user`.
    pub source: &'static str,
    /// Whether it loads.
    pub valid: bool,
}

impl<'a> SkillListItem<'a> {
    fn usable(skill: &'a Skill) -> Self {
        Self {
            name: skill.name(),
            description: skill.description(),
            path: path_text(skill.dir()),
            source: skill.source().word(),
            valid: true,
        }
    }

    fn broken(broken: &'a BrokenSkill) -> Self {
        Self {
            name: &broken.name,
            description: &broken.description,
            path: broken.location.parent().map(path_text).unwrap_or_default(),
            source: broken.source.word(),
            valid: false,
        }
    }
}

/// Lists every skill found, including those that do not load.
pub fn list(found: &Catalogue) -> Vec<SkillListItem<'_>> {
    let usable = found.skills().iter().map(SkillListItem::usable);
    let broken = found.broken().iter().map(SkillListItem::broken);
    usable.chain(broken).collect()
}

/// Returns a skill as JSON with all details; `body` has its instructions for display as a page.
///
/// # Errors
/// A [`Problem`] if there is no such skill or it cannot be read.
pub fn find_whole(app: &App, name: &str) -> Result<Value, Problem> {
    let found = app.skills().current();
    let skill = found.find(name).ok_or_else(|| unknown(&found, name))?;
    let to_problem = |e: haft::skill::SkillError| Problem::failed(e.to_string());
    let instructions = skill.instructions().map_err(to_problem)?;
    let mut whole = whole(
        skill,
        &instructions,
        &skill.resources().map_err(to_problem)?,
    );
    whole["body"] = instructions.into();
    Ok(whole)
}

/// Returns the problem that there is no such skill: why, and which name is similar.
pub fn unknown(found: &Catalogue, name: &str) -> Problem {
    let problem = Problem::usage(format!("no skill `{name}`"));
    if let Some(broken) = found.broken().iter().find(|broken| broken.name == name) {
        let dir = broken.location.parent().map(path_text).unwrap_or_default();
        return problem.advise(format!("it does not load: `haft skills check {dir}`"));
    }
    if found.hidden().iter().any(|skill| skill.name() == name) {
        return problem
            .advise("skills.allow or skills.deny hides it: `haft config explain skills.deny`");
    }
    let names: Vec<&str> = found.skills().iter().map(Skill::name).collect();
    match nearest(name, &names) {
        Some(near) => problem.advise(format!("did you mean `{near}`?")),
        None => problem.advise("`haft skills list` shows them"),
    }
}

/// Returns all details as JSON.
pub fn whole(skill: &Skill, instructions: &str, resources: &SkillResources) -> Value {
    let front = skill.front();
    let files = resources.files.iter();
    let files: Vec<Value> = files
        .map(|file| json!({"path": file.path, "bytes": file.bytes}))
        .collect();
    let problems: Vec<&Fault> = skill.problems().iter().chain(&resources.problems).collect();
    let mut whole = json!({
        "name": skill.name(), "description": skill.description(), "path": path_text(skill.dir()),
        "source": skill.source().word(), "valid": true, "license": front.license,
        "compatibility": front.compatibility, "version": front.version, "metadata": front.metadata,
        "tags": front.tags, "aliases": front.aliases, "category": front.category,
        "when_to_use": front.when_to_use, "argument_hint": front.argument_hint,
        "arguments": front.arguments, "model_invocable": front.model_invocable,
        "user_invocable": front.user_invocable, "paths": front.paths, "other": front.others,
        "requests": skill.requests(), "restricts_to": skill.restricts_to(), "excludes": skill.excludes(),
        "problems": problems, "resources": files, "instructions": instructions,
    });
    // Absent values are omitted, never null.
    if let Value::Object(members) = &mut whole {
        members.retain(|_, value| !value.is_null());
    }
    whole
}

fn path_text(path: &Path) -> String {
    path.display().to_string()
}
