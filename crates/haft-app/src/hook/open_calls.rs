//! `OpenAgentCalls`: the calls of a session that are not over yet, and which hook, decision and report belongs to which of them.

use std::sync::Arc;

use haft::approval::ApprovalRequest;
use haft::call::{CallId, RunId};
use haft_hook::CallReport;
use parking_lot::Mutex;

use crate::hook::open_call::{
    AgentCall, CallDetails, CallInRun, CallKey, ClearanceReceiver, OpenAgentCall, WaitingHook,
};

/// Maximum number of calls per session that are followed at a time.
const MOST: usize = 1_000;
/// Maximum number of bytes of their arguments. One event has at most 16 MiB.
const MOST_BYTES: usize = 64 << 20;

/// The open calls of a session. Calls with the same tool and arguments are alike: each can take the place of any other.
#[derive(Debug, Default)]
pub(super) struct OpenAgentCalls(Mutex<Vec<Arc<OpenAgentCall>>>);

impl OpenAgentCalls {
    /// Has a hook wait for a call that is open already: the same call, which another hook has announced, or a call that no hook waits for
    /// any more and that the agent makes again.
    ///
    /// Hooks that name one call id are about the same call until it is over. The same id after that is a new call.
    pub(super) fn join(&self, tool: &str, call: &AgentCall<'_>) -> Option<WaitingHook> {
        let calls = self.0.lock();
        let mut alike = alike(&calls, tool, call);
        let is_same = |open: &&Arc<OpenAgentCall>| open.has_id(call.id) && open.takes_hooks();
        if let Some(same) = alike.clone().find(is_same) {
            return Some(WaitingHook::new(same));
        }
        // It may have been approved meanwhile: no hook has got that decision.
        let abandoned = alike.find(|open| open.has_no_hook())?;
        abandoned.set_id(call.id);
        Some(WaitingHook::new(abandoned))
    }

    /// Has a hook wait for a call that an earlier hook has announced, decided or not: the one with its id, else any that is alike.
    pub(super) fn rejoin(&self, tool: &str, call: &AgentCall<'_>) -> Option<WaitingHook> {
        let calls = self.0.lock();
        let mut alike = alike(&calls, tool, call);
        let same = alike.clone().find(|open| open.has_id(call.id));
        same.or_else(|| alike.next()).map(WaitingHook::new)
    }

    /// Follows a new call; `None` if too many are followed.
    pub(super) fn begin(
        &self,
        tool: &str,
        call: &AgentCall<'_>,
        run: &RunId,
    ) -> Option<WaitingHook> {
        let mut calls = self.0.lock();
        if !make_room(&calls, call.arguments.len()) {
            return None;
        }
        let call = Arc::new(OpenAgentCall::new(tool, call, run));
        let hook = WaitingHook::new(&call);
        calls.push(call);
        Some(hook)
    }

    /// The runs in which a call with this key is undecided or was approved for itself alone.
    pub(super) fn runs_of(&self, key: CallKey<'_>) -> Vec<RunId> {
        let calls = self.0.lock();
        let alike = calls.iter().filter(|call| {
            let asks = call.is_undecided() || call.is_approved();
            asks && call.is(key)
        });
        alike.map(|call| call.run().clone()).collect()
    }

    /// What the policy reads about a call with this key besides its arguments; `None` if none is open.
    pub(super) fn details(&self, key: CallKey<'_>) -> Option<CallDetails> {
        let calls = self.0.lock();
        let call = calls.iter().find(|call| call.is(key))?;
        Some(call.details().clone())
    }

    /// Leaves the decision about a request to the agent's own prompt. False if no call waits for it.
    pub(super) fn prompt(&self, request: &ApprovalRequest) -> bool {
        let key = CallKey {
            tool: request.tool.as_str(),
            arguments: &request.arguments,
        };
        let calls = self.0.lock();
        let mut alike = calls
            .iter()
            .filter(|call| call.is(key) && call.is_undecided());
        let call = alike.find(|call| call.prompting_call().is_none());
        if let Some(call) = call {
            call.set_prompt(request);
        }
        call.is_some()
    }

    /// Clears a call with this key for a call of the executor. `is_approved` is whether a person approved this very call. `None` if no
    /// such call waits.
    pub(super) fn clear(
        &self,
        key: CallKey<'_>,
        by: CallInRun<'_>,
        is_approved: bool,
    ) -> Option<ClearanceReceiver> {
        let calls = self.0.lock();
        let mut undecided = calls
            .iter()
            .filter(|call| call.run() == by.run && call.is(key) && call.is_undecided());
        // A call that is left to the agent's prompt is never cleared in place of one that is not, nor the other way round.
        let prompted = |call: &&Arc<OpenAgentCall>| call.prompting_call().as_ref() == Some(by.call);
        let unprompted = |call: &&Arc<OpenAgentCall>| call.prompting_call().is_none();
        let call = undecided
            .clone()
            .find(prompted)
            .or_else(|| undecided.find(unprompted))?;
        Some(call.clear(by.call, is_approved))
    }

    /// Passes on what the agent reports about a call that ended: the call with the report's id, else one with these arguments, else the
    /// only call of that tool, because agents may word the input differently after a call. False if no such call runs.
    pub(super) fn report(&self, arguments: Option<&str>, report: CallReport) -> bool {
        let calls = self.0.lock();
        let running = || calls.iter().filter(|call| call.is_cleared());
        let same = running().find(|call| call.has_id(report.id.as_deref()));
        let of_tool =
            || running().filter(|call| call.is_of_tool(&report.tool) && call.awaits_report());
        // A call with another id is another call.
        let unnamed = || of_tool().filter(|call| report.id.is_none() || call.has_no_id());
        let alike =
            || unnamed().find(|call| arguments.is_some_and(|text| call.key().arguments == text));
        let only = || {
            let mut all = unnamed();
            all.next().filter(|_| all.next().is_none())
        };
        let call = same.or_else(alike).or_else(only);
        call.is_some_and(|call| call.report(report))
    }

    /// Stops waiting for reports: the agent sends no more of them.
    pub(super) fn stop_waiting_for_reports(&self) {
        for call in self.0.lock().iter() {
            call.abandon();
        }
    }

    /// Forgets the call that an ended call of the executor cleared. Where it cleared none, it refuses one like `like` that is undecided,
    /// and the hooks that wait for that one get the reason.
    pub(super) fn end(&self, ended: &CallId, like: &OpenAgentCall, reason: String) {
        let mut calls = self.0.lock();
        let by = CallInRun {
            run: like.run(),
            call: ended,
        };
        let cleared = calls.iter().position(|call| call.is_cleared_by(by));
        let alike = || {
            calls.iter().position(|call| {
                call.run() == like.run() && call.is(like.key()) && call.is_undecided()
            })
        };
        if let Some(at) = cleared.or_else(alike) {
            calls.remove(at).refuse(reason);
        }
    }

    /// Whether a call waits for a decision.
    pub(super) fn has_undecided(&self) -> bool {
        self.0.lock().iter().any(|call| call.is_undecided())
    }
}

/// The calls that are not over and have this tool and these arguments.
fn alike<'c>(
    calls: &'c [Arc<OpenAgentCall>],
    tool: &'c str,
    call: &AgentCall<'c>,
) -> impl Iterator<Item = &'c Arc<OpenAgentCall>> + Clone {
    let key = CallKey {
        tool,
        arguments: call.arguments,
    };
    let is_alike = move |open: &&Arc<OpenAgentCall>| open.is(key) && open.is_followed();
    calls.iter().filter(is_alike)
}

/// Makes room for a call with so many bytes of arguments; false if too many calls are undecided. Agents do not report the end of every
/// call, so the oldest calls that run are given up first.
fn make_room(calls: &[Arc<OpenAgentCall>], bytes: usize) -> bool {
    let followed = || calls.iter().filter(|call| call.is_followed());
    let size = |call: &OpenAgentCall| call.key().arguments.len();
    let mut count = followed().count();
    let mut held: usize = followed().map(|call| size(call)).sum();
    let has_room =
        |count: usize, held: usize| count < MOST && held.saturating_add(bytes) <= MOST_BYTES;
    for call in followed().filter(|call| call.awaits_report()) {
        if has_room(count, held) {
            break;
        }
        call.abandon();
        count -= 1;
        held -= size(call);
    }
    has_room(count, held)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use haft_hook::{Agent, HookEventKind, HookVerdict};

    use super::*;

    const TOOL: &str = "claude.Bash";

    fn call(id: &str) -> AgentCall<'_> {
        AgentCall {
            tool: "Bash",
            arguments: "{\"command\":\"git push\"}",
            folder: ".",
            actions: &[],
            doubts: &[],
            id: Some(id),
        }
    }

    fn clear(calls: &OpenAgentCalls, run: &RunId, by: &str) -> ClearanceReceiver {
        let key = CallKey {
            tool: TOOL,
            arguments: call("").arguments,
        };
        let by = CallId::new(by);
        let by = CallInRun { run, call: &by };
        calls.clear(key, by, true).unwrap()
    }

    /// The report that the agent sends when the call with this id has ended.
    fn report(id: &str) -> CallReport {
        let event = format!(
            "{{\"hook_event_name\":\"PostToolUse\",\"tool_name\":\"Bash\",\"tool_use_id\":\"{id}\"}}"
        );
        match haft_hook::read(Agent::Claude, event.as_bytes())
            .unwrap()
            .kind
        {
            HookEventKind::After(report) => report,
            other => panic!("{other:?}"),
        }
    }

    async fn is_allowed(hook: WaitingHook) -> bool {
        let verdict = hook.verdict(Duration::from_secs(60)).await;
        matches!(verdict, Some(HookVerdict::Allow { .. }))
    }

    #[tokio::test]
    async fn a_decision_is_for_three_hooks_of_one_call_id() {
        let (calls, run) = (OpenAgentCalls::default(), RunId::new("r"));
        let first = calls.begin(TOOL, &call("t-1"), &run).unwrap();
        let second = calls.join(TOOL, &call("t-1")).unwrap();
        assert!(calls.join(TOOL, &call("t-2")).is_none());
        let cleared = clear(&calls, &run, "c-1");
        assert!(is_allowed(first).await && is_allowed(second).await);
        // A hook that ends before it is answered leaves its place to another.
        drop(calls.join(TOOL, &call("t-1")).unwrap());
        assert!(is_allowed(calls.join(TOOL, &call("t-1")).unwrap()).await);
        assert!(calls.join(TOOL, &call("t-1")).is_none());
        drop(cleared);
    }

    #[tokio::test]
    async fn a_call_id_is_a_new_call_once_the_agent_reported_its_end() {
        let (calls, run) = (OpenAgentCalls::default(), RunId::new("r"));
        let first = calls.begin(TOOL, &call("t-1"), &run).unwrap();
        let cleared = clear(&calls, &run, "c-1");
        assert!(is_allowed(first).await);
        assert!(calls.join(TOOL, &call("t-1")).is_some());
        assert!(calls.rejoin(TOOL, &call("t-1")).is_some());
        assert!(calls.report(None, report("t-1")));
        // The executor has not recorded the end yet, so the call is still there.
        assert!(calls.join(TOOL, &call("t-1")).is_none());
        assert!(calls.rejoin(TOOL, &call("t-1")).is_none());
        assert!(!calls.report(None, report("t-1")));
        drop(cleared);
    }

    #[tokio::test]
    async fn a_call_that_was_approved_when_no_hook_waited_is_for_the_next_hook() {
        let (calls, run) = (OpenAgentCalls::default(), RunId::new("r"));
        drop(calls.begin(TOOL, &call("t-1"), &run).unwrap());
        let cleared = clear(&calls, &run, "c-1");
        let next = calls.join(TOOL, &call("t-2")).unwrap();
        assert!(is_allowed(next).await);
        assert!(calls.join(TOOL, &call("t-3")).is_none());
        assert!(calls.report(None, report("t-2")));
        drop(cleared);
    }
}
