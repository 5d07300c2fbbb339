//! `CallTasks`: long calls that continue by themselves while their clients poll them (2026-07-28, extension `io.modelcontextprotocol/tasks`).
//! They are limited in number and in bytes by principal, and in time, and visible only to their own caller.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use haft::bounds::{
    ByteBudget, CallerClass, Charge, ConcurrencyLimit, ConcurrencyPermit, PrincipalShares,
};
use haft::call::Principal;
use haft::clock;
use haft::result::{Outcome, Status};
use parking_lot::Mutex;
use serde::Serialize;
use serde_json::value::RawValue;
use tokio::sync::{Notify, broadcast};
use tokio::task::AbortHandle;
use tokio::time::Instant;

use crate::call_follow_up::CallFollowUp;
use crate::client_caller::{ClientCaller, InputRequest};
use crate::limits::{ServerLimits, shares};
use crate::outcome;
use crate::owner::Owner;
use crate::required::RequestsByName;
use crate::running::{Running, WaitConditions, WaitResult};
use crate::seal::random_name;
use crate::wire::{RpcError, reply};

/// How often a client should poll.
const POLL_INTERVAL: Duration = Duration::from_millis(500);
/// Bytes that the result of one task may hold in any case.
const RESERVED_BYTES: usize = 64 << 10;
/// Maximum number of changes that a listener may lag behind.
const LISTENER_BUFFER: usize = 64;

/// The tasks of all clients.
#[derive(Debug)]
pub(crate) struct CallTasks {
    all: Mutex<HashMap<Box<str>, Arc<CallTask>>>,
    places: ConcurrencyLimit,
    bytes: PrincipalShares,
    life: Duration,
    changed: broadcast::Sender<Arc<CallTask>>,
    /// The server's description of itself, for results.
    server: Box<RawValue>,
}

/// Who asks about a task.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TaskCaller<'a> {
    pub(crate) principal: &'a Principal,
    pub(crate) class: CallerClass,
}

/// A call that continues by itself.
#[derive(Debug)]
pub(crate) struct CallTask {
    pub(crate) id: Box<str>,
    principal: Principal,
    class: CallerClass,
    created: i128,
    life: Duration,
    caller: Arc<ClientCaller>,
    state: Mutex<TaskState>,
    /// Signals that the client has answered something.
    updated: Notify,
    driver: OnceLock<AbortHandle>,
    _place: ConcurrencyPermit,
}

#[derive(Debug)]
struct TaskState {
    at: i128,
    end: Option<TaskEnd>,
    charge: Charge,
}

/// How a task ended.
#[derive(Debug)]
enum TaskEnd {
    /// With its call's result.
    Completed(Box<RawValue>),
    /// Without a result.
    Failed(RpcError),
    Cancelled,
}

impl CallTasks {
    pub(crate) fn new(limits: &ServerLimits, server: Box<RawValue>) -> Arc<Self> {
        Arc::new(Self {
            all: Mutex::default(),
            places: ConcurrencyLimit::new(&shares(limits.tasks)),
            bytes: shares(limits.task_bytes),
            life: limits.idle,
            changed: broadcast::Sender::new(LISTENER_BUFFER),
            server,
        })
    }

    /// Lets a call continue as a task; returns it if there is no room for one.
    pub(crate) fn begin(
        self: &Arc<Self>,
        running: Running,
        owner: Owner,
    ) -> Result<Arc<CallTask>, Box<Running>> {
        let (Some(place), Some(id)) = (self.places.take(&owner.share), random_name()) else {
            return Err(Box::new(running));
        };
        running.caller.listens(None);
        let task = Arc::new(CallTask {
            id: id.clone(),
            principal: owner.principal,
            class: owner.share.class,
            created: clock::now(),
            life: self.life,
            caller: Arc::clone(&running.caller),
            state: Mutex::new(TaskState {
                at: clock::now(),
                end: None,
                charge: ByteBudget::of(&self.bytes, &owner.share, RESERVED_BYTES).charge(),
            }),
            updated: Notify::new(),
            driver: OnceLock::new(),
            _place: place,
        });
        self.all.lock().insert(id.clone(), Arc::clone(&task));
        let driver = run_task(Arc::clone(self), Arc::clone(&task), running);
        let work = owner.work;
        let driver = tokio::spawn(async move {
            driver.await;
            drop(work);
        });
        // Set once, here.
        let _ = task.driver.set(driver.abort_handle());
        let (tasks, forgotten, mut over) = (
            Arc::downgrade(self),
            Instant::now() + self.life,
            owner.run_over,
        );
        let kept = Arc::clone(&task);
        tokio::spawn(async move {
            let over = async { drop(over.wait_for(|over| *over).await) };
            tokio::select! {
                () = over => {
                    // The result remains available even though its run is over.
                    if kept.has_ended() {
                        tokio::time::sleep_until(forgotten).await;
                    }
                }
                () = tokio::time::sleep_until(forgotten) => {}
            }
            kept.stop();
            if let Some(tasks) = tasks.upgrade() {
                tasks.all.lock().remove(&id);
            }
        });
        Ok(task)
    }

    /// Returns the caller's task with this id: the operator's needs the operator's token each time.
    pub(crate) fn get(&self, id: &str, caller: TaskCaller<'_>) -> Option<Arc<CallTask>> {
        let task = self.all.lock().get(id).cloned();
        task.filter(|task| task.principal == *caller.principal && task.class <= caller.class)
    }

    /// Cancels a task that has not ended.
    pub(crate) fn cancel(&self, task: &Arc<CallTask>) {
        if task.ends(TaskEnd::Cancelled) {
            task.stop();
            self.notify(task);
        }
    }

    /// Returns the changes from now on.
    pub(crate) fn changes(&self) -> broadcast::Receiver<Arc<CallTask>> {
        self.changed.subscribe()
    }

    fn notify(&self, task: &Arc<CallTask>) {
        // There may be no listeners.
        let _ = self.changed.send(Arc::clone(task));
    }

    /// Keeps the call's result, if there is room for it.
    fn finish(
        &self,
        task: &Arc<CallTask>,
        outcome: Result<Box<Outcome>, RpcError>,
        running: &Running,
    ) {
        let end = match outcome {
            Ok(outcome) => self.end(&outcome, running),
            Err(error) => TaskEnd::Failed(error),
        };
        if task.ends(end) {
            self.notify(task);
        }
    }

    fn end(&self, outcome: &Outcome, running: &Running) -> TaskEnd {
        if let Some(error) = running.caller.missing_capability(outcome) {
            return TaskEnd::Failed(error);
        }
        let sent = outcome.original.as_ref();
        if let Some(error) = sent.filter(|sent| sent.is_refusal)
            && let Some(error) = RpcError::read(&error.result)
        {
            return TaskEnd::Failed(error);
        }
        let place = || {
            let carrier = running.carrier.as_ref()?;
            carrier.address(outcome.approval.as_deref()?)
        };
        let then = match outcome.status {
            Status::Suspended => place().map_or(CallFollowUp::Nothing, CallFollowUp::Decide),
            _ => CallFollowUp::Nothing,
        };
        let mut result = Vec::new();
        outcome::write(
            &mut result,
            outcome,
            &then,
            crate::era::Era::Modern,
            &self.server,
        );
        let result = String::from_utf8(result).ok();
        match result.and_then(|text| RawValue::from_string(text).ok()) {
            Some(result) => TaskEnd::Completed(result),
            None => TaskEnd::Failed(RpcError::new(RpcError::INTERNAL, "the result is not JSON")),
        }
    }
}

/// Runs a task to its end.
async fn run_task(tasks: Arc<CallTasks>, task: Arc<CallTask>, mut running: Running) {
    // Whether listeners were told what it waits for.
    let mut was_notified = false;
    loop {
        let until = WaitConditions {
            asks: !was_notified,
            late: None,
        };
        let step = tokio::select! {
            biased;
            step = running.step(None, until) => step,
            () = task.updated.notified() => {
                was_notified = false;
                continue;
            }
        };
        match step {
            Ok(WaitResult::Ended(outcome)) => return tasks.finish(&task, Ok(outcome), &running),
            Err(error) => return tasks.finish(&task, Err(error), &running),
            Ok(WaitResult::Asks | WaitResult::Late) => {
                was_notified = true;
                task.state.lock().at = clock::now();
                tasks.notify(&task);
            }
        }
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct TaskJson<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    result_type: Option<&'static str>,
    task_id: &'a str,
    status: &'static str,
    created_at: String,
    last_updated_at: String,
    ttl_ms: u64,
    poll_interval_ms: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<ErrorJson<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    input_requests: Option<RequestsByName<'a>>,
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    meta: Option<&'a RawValue>,
}

#[derive(Serialize)]
struct ErrorJson<'a> {
    code: i32,
    message: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    data: Option<&'a RawValue>,
}

/// The form in which a task is written.
#[derive(Debug, Clone, Copy)]
pub(crate) enum TaskFormat {
    /// The answer to the call that became the task.
    Created,
    /// The whole task, as an answer.
    Whole,
    /// The whole task, as a notification's `params`.
    Notice,
}

impl CallTask {
    /// Notes how it ended; returns false if it had already ended.
    fn ends(&self, end: TaskEnd) -> bool {
        let mut state = self.state.lock();
        if state.end.is_some() {
            return false;
        }
        state.at = clock::now();
        let bytes = match &end {
            TaskEnd::Completed(result) => result.get().len(),
            TaskEnd::Failed(_) | TaskEnd::Cancelled => 0,
        };
        state.end = Some(if state.charge.grow(bytes) {
            end
        } else {
            let message = "the result could not be kept: too many clients leave results of tasks with this server";
            TaskEnd::Failed(RpcError::new(RpcError::BUSY, message))
        });
        true
    }

    /// Returns whether it has ended.
    fn has_ended(&self) -> bool {
        self.state.lock().end.is_some()
    }

    /// Takes the client's answers to its questions.
    pub(crate) fn update(&self, responses: HashMap<String, Box<RawValue>>) {
        self.caller.take_responses(responses, false);
        self.state.lock().at = clock::now();
        self.updated.notify_one();
    }

    /// Cancels the call if it is still running.
    fn stop(&self) {
        if let Some(driver) = self.driver.get() {
            driver.abort();
        }
    }

    /// Writes the task as JSON.
    pub(crate) fn write(&self, out: &mut Vec<u8>, shape: TaskFormat, meta: Option<&RawValue>) {
        let state = self.state.lock();
        let open: Vec<InputRequest> = match state.end {
            None => self.caller.open(),
            Some(_) => Vec::new(),
        };
        let (status, result, error) = match &state.end {
            None if open.is_empty() => ("working", None, None),
            None => ("input_required", None, None),
            Some(TaskEnd::Completed(result)) => ("completed", Some(&**result), None),
            Some(TaskEnd::Failed(error)) => ("failed", None, Some(error)),
            Some(TaskEnd::Cancelled) => ("cancelled", None, None),
        };
        let data = error.and_then(|error| RawValue::from_string(error.data.clone()?).ok());
        let error = error.map(|error| ErrorJson {
            code: error.code,
            message: &error.message,
            data: data.as_deref(),
        });
        let whole = !matches!(shape, TaskFormat::Created);
        let json = TaskJson {
            result_type: match shape {
                TaskFormat::Created => Some("task"),
                TaskFormat::Whole => Some("complete"),
                TaskFormat::Notice => None,
            },
            task_id: &self.id,
            status,
            created_at: clock::rfc3339(self.created),
            last_updated_at: clock::rfc3339(state.at),
            ttl_ms: milliseconds(self.life),
            poll_interval_ms: milliseconds(POLL_INTERVAL),
            result: result.filter(|_| whole),
            error: error.filter(|_| whole),
            input_requests: (whole && !open.is_empty()).then_some(RequestsByName(&open)),
            meta,
        };
        reply::json(out, &json);
    }
}

/// Returns the error for an unknown task.
pub(crate) fn unknown(id: &str) -> RpcError {
    let shown = haft::text::clip(id, 64);
    RpcError::invalid_params(format!(
        "no task {shown:?}: it was never there, or its time is over"
    ))
}

fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// The tasks that a stream of changes follows.
#[derive(Debug)]
pub(crate) struct TaskSubscription {
    ids: Vec<String>,
    changes: broadcast::Receiver<Arc<CallTask>>,
}

impl TaskSubscription {
    /// Follows those of the ids that are the caller's; `None` if there are none.
    pub(crate) fn new(
        tasks: &Arc<CallTasks>,
        ids: Vec<String>,
        caller: TaskCaller<'_>,
    ) -> Option<Self> {
        let changes = tasks.changes();
        let ids: Vec<String> = ids
            .into_iter()
            .filter(|id| tasks.get(id, caller).is_some())
            .collect();
        (!ids.is_empty()).then_some(Self { ids, changes })
    }

    pub(crate) fn ids(&self) -> &[String] {
        &self.ids
    }

    /// Returns the next of them that changed. A client that missed changes polls for them, as it does without a stream.
    pub(crate) async fn next(&mut self) -> Arc<CallTask> {
        loop {
            match self.changes.recv().await {
                Ok(task) if self.ids.iter().any(|id| **id == *task.id) => return task,
                Ok(_) | Err(broadcast::error::RecvError::Lagged(_)) => {}
                Err(broadcast::error::RecvError::Closed) => std::future::pending().await,
            }
        }
    }
}
