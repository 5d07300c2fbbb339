//! `haft runs diff` and `haft runs undo`: show and undo what a run changed in the workspace.

use std::fmt::Write as _;
use std::sync::Arc;

use haft::approval::{Answer, ApprovalRequest, Approver, Decision};
use haft::audit::BoxFuture;
use haft::audit::runs::{self, RunsError};
use haft::call::{RunId, ToolCall};
use haft::change::net::{NetChange, PathState, net_changes};
use haft::change::undo::{Plan, Target};
use haft::change::{ChangeLog, State};
use haft::tool::TypedTool as _;
use haft::workspace::Workspace;
use haft::{ToolRegistry, Toolset};
use haft_builtins::files::edit::diff as unified;
use haft_builtins::files::sha256 as hash;
use haft_builtins::files::undo::{UndoChanges, UndoInput, change_sets};
use serde::Serialize;
use serde_json::json;

use crate::args::OfRun;
use crate::assemble::House;
use crate::commands::resume::same_workspace;
use crate::commands::signals::Signals;
use crate::commands::{Done, call};
use crate::exit::Exit;
use crate::invocation::{Invocation, somebody_is_there};
use crate::problem::Problem;
use crate::screen::{DIM, GREEN, RED, styled, visible};

/// One file, link or folder in the list.
#[derive(Debug, Serialize)]
struct FileReport {
    path: String,
    action: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    from: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    before: Option<State>,
    #[serde(skip_serializing_if = "Option::is_none")]
    after: Option<State>,
    /// The unified diff of a text file.
    #[serde(skip_serializing_if = "Option::is_none")]
    diff: Option<String>,
    /// Why there is no diff.
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<&'static str>,
}

/// Shows what a run, or one call of it, changed: for each file from before the first change to after the last.
pub(super) fn diff(at: &Invocation, house: &House, of: &OfRun) -> Done {
    let run = find_run(house, of)?;
    let nets = net_changes_of(house, &run, of)?;
    let texts = Texts {
        workspace: house.files(),
        log: house.changes()?,
        run: &run,
    };
    let listed: Vec<FileReport> = nets.iter().map(|net| texts.report(net)).collect();
    if at.screen.json {
        at.screen
            .document(&json!({"run": run.as_str(), "changes": listed}))?;
        return Ok(Exit::Done);
    }
    if listed.is_empty() {
        at.screen.say(&styled(DIM, "no file was changed"));
    }
    for one in &listed {
        at.screen.out(&render(one))?;
    }
    Ok(Exit::Done)
}

/// Undoes what a run, or one call of it, changed, after showing it to a person.
pub(super) async fn undo(at: &Invocation, house: &House, of: &OfRun, yes: bool) -> Done {
    let mut signals = Signals::heard()?;
    let run = find_run(house, of)?;
    same_workspace(house, &run, "undo").await?;
    let tool = UndoChanges::new(house.files().clone(), Arc::clone(house.changes()?));
    let input = UndoInput {
        run: run.to_string(),
        call: of.call.clone(),
    };
    let plan = tool.plan(&input).map_err(|error| plan_problem(&error))?;
    confirm(at, &plan, yes)?;
    let tools = ToolRegistry::new();
    let added = tool.into_tool().map_err(|e| e.to_string());
    let added = added.and_then(|tool| tools.add_all([tool]).map_err(|e| e.to_string()));
    added.map_err(|e| Problem::failed(format!("make the tool that undoes: {e}")))?;
    let tools: Arc<dyn Toolset> = Arc::new(tools);
    let session = house.open_with(call::door(at, "undo"), tools).await?;
    // The person has seen what it does; deny rules of the policy still hold.
    let by = house.principal().subject.to_string();
    let executor = house.executor().clone().with_approver(ApproveAll { by });
    let arguments = json!({"run": input.run, "call": input.call}).to_string();
    let asked = ToolCall::new("undo_changes", arguments);
    let running = executor.execute(&session, asked);
    let outcome = call::cancellable(running, &session, &mut signals).await;
    house.close(&session).await;
    call::told(at, &outcome)?;
    if outcome.is_ok() {
        let again = format!("`haft runs undo {}` brings it back", outcome.run);
        at.screen.detail(&again);
    }
    Ok(Exit::of(&outcome, true))
}

/// Answers the question that the person has answered already.
#[derive(Debug)]
struct ApproveAll {
    by: String,
}

impl Approver for ApproveAll {
    fn ask<'a>(&'a self, _: &'a ApprovalRequest) -> BoxFuture<'a, Answer> {
        Box::pin(async { Answer::Nobody })
    }

    fn automatic(&self, _: &ApprovalRequest) -> Option<Decision> {
        Some(Decision::approve(self.by.clone(), "command line"))
    }
}

/// Checks that the run exists here.
fn find_run(house: &House, of: &OfRun) -> Result<RunId, Problem> {
    let told = |e: &RunsError| super::runs::told(e);
    let folder = runs::run_dir(house.home(), &of.run).map_err(|e| told(&e))?;
    if folder.is_dir() {
        Ok(RunId::new(&*of.run))
    } else {
        Err(told(&RunsError::NotFound(of.run.clone())))
    }
}

fn net_changes_of(house: &House, run: &RunId, of: &OfRun) -> Result<Vec<NetChange>, Problem> {
    let sets = change_sets(house.changes()?, run, of.call.as_deref());
    let sets = sets.map_err(|e| Problem::failed(format!("read what run {run} changed: {e}")))?;
    Ok(net_changes(&sets))
}

fn plan_problem(error: &haft::ToolError) -> Problem {
    Problem::failed(error.message().to_owned())
        .advise("`haft runs diff` shows what the run changed; undo later changes first")
}

/// Shows the undo and asks for a yes.
fn confirm(at: &Invocation, plan: &Plan, yes: bool) -> Result<(), Problem> {
    for (is, was) in &plan.moves {
        let (is, was) = (is.to_string_lossy(), was.to_string_lossy());
        let line = format!(
            "move back  {} from {}",
            visible::line(&was),
            visible::line(&is)
        );
        at.screen.say(&line);
    }
    for (path, wanted) in plan.summary() {
        let what = match wanted {
            Target::Nothing => styled(RED, "remove   "),
            _ => styled(GREEN, "restore  "),
        };
        let path = path.to_string_lossy();
        at.screen.say(&format!("{what}  {}", visible::line(&path)));
    }
    if let Some(first) = plan.left_alone.first() {
        let path = visible::line(&first.to_string_lossy());
        let line = match plan.left_alone.len() {
            1 => format!("left alone {path}: only git changes it back"),
            count => {
                format!("left alone {count} files of git, {path} first: only git changes them back")
            }
        };
        at.screen.say(&styled(DIM, &line));
    }
    if yes {
        return Ok(());
    }
    if !somebody_is_there() {
        return Err(Problem::usage("undo needs a yes, and stdin is no terminal")
            .advise("add --yes in a script; `haft runs diff` shows what would be undone"));
    }
    at.screen.err("take this back? [y/N]");
    let mut line = String::new();
    let read = std::io::BufRead::read_line(&mut std::io::stdin().lock(), &mut line);
    read.map_err(|e| Problem::failed(format!("read the answer: {e}")))?;
    match line.trim().to_lowercase().as_str() {
        "y" | "yes" => Ok(()),
        _ => Err(Problem::usage("not undone").advise("nothing was changed")),
    }
}

/// Reads the saved and current files of a run.
struct Texts<'a> {
    workspace: &'a Workspace,
    log: &'a ChangeLog,
    run: &'a RunId,
}

impl Texts<'_> {
    fn report(&self, net: &NetChange) -> FileReport {
        let (was, is) = (net.before.as_ref(), net.after.as_ref());
        let moved = was.filter(|was| is.is_some_and(|is| is.path != was.path));
        let (diff, note) = match self.texts(net) {
            Ok([before, after]) if before != after => {
                let path = net.path().to_string_lossy();
                (Some(unified(&path, &before, &after)), None)
            }
            Ok(_) => (None, None),
            Err(note) => (None, Some(note)),
        };
        FileReport {
            path: net.path().to_string_lossy().into_owned(),
            action: net.action().as_str(),
            from: moved.map(|was| was.path.to_string_lossy().into_owned()),
            before: was.map(|was| was.state.clone()),
            after: is.map(|is| is.state.clone()),
            diff,
            note,
        }
    }

    /// A text file before and after, both empty if it is no file or has not changed; or why it cannot be shown.
    fn texts(&self, net: &NetChange) -> Result<[Vec<u8>; 2], &'static str> {
        if let (Some(was), Some(is)) = (&net.before, &net.after)
            && was.state.is_same(&is.state)
        {
            return Ok([Vec::new(), Vec::new()]);
        }
        let before = self.text(net.before.as_ref(), "its text before the run is not kept")?;
        let after = self.text(net.after.as_ref(), "its text after the run is not kept")?;
        if before.contains(&0) || after.contains(&0) {
            return Err("it is not text");
        }
        Ok([before, after])
    }

    /// The saved content of a file, or its current content if that has the same hash.
    fn text(&self, lies: Option<&PathState>, gone: &'static str) -> Result<Vec<u8>, &'static str> {
        let Some(PathState {
            path,
            state: State::File { sha256, .. },
        }) = lies
        else {
            return Ok(Vec::new());
        };
        let sha256 = sha256.as_ref().ok_or("it is too large to be shown")?;
        if let Ok(Some(kept)) = self.log.load_file(self.run, sha256) {
            return Ok(kept);
        }
        let mut open = self.workspace.open_file(path).map_err(|_| gone)?;
        let mut bytes = Vec::new();
        std::io::Read::read_to_end(&mut open.file, &mut bytes).map_err(|_| gone)?;
        let same = hash(&bytes) == *sha256;
        same.then_some(bytes).ok_or(gone)
    }
}

fn render(one: &FileReport) -> String {
    let path = visible::line(&one.path);
    let mut out = match &one.from {
        Some(from) => format!("{:<8} {} from {}\n", one.action, path, visible::line(from)),
        None => format!("{:<8} {path}\n", one.action),
    };
    if let Some(note) = one.note {
        let _ = writeln!(out, "  {}", styled(DIM, note));
    }
    for line in one.diff.as_deref().unwrap_or_default().lines() {
        let line = visible::line(line);
        let line = match line.as_bytes().first() {
            Some(b'+') => styled(GREEN, &line),
            Some(b'-') => styled(RED, &line),
            _ => line,
        };
        let _ = writeln!(out, "{line}");
    }
    out
}
