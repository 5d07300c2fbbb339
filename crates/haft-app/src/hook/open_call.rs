//! `OpenAgentCall`: one call of an agent from its first hook until the agent reports how it ended.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use haft::approval::ApprovalRequest;
use haft::call::{CallId, RunId};
use haft_hook::{CallAction, CallReport, HookVerdict};
use parking_lot::Mutex;
use tokio::sync::{oneshot, watch};

use crate::hook::location::Doubt;

/// Maximum number of hooks that get the decision about one call: settings of the user, of the project and of another agent may each start
/// haft for it.
const MOST_HOOKS: usize = 3;

/// A call as the agent makes it.
#[derive(Debug, Clone, Copy)]
pub(super) struct AgentCall<'a> {
    /// The agent's name of the tool.
    pub(super) tool: &'a str,
    pub(super) arguments: &'a str,
    /// The folder that the agent works in, as rules see it.
    pub(super) folder: &'a str,
    /// What the call would do.
    pub(super) actions: &'a [CallAction],
    /// What is uncertain about where the call works.
    pub(super) doubts: &'a [Doubt],
    /// The agent's id of the call.
    pub(super) id: Option<&'a str>,
}

/// What the policy reads about a call besides its arguments.
#[derive(Debug, Clone)]
pub(super) struct CallDetails {
    /// What the call would do.
    pub(super) actions: Arc<[CallAction]>,
    /// The folder that the agent works in, as rules see it.
    pub(super) folder: String,
    /// What is uncertain about where the call works.
    pub(super) doubts: Arc<[Doubt]>,
}

impl AgentCall<'_> {
    /// Returns what the policy reads about the call besides its arguments.
    pub(super) fn details(&self) -> CallDetails {
        CallDetails {
            actions: self.actions.into(),
            folder: self.folder.to_owned(),
            doubts: self.doubts.into(),
        }
    }
}

/// The tool and the arguments of a call. Calls with the same key are alike: each can take the place of any other.
#[derive(Debug, Clone, Copy)]
pub(super) struct CallKey<'a> {
    /// haft's name of the tool.
    pub(super) tool: &'a str,
    pub(super) arguments: &'a str,
}

/// The id of a call in the executor. Each run numbers its calls from the start.
#[derive(Debug, Clone, Copy)]
pub(super) struct CallInRun<'a> {
    pub(super) run: &'a RunId,
    pub(super) call: &'a CallId,
}

/// A call of an agent.
#[derive(Debug)]
pub(super) struct OpenAgentCall {
    /// haft's name of the tool.
    tool: String,
    /// The agent's name of the tool.
    agent_tool: String,
    arguments: Arc<str>,
    details: CallDetails,
    /// The run that the call is made in.
    run: RunId,
    /// The agent's id of the call; it changes when the agent makes the call again.
    id: Mutex<Option<String>>,
    stage: watch::Sender<CallStage>,
    /// What the agent's own prompt asks, where the decision is left to it.
    prompt: Mutex<Option<PromptedCall>>,
    clearance: Mutex<Option<ExecutorClearance>>,
    /// How many hooks wait for the decision or have got it.
    hooks: AtomicUsize,
}

/// How far a call has come.
#[derive(Debug, Clone)]
enum CallStage {
    /// The executor judges it, or a person has yet to decide.
    Undecided,
    /// The agent may run it, or asks its user first.
    Cleared,
    /// It must not run, for this reason.
    Refused(String),
}

/// What the agent's prompt asks.
#[derive(Debug)]
struct PromptedCall {
    /// The call of the executor whose decision is left to the prompt.
    call: CallId,
    reason: String,
}

/// How the executor cleared a call.
#[derive(Debug)]
struct ExecutorClearance {
    /// The call of the executor.
    call: CallId,
    /// Whether a person approved this very call.
    is_approved: bool,
    /// Passes the agent's report to the executor; `None` once it has come, or will not be waited for any more.
    report: Option<oneshot::Sender<CallReport>>,
}

/// A call that the agent may run, or asks its user about.
#[derive(Debug)]
pub(super) struct ClearanceReceiver {
    /// Receives how the call ended.
    pub(super) report: oneshot::Receiver<CallReport>,
    /// Whether the agent's own prompt asks first.
    pub(super) is_prompted: bool,
}

impl OpenAgentCall {
    /// A call that is made in this run and is not decided yet. `tool` is haft's name of the tool.
    pub(super) fn new(tool: &str, call: &AgentCall<'_>, run: &RunId) -> Self {
        Self {
            tool: tool.to_owned(),
            agent_tool: call.tool.to_owned(),
            arguments: call.arguments.into(),
            details: call.details(),
            run: run.clone(),
            id: Mutex::new(call.id.map(str::to_owned)),
            stage: watch::Sender::new(CallStage::Undecided),
            prompt: Mutex::default(),
            clearance: Mutex::default(),
            hooks: AtomicUsize::new(0),
        }
    }

    /// The tool and the arguments.
    pub(super) fn key(&self) -> CallKey<'_> {
        CallKey {
            tool: &self.tool,
            arguments: &self.arguments,
        }
    }

    /// What the policy reads about the call besides its arguments.
    pub(super) fn details(&self) -> &CallDetails {
        &self.details
    }

    /// The run that the call is made in.
    pub(super) fn run(&self) -> &RunId {
        &self.run
    }

    /// Whether the call has this key.
    pub(super) fn is(&self, key: CallKey<'_>) -> bool {
        self.tool == key.tool && *self.arguments == *key.arguments
    }

    /// Whether the agent calls the tool by this name.
    pub(super) fn is_of_tool(&self, agent_tool: &str) -> bool {
        self.agent_tool == agent_tool
    }

    /// Whether the agent gave the call this id; false where there is none.
    pub(super) fn has_id(&self, id: Option<&str>) -> bool {
        id.is_some() && self.id.lock().as_deref() == id
    }

    /// Whether the agent gave the call no id.
    pub(super) fn has_no_id(&self) -> bool {
        self.id.lock().is_none()
    }

    /// Whether the executor has yet to decide.
    pub(super) fn is_undecided(&self) -> bool {
        matches!(*self.stage.borrow(), CallStage::Undecided)
    }

    /// Whether the agent may run the call, or asks its user about it.
    pub(super) fn is_cleared(&self) -> bool {
        matches!(*self.stage.borrow(), CallStage::Cleared)
    }

    /// Whether the call is cleared and its end is still to be reported.
    pub(super) fn awaits_report(&self) -> bool {
        let clearance = self.clearance.lock();
        clearance
            .as_ref()
            .is_some_and(|clearance| clearance.report.is_some())
    }

    /// Whether the call is undecided or still to be reported. Any other is over, although the executor may still be writing its record.
    pub(super) fn is_followed(&self) -> bool {
        self.is_undecided() || self.awaits_report()
    }

    /// Whether a person approved this very call.
    pub(super) fn is_approved(&self) -> bool {
        let clearance = self.clearance.lock();
        clearance
            .as_ref()
            .is_some_and(|clearance| clearance.is_approved)
    }

    /// Whether this call of the executor cleared it.
    pub(super) fn is_cleared_by(&self, by: CallInRun<'_>) -> bool {
        let clearance = self.clearance.lock();
        let by_it = |clearance: &ExecutorClearance| clearance.call == *by.call;
        self.run == *by.run && clearance.as_ref().is_some_and(by_it)
    }

    /// Whether one more hook may get the decision.
    pub(super) fn takes_hooks(&self) -> bool {
        self.hooks.load(Ordering::Acquire) < MOST_HOOKS
    }

    /// Whether no hook waits for the decision or has got it.
    pub(super) fn has_no_hook(&self) -> bool {
        self.hooks.load(Ordering::Acquire) == 0
    }

    /// Gives the call to the agent's latest attempt, which has another id.
    pub(super) fn set_id(&self, id: Option<&str>) {
        *self.id.lock() = id.map(str::to_owned);
    }

    /// The call of the executor whose decision is left to the agent's prompt.
    pub(super) fn prompting_call(&self) -> Option<CallId> {
        let prompt = self.prompt.lock();
        prompt.as_ref().map(|prompt| prompt.call.clone())
    }

    /// Leaves the decision about this request to the agent's prompt.
    pub(super) fn set_prompt(&self, request: &ApprovalRequest) {
        *self.prompt.lock() = Some(PromptedCall {
            call: request.call.clone(),
            reason: request.reason.clone(),
        });
    }

    /// Lets the agent run the call. `is_approved` is whether a person approved this very call.
    pub(super) fn clear(&self, by: &CallId, is_approved: bool) -> ClearanceReceiver {
        let (sender, report) = oneshot::channel();
        *self.clearance.lock() = Some(ExecutorClearance {
            call: by.clone(),
            is_approved,
            report: Some(sender),
        });
        self.stage.send_replace(CallStage::Cleared);
        ClearanceReceiver {
            report,
            is_prompted: self.prompt.lock().is_some(),
        }
    }

    /// Refuses the call unless it is decided already.
    pub(super) fn refuse(&self, reason: String) {
        self.stage.send_if_modified(|stage| {
            let is_undecided = matches!(stage, CallStage::Undecided);
            if is_undecided {
                *stage = CallStage::Refused(reason);
            }
            is_undecided
        });
    }

    /// Passes the agent's report to the executor. False where the executor has had one or does not wait for one.
    pub(super) fn report(&self, report: CallReport) -> bool {
        let sender = self.take_sender();
        sender.is_some_and(|sender| sender.send(report).is_ok())
    }

    /// Tells the executor that no report will come.
    pub(super) fn abandon(&self) {
        drop(self.take_sender());
    }

    fn take_sender(&self) -> Option<oneshot::Sender<CallReport>> {
        self.clearance.lock().as_mut()?.report.take()
    }
}

/// A hook that waits for the decision about a call.
#[derive(Debug)]
pub(super) struct WaitingHook {
    call: Arc<OpenAgentCall>,
    is_answered: bool,
}

impl WaitingHook {
    /// A hook that waits for this call. The caller holds the lock of the session's calls, so that every other hook sees it counted.
    pub(super) fn new(call: &Arc<OpenAgentCall>) -> Self {
        call.hooks.fetch_add(1, Ordering::AcqRel);
        Self {
            call: Arc::clone(call),
            is_answered: false,
        }
    }

    /// The call that it waits for.
    pub(super) fn call(&self) -> &Arc<OpenAgentCall> {
        &self.call
    }

    /// Waits for the verdict; `None` if there is none in time.
    pub(super) async fn verdict(mut self, within: Duration) -> Option<HookVerdict> {
        let mut stage = self.call.stage.subscribe();
        let decided = stage.wait_for(|stage| !matches!(stage, CallStage::Undecided));
        let decided = tokio::time::timeout(within, decided).await.ok()?.ok()?;
        self.is_answered = true;
        Some(match &*decided {
            CallStage::Refused(reason) => HookVerdict::Deny {
                reason: reason.clone(),
            },
            CallStage::Undecided | CallStage::Cleared => match &*self.call.prompt.lock() {
                Some(prompt) => HookVerdict::Ask {
                    reason: prompt.reason.clone(),
                },
                None => HookVerdict::Allow { input: None },
            },
        })
    }
}

impl Drop for WaitingHook {
    fn drop(&mut self) {
        if !self.is_answered {
            self.call.hooks.fetch_sub(1, Ordering::AcqRel);
        }
    }
}
