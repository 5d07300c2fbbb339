//! `haft init`: sets up a folder: matching settings, trust, a connected client.

use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};

use haft::skill::set::{SkillFilter, SkillRoot, SkillSet, WORKSPACE_FOLDERS};
use haft_app::config::FILE_NAME;
use haft_app::problem::{Problem, SourceLocation};
use haft_app::project::{Project, starter};
use haft_app::trust::{TrustChoice, TrustStore};
use serde_json::{Value, json};

use crate::args;
use crate::commands::{ExitResult, own_place};
use crate::exit::Exit;
use crate::invocation::{Invocation, is_interactive, yes};
use crate::screen::{DIM, styled, visible};
use connect::Connection;

mod connect;

/// Detects, writes, trusts, connects. An existing haft.toml is not changed and not trusted unseen, nor are skills.
pub(crate) fn run(at: &Invocation, args: &args::Init) -> ExitResult {
    at.site.check_workspace()?;
    if args.client.is_some() {
        own_place::check(at, false)?;
    } else {
        own_place::warn(at);
    }
    // Fail before anything is written.
    TrustStore::check(&at.site.workspace)?;
    let connection = Connection::prepare(at, args)?;
    let was_trusted = TrustStore::load(&at.site.home)?.trusts(&at.site.workspace);
    let skills = skills_of(at);
    let project = Project::scan(&at.site.workspace);
    let text = starter::text(&project);
    let path = at.site.workspace.join(FILE_NAME);
    let is_new = if args.dry_run {
        std::fs::symlink_metadata(&path).is_err()
    } else {
        write(&path, &text)?
    };
    let would_trust = skills.is_empty() || args.yes;
    let trusts =
        is_new && !was_trusted && !args.dry_run && (would_trust || ask_about(at, &skills)?);
    if trusts {
        TrustStore::change(&at.site.home, &at.site.workspace, TrustChoice::Trust)?;
    }
    let outcome = InitReport {
        path: &path,
        text: &text,
        skills: &skills,
        is_new,
        trusted: was_trusted || trusts,
        would_trust,
    };
    if !at.screen.json {
        outcome.say(at, &project, args.dry_run)?;
    }
    let connected = connection.as_ref().map(|one| one.connect(at));
    let connected = connection.as_ref().zip(connected.transpose()?);
    if at.screen.json {
        let mut shown = outcome.document(&project, args.dry_run);
        if let (Some((connection, done)), Some(map)) = (&connected, shown.as_object_mut()) {
            connection.describe(at, done, map);
        }
        at.screen.document(&shown)?;
        return Ok(Exit::Done);
    }
    match &connected {
        Some((connection, done)) => connection.say(at, done)?,
        None => at.screen.say(
            "put an agent under haft's rules: haft hook install claude (or codex, cursor, gemini, copilot, opencode, …)",
        ),
    }
    Ok(Exit::Done)
}

/// Returns the skills in the folder that an agent would follow if it were trusted. Includes skills that cannot be loaded: the next
/// change may fix them.
fn skills_of(at: &Invocation) -> Vec<FolderSkill> {
    let folder = &at.site.workspace;
    let roots = WORKSPACE_FOLDERS.map(|below| SkillRoot::workspace(folder, below, true));
    let found = SkillSet::new(roots.into(), SkillFilter::default()).current();
    let shadowed = found.shadowed().iter().map(|shadowed| &shadowed.skill);
    let skills = found
        .skills()
        .iter()
        .chain(shadowed)
        .map(|skill| FolderSkill {
            name: skill.name().to_owned(),
            folder: skill.dir().to_owned(),
        });
    let broken = found.broken().iter().map(|broken| FolderSkill {
        name: "(does not load)".to_owned(),
        folder: broken.location.clone(),
    });
    skills.chain(broken).collect()
}

/// A skill that lies in the folder.
struct FolderSkill {
    name: String,
    folder: PathBuf,
}

/// Asks about the skills in the folder, if a user can answer; an empty answer means no.
fn ask_about(at: &Invocation, skills: &[FolderSkill]) -> Result<bool, Problem> {
    if at.screen.json || !is_interactive() {
        return Ok(false);
    }
    at.screen
        .err("this folder brings skills, which agents follow:");
    for skill in skills {
        at.screen.err(&line_of(at, skill));
    }
    at.screen.err("trust the folder with them? [y/N]");
    yes()
}

fn line_of(at: &Invocation, skill: &FolderSkill) -> String {
    let folder = skill.folder.strip_prefix(&at.site.workspace);
    let folder = folder.unwrap_or(&skill.folder).display();
    visible::line(&format!("  {} in {folder}", skill.name))
}

/// Writes the file if it does not exist; returns whether it did.
fn write(path: &Path, text: &str) -> Result<bool, Problem> {
    let made = std::fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .open(path);
    match made.and_then(|mut file| file.write_all(text.as_bytes())) {
        Ok(()) => Ok(true),
        Err(e) if e.kind() == ErrorKind::AlreadyExists => Ok(false),
        Err(e) => Err(Problem::failed(format!("cannot write {FILE_NAME}: {e}"))
            .at(SourceLocation::file(path))),
    }
}

/// What was done about the folder's settings.
struct InitReport<'a> {
    path: &'a Path,
    text: &'a str,
    skills: &'a [FolderSkill],
    is_new: bool,
    trusted: bool,
    /// Whether it would be trusted without asking.
    would_trust: bool,
}

impl InitReport<'_> {
    fn say(&self, at: &Invocation, project: &Project, dry_run: bool) -> Result<(), Problem> {
        let screen = at.screen;
        let kinds: Vec<&str> = project.kinds.iter().map(String::as_str).collect();
        let packages = match project.packages {
            0 | 1 => String::new(),
            many => format!(", {many} packages"),
        };
        let git = if project.git { ", git" } else { "" };
        screen.say(&match kinds.as_slice() {
            [] => format!("found no build tool that haft knows{git}"),
            kinds => format!("found {}{packages}{git}", kinds.join(", ")),
        });
        let path = visible::line(&self.path.display().to_string());
        if !self.is_new {
            screen.say(&format!("{path} already exists: left unchanged"));
            if !self.trusted {
                screen.say(&format!(
                    "  the folder is not trusted, so haft ignores what that file allows; read it, then: {}",
                    at.trust_command()
                ));
            }
            return Ok(());
        }
        if dry_run && self.would_trust {
            screen.say(&format!("would write {path} and trust the folder:"));
        } else if dry_run {
            screen.say(&format!("would write {path}:"));
        } else if self.trusted {
            screen.say(&format!("wrote {path}; the folder is trusted"));
        } else {
            screen.say(&format!("wrote {path}; the folder is not trusted"));
        }
        self.say_trust(at, dry_run);
        if dry_run {
            return screen.out(self.text);
        }
        for rule in &project.allow {
            let line = format!("  allows {}: {}", rule.rule, rule.why);
            screen.say(&styled(DIM, &visible::line(&line)));
        }
        for rule in &project.ask {
            let line = format!("  asks about {}: {}", rule.rule, rule.why);
            screen.say(&styled(DIM, &visible::line(&line)));
        }
        Ok(())
    }

    /// Says what trust enables, or why the folder is not trusted.
    fn say_trust(&self, at: &Invocation, dry_run: bool) {
        let screen = at.screen;
        let said;
        let why = if self.trusted || self.would_trust {
            if self.skills.is_empty() {
                "  from now on haft uses its haft.toml in full, and skills that are put into .haft/skills, .agents/skills or .claude/skills"
            } else {
                "  from now on haft uses its haft.toml in full, and agents may load these skills:"
            }
        } else if dry_run {
            "  it brings skills, which agents follow; haft asks about trust at a terminal, --yes grants it without asking:"
        } else {
            said = format!(
                "  it brings skills, which agents follow; read them, then: {}",
                at.trust_command()
            );
            &said
        };
        screen.say(&styled(DIM, why));
        for skill in self.skills {
            screen.say(&styled(DIM, &line_of(at, skill)));
        }
    }

    fn document(&self, project: &Project, dry_run: bool) -> Value {
        let rules = |list: &[haft_app::project::FittingRule]| -> Vec<Value> {
            let rows = list.iter();
            rows.map(|rule| json!({"rule": rule.rule, "why": rule.why}))
                .collect()
        };
        json!({
            "file": self.path,
            "written": self.is_new && !dry_run,
            "trusted": self.trusted,
            "skills": self.skills.iter().map(|skill| json!({"name": skill.name, "folder": skill.folder})).collect::<Vec<_>>(),
            "found": project.kinds,
            "packages": project.packages,
            "git": project.git,
            "allow": rules(&project.allow),
            "ask": rules(&project.ask),
        })
    }
}
