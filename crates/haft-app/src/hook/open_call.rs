//! `OpenCall`: a call of an agent between its hooks: judged, answered, and followed until the agent says how it ended.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use haft_hook::{Action, Report, Verdict};
use parking_lot::Mutex;
use tokio::sync::{oneshot, watch};

/// Most calls of a session that are followed at a time.
pub(super) const MOST: usize = 1_000;

/// How far a call has come.
#[derive(Debug, Clone)]
enum Stage {
    /// It is judged, or waits for a person.
    Judged,
    /// The agent may run it, or asks its user first.
    Cleared,
    /// It may not run, and this is why.
    Over(String),
}

/// A call of an agent.
#[derive(Debug)]
pub(super) struct OpenCall {
    /// The name of its tool here.
    tool: String,
    /// The agent's name of its tool.
    theirs: String,
    arguments: Arc<str>,
    /// What it would do.
    actions: Arc<[Action]>,
    /// The agent's name of it; another one when it is made again.
    id: Mutex<Option<String>>,
    stage: watch::Sender<Stage>,
    /// Why the agent's own prompt is to ask, where it is.
    prompt: Mutex<Option<String>>,
    /// How many hooks wait for the answer.
    hooks: AtomicUsize,
    report: Mutex<Option<oneshot::Sender<Report>>>,
}

impl OpenCall {
    /// What is answered; none where that is not known in time. Whoever stops waiting may be followed by another.
    pub(super) async fn verdict(&self, within: Duration) -> Option<Verdict> {
        self.hooks.fetch_add(1, Ordering::AcqRel);
        let _waits = Waits(&self.hooks);
        let mut stage = self.stage.subscribe();
        let settled = stage.wait_for(|stage| !matches!(stage, Stage::Judged));
        let settled = tokio::time::timeout(within, settled).await.ok()?.ok()?;
        Some(match &*settled {
            Stage::Over(reason) => Verdict::Deny {
                reason: reason.clone(),
            },
            Stage::Judged | Stage::Cleared => match self.prompt.lock().clone() {
                Some(reason) => Verdict::Ask { reason },
                None => Verdict::Allow { input: None },
            },
        })
    }

    /// It ended; who waits for an answer hears why it does not run.
    pub(super) fn end(&self, reason: String) {
        self.stage.send_if_modified(|stage| {
            let waits = matches!(stage, Stage::Judged);
            if waits {
                *stage = Stage::Over(reason);
            }
            waits
        });
    }

    fn is(&self, tool: &str, arguments: &str) -> bool {
        self.tool == tool && *self.arguments == *arguments
    }

    fn has_id(&self, id: Option<&str>) -> bool {
        id.is_some() && self.id.lock().as_deref() == id
    }

    fn is_judged(&self) -> bool {
        matches!(*self.stage.borrow(), Stage::Judged)
    }

    fn is_cleared(&self) -> bool {
        matches!(*self.stage.borrow(), Stage::Cleared)
    }
}

/// A call as the agent makes it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Made<'a> {
    /// The agent's name of the tool.
    pub(super) tool: &'a str,
    pub(super) arguments: &'a str,
    /// What it would do.
    pub(super) actions: &'a [Action],
    /// The agent's name of the call.
    pub(super) id: Option<&'a str>,
}

/// Counts a hook that waits until it is dropped.
struct Waits<'a>(&'a AtomicUsize);

impl Drop for Waits<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

/// The calls of a session that are open. Calls of the same tool with the same arguments are alike: each stands for any.
#[derive(Debug, Default)]
pub(super) struct OpenCalls(Mutex<Vec<Arc<OpenCall>>>);

impl OpenCalls {
    /// The very call, of which another hook of the agent has told already; or one that waits for a person and whose hook is gone:
    /// the same call, made again, takes its place.
    pub(super) fn take_up(&self, tool: &str, made: &Made<'_>) -> Option<Arc<OpenCall>> {
        let calls = self.0.lock();
        let mut alike = calls.iter().filter(|call| call.is(tool, made.arguments));
        let same = alike.clone().find(|call| call.has_id(made.id));
        if let Some(same) = same {
            return Some(Arc::clone(same));
        }
        let left = alike.find(|call| {
            let alone = call.hooks.load(Ordering::Acquire) == 0;
            call.is_judged() && alone
        })?;
        *left.id.lock() = made.id.map(str::to_owned);
        Some(Arc::clone(left))
    }

    /// A call of which the agent's hook told before, by its name there or else by what it is, whether or not it has been cleared.
    pub(super) fn known(&self, tool: &str, made: &Made<'_>) -> Option<Arc<OpenCall>> {
        let calls = self.0.lock();
        let mut alike = calls.iter().filter(|call| call.is(tool, made.arguments));
        let named = alike.clone().find(|call| call.has_id(made.id));
        named.or_else(|| alike.next()).cloned()
    }

    /// Follows a new call; none where too many are followed.
    pub(super) fn begin(&self, tool: &str, call: &Made<'_>) -> Option<Arc<OpenCall>> {
        let mut calls = self.0.lock();
        if calls.len() >= MOST {
            return None;
        }
        let call = Arc::new(OpenCall {
            tool: tool.to_owned(),
            theirs: call.tool.to_owned(),
            arguments: call.arguments.into(),
            actions: call.actions.into(),
            id: Mutex::new(call.id.map(str::to_owned)),
            stage: watch::Sender::new(Stage::Judged),
            prompt: Mutex::default(),
            hooks: AtomicUsize::new(0),
            report: Mutex::default(),
        });
        calls.push(Arc::clone(&call));
        Some(call)
    }

    /// What a call of this tool with these arguments would do; none where no such call is open.
    pub(super) fn actions(&self, tool: &str, arguments: &str) -> Option<Arc<[Action]>> {
        let calls = self.0.lock();
        let call = calls.iter().find(|call| call.is(tool, arguments))?;
        Some(Arc::clone(&call.actions))
    }

    /// Lets the agent's own prompt ask about the call with these arguments. False where no such call waits.
    pub(super) fn prompt(&self, tool: &str, arguments: &str, reason: &str) -> bool {
        let calls = self.0.lock();
        let mut alike = calls
            .iter()
            .filter(|call| call.is(tool, arguments) && call.is_judged());
        let found = alike.find(|call| call.prompt.lock().is_none());
        if let Some(call) = found {
            *call.prompt.lock() = Some(reason.to_owned());
        }
        found.is_some()
    }

    /// Clears a call; what is returned hears how it ended, or that no one says it any more. None where no such call waits.
    pub(super) fn clear(&self, tool: &str, arguments: &str) -> Option<oneshot::Receiver<Report>> {
        let calls = self.0.lock();
        let mut waiting = calls
            .iter()
            .filter(|call| call.is(tool, arguments) && call.is_judged());
        let call = waiting.next()?;
        let (tell, heard) = oneshot::channel();
        *call.report.lock() = Some(tell);
        call.stage.send_replace(Stage::Cleared);
        Some(heard)
    }

    /// Takes what the agent says of how a call ended: of the one that it names, else of one that is alike, else of the only one of
    /// that tool, for agents say the input in other words after a call. False where no such call runs.
    pub(super) fn report(&self, arguments: Option<&str>, report: Report) -> bool {
        let calls = self.0.lock();
        let running = || calls.iter().filter(|call| call.is_cleared());
        let named = report.id.as_deref().and_then(|id| {
            let mut running = running();
            running.find(|call| call.has_id(Some(id)))
        });
        let of_tool =
            || running().filter(|call| call.theirs == report.tool && call.report.lock().is_some());
        let alike =
            || of_tool().find(|call| arguments.is_some_and(|text| *call.arguments == *text));
        let only = || {
            let mut all = of_tool();
            all.next().filter(|_| all.next().is_none())
        };
        let Some(call) = named.or_else(alike).or_else(only) else {
            return false;
        };
        let teller = call.report.lock().take();
        teller.is_some_and(|tell| tell.send(report).is_ok())
    }

    /// The agent says no more of its calls.
    pub(super) fn hang_up(&self) {
        for call in self.0.lock().iter() {
            drop(call.report.lock().take());
        }
    }

    /// A call that has ended is followed no longer.
    pub(super) fn forget(&self, ended: &Arc<OpenCall>) {
        self.0.lock().retain(|call| !Arc::ptr_eq(call, ended));
    }

    /// Whether any call is open.
    pub(super) fn is_empty(&self) -> bool {
        self.0.lock().is_empty()
    }
}
