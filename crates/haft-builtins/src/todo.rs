//! `todo_write` and `todo_read`: a run's own list of tasks.

use std::collections::HashMap;
use std::sync::Arc;

use haft::call::RunId;
use haft::context::CallContext;
use haft::error::ToolError;
use haft::result::ToolResult;
use haft::spec::ToolSpec;
use haft::tool::{Depth, Intent, TypedTool};
use parking_lot::Mutex;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::describe::{builtin, idempotent, read_only};

/// Maximum number of tasks per run.
const MAX_TASKS: usize = 200;
/// Maximum number of runs with a list; the least recently used list is dropped first.
const MAX_RUNS: usize = 256;

/// How far a task is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TaskStatus {
    /// Not started.
    #[default]
    Pending,
    /// Being worked on.
    InProgress,
    /// Done.
    Completed,
    /// Abandoned.
    Cancelled,
}

/// One task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct TodoItem {
    /// Its id within the run.
    pub id: String,
    /// What to do.
    pub content: String,
    /// Its status.
    pub status: TaskStatus,
    /// Its outcome.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub conclusion: Option<String>,
}

/// A task to add, or the parts of a known one to change.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TaskChange {
    /// A known id changes that task; a new one adds a task.
    #[schemars(length(min = 1, max = 64))]
    pub id: String,
    /// What to do; required for a new task.
    #[serde(default)]
    #[schemars(with = "String", length(min = 1, max = 2_000))]
    pub content: Option<String>,
    /// Its status.
    #[serde(default)]
    #[schemars(with = "TaskStatus")]
    pub status: Option<TaskStatus>,
    /// Its outcome.
    #[serde(default)]
    #[schemars(with = "String", length(max = 2_000))]
    pub conclusion: Option<String>,
}

/// What `todo_write` takes.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TodoWriteInput {
    /// Tasks to add or change; those not named stay as they are.
    #[schemars(length(min = 1, max = 200))]
    pub tasks: Vec<TaskChange>,
}

/// What `todo_read` takes: nothing.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TodoReadInput {}

/// What both give.
#[derive(Debug, Serialize, JsonSchema)]
pub struct TodoData {
    /// The whole list, in the order the tasks were added.
    pub tasks: Vec<TodoItem>,
}

/// The todo lists of all runs.
#[derive(Debug, Clone, Default)]
pub struct TodoLists {
    lists: Arc<Mutex<ListsByRun>>,
}

#[derive(Debug, Default)]
struct ListsByRun {
    clock: u64,
    runs: HashMap<RunId, (u64, Vec<TodoItem>)>,
}

impl TodoLists {
    fn with<T>(&self, run: &RunId, work: impl FnOnce(&mut Vec<TodoItem>) -> T) -> T {
        let mut lists = self.lists.lock();
        lists.clock += 1;
        let now = lists.clock;
        if !lists.runs.contains_key(run) && lists.runs.len() >= MAX_RUNS {
            let oldest = lists.runs.iter().min_by_key(|(_, (used, _))| *used);
            if let Some(oldest) = oldest.map(|(run, _)| run.clone()) {
                lists.runs.remove(&oldest);
            }
        }
        let (used, tasks) = lists.runs.entry(run.clone()).or_default();
        *used = now;
        work(tasks)
    }
}

/// Merges changes by id. Applies all of them or none.
pub(crate) fn merge(
    tasks: &[TodoItem],
    changes: &[TaskChange],
) -> Result<Vec<TodoItem>, ToolError> {
    let mut tasks = tasks.to_vec();
    for change in changes {
        let known = tasks.iter_mut().find(|task| task.id == change.id);
        let Some(task) = known else {
            let content = change.content.clone().ok_or_else(|| {
                let message = format!("task {:?} is new and has no content", change.id);
                ToolError::invalid_arguments(message)
            })?;
            tasks.push(TodoItem {
                id: change.id.clone(),
                content,
                status: change.status.unwrap_or_default(),
                conclusion: change.conclusion.clone(),
            });
            continue;
        };
        if let Some(content) = &change.content {
            task.content.clone_from(content);
        }
        if let Some(status) = change.status {
            task.status = status;
        }
        if let Some(conclusion) = &change.conclusion {
            task.conclusion = Some(conclusion.clone());
        }
    }
    if tasks.len() > MAX_TASKS {
        let message = format!("{} tasks; a list holds at most {MAX_TASKS}", tasks.len());
        return Err(ToolError::invalid_arguments(message));
    }
    Ok(tasks)
}

fn result(tasks: Vec<TodoItem>) -> Result<ToolResult, ToolError> {
    let done = |task: &&TodoItem| task.status == TaskStatus::Completed;
    let summary = format!(
        "{} of {} tasks done",
        tasks.iter().filter(done).count(),
        tasks.len()
    );
    ToolResult::data(&TodoData { tasks }).map(|result| result.with_summary(summary))
}

/// The tool `todo_write`.
#[derive(Debug)]
pub struct TodoWrite(pub TodoLists);

impl TypedTool for TodoWrite {
    const NAME: &'static str = "todo_write";
    const DESCRIPTION: &'static str = "Add tasks to this run's todo list, or change them by id. Tasks that you do not name stay as they \
        are. Returns the whole list. At most 200 tasks.";
    type Input = TodoWriteInput;

    fn describe(spec: ToolSpec) -> ToolSpec {
        idempotent(builtin::<TodoData>(spec, "todo"))
    }

    fn intent(&self, _: &Self::Input, _: Depth) -> Result<Intent, ToolError> {
        Ok(Intent::call_only())
    }

    async fn run(
        &self,
        input: Self::Input,
        context: &CallContext,
    ) -> Result<ToolResult, ToolError> {
        let tasks = self.0.with(context.run(), |tasks| {
            *tasks = merge(tasks, &input.tasks)?;
            Ok::<_, ToolError>(tasks.clone())
        })?;
        result(tasks)
    }
}

/// The tool `todo_read`.
#[derive(Debug)]
pub struct TodoRead(pub TodoLists);

impl TypedTool for TodoRead {
    const NAME: &'static str = "todo_read";
    const DESCRIPTION: &'static str =
        "Return this run's todo list, in the order the tasks were added.";
    type Input = TodoReadInput;

    fn describe(spec: ToolSpec) -> ToolSpec {
        read_only(builtin::<TodoData>(spec, "todo"))
    }

    fn intent(&self, _: &Self::Input, _: Depth) -> Result<Intent, ToolError> {
        Ok(Intent::call_only())
    }

    async fn run(&self, _: Self::Input, context: &CallContext) -> Result<ToolResult, ToolError> {
        result(self.0.with(context.run(), |tasks| tasks.clone()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(id: &str, content: Option<&str>, status: Option<TaskStatus>) -> TaskChange {
        TaskChange {
            id: id.into(),
            content: content.map(Into::into),
            status,
            conclusion: None,
        }
    }

    #[test]
    fn changes_are_merged_by_id_and_all_or_none() {
        let one = merge(
            &[],
            &[change("a", Some("x"), None), change("b", Some("y"), None)],
        )
        .unwrap();
        let two = merge(&one, &[change("a", None, Some(TaskStatus::Completed))]).unwrap();
        assert_eq!(
            (two[0].content.as_str(), two[0].status),
            ("x", TaskStatus::Completed)
        );
        assert_eq!(two[1], one[1]);
        assert!(merge(&two, &[change("c", None, None)]).is_err());
        let many: Vec<_> = (0..=MAX_TASKS)
            .map(|n| change(&n.to_string(), Some("x"), None))
            .collect();
        assert!(merge(&[], &many).is_err());
    }
}
