//! Undoes what a run changed: the undo is planned, shown, and performed in a run of its own.

mod session;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use haft::ToolError;
use haft::approval::{ApprovalRequest, Approver, ApproverReply, Decision};
use haft::call::ToolCall;
use haft::change::undo::{Conflict, ContentSource, TargetState, UndoSteps};
use haft::future::BoxFuture;
use haft::result::Outcome;
use haft::tool::TypedTool as _;
use haft::{ToolRegistry, Toolset};
use haft_builtins::files::sha256;
use haft_builtins::files::undo::{UndoChanges, UndoInput, refusal};
use serde::Serialize;
use serde_json::json;

use crate::app::App;
use crate::problem::Problem;
use crate::run::selection::{RunSelection, check_workspace};
use crate::run::{RunHandle, RunOptions};

pub use session::{SessionChanges, changes_of_session};

/// What an undo does to one path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum StepAction {
    /// It was changed since and is kept under another name.
    SetAside,
    /// It is moved back.
    MoveBack,
    /// It was new and is removed.
    Remove,
    /// It gets its content, kind or mode from before the run.
    Restore,
}

/// One step of an undo.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct UndoStep {
    /// What happens at the path.
    pub action: StepAction,
    /// Its path, after the undo.
    pub path: String,
    /// Its path now, if it is set aside or moved back.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
}

/// What an undo would do.
#[derive(Debug)]
pub struct UndoPlan {
    /// What is moved, removed and restored.
    pub steps: Vec<UndoStep>,
    /// Changes inside a repository's `.git`, which git can undo.
    pub left_alone: Vec<String>,
    /// Changes inside a repository's `.git` that nothing undoes, and why.
    pub stays: Vec<Conflict>,
    /// The SHA-256 of the steps and what they restore.
    pub digest: String,
}

/// Why the undo is refused.
#[derive(Debug)]
pub struct UndoRefusal {
    /// The error, with the first conflicts in its message.
    pub error: ToolError,
    /// What prevents the undo.
    pub conflicts: Vec<Conflict>,
    /// What git can restore, where nothing else is to be undone.
    pub left_alone: Vec<String>,
    /// What nothing restores, and why.
    pub stays: Vec<Conflict>,
}

/// The undo of a run, or of one call of it.
#[derive(Debug)]
pub struct Undo {
    tool: UndoChanges,
    input: UndoInput,
}

/// The user who has seen the plan and approves it.
#[derive(Debug)]
pub struct UndoApprover {
    /// Their name.
    pub by: String,
    /// Where the approval came from.
    pub from: String,
}

impl Undo {
    /// Prepares the undo of changes that were made in this workspace.
    ///
    /// # Errors
    /// The run started in another workspace, or changes are not recorded here.
    pub async fn new(app: &App, of: &RunSelection) -> Result<Self, Problem> {
        check_workspace(app.runs(), &of.run, "undo").await?;
        Ok(Self {
            tool: UndoChanges::new(app.files().clone(), Arc::clone(app.changes()?)),
            input: UndoInput {
                run: of.run.to_string(),
                call: of.call.clone(),
                force: false,
            },
        })
    }

    /// Sets whether files that were changed since are set aside instead of preventing the undo.
    pub fn with_force(mut self, force: bool) -> Self {
        self.input.force = force;
        self
    }

    /// Plans the undo. Changes nothing.
    ///
    /// # Errors
    /// There are conflicts, there is nothing to undo, or the files cannot be read.
    pub fn plan(&self) -> Result<UndoPlan, Box<UndoRefusal>> {
        let plan = self.tool.draft(&self.input).map_err(|error| {
            Box::new(UndoRefusal {
                error,
                conflicts: Vec::new(),
                left_alone: Vec::new(),
                stays: Vec::new(),
            })
        })?;
        match refusal(&plan) {
            Some(error) => Err(Box::new(UndoRefusal {
                error,
                left_alone: texts(&plan.left_alone),
                conflicts: plan.conflicts,
                stays: plan.stays,
            })),
            None => Ok(to_undo_plan(&plan)),
        }
    }

    /// Starts a run for the undo, with the undo tool as its only tool.
    ///
    /// # Errors
    /// The run cannot be started.
    pub async fn start(self, app: &App, options: RunOptions) -> Result<StartedUndo, Problem> {
        let tools = ToolRegistry::new();
        let added = self.tool.into_tool().map_err(|e| e.to_string());
        let added = added.and_then(|tool| tools.add_all([tool]).map_err(|e| e.to_string()));
        added.map_err(|e| Problem::failed(format!("cannot make the tool that undoes: {e}")))?;
        let tools: Arc<dyn Toolset> = Arc::new(tools);
        let options = RunOptions {
            tools: Some(tools),
            ..options
        };
        Ok(StartedUndo {
            run: app.runs().start(options).await?,
            arguments: json!(self.input).to_string(),
        })
    }
}

/// An undo whose run is started.
#[derive(Debug)]
pub struct StartedUndo {
    /// The run.
    pub run: RunHandle,
    arguments: String,
}

impl StartedUndo {
    /// Performs the undo, approved by this user. Deny rules of the policy still apply.
    pub async fn perform(&self, app: &App, person: UndoApprover) -> Outcome {
        let executor = app.executor().clone().with_approver(PresetApprover(person));
        let call = ToolCall::new("undo_changes", self.arguments.clone());
        executor.execute(self.run.session(), call).await
    }
}

/// An approver that returns the approval that the user has already given.
#[derive(Debug)]
struct PresetApprover(UndoApprover);

impl Approver for PresetApprover {
    fn ask<'a>(&'a self, _: &'a ApprovalRequest) -> BoxFuture<'a, ApproverReply> {
        Box::pin(async { ApproverReply::Nobody })
    }

    fn existing_decision(&self, _: &ApprovalRequest) -> Option<Decision> {
        Some(Decision::approve(self.0.by.clone(), self.0.from.clone()))
    }
}

fn texts(paths: &[PathBuf]) -> Vec<String> {
    let each = paths.iter();
    each.map(|path| path.to_string_lossy().into_owned())
        .collect()
}

fn to_undo_plan(plan: &UndoSteps) -> UndoPlan {
    let text = |path: &Path| path.to_string_lossy().into_owned();
    let renamed = |action: StepAction| {
        move |(from, path): &(PathBuf, PathBuf)| UndoStep {
            action,
            path: text(path),
            from: Some(text(from)),
        }
    };
    let set_aside = plan.set_aside.iter().map(renamed(StepAction::SetAside));
    let moved = plan.moves.iter().map(renamed(StepAction::MoveBack));
    let others = plan.summary().map(|(path, target)| UndoStep {
        action: match target {
            TargetState::Nothing => StepAction::Remove,
            _ => StepAction::Restore,
        },
        path: text(path),
        from: None,
    });
    UndoPlan {
        steps: set_aside.chain(moved).chain(others).collect(),
        left_alone: texts(&plan.left_alone),
        stays: plan.stays.clone(),
        digest: digest(plan),
    }
}

/// Returns the SHA-256 of what a plan does: plans with the same digest do the same.
fn digest(plan: &UndoSteps) -> String {
    let mut bytes = Vec::new();
    // Each part is prefixed with its length, so that different plans give different bytes.
    let mut add = |part: &[u8]| {
        bytes.extend(part.len().to_le_bytes());
        bytes.extend(part);
    };
    let renamed = [("keep", &plan.set_aside), ("move", &plan.moves)];
    for (word, all) in renamed {
        for (from, to) in all {
            add(word.as_bytes());
            add(from.as_os_str().as_encoded_bytes());
            add(to.as_os_str().as_encoded_bytes());
        }
    }
    for (path, target) in plan.targets() {
        let (kind, content) = match target {
            TargetState::Nothing => ("nothing".to_owned(), String::new()),
            TargetState::Link(to) => ("link".to_owned(), sha256(to.as_os_str().as_encoded_bytes())),
            TargetState::Folder(mode) => (format!("folder {mode:?}"), String::new()),
            TargetState::File {
                content: ContentSource::Bytes(bytes),
                mode,
            } => (format!("file {mode:?}"), sha256(bytes)),
            // An undo only restores saved content, so its plan has no other files.
            TargetState::File { mode, .. } => (format!("other file {mode:?}"), String::new()),
        };
        add(path.as_os_str().as_encoded_bytes());
        add(kind.as_bytes());
        add(content.as_bytes());
    }
    sha256(&bytes)
}
