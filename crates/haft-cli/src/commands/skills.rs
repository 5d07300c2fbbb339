//! `haft skills`: the skills found, one whole, and a check for their authors.

use std::fmt::Write as _;
use std::path::Path;

use haft::skill::check::{self, Report, Rigour};
use haft::skill::set::{Broken, Catalogue};
use haft::skill::{Level, Problem as Fault, Resources, Skill};
use serde::Serialize;
use serde_json::{Value, json};

use crate::args::{SkillsAction, later};
use crate::assemble::House;
use crate::commands::Done;
use crate::exit::Exit;
use crate::invocation::Invocation;
use crate::problem::{Place, Problem};
use crate::screen::list::{Cut, List};
use crate::screen::{BOLD, DIM, GREEN, RED, Screen, YELLOW, styled, visible, when};

/// The most resources shown to people; `--json` has all.
const MOST_SHOWN: usize = 50;

/// A skill as it is listed (contract §9); `valid` is whether it loads.
#[derive(Debug, Serialize)]
pub(crate) struct Listed<'a> {
    name: &'a str,
    description: &'a str,
    path: String,
    source: &'static str,
    valid: bool,
}

impl<'a> Listed<'a> {
    fn usable(skill: &'a Skill) -> Self {
        Self {
            name: skill.name(),
            description: skill.description(),
            path: shown(skill.dir()),
            source: skill.source().word(),
            valid: true,
        }
    }

    fn broken(broken: &'a Broken) -> Self {
        Self {
            name: &broken.name,
            description: &broken.description,
            path: broken.location.parent().map(shown).unwrap_or_default(),
            source: broken.source.word(),
            valid: false,
        }
    }
}

/// Lists or shows.
pub(crate) fn run(at: &Invocation, house: &House, action: Option<&SkillsAction>) -> Done {
    match action {
        Some(SkillsAction::Show { name }) => show(at, house, name),
        Some(SkillsAction::Check { dir, strict }) => check(at, dir, *strict),
        None | Some(SkillsAction::List) => list(at, house),
    }
}

/// Every skill found, also those that do not load.
pub(crate) fn listed(found: &Catalogue) -> Vec<Listed<'_>> {
    let usable = found.skills().iter().map(Listed::usable);
    let broken = found.broken().iter().map(Listed::broken);
    usable.chain(broken).collect()
}

fn list(at: &Invocation, house: &House) -> Done {
    let found = house.skills().current();
    tell(at, &found);
    let all = listed(&found);
    if at.screen.json {
        at.screen.document(&all)?;
        return Ok(Exit::Done);
    }
    if all.is_empty() {
        at.screen.say(
            "no skills: put a folder with a SKILL.md below .agents/skills of a trusted workspace",
        );
        return Ok(Exit::Done);
    }
    let columns = [
        ("NAME", Cut::Middle),
        ("SOURCE", Cut::Never),
        ("LOADS", Cut::Never),
        ("DESCRIPTION", Cut::End),
    ];
    let mut list = List::new(&columns);
    for skill in &all {
        let loads = if skill.valid { "yes" } else { "no" };
        list.row([skill.name, skill.source, loads, skill.description]);
    }
    at.screen.out(&list.render())?;
    Ok(Exit::Done)
}

/// What is not in the list, and why.
fn tell(at: &Invocation, found: &Catalogue) {
    let screen = at.screen;
    for folder in found.withheld() {
        screen.warn(&format!(
            "the skills in {} are withheld: the workspace is not trusted (`haft trust {}`)",
            line(folder),
            line(&at.workspace)
        ));
    }
    for problem in found.problems() {
        screen.warn(&visible::line(&problem.message));
    }
    for broken in found.broken() {
        let why = broken.problems.iter().filter(|p| p.level == Level::Error);
        let why: Vec<&str> = why.map(|p| p.message.as_str()).collect();
        let path = line(&broken.location);
        screen.warn(&format!(
            "{path} does not load: {}",
            visible::line(&why.join("; "))
        ));
    }
    for shadowed in found.shadowed() {
        screen.warn(&format!(
            "{} is shadowed: {} has its name, `{}`, and is found earlier",
            line(&shadowed.skill.location()),
            line(&shadowed.by),
            visible::line(shadowed.skill.name())
        ));
    }
    for hidden in found.hidden() {
        screen.detail(&format!(
            "`{}` is hidden by skills.allow or skills.deny ({})",
            visible::line(hidden.name()),
            line(hidden.dir())
        ));
    }
    for skill in found.skills() {
        for problem in skill.problems() {
            let path = line(&skill.location());
            screen.detail(&format!("{path}: {}", visible::line(&problem.message)));
        }
    }
}

fn show(at: &Invocation, house: &House, name: &str) -> Done {
    let found = house.skills().current();
    let skill = found.find(name).ok_or_else(|| unknown(&found, name))?;
    let told = |e: haft::skill::SkillError| {
        Problem::failed(e.to_string()).at(Place::file(&skill.location()))
    };
    let instructions = skill.instructions().map_err(told)?;
    let resources = skill.resources().map_err(told)?;
    if at.screen.json {
        at.screen
            .document(&whole(skill, &instructions, &resources))?;
    } else {
        at.screen.out(&page(skill, &instructions, &resources))?;
    }
    Ok(Exit::Done)
}

/// A skill as JSON, whole; `body` is what it says, for whoever shows it as a page.
pub(crate) fn found_whole(house: &House, name: &str) -> Result<Value, Problem> {
    let found = house.skills().current();
    let skill = found.find(name).ok_or_else(|| unknown(&found, name))?;
    let told = |e: haft::skill::SkillError| Problem::failed(e.to_string());
    let instructions = skill.instructions().map_err(told)?;
    let mut whole = whole(skill, &instructions, &skill.resources().map_err(told)?);
    whole["body"] = instructions.into();
    Ok(whole)
}

fn unknown(found: &Catalogue, name: &str) -> Problem {
    let problem = Problem::usage(format!("no skill `{name}`"));
    if let Some(broken) = found.broken().iter().find(|broken| broken.name == name) {
        let dir = broken.location.parent().map(shown).unwrap_or_default();
        return problem.advise(format!("it does not load: `haft skills check {dir}`"));
    }
    if found.hidden().iter().any(|skill| skill.name() == name) {
        return problem
            .advise("skills.allow or skills.deny hides it: `haft config explain skills.deny`");
    }
    let names: Vec<&str> = found.skills().iter().map(Skill::name).collect();
    match later::nearest(name, &names) {
        Some(near) => problem.advise(format!("did you mean `{near}`?")),
        None => problem.advise("`haft skills list` shows them"),
    }
}

/// All there is to say, as JSON.
fn whole(skill: &Skill, instructions: &str, resources: &Resources) -> Value {
    let front = skill.front();
    let files = resources.files.iter();
    let files: Vec<Value> = files
        .map(|file| json!({"path": file.path, "bytes": file.bytes}))
        .collect();
    let problems: Vec<&Fault> = skill.problems().iter().chain(&resources.problems).collect();
    let mut whole = json!({
        "name": skill.name(), "description": skill.description(), "path": shown(skill.dir()),
        "source": skill.source().word(), "valid": true, "license": front.license,
        "compatibility": front.compatibility, "version": front.version, "metadata": front.metadata,
        "tags": front.tags, "aliases": front.aliases, "category": front.category,
        "when_to_use": front.when_to_use, "argument_hint": front.argument_hint,
        "arguments": front.arguments, "model_invocable": front.model_invocable,
        "user_invocable": front.user_invocable, "paths": front.paths, "other": front.others,
        "requests": skill.requests(), "restricts_to": skill.restricts_to(), "excludes": skill.excludes(),
        "problems": problems, "resources": files, "instructions": instructions,
    });
    // What is not there is left out, never null.
    if let Value::Object(members) = &mut whole {
        members.retain(|_, value| !value.is_null());
    }
    whole
}

/// All there is to say, for people.
fn page(skill: &Skill, instructions: &str, resources: &Resources) -> String {
    let mut out = String::new();
    let _ = writeln!(out, "{}", styled(BOLD, &visible::line(skill.name())));
    let _ = writeln!(out, "{}\n", visible::line(skill.description()));
    for (name, fact) in facts(skill) {
        if let Some(fact) = fact {
            let name = styled(DIM, &format!("{name:<10}"));
            let _ = writeln!(out, "{name} {}", visible::line(&fact));
        }
    }
    for problem in skill.problems().iter().chain(&resources.problems) {
        let _ = writeln!(
            out,
            "{} {}",
            styled(YELLOW, "warning   "),
            visible::line(&problem.message)
        );
    }
    if !resources.files.is_empty() {
        let _ = writeln!(out, "\n{}", styled(DIM, "files"));
        for file in resources.files.iter().take(MOST_SHOWN) {
            let _ = writeln!(
                out,
                "  {} ({})",
                visible::line(&file.path),
                when::size(file.bytes)
            );
        }
        if resources.files.len() > MOST_SHOWN {
            let _ = writeln!(
                out,
                "  … {} more; --json lists all",
                resources.files.len() - MOST_SHOWN
            );
        }
    }
    let _ = writeln!(out);
    let _ = writeln!(out, "{}", visible::block(instructions));
    out
}

/// What it says of itself, line by line.
fn facts(skill: &Skill) -> [(&'static str, Option<String>); 9] {
    let front = skill.front();
    let joined = |rules: &[String]| rules.join(", ");
    let limits = skill.restricts_to().map(|rules| match rules {
        [] => "no tool at all".to_owned(),
        rules => joined(rules),
    });
    let some = |text: String| (!text.is_empty()).then_some(text);
    [
        ("folder", Some(shown(skill.dir()))),
        ("source", Some(skill.source().word().to_owned())),
        ("when", front.when_to_use.clone()),
        ("license", front.license.clone()),
        ("needs", front.compatibility.clone()),
        ("version", front.version.clone()),
        (
            "asks for",
            some(joined(skill.requests())).map(|rules| format!("{rules} (shown; grants nothing)")),
        ),
        ("limited to", limits),
        ("without", some(joined(skill.excludes()))),
    ]
}

/// Checks the skill in a folder, or whose `SKILL.md` this is; 1 when there is an error.
pub(crate) fn check(at: &Invocation, dir: &Path, strict: bool) -> Done {
    let rigour = if strict {
        Rigour::Strict
    } else {
        Rigour::Lenient
    };
    let is_file = dir.is_file()
        && dir
            .file_name()
            .is_some_and(|n| n.eq_ignore_ascii_case("skill.md"));
    let folder = match dir.parent().filter(|_| is_file) {
        Some(parent) if parent.as_os_str().is_empty() => Path::new("."),
        Some(parent) => parent,
        None => dir,
    };
    let report = check::check(folder, rigour).map_err(|e| {
        Problem::usage(e.to_string())
            .at(Place::file(dir))
            .advise("give the folder that holds SKILL.md")
    })?;
    if at.screen.json {
        at.screen.document(&report)?;
    } else {
        told(at.screen, &report)?;
    }
    Ok(if report.ok { Exit::Done } else { Exit::Failed })
}

fn told(screen: Screen, report: &Report) -> Result<(), Problem> {
    let mut out = String::new();
    for problem in &report.problems {
        let level = match problem.level {
            Level::Error => styled(RED, "error"),
            Level::Warning => styled(YELLOW, "warning"),
        };
        let _ = writeln!(out, "{level}: {}", visible::line(&problem.message));
    }
    let name = visible::line(&report.name);
    let _ = if report.ok {
        writeln!(out, "{} {name}", styled(GREEN, "ok"))
    } else {
        writeln!(out, "{} {name}", styled(RED, "not valid"))
    };
    screen.out(&out)
}

fn shown(path: &Path) -> String {
    path.display().to_string()
}

fn line(path: &Path) -> String {
    visible::line(&shown(path))
}
