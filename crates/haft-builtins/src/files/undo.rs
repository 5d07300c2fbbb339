//! `undo_changes`: undoes the changes of a run, or of one call of it. Only `haft runs undo` offers it; models do not see it.

use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use haft::approval::preview::{
    ChangeSide, FileChange, FileChangeKind as Shown, MAX_LISTED, Preview,
};
use haft::call::{CallId, RunId};
use haft::change::ChangeLog;
use haft::change::log::{ChangeSet, LogError};
use haft::change::net::net_changes;
use haft::change::undo::{
    ContentSource, LaterChangePolicy, TargetState, UndoError, UndoSteps, plan,
};
use haft::context::CallContext;
use haft::error::ToolError;
use haft::permission::{PathClaim, Permission};
use haft::result::ToolResult;
use haft::spec::{Risk, ToolSpec};
use haft::text::visible;
use haft::tool::{Depth, Intent, TypedTool};
use haft::workspace::{EntryKind, ResolvedPath, Workspace};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::describe::{builtin, writes};
use crate::files::tools::FILES;
use crate::files::transfer::tree;
use crate::files::{FileOptions, Files};
use crate::lexical::target_of_link;
use crate::work::blocking;

/// What `undo_changes` takes.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct UndoInput {
    /// The run.
    pub run: String,
    /// The call, with its nested calls; the whole run if there is none.
    #[serde(default)]
    pub call: Option<String>,
    /// Keep a copy of each file that was changed since, as NAME.before-undo beside it, and undo nevertheless.
    #[serde(default)]
    pub force: bool,
}

/// What `undo_changes` gives.
#[derive(Debug, Serialize, JsonSchema)]
pub struct UndoData {
    /// The run whose changes were undone.
    pub run: String,
    /// What was restored.
    pub changes: Vec<UndoEntry>,
    /// What was not undone, and nothing else restores: each path with the reason.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_undone: Vec<NotUndone>,
}

/// One file, link or folder.
#[derive(Debug, Serialize, JsonSchema)]
pub struct UndoEntry {
    /// Its path, after the undo.
    pub path: String,
    /// `restored`, `removed`, `moved back` or `kept`: what was changed since, under its new name.
    pub action: String,
}

impl UndoEntry {
    fn line(&self) -> String {
        format!("{} {}", self.action, visible::path(&self.path))
    }
}

/// What stays of the run.
#[derive(Debug, Serialize, JsonSchema)]
pub struct NotUndone {
    /// Its path.
    pub path: String,
    /// Why it stays.
    pub why: String,
}

/// The tool `undo_changes`, which uses the change logs of earlier runs in this workspace.
#[derive(Debug)]
pub struct UndoChanges {
    files: Files,
    log: Arc<ChangeLog>,
}

impl UndoChanges {
    /// Creates the tool for a workspace.
    pub fn new(workspace: Workspace, log: Arc<ChangeLog>) -> Self {
        Self {
            files: Files::new(workspace, FileOptions::default(), None),
            log,
        }
    }

    /// Plans the undo, with the conflicts that prevent it.
    ///
    /// # Errors
    /// If the run's changes or the files cannot be read.
    pub fn draft(&self, input: &UndoInput) -> Result<UndoSteps, ToolError> {
        let run = RunId::new(&*input.run);
        let sets =
            change_sets(&self.log, &run, input.call.as_deref()).map_err(|e| read_error(&e))?;
        let changed = if input.force {
            LaterChangePolicy::SetAside
        } else {
            LaterChangePolicy::Refuse
        };
        let planned = plan(
            &net_changes(&sets),
            &self.files.workspace,
            &self.log,
            &run,
            changed,
        );
        planned.map_err(|error| match error {
            UndoError::Log(error) => read_error(&error),
            UndoError::Workspace(error) => error.into(),
        })
    }

    /// Plans the undo.
    ///
    /// # Errors
    /// If there are conflicts, or there is nothing to undo.
    pub fn plan(&self, input: &UndoInput) -> Result<UndoSteps, ToolError> {
        let planned = self.draft(input)?;
        match refusal(&planned) {
            Some(error) => Err(error),
            None => Ok(planned),
        }
    }

    fn entry(&self, path: &Path) -> Result<ResolvedPath, ToolError> {
        let text = path.to_str().ok_or_else(|| {
            ToolError::failed(format!("{} has a name that is not UTF-8", path_text(path)))
        })?;
        Ok(self.files.workspace.entry(text)?)
    }

    /// Returns the permissions that a plan needs.
    fn wanted(&self, input: &UndoInput, plan: &UndoSteps) -> Result<Vec<Permission>, ToolError> {
        // The user may undo what the user let a command change.
        let mut wanted = vec![Permission::apply(format!("haft runs undo {}", input.run))];
        let host = |path: &Path| self.files.workspace.host_path(path);
        for (is, aside) in &plan.set_aside {
            let text = fs::read_link(host(is)).ok();
            wanted.push(Permission::read(claim(is)?));
            wanted.push(Permission::remove(claim(is)?));
            wanted.push(Permission::write(self.claim_of(aside, text.as_deref())?));
        }
        for (is, was) in &plan.moves {
            let below = tree(&self.files.workspace, &self.entry(is)?)?;
            let below = below.iter().map(Path::new);
            for from in below.chain([is.as_path()]) {
                let rest = from.strip_prefix(is).unwrap_or(Path::new(""));
                let text = fs::read_link(host(from)).ok();
                let to = if from == is {
                    was.clone()
                } else {
                    was.join(rest)
                };
                wanted.push(Permission::read(claim(from)?));
                wanted.push(Permission::remove(claim(from)?));
                wanted.push(Permission::write(self.claim_of(&to, text.as_deref())?));
            }
        }
        for (path, to) in plan.targets() {
            wanted.push(match to {
                TargetState::Nothing => Permission::remove(claim(path)?),
                TargetState::Link(text) => Permission::write(self.claim_of(path, Some(text))?),
                _ => Permission::write(claim(path)?),
            });
        }
        Ok(wanted)
    }

    /// Returns the claim of a path at which the undo leaves a link with this text, if there is one.
    fn claim_of(&self, path: &Path, text: Option<&Path>) -> Result<PathClaim, ToolError> {
        let root = self.files.workspace.root();
        let target = text.and_then(|text| target_of_link(root, path, text));
        Ok(PathClaim {
            target,
            ..claim(path)?
        })
    }

    /// Returns what a plan would change, within the budget of one request.
    fn file_changes(&self, plan: &UndoSteps) -> Vec<FileChange> {
        let mut preview = Preview::default();
        let mut left = MAX_LISTED;
        for (is, was) in plan.set_aside.iter().chain(&plan.moves).take(left) {
            let moved = FileChange::unread(is.to_string_lossy()).moved(was.to_string_lossy());
            preview.add(moved, ChangeSide::None, ChangeSide::None);
        }
        left = left.saturating_sub(plan.set_aside.len() + plan.moves.len());
        let mut more = 0;
        for (path, to) in plan.targets() {
            let place = self.entry(path).ok();
            let place = place.filter(|place| place.kind() == Some(EntryKind::File));
            let then = match to {
                TargetState::File {
                    content: ContentSource::Bytes(bytes),
                    ..
                } => Some(&**bytes),
                _ => None,
            };
            if place.is_none() && then.is_none() {
                continue;
            }
            if left == 0 {
                more += 1;
                continue;
            }
            left -= 1;
            let mut change = FileChange::hashed(path.to_string_lossy(), None, then);
            change.before_bytes = place.as_ref().and_then(ResolvedPath::bytes);
            change.action = match (&place, then) {
                (None, _) => Shown::Create,
                (Some(_), None) if matches!(to, TargetState::Nothing) => Shown::Delete,
                (Some(_), _) => Shown::Change,
            };
            let workspace = &self.files.workspace;
            let open = |place: ResolvedPath| {
                ChangeSide::File(Box::new(move || Some(workspace.read(&place).ok()?.file)))
            };
            let now = match place {
                Some(place) if then.is_some() || matches!(to, TargetState::Nothing) => open(place),
                _ => ChangeSide::None,
            };
            preview.add(change, now, then.into());
        }
        let mut shown = preview.into_changes();
        if more > 0 {
            let mut rest = FileChange::unread(".");
            rest.files = Some(more);
            rest.fold("the request names 2,000 files at most");
            shown.push(rest);
        }
        shown
    }
}

/// Returns why a plan cannot be applied (it has conflicts, or there is nothing to undo), or `None` if it can.
pub fn refusal(planned: &UndoSteps) -> Option<ToolError> {
    if !planned.conflicts.is_empty() {
        let lines = planned.conflicts.iter().take(20);
        let lines: Vec<String> = lines
            .map(|conflict| format!("{}: {}", path_text(&conflict.path), conflict.why))
            .collect();
        let more = planned.conflicts.len().saturating_sub(lines.len());
        let more = match more {
            0 => String::new(),
            more => format!("; and {more} more"),
        };
        let message = format!("nothing was undone: {}{more}", lines.join("; "));
        return Some(ToolError::conflict(message));
    }
    planned.is_empty().then(|| {
        let why = match (planned.stays.first(), planned.left_alone.first()) {
            (Some(stays), _) => format!("{} stays: {}", path_text(&stays.path), stays.why),
            (None, Some(git)) => format!("git restores {} and its like", path_text(git)),
            (None, None) => "no file is different from before the run".to_owned(),
        };
        ToolError::conflict(format!("nothing to undo: {why}"))
    })
}

/// Returns the change sets of a call and its nested calls, or of the whole run.
///
/// # Errors
/// If the run's change log cannot be read.
pub fn change_sets(
    log: &ChangeLog,
    run: &RunId,
    call: Option<&str>,
) -> Result<Vec<ChangeSet>, LogError> {
    let mut sets = log.read(run)?;
    let is_of = |id: &CallId, call: &str| {
        let rest = id.as_str().strip_prefix(call);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    };
    sets.retain(|set| call.is_none_or(|call| is_of(&set.call, call)));
    Ok(sets)
}

/// Returns a path as a message names it: a command may have chosen it.
fn path_text(path: &Path) -> String {
    visible::path_of_bytes(path.as_os_str().as_bytes())
}

/// Returns the path for the policy. It has no links, because a plan touches nothing behind one.
fn claim(path: &Path) -> Result<PathClaim, ToolError> {
    let text = path.to_str().ok_or_else(|| {
        ToolError::failed(format!("{} has a name that is not UTF-8", path_text(path)))
    })?;
    Ok(PathClaim::plain(text))
}

fn read_error(error: &LogError) -> ToolError {
    ToolError::failed(format!("the run's change log cannot be read: {error}"))
}

impl TypedTool for UndoChanges {
    const NAME: &'static str = "undo_changes";
    const DESCRIPTION: &'static str = "Undo what an earlier run, or one call of it, changed in the workspace. Undoes all of it, or nothing \
        if a file has changed since.";
    type Input = UndoInput;

    fn describe(spec: ToolSpec) -> ToolSpec {
        writes(builtin::<UndoData>(spec, FILES), Risk::High)
    }

    fn workspace(&self) -> Option<&Workspace> {
        Some(&self.files.workspace)
    }

    fn intent(&self, input: &Self::Input, depth: Depth) -> Result<Intent, ToolError> {
        let plan = self.plan(input)?;
        Ok(Intent::of(self.wanted(input, &plan)?)
            .with_stated(&["run", "call", "force"])
            .with_preview(depth, || self.file_changes(&plan)))
    }

    async fn run(
        &self,
        input: Self::Input,
        context: &CallContext,
    ) -> Result<ToolResult, ToolError> {
        // The same plan is compared and applied, so what is applied cannot differ from what was compared.
        let plan = self.plan(&input)?;
        let wanted = self.wanted(&input, &plan)?;
        if !context.judgement().covers(&wanted) {
            let message = "what would be undone changed since it was shown";
            return Err(ToolError::conflict(message));
        }
        let workspace = self.files.workspace.clone();
        let changer = context.changer(&workspace);
        let applied = blocking(move |_| {
            plan.apply(&workspace, &changer)?;
            Ok((entries(&plan, &workspace), not_undone(&plan, &workspace)))
        });
        let applied = applied.await;
        let (changes, not_undone) = applied.map_err(|error: ToolError| {
            let run = context.run();
            error.for_operator(format!(
                "`haft runs diff {run}` shows what was done before it failed, `haft runs undo {run}` undoes that"
            ))
        })?;
        let run = input.run;
        let text = match &changes[..] {
            [one] => one.line(),
            all => format!("undid {} changes of run {run}", all.len()),
        };
        let lines = changes.iter().map(UndoEntry::line);
        let stays = not_undone
            .iter()
            .map(|one| format!("not undone {}: {}", visible::path(&one.path), one.why));
        let lines: Vec<String> = lines.chain(stays).collect();
        ToolResult::text(lines.join("\n"))
            .with_summary(text)
            .with_data_for_programs(&UndoData {
                run,
                changes,
                not_undone,
            })
    }
}

/// Returns whether the undo left what it meant to remove: a folder with something else in it.
fn is_left(workspace: &Workspace, path: &Path, to: &TargetState) -> bool {
    matches!(to, TargetState::Nothing) && workspace.look(path).is_some()
}

fn not_undone(plan: &UndoSteps, workspace: &Workspace) -> Vec<NotUndone> {
    let stays = plan.stays.iter().map(|one| (&one.path, one.why));
    let left = plan.summary();
    let left = left.filter(|(path, to)| is_left(workspace, path, to));
    let left = left.map(|(path, _)| (path, "it holds something that the run did not make"));
    let each = stays.chain(left).map(|(path, why)| NotUndone {
        path: path.to_string_lossy().into_owned(),
        why: why.to_owned(),
    });
    each.collect()
}

fn entries(plan: &UndoSteps, workspace: &Workspace) -> Vec<UndoEntry> {
    let undone = |path: &PathBuf, action: &str| UndoEntry {
        path: path.to_string_lossy().into_owned(),
        action: action.to_owned(),
    };
    let kept = plan
        .set_aside
        .iter()
        .map(|(_, aside)| undone(aside, "kept"));
    let moved = plan.moves.iter().map(|(_, was)| undone(was, "moved back"));
    let others = plan.summary();
    let others = others.filter(|(path, to)| !is_left(workspace, path, to));
    let others = others.map(|(path, to)| {
        undone(
            path,
            match to {
                TargetState::Nothing => "removed",
                _ => "restored",
            },
        )
    });
    kept.chain(moved).chain(others).collect()
}
