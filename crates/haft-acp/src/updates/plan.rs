//! The run's task list as a plan.

use haft::result::Outcome;
use serde::Deserialize;
use serde_json::{Value, json};

#[derive(Deserialize)]
struct PlanTasks {
    tasks: Vec<PlanTask>,
}

#[derive(Deserialize)]
struct PlanTask {
    content: String,
    status: String,
}

/// Returns the plan from a call of `todo_write` or `todo_read`, without abandoned tasks.
pub(super) fn of(outcome: &Outcome) -> Option<Value> {
    if !outcome.is_ok() || !matches!(outcome.tool.as_str(), "todo_write" | "todo_read") {
        return None;
    }
    let tasks: PlanTasks = serde_json::from_str(outcome.data.as_ref()?.get()).ok()?;
    let tasks = tasks.tasks.into_iter();
    let entries = tasks
        .filter(|task| matches!(&*task.status, "pending" | "in_progress" | "completed"))
        .map(|task| json!({"content": task.content, "priority": "medium", "status": task.status}));
    Some(json!({"sessionUpdate": "plan", "entries": entries.collect::<Vec<_>>()}))
}
