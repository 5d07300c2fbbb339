//! `haft runs diff` and `haft runs undo`: show and undo what a run changed in the workspace.

use std::collections::HashSet;
use std::fmt::Write as _;

use crate::args::RunSelector;
use crate::commands::signals::Signals;
use crate::commands::{ExitResult, call, consent};
use crate::exit::Exit;
use crate::invocation::Invocation;
use crate::screen::{DIM, GREEN, RED, styled, visible};
use crate::terminal::changes::meaning as meaning_lines;
use haft::change::undo::Conflict;
use haft::plural::counted;
use haft_app::app::App;
use haft_app::problem::Problem;
use haft_app::run::selection::RunSelection;
use haft_app::undo::{
    SessionChanges, StepAction, Undo, UndoApprover, UndoPlan, UndoRefusal, UndoStep,
    changes_of_session,
};
use haft_app::view::changes::{FileReport, ReportLimits, report};

/// Shows what a run, or one of its calls, changed: for each file from before the first change to after the last.
pub(super) fn diff(at: &Invocation, app: &App, of: &RunSelector) -> ExitResult {
    let report = report(app, &selection(app, of)?, &ReportLimits::NONE)?;
    if at.screen.json {
        at.screen.document(&report)?;
        return Ok(Exit::Done);
    }
    if report.changes.is_empty() {
        at.screen.say(&styled(DIM, "no file was changed"));
    }
    for meaning in &report.meanings {
        for line in meaning_lines(meaning) {
            at.screen.out(&format!("{line}\n"))?;
        }
    }
    let covered: HashSet<&str> = report
        .meanings
        .iter()
        .flat_map(|meaning| &meaning.covers)
        .map(String::as_str)
        .collect();
    for one in &report.changes {
        if !covered.contains(&*one.path) {
            at.screen.out(&render(one))?;
        }
    }
    Ok(Exit::Done)
}

/// Number of a session's files that are named before it is undone.
const LISTED: usize = 50;

/// How to undo.
#[derive(Debug, Clone, Copy)]
pub(super) struct UndoOptions {
    /// Do not ask.
    pub(super) yes: bool,
    /// Also undo files that were changed since; their current versions are kept next to them.
    pub(super) force: bool,
}

/// Undoes what a run, or one of its calls, changed, after showing it to the user.
pub(super) async fn undo(
    at: &Invocation,
    app: &App,
    of: &RunSelector,
    how: UndoOptions,
) -> ExitResult {
    let mut signals = Signals::heard()?;
    let undo = Undo::new(app, &selection(app, of)?).await?;
    let undo = undo.with_force(how.force);
    let plan = undo
        .plan()
        .map_err(|refusal| plan_problem(&refusal, how.force))?;
    confirm(at, &plan, how.yes)?;
    let stays = !plan.stays.is_empty();
    let undo = undo.start(app, call::options(at, "undo")).await?;
    let running = undo.perform(app, person(app));
    let outcome = call::cancellable(running, undo.run.session(), &mut signals).await;
    undo.run.release().await;
    call::print_outcome(at, &outcome)?;
    if outcome.is_ok() {
        let again = format!("`haft runs undo {}` restores it", outcome.run);
        at.screen.detail(&again);
    }
    // Something of the run is still there that nothing else takes away.
    match Exit::of(&outcome, true) {
        Exit::Done if stays => Ok(Exit::Failed),
        exit => Ok(exit),
    }
}

/// Undoes what the session of an agent changed, call by call, after showing which files that were.
pub(super) async fn undo_session(
    at: &Invocation,
    app: &App,
    of: &RunSelector,
    how: UndoOptions,
) -> ExitResult {
    let mut signals = Signals::heard()?;
    let found = changes_of_session(app, &selection(app, of)?.run).await?;
    show_changed(at, &found);
    if !how.yes && !consent::agree(at, "undo what the session changed?", "undo")? {
        return Err(Problem::usage("not undone").advise("nothing was changed"));
    }
    let (mut undone, mut left) = (0, UndoRemainder::default());
    for call in &found.calls {
        let name = format!("{} {}", call.run, call.call.as_deref().unwrap_or_default());
        let undo = Undo::new(app, call).await?.with_force(how.force);
        match undo.plan() {
            Ok(plan) => left.add(plan.left_alone, plan.stays),
            // Its files are as they were before it, or git has them.
            Err(refusal) if refusal.conflicts.is_empty() => {
                left.add(refusal.left_alone, refusal.stays);
                continue;
            }
            Err(refusal) => {
                let problem = plan_problem(&refusal, how.force);
                let what = format!(
                    "{} undone; then {name}: {}",
                    counted(undone, "call"),
                    problem.what()
                );
                let advice = problem.advice().unwrap_or_default();
                return Err(Problem::failed(what).advise(advice));
            }
        }
        let undo = undo.start(app, call::options(at, "undo")).await?;
        let running = undo.perform(app, person(app));
        let outcome = call::cancellable(running, undo.run.session(), &mut signals).await;
        undo.run.release().await;
        if !outcome.is_ok() {
            call::print_outcome(at, &outcome)?;
            return Ok(Exit::of(&outcome, true));
        }
        undone += 1;
    }
    left.git.sort();
    left.git.dedup();
    say_left(at, &left.git, &left.stays);
    let nothing = match found.calls.len() - undone {
        0 => String::new(),
        rest => format!("; of {} nothing was left to undo", counted(rest, "call")),
    };
    at.screen
        .out(&format!("undid {}{nothing}\n", counted(undone, "call")))?;
    Ok(if left.stays.is_empty() {
        Exit::Done
    } else {
        Exit::Failed
    })
}

/// Shows which paths a session changed, and in how many calls.
fn show_changed(at: &Invocation, found: &SessionChanges) {
    let paths = found.paths.iter();
    let (of_git, files): (Vec<&String>, Vec<&String>) =
        paths.partition(|path| path.starts_with(".git/"));
    for path in files.iter().take(LISTED) {
        let path = visible::path(path);
        at.screen.say(&format!("changed    {path}"));
    }
    let sum = format!(
        "{} of the session changed {}, {} of them in .git",
        counted(found.calls.len(), "call"),
        counted(found.paths.len(), "path"),
        of_git.len()
    );
    at.screen.say(&styled(DIM, &sum));
}

/// What an undo of several calls leaves.
#[derive(Debug, Default)]
struct UndoRemainder {
    git: Vec<String>,
    stays: Vec<Conflict>,
}

impl UndoRemainder {
    fn add(&mut self, git: Vec<String>, stays: Vec<Conflict>) {
        self.git.extend(git);
        for one in stays {
            if !self.stays.contains(&one) {
                self.stays.push(one);
            }
        }
    }
}

/// The user who asks for an undo here.
fn person(app: &App) -> UndoApprover {
    UndoApprover {
        by: app.principal().subject.to_string(),
        from: "command line".to_owned(),
    }
}

fn selection(app: &App, of: &RunSelector) -> Result<RunSelection, Problem> {
    RunSelection::find(app.runs(), &of.run, of.call.clone()).map_err(Problem::from)
}

fn plan_problem(refusal: &UndoRefusal, forced: bool) -> Problem {
    let is_lost = refusal.conflicts.iter().any(|one| one.lost);
    let then = match (refusal.conflicts.is_empty(), forced, is_lost) {
        (true, ..) => "",
        (false, true, _) => "; undo later changes first",
        (false, false, false) => {
            "; undo later changes first, or use --force, which saves the later version beside it"
        }
        (false, false, true) => {
            "; --force undoes all that can be restored, saves later versions beside it, and names the rest"
        }
    };
    let look = "`haft runs diff` shows what the run changed";
    Problem::failed(refusal.error.message().to_owned()).advise(format!("{look}{then}"))
}

/// Shows the undo and asks for confirmation.
fn confirm(at: &Invocation, plan: &UndoPlan, yes: bool) -> Result<(), Problem> {
    for step in &plan.steps {
        at.screen.say(&line(step));
    }
    say_left(at, &plan.left_alone, &plan.stays);
    if yes {
        return Ok(());
    }
    if consent::agree(at, "undo these changes?", "undo")? {
        return Ok(());
    }
    Err(Problem::usage("not undone").advise("nothing was changed"))
}

/// Says what an undo leaves to git, and what nothing restores.
fn say_left(at: &Invocation, git: &[String], stays: &[Conflict]) {
    if let Some(first) = git.first() {
        let path = visible::path(first);
        let line = match git.len() {
            1 => format!("left to git  {path}"),
            count => format!("left to git  {count} files of a repository, {path} first"),
        };
        at.screen.say(&styled(DIM, &line));
    }
    for one in stays {
        let path = visible::path(&one.path.to_string_lossy());
        let why = one.why;
        let then = if one.lost {
            ""
        } else {
            "; look at it, and delete it yourself"
        };
        at.screen
            .say(&styled(RED, &format!("not undone   {path}: {why}{then}")));
    }
}

fn line(step: &UndoStep) -> String {
    let path = visible::path(&step.path);
    match step.action {
        StepAction::SetAside => {
            let from = step.from.as_deref().unwrap_or_default();
            format!("keep       {} as {path}", visible::path(from))
        }
        StepAction::MoveBack => {
            let from = step.from.as_deref().unwrap_or_default();
            format!("move back  {path} from {}", visible::path(from))
        }
        StepAction::Remove => format!("{}  {path}", styled(RED, "remove   ")),
        StepAction::Restore => format!("{}  {path}", styled(GREEN, "restore  ")),
    }
}

/// Returns a file with its diff.
pub(super) fn render(one: &FileReport) -> String {
    let path = visible::path(&one.path);
    let mut out = match &one.from {
        Some(from) => format!("{:<8} {} from {}\n", one.action, path, visible::path(from)),
        None => format!("{:<8} {path}\n", one.action),
    };
    if let Some(note) = &one.note {
        let _ = writeln!(out, "  {}", styled(DIM, &visible::line(note)));
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
