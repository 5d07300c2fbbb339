//! `haft init`: a first minute: settings that fit the folder, trust, a client connected.

use std::io::{ErrorKind, Write as _};
use std::path::Path;

use haft_app::clients::Client;
use haft_app::clients::install::Edit;
use haft_app::config::FILE_NAME;
use haft_app::problem::{Place, Problem};
use haft_app::project::{Project, starter};
use haft_app::trust::Trust;
use serde_json::{Value, json};

use crate::args;
use crate::commands::{Done, mcp};
use crate::exit::Exit;
use crate::invocation::Invocation;
use crate::screen::{DIM, styled, visible};

/// Detects, writes, trusts, connects. A haft.toml that is there stays as it is and is not trusted unseen.
pub(crate) fn run(at: &Invocation, args: &args::Init) -> Done {
    at.site.check_workspace()?;
    let typed = args.client.as_ref().map(|name| args::ClientFile {
        name: name.clone(),
        project: args.project,
        user: args.user,
        dry_run: args.dry_run,
    });
    // A wrong name ends the command before anything is written.
    if let Some(typed) = &typed {
        Client::find(&typed.name)?;
    }
    let project = Project::scan(&at.site.workspace);
    let text = starter::text(&project);
    let path = at.site.workspace.join(FILE_NAME);
    let is_new = if args.dry_run {
        std::fs::symlink_metadata(&path).is_err()
    } else {
        write(&path, &text)?
    };
    let mut trust = Trust::load(&at.site.home)?;
    if is_new && !args.dry_run {
        trust.set(&at.site.workspace, true)?;
        trust.save(&at.site.home)?;
    }
    let trusted = trust.trusts(&at.site.workspace);
    let outcome = Settled {
        path: &path,
        text: &text,
        is_new,
        trusted,
    };
    if !at.screen.json {
        outcome.say(at, &project, args.dry_run)?;
    }
    let connected = typed.map(|typed| mcp::install(at, &typed)).transpose()?;
    if at.screen.json {
        at.screen
            .document(&outcome.document(&project, connected.as_ref(), args.dry_run))?;
        return Ok(Exit::Done);
    }
    match connected {
        Some((client, edit)) => mcp::say_installed(at, client, &edit, args.dry_run)?,
        None => at.screen.say(
            "connect a client: haft mcp install claude-code (or cursor, vscode, codex, gemini, zed, opencode, claude-desktop)",
        ),
    }
    Ok(Exit::Done)
}

/// Writes the file where there is none; whether it did.
fn write(path: &Path, text: &str) -> Result<bool, Problem> {
    let made = std::fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .open(path);
    match made.and_then(|mut file| file.write_all(text.as_bytes())) {
        Ok(()) => Ok(true),
        Err(e) if e.kind() == ErrorKind::AlreadyExists => Ok(false),
        Err(e) => Err(Problem::failed(format!("write {FILE_NAME}: {e}")).at(Place::file(path))),
    }
}

/// What became of the folder's settings.
struct Settled<'a> {
    path: &'a Path,
    text: &'a str,
    is_new: bool,
    trusted: bool,
}

impl Settled<'_> {
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
            screen.say(&format!("{path} is there already: left as it is"));
            if !self.trusted {
                screen.say("  it is not trusted; read it, then: haft trust");
            }
            return Ok(());
        }
        if dry_run {
            screen.say(&format!("would write {path} and trust the folder:"));
            return screen.out(self.text);
        }
        screen.say(&format!("wrote {path}; the folder is trusted"));
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

    fn document(
        &self,
        project: &Project,
        connected: Option<&(&'static Client, Edit)>,
        dry_run: bool,
    ) -> Value {
        let rules = |list: &[haft_app::project::FittingRule]| -> Vec<Value> {
            let rows = list.iter();
            rows.map(|rule| json!({"rule": rule.rule, "why": rule.why}))
                .collect()
        };
        let mut shown = json!({
            "file": self.path,
            "written": self.is_new && !dry_run,
            "trusted": self.trusted,
            "found": project.kinds,
            "packages": project.packages,
            "git": project.git,
            "allow": rules(&project.allow),
            "ask": rules(&project.ask),
        });
        if let (Some((client, edit)), Some(map)) = (connected, shown.as_object_mut()) {
            map.insert("client".into(), json!(client.name));
            map.insert("client_file".into(), json!(edit.file));
        }
        shown
    }
}
