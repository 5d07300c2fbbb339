//! `haft skills`: lists the skills, shows one in full, and checks one for its author.

use std::fmt::Write as _;
use std::path::Path;

use haft::skill::check::{self, Rigour, SkillReport};
use haft::skill::set::Catalogue;
use haft::skill::{Severity, Skill, SkillResources};
use haft_app::app::App;
use haft_app::problem::{Problem, SourceLocation};
use haft_app::view::{skills, when};

use crate::args::SkillsAction;
use crate::commands::ExitResult;
use crate::exit::Exit;
use crate::invocation::Invocation;
use crate::screen::list::{TextTable, Truncation};
use crate::screen::{BOLD, DIM, GREEN, RED, Screen, YELLOW, styled, visible};

/// Maximum number of resources shown to users; `--json` has all.
const MOST_SHOWN: usize = 50;

/// Lists or shows.
pub(crate) fn run(at: &Invocation, app: &App, action: Option<&SkillsAction>) -> ExitResult {
    match action {
        Some(SkillsAction::Show { name }) => show(at, app, name),
        Some(SkillsAction::Check { dir, strict }) => check(at, dir, *strict),
        None | Some(SkillsAction::List) => list(at, app),
    }
}

fn list(at: &Invocation, app: &App) -> ExitResult {
    let found = app.skills().current();
    tell(at, &found);
    let all = skills::list(&found);
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
        ("NAME", Truncation::Middle),
        ("SOURCE", Truncation::Never),
        ("LOADS", Truncation::Never),
        ("DESCRIPTION", Truncation::End),
    ];
    let mut list = TextTable::new(&columns);
    for skill in &all {
        let loads = if skill.valid { "yes" } else { "no" };
        list.row([skill.name, skill.source, loads, skill.description]);
    }
    at.screen.out(&list.render())?;
    Ok(Exit::Done)
}

/// Says which skills are not in the list, and why.
fn tell(at: &Invocation, found: &Catalogue) {
    let screen = at.screen;
    for folder in found.withheld() {
        screen.warn(&format!(
            "the skills in {} are withheld: the workspace is not trusted (`{}`)",
            line(folder),
            at.trust_command()
        ));
    }
    for problem in found.problems() {
        screen.warn(&visible::line(&problem.message));
    }
    for broken in found.broken() {
        let why = broken
            .problems
            .iter()
            .filter(|p| p.level == Severity::Error);
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

fn show(at: &Invocation, app: &App, name: &str) -> ExitResult {
    let found = app.skills().current();
    let skill = found
        .find(name)
        .ok_or_else(|| skills::unknown(&found, name))?;
    let told = |e: haft::skill::SkillError| {
        Problem::failed(e.to_string()).at(SourceLocation::file(&skill.location()))
    };
    let instructions = skill.instructions().map_err(told)?;
    let resources = skill.resources().map_err(told)?;
    if at.screen.json {
        at.screen
            .document(&skills::whole(skill, &instructions, &resources))?;
    } else {
        at.screen.out(&page(skill, &instructions, &resources))?;
    }
    Ok(Exit::Done)
}

/// Renders everything about a skill for users.
fn page(skill: &Skill, instructions: &str, resources: &SkillResources) -> String {
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
                visible::path(&file.path),
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

/// Returns what a skill says about itself, line by line.
fn facts(skill: &Skill) -> [(&'static str, Option<String>); 9] {
    let front = skill.front();
    let joined = |rules: &[String]| rules.join(", ");
    let limits = skill.restricts_to().map(|rules| match rules {
        [] => "no tool at all".to_owned(),
        rules => joined(rules),
    });
    let some = |text: String| (!text.is_empty()).then_some(text);
    [
        ("folder", Some(path_text(skill.dir()))),
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

/// Checks the skill in a folder, or the one whose `SKILL.md` this is; the exit code is 1 if there is an error.
pub(crate) fn check(at: &Invocation, dir: &Path, strict: bool) -> ExitResult {
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
            .at(SourceLocation::file(dir))
            .advise("give the folder that holds SKILL.md")
    })?;
    if at.screen.json {
        at.screen.document(&report)?;
    } else {
        print_report(at.screen, &report)?;
    }
    Ok(if report.ok { Exit::Done } else { Exit::Failed })
}

fn print_report(screen: Screen, report: &SkillReport) -> Result<(), Problem> {
    let mut out = String::new();
    for problem in &report.problems {
        let level = match problem.level {
            Severity::Error => styled(RED, "error"),
            Severity::Warning => styled(YELLOW, "warning"),
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

fn path_text(path: &Path) -> String {
    path.display().to_string()
}

fn line(path: &Path) -> String {
    visible::path(&path_text(path))
}
