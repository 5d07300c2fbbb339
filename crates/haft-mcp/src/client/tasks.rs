//! Tasks: the client polls a server that answers a call with a handle until there is a result (the extension
//! `io.modelcontextprotocol/tasks`). To the caller, this is one long call.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use haft::text::clip;
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::time::{Instant, sleep};

use crate::client::error::ClientError;
use crate::client::respond::Inquiry;
use crate::client::speech::ServerResult;
use crate::client::wire::{Wire, WireRequest};
use crate::client::{Client, ClientRequest, input, speech};
use crate::era::Era;
use crate::wire::reply;

/// Polling interval, unless the server sets one.
const DEFAULT_INTERVAL: Duration = Duration::from_secs(1);
/// The minimum and maximum interval that a server may set.
const INTERVAL_BOUNDS: [Duration; 2] = [Duration::from_millis(50), Duration::from_secs(60)];
/// Time limit for a server to accept the cancellation of a task.
const CANCEL_TIMEOUT: Duration = Duration::from_secs(5);

/// A task as described by its server.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ServerTask<'a> {
    #[serde(rename = "taskId")]
    id: String,
    status: String,
    status_message: Option<String>,
    /// Milliseconds; some servers write a fraction.
    poll_interval_ms: Option<f64>,
    #[serde(borrow)]
    result: Option<&'a RawValue>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
    #[serde(borrow, default)]
    input_requests: BTreeMap<String, &'a RawValue>,
}

impl ServerTask<'_> {
    fn read(raw: &RawValue) -> Result<ServerTask<'_>, ClientError> {
        serde_json::from_str(raw.get())
            .map_err(|e| ClientError::Malformed(format!("its task: {e}")))
    }

    fn pause(&self) -> Duration {
        let seconds = self
            .poll_interval_ms
            .map(|milliseconds| milliseconds / 1000.0);
        let interval = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
        interval
            .unwrap_or(DEFAULT_INTERVAL)
            .clamp(INTERVAL_BOUNDS[0], INTERVAL_BOUNDS[1])
    }
}

/// Tells the server to stop when the caller stops waiting for its task.
struct TaskCancelGuard<'a> {
    client: &'a Client,
    task: String,
    ended: bool,
}

impl Drop for TaskCancelGuard<'_> {
    fn drop(&mut self) {
        let Ok(runtime) = tokio::runtime::Handle::try_current() else {
            return;
        };
        if self.ended {
            return;
        }
        let params = task_params(&self.task);
        let question = ClientRequest {
            name: Some(&self.task),
            tasks: true,
            ..ClientRequest::new("tasks/cancel", &params, CANCEL_TIMEOUT)
        };
        let id = self.client.next_id();
        let message = speech::request(id, Some(Era::Modern), &question);
        let (wire, task) = (Arc::clone(&self.client.wire), self.task.clone());
        runtime.spawn(async move { cancel(&*wire, id, &task, message).await });
    }
}

async fn cancel(wire: &dyn Wire, id: u64, task: &str, message: Vec<u8>) {
    let ask = WireRequest {
        id,
        method: "tasks/cancel",
        name: Some(task),
        mirrored: &[],
        era: Some(Era::Modern),
        message,
        progress: None,
        inquiry: Arc::new(Inquiry::new(None)),
    };
    let _gone = tokio::time::timeout(CANCEL_TIMEOUT, wire.ask(ask)).await;
}

fn task_params(task: &str) -> String {
    let mut params = b"\"taskId\":".to_vec();
    reply::json(&mut params, task);
    String::from_utf8_lossy(&params).into_owned()
}

impl Client {
    /// Returns the result of the task that the server created for a request.
    pub(super) async fn follow_task(
        &self,
        begun: &RawValue,
        question: &ClientRequest<'_>,
    ) -> Result<ServerResult, ClientError> {
        let task = ServerTask::read(begun)?;
        let (id, mut pause) = (task.id.clone(), task.pause());
        let mut waiting = TaskCancelGuard {
            client: self,
            task: id.clone(),
            ended: false,
        };
        let params = task_params(&id);
        let (mut answered, mut said) = (HashSet::new(), task.status_message.clone());
        show(question, said.as_deref());
        let mut until = Instant::now() + question.limit;
        while Instant::now() < until {
            sleep(pause).await;
            let about = self.about_task("tasks/get", &id, &params);
            let ServerResult { raw, notes } = self.ask_noted(about).await?;
            let task = ServerTask::read(&raw)?;
            pause = task.pause();
            if task.status_message.is_some() && task.status_message != said {
                said.clone_from(&task.status_message);
                show(question, said.as_deref());
            }
            match task.status.as_str() {
                "input_required" => {
                    let started = Instant::now();
                    self.give_input(&task, question, &mut answered).await?;
                    // Time spent waiting for a user does not count as the server's time.
                    until += started.elapsed();
                }
                "working" => {}
                _ => {
                    waiting.ended = true;
                    return ended(&task).map(|raw| ServerResult { raw, notes });
                }
            }
        }
        Err(self.timeout_error(question.method, question.limit))
    }

    fn about_task<'q>(&self, method: &'q str, id: &'q str, params: &'q str) -> ClientRequest<'q> {
        ClientRequest {
            name: Some(id),
            tasks: true,
            ..ClientRequest::new(method, params, self.limits.list)
        }
    }

    /// Answers what a task asks for, each question once.
    async fn give_input(
        &self,
        task: &ServerTask<'_>,
        question: &ClientRequest<'_>,
        answered: &mut HashSet<String>,
    ) -> Result<(), ClientError> {
        let mut open = Vec::new();
        for (name, asked) in &task.input_requests {
            if answered.insert(name.clone()) {
                let mut member = Vec::new();
                reply::json(&mut member, name);
                open.push(format!(
                    "{}:{}",
                    String::from_utf8_lossy(&member),
                    asked.get()
                ));
            }
        }
        if open.is_empty() {
            return Ok(());
        }
        let required = format!("{{\"inputRequests\":{{{}}}}}", open.join(","));
        let required = RawValue::from_string(required)
            .map_err(|e| ClientError::Malformed(format!("its task: {e}")))?;
        let input = input::next_round(&required, question.responder.as_ref()).await?;
        let params = format!("{}{input}", task_params(&task.id));
        let update = self.about_task("tasks/update", &task.id, &params);
        self.ask(update).await.map(drop)
    }
}

/// Reports a task's status as progress.
fn show(question: &ClientRequest<'_>, status: Option<&str>) {
    if let Some(status) = status {
        speech::pass_on(question.progress.as_ref(), clip(status, 1000).into_owned());
    }
}

/// Returns the result of a task that has ended.
fn ended(task: &ServerTask<'_>) -> Result<Box<RawValue>, ClientError> {
    match (task.status.as_str(), task.result, task.error) {
        ("completed", Some(result), _) => Ok(result.to_owned()),
        ("failed", _, Some(error)) => {
            let whole = error.to_owned();
            let error = Box::new(speech::refusal(error));
            Err(ClientError::TaskFailed { error, whole })
        }
        (status, ..) => {
            let why = task.status_message.as_deref().unwrap_or_default();
            let (status, why) = (clip(status, 100), clip(why, 300));
            let message = format!("its task ended as {status}: {why}");
            Err(ClientError::Malformed(message))
        }
    }
}
