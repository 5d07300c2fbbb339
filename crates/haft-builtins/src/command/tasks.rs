//! `BackgroundTasks`: commands that continue in the background, each owned by the run that started it.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use haft::call::RunId;
use haft::context::CallContext;
use haft::error::{ErrorKind, ToolError};
use parking_lot::{Mutex, MutexGuard};

use crate::command::LaunchedCommand;
use crate::command::RunCommandInput;
use crate::command::connections::AskingGuard;
use crate::command::output::OutputCursors;
use haft::text::hex;

/// Maximum number of tasks per run, including ended ones; the oldest ended task is dropped first.
const MAX_TASKS: usize = 32;
/// Maximum lifetime of a task.
const MAX_LIFE: Duration = Duration::from_secs(12 * 60 * 60);

/// A command in the background.
#[derive(Debug)]
pub(crate) struct BackgroundTask {
    pub(crate) id: String,
    owner: RunId,
    /// The command line as the policy saw it.
    pub(crate) command: String,
    pub(crate) argv: Option<Vec<String>>,
    pub(crate) started: LaunchedCommand,
    pub(crate) since: Instant,
    /// The positions up to which output was shown. Locked during a wait, so that two waits never return the same byte.
    pub(crate) shown: tokio::sync::Mutex<OutputCursors>,
    /// Locked while a call types.
    pub(crate) typing: tokio::sync::Mutex<()>,
    /// What was typed at a shell's prompt and does not complete a command yet.
    pub(crate) unfinished: Mutex<String>,
}

/// A command that becomes a task.
#[derive(Debug)]
pub(crate) struct NewTask {
    pub(crate) command: String,
    pub(crate) argv: Option<Vec<String>>,
    pub(crate) started: LaunchedCommand,
    /// What lets the command ask about its connections.
    pub(crate) asking: Option<AskingGuard>,
    pub(crate) shown: OutputCursors,
}

/// All tasks, by id.
#[derive(Debug, Clone, Default)]
pub(crate) struct BackgroundTasks {
    tasks: Arc<Mutex<HashMap<String, Arc<BackgroundTask>>>>,
}

impl BackgroundTasks {
    fn lock(&self) -> MutexGuard<'_, HashMap<String, Arc<BackgroundTask>>> {
        self.tasks.lock()
    }

    /// Registers a command as a task of the call's run. The task ends with the session.
    pub(crate) fn keep(
        &self,
        context: &CallContext,
        new: NewTask,
    ) -> Result<Arc<BackgroundTask>, ToolError> {
        let task = Arc::new(BackgroundTask {
            id: new_id()?,
            owner: context.run().clone(),
            command: new.command,
            argv: new.argv,
            started: new.started,
            since: Instant::now(),
            shown: tokio::sync::Mutex::new(new.shown),
            typing: tokio::sync::Mutex::default(),
            unfinished: Mutex::default(),
        });
        let mut tasks = self.lock();
        make_room(&mut tasks, &task.owner)?;
        tasks.insert(task.id.clone(), Arc::clone(&task));
        drop(tasks);
        let (running, context) = (task.started.running.clone(), context.clone());
        tokio::spawn(async move {
            tokio::select! {
                _ = running.wait() => {}
                () = context.cancelled() => running.kill(),
                () = tokio::time::sleep(MAX_LIFE) => running.kill(),
            }
            if let Some(asking) = new.asking {
                asking.end().await;
            }
        });
        Ok(task)
    }

    /// Returns a task of this run. A task of another run is reported as not found.
    pub(crate) fn of(&self, run: &RunId, id: &str) -> Result<Arc<BackgroundTask>, ToolError> {
        let task = self.lock().get(id).cloned();
        task.filter(|task| task.owner == *run).ok_or_else(|| {
            ToolError::not_found(format!("no task {id:?} in this run"))
                .with_advice("use the task id that run_command returned")
        })
    }

    /// Returns a task of any run, for the policy, which does not know the run.
    pub(crate) fn any(&self, id: &str) -> Option<Arc<BackgroundTask>> {
        self.lock().get(id).cloned()
    }

    /// Fails if there is no room for another task, before a command starts that may become one.
    pub(crate) fn check_room_for(
        &self,
        input: &RunCommandInput,
        run: &RunId,
    ) -> Result<(), ToolError> {
        if input.ends() {
            return Ok(());
        }
        make_room(&mut self.lock(), run)
    }
}

fn make_room(
    tasks: &mut HashMap<String, Arc<BackgroundTask>>,
    run: &RunId,
) -> Result<(), ToolError> {
    let mine = tasks.values().filter(|task| task.owner == *run);
    if mine.clone().count() < MAX_TASKS {
        return Ok(());
    }
    let ended = mine.filter(|task| task.started.running.exit().is_some());
    let oldest = ended.min_by_key(|task| task.since);
    let Some(id) = oldest.map(|task| task.id.clone()) else {
        let message = format!("{MAX_TASKS} tasks of this run are still running");
        return Err(ToolError::new(ErrorKind::Budget, message)
            .with_advice("wait for one with await_command, or end one with kill_command"));
    };
    tasks.remove(&id);
    Ok(())
}

/// Returns an unguessable id: `task-` and 12 hex digits.
fn new_id() -> Result<String, ToolError> {
    let mut bytes = [0; 6];
    rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty())
        .map_err(|e| ToolError::unavailable("the system has no random source").with_source(e))?;
    Ok(format!("task-{}", hex(&bytes)))
}
