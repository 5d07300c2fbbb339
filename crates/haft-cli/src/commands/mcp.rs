//! `haft mcp`: prints or installs the settings that connect a client.

use haft_app::clients::install::{self, InstallEdit, exclude};
use haft_app::clients::{ClientProgram, InstallScope, Launch, text_of};
use haft_app::problem::Problem;
use serde_json::json;
use similar::TextDiff;

use crate::args::{ClientFileArgs, McpAction};
use crate::commands::{ExitResult, own_place};
use crate::exit::Exit;
use crate::invocation::Invocation;
use crate::screen::{DIM, GREEN, RED, styled, visible};

pub(crate) mod add;
mod import;
pub(crate) mod servers;

/// Prints the settings of a client, or edits its file.
pub(crate) fn run(at: &Invocation, action: &McpAction) -> ExitResult {
    match action {
        McpAction::Snippet { client } => snippet(at, client),
        McpAction::Install { client, here } => {
            own_place::check(at, *here)?;
            connect(at, client)
        }
        McpAction::Uninstall { client } => disconnect(at, client),
        McpAction::Import(from) => import::run(at, from),
        McpAction::Remove { name, file } => add::remove(at, name, file),
        _ => Err(Problem::usage("there is `haft mcp snippet CLIENT`")),
    }
}

fn snippet(at: &Invocation, name: &str) -> ExitResult {
    let client = ClientProgram::find(name)?;
    let text = client.snippet(&launch(at, true)?);
    if at.screen.json {
        at.screen
            .document(&json!({"client": client.name, "file": client.paste, "text": text}))?;
    } else {
        at.screen.say(&format!("put this in {}", client.paste));
        at.screen.raw(text.as_bytes())?;
    }
    Ok(Exit::Done)
}

fn connect(at: &Invocation, typed: &ClientFileArgs) -> ExitResult {
    let (client, edit) = install(at, typed)?;
    if at.screen.json {
        return document(at, client, &edit, typed.dry_run);
    }
    say_installed(at, client, &edit, typed.dry_run)?;
    Ok(Exit::Done)
}

/// Says what was done to the settings of a client.
pub(crate) fn say_installed(
    at: &Invocation,
    client: &ClientProgram,
    edit: &InstallEdit,
    dry_run: bool,
) -> Result<(), Problem> {
    let file = visible::line(&edit.file.display().to_string());
    if !edit.changes() {
        at.screen.say(&format!("{file} already has haft"));
    } else if dry_run {
        at.screen.out(&diff(edit))?;
        at.screen.say(&format!("would change {file}"));
        say_replaced(at, edit);
    } else {
        at.screen.say(&format!("added haft to {file}"));
        say_replaced(at, edit);
        say_after(at, client, edit);
    }
    Ok(())
}

fn say_replaced(at: &Invocation, edit: &InstallEdit) {
    if edit.replaces {
        at.screen.say(
            "  it replaces an entry named haft that starts something else: uninstall restores it",
        );
    }
}

/// Adds haft to the settings of a client.
pub(crate) fn install(
    at: &Invocation,
    typed: &ClientFileArgs,
) -> Result<(&'static ClientProgram, InstallEdit), Problem> {
    let client = ClientProgram::find(&typed.name)?;
    let level = client.level(level(typed));
    let named = level == InstallScope::Project || !client.starts_in_project;
    if named {
        at.site.check_workspace()?;
    }
    let launch = launch(at, named)?;
    let edit = install::install(client, level, at.site.setup(), &launch, typed.dry_run)?;
    if edit.changes() && !typed.dry_run && edit.file.starts_with(&at.site.workspace) {
        hide(at, &edit);
    }
    Ok((client, edit))
}

/// Keeps a file with paths of this machine out of commits; without a repository there is nothing to do.
fn hide(at: &Invocation, edit: &InstallEdit) {
    if let Err(error) = exclude::hide(&edit.file) {
        at.screen.warn(&format!(
            "cannot write .git/info/exclude: {error}; keep {} out of commits, or use --user",
            edit.file.display()
        ));
    }
}

/// Says what the user should know after an installation.
fn say_after(at: &Invocation, client: &ClientProgram, edit: &InstallEdit) {
    if let Some(backup) = &edit.backup {
        let line = format!("  backup of the file: {}", backup.display());
        at.screen.say(&styled(DIM, &visible::line(&line)));
    }
    if edit.file.starts_with(&at.site.workspace) {
        at.screen
            .say(&styled(DIM, &visible::line(&said_of_git(edit))));
    }
    at.screen.say(&format!(
        "restart {0}; undo with: haft mcp uninstall {0}",
        client.name
    ));
}

/// Says how the file with paths of this machine stays out of commits.
fn said_of_git(edit: &InstallEdit) -> String {
    let holds = "  it contains paths of this machine";
    match exclude::hide(&edit.file) {
        Ok(Some(exclude)) if edit.before.is_none() => {
            format!("{holds}: {} keeps it out of commits", exclude.display())
        }
        Ok(Some(exclude)) => format!(
            "{holds}: {} keeps it out of commits, unless git tracks it already (then use --user)",
            exclude.display()
        ),
        _ => format!("{holds}: keep it on this machine, or use --user"),
    }
}

/// Removes haft from the named file, or from both.
fn disconnect(at: &Invocation, typed: &ClientFileArgs) -> ExitResult {
    let client = ClientProgram::find(&typed.name)?;
    let mut edits = Vec::new();
    let mut refused = Vec::new();
    for level in levels_of(client, typed) {
        match install::uninstall(client, level, at.site.setup(), typed.dry_run) {
            Ok(edit) => edits.push(edit),
            Err(problem) => refused.push(problem),
        }
    }
    let changed: Vec<&InstallEdit> = edits.iter().filter(|edit| edit.changes()).collect();
    for edit in changed.iter().filter(|_| !typed.dry_run) {
        // The line does no harm where it stays.
        let _ = exclude::show(&edit.file);
    }
    // Report what was done; what failed is an error, because haft may still be in that file.
    if !refused.is_empty() {
        if !at.screen.json {
            say_removed(at, &changed, typed.dry_run)?;
        }
        let last = refused.pop();
        for problem in refused {
            at.screen.warn(&problem.to_string());
        }
        return last.map_or(Ok(Exit::Done), Err);
    }
    if at.screen.json {
        let all: Vec<_> = changed
            .iter()
            .map(|edit| described(edit, typed.dry_run))
            .collect();
        at.screen
            .document(&json!({"client": client.name, "files": all}))?;
        return Ok(Exit::Done);
    }
    if changed.is_empty() {
        at.screen
            .say(&format!("haft is not in the settings of {}", client.name));
    }
    say_removed(at, &changed, typed.dry_run)?;
    Ok(Exit::Done)
}

/// Returns the named level, or all that the client has. A client without one reports itself how to connect.
fn levels_of(client: &ClientProgram, typed: &ClientFileArgs) -> Vec<InstallScope> {
    if let Some(level) = level(typed) {
        return vec![level];
    }
    let both = [InstallScope::Project, InstallScope::User].into_iter();
    let mut levels: Vec<InstallScope> = both.filter(|level| client.has(*level)).collect();
    if levels.is_empty() {
        levels.push(client.level(None));
    }
    levels
}

fn say_removed(at: &Invocation, changed: &[&InstallEdit], dry_run: bool) -> Result<(), Problem> {
    for edit in changed {
        let file = visible::line(&edit.file.display().to_string());
        if dry_run {
            at.screen.out(&diff(edit))?;
            at.screen.say(&format!("would change {file}"));
        } else if edit.after.is_none() {
            at.screen.say(&format!("removed {file}: haft had made it"));
        } else {
            at.screen.say(&format!("removed haft from {file}"));
        }
    }
    Ok(())
}

fn level(typed: &ClientFileArgs) -> Option<InstallScope> {
    if typed.project {
        Some(InstallScope::Project)
    } else {
        typed.user.then_some(InstallScope::User)
    }
}

fn document(
    at: &Invocation,
    client: &ClientProgram,
    edit: &InstallEdit,
    dry_run: bool,
) -> ExitResult {
    at.screen
        .document(&json!({"client": client.name, "files": [described(edit, dry_run)]}))?;
    Ok(Exit::Done)
}

/// Returns an edit as `--json` shows it.
pub(crate) fn described(edit: &InstallEdit, dry_run: bool) -> serde_json::Value {
    let mut shown = json!({"file": edit.file, "changed": edit.changes() && !dry_run, "diff": plain_diff(edit), "replaced": edit.replaces});
    if let (Some(backup), Some(map)) = (&edit.backup, shown.as_object_mut()) {
        map.insert("backup".into(), json!(backup));
    }
    shown
}

fn plain_diff(edit: &InstallEdit) -> String {
    let before = edit.before.as_deref().unwrap_or_default();
    let after = edit.after.as_deref().unwrap_or_default();
    let file = edit.file.display().to_string();
    TextDiff::from_lines(before, after)
        .unified_diff()
        .context_radius(3)
        .header(&file, &file)
        .to_string()
}

/// Returns the change as a coloured unified diff.
pub(crate) fn diff(edit: &InstallEdit) -> String {
    let lines = plain_diff(edit);
    let lines = lines.lines().map(|line| {
        let shown = visible::line(line);
        match line.as_bytes().first() {
            Some(b'+') => styled(GREEN, &shown),
            Some(b'-') => styled(RED, &shown),
            _ => shown,
        }
    });
    lines.map(|line| line + "\n").collect()
}

/// Returns the command that starts this very binary with the options of this command: a client starts it with another folder, other
/// variables and another PATH. `workspace` tells whether to name the folder even if the user did not.
fn launch(at: &Invocation, workspace: bool) -> Result<Launch, Problem> {
    let binary = std::env::current_exe()
        .map_err(|e| Problem::failed(format!("cannot find the haft binary: {e}")))?;
    let mut args = vec!["serve".to_owned(), "--stdio".to_owned()];
    args.extend(at.carried(workspace)?);
    Ok(Launch {
        command: text_of(&binary)?,
        args,
    })
}
