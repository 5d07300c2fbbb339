//! `OpenCall`: a call of an agent between its hooks: judged, answered, and followed until the agent says how it ended.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use haft::approval::ApprovalRequest;
use haft::call::{CallId, RunId};
use haft_hook::{Action, Report, Verdict};
use parking_lot::Mutex;
use tokio::sync::{oneshot, watch};

use crate::hook::kept_run::SameCall;
use crate::hook::location::Doubt;

/// Most calls of a session that are followed at a time.
pub(super) const MOST: usize = 1_000;
/// Most bytes of their arguments: an event has 16 MiB at the most.
const MOST_BYTES: usize = 64 << 20;

/// Hooks of one agent that may tell of the same call: of the user, of the project, and of another agent's settings.
const SAME: usize = 3;

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
    /// The run that it is made in.
    run: RunId,
    /// The agent's name of its tool.
    theirs: String,
    arguments: Arc<str>,
    /// What it would do.
    actions: Arc<[Action]>,
    /// The agent's name of it; another one when it is made again.
    id: Mutex<Option<String>>,
    stage: watch::Sender<Stage>,
    /// Why the agent's own prompt is to ask, where it is.
    prompt: Mutex<Option<Prompt>>,
    /// The folder that the agent works in, as rules see it.
    folder: String,
    doubts: Arc<[Doubt]>,
    /// How many hooks wait for the answer.
    hooks: AtomicUsize,
    /// How many have had it.
    answers: AtomicUsize,
    /// The call of the executor that cleared it, and what hears how it ended.
    cleared: Mutex<Option<ClearedBy>>,
}

/// What the agent's prompt is to ask.
#[derive(Debug)]
struct Prompt {
    /// The call of the executor that it was left for.
    call: CallId,
    reason: String,
}

#[derive(Debug)]
struct ClearedBy {
    call: CallId,
    /// A person approved this very call.
    approved: bool,
    report: Option<oneshot::Sender<Report>>,
}

/// What is known of a call beside its arguments.
#[derive(Debug)]
pub(super) struct About {
    /// What it would do.
    pub(super) actions: Arc<[Action]>,
    /// The folder that the agent works in, as rules see it.
    pub(super) folder: String,
    /// What is not certain about where it works.
    pub(super) doubts: Arc<[Doubt]>,
}

/// A hook that waits for the answer about a call.
#[derive(Debug)]
pub(super) struct Waiting(Arc<OpenCall>);

impl Waiting {
    /// Counted while the calls are locked: no other hook takes the call for one that is left.
    fn on(call: &Arc<OpenCall>) -> Self {
        call.hooks.fetch_add(1, Ordering::AcqRel);
        Self(Arc::clone(call))
    }

    /// The call.
    pub(super) fn call(&self) -> &Arc<OpenCall> {
        &self.0
    }

    /// What is answered; none where that is not known in time.
    pub(super) async fn verdict(self, within: Duration) -> Option<Verdict> {
        let mut stage = self.0.stage.subscribe();
        let settled = stage.wait_for(|stage| !matches!(stage, Stage::Judged));
        let settled = tokio::time::timeout(within, settled).await.ok()?.ok()?;
        self.0.answers.fetch_add(1, Ordering::AcqRel);
        Some(match &*settled {
            Stage::Over(reason) => Verdict::Deny {
                reason: reason.clone(),
            },
            Stage::Judged | Stage::Cleared => match &*self.0.prompt.lock() {
                Some(prompt) => Verdict::Ask {
                    reason: prompt.reason.clone(),
                },
                None => Verdict::Allow { input: None },
            },
        })
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.hooks.fetch_sub(1, Ordering::AcqRel);
    }
}

impl OpenCall {
    fn is(&self, tool: &str, arguments: &str) -> bool {
        self.tool == tool && *self.arguments == *arguments
    }

    fn is_cleared_by(&self, by: CallInRun<'_>) -> bool {
        let cleared = self.cleared.lock();
        let by_it = |cleared: &ClearedBy| cleared.call == *by.call;
        self.run == *by.run && cleared.as_ref().is_some_and(by_it)
    }

    fn is_approved(&self) -> bool {
        let cleared = self.cleared.lock();
        cleared.as_ref().is_some_and(|cleared| cleared.approved)
    }

    fn is_unreported(&self) -> bool {
        let cleared = self.cleared.lock();
        cleared
            .as_ref()
            .is_some_and(|cleared| cleared.report.is_some())
    }

    /// What hears how it ended, once.
    fn teller(&self) -> Option<oneshot::Sender<Report>> {
        self.cleared.lock().as_mut()?.report.take()
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

/// Makes room for a call with so many bytes of arguments; false where too much waits for decisions. Agents do not always say how a call
/// ended: the oldest that run are followed no longer.
fn make_room(calls: &[Arc<OpenCall>], bytes: usize) -> bool {
    let followed = || {
        calls
            .iter()
            .filter(|call| call.is_judged() || call.is_unreported())
    };
    let mut count = followed().count();
    let mut held: usize = followed().map(|call| call.arguments.len()).sum();
    let has_room =
        |count: usize, held: usize| count < MOST && held.saturating_add(bytes) <= MOST_BYTES;
    for call in followed().filter(|call| call.is_unreported()) {
        if has_room(count, held) {
            break;
        }
        drop(call.teller());
        count -= 1;
        held -= call.arguments.len();
    }
    has_room(count, held)
}

/// A call as the agent makes it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Made<'a> {
    /// The agent's name of the tool.
    pub(super) tool: &'a str,
    pub(super) arguments: &'a str,
    /// The folder that the agent works in, as rules see it.
    pub(super) folder: &'a str,
    /// What it would do.
    pub(super) actions: &'a [Action],
    /// What is not certain about where it works.
    pub(super) doubts: &'a [Doubt],
    /// The agent's name of the call.
    pub(super) id: Option<&'a str>,
}

/// A call of the executor. Each run counts its calls by itself.
#[derive(Debug, Clone, Copy)]
pub(super) struct CallInRun<'a> {
    pub(super) run: &'a RunId,
    pub(super) call: &'a CallId,
    /// A person approved this very call.
    pub(super) approved: bool,
}

/// A call that the agent may run, or asks its user about.
#[derive(Debug)]
pub(super) struct ClearedCall {
    /// Hears how it ended.
    pub(super) ended: oneshot::Receiver<Report>,
    /// The agent's own prompt asks first.
    pub(super) prompted: bool,
}

impl Made<'_> {
    /// What is known of it beside its arguments.
    pub(super) fn about(&self) -> About {
        About {
            actions: self.actions.into(),
            folder: self.folder.to_owned(),
            doubts: self.doubts.into(),
        }
    }
}

/// The calls of a session that are open. Calls of the same tool with the same arguments are alike: each stands for any.
#[derive(Debug, Default)]
pub(super) struct OpenCalls(Mutex<Vec<Arc<OpenCall>>>);

impl OpenCalls {
    /// The very call, of which another hook of the agent has told already; or one that waits for a person and whose hook is gone:
    /// the same call, made again, takes its place.
    pub(super) fn take_up(&self, tool: &str, made: &Made<'_>) -> Option<Waiting> {
        let calls = self.0.lock();
        let mut alike = calls.iter().filter(|call| call.is(tool, made.arguments));
        let is_same = |call: &&Arc<OpenCall>| {
            call.has_id(made.id) && call.answers.load(Ordering::Acquire) < SAME
        };
        if let Some(same) = alike.clone().find(is_same) {
            return Some(Waiting::on(same));
        }
        // Also one that was approved meanwhile: no hook has had the answer.
        let left = alike.find(|call| {
            let alone = call.hooks.load(Ordering::Acquire) == 0;
            alone && call.answers.load(Ordering::Acquire) == 0
        })?;
        *left.id.lock() = made.id.map(str::to_owned);
        Some(Waiting::on(left))
    }

    /// The runs in which calls like this one wait for a decision, or run on one that was for them alone.
    pub(super) fn runs_of(&self, same: SameCall<'_>) -> Vec<RunId> {
        let calls = self.0.lock();
        let alike = calls.iter().filter(|call| {
            let asks = call.is_judged() || call.is_approved();
            asks && call.is(same.tool, same.arguments)
        });
        alike.map(|call| call.run.clone()).collect()
    }

    /// A call of which the agent's hook told before, by its name there or else by what it is, whether or not it has been cleared.
    pub(super) fn known(&self, tool: &str, made: &Made<'_>) -> Option<Waiting> {
        let calls = self.0.lock();
        let mut alike = calls.iter().filter(|call| call.is(tool, made.arguments));
        let named = alike.clone().find(|call| call.has_id(made.id));
        named.or_else(|| alike.next()).map(Waiting::on)
    }

    /// Follows a new call; none where too many are followed.
    pub(super) fn begin(&self, tool: &str, call: &Made<'_>, run: &RunId) -> Option<Waiting> {
        let mut calls = self.0.lock();
        if !make_room(&calls, call.arguments.len()) {
            return None;
        }
        let call = Arc::new(OpenCall {
            tool: tool.to_owned(),
            run: run.clone(),
            theirs: call.tool.to_owned(),
            folder: call.folder.to_owned(),
            doubts: call.doubts.into(),
            arguments: call.arguments.into(),
            actions: call.actions.into(),
            id: Mutex::new(call.id.map(str::to_owned)),
            stage: watch::Sender::new(Stage::Judged),
            prompt: Mutex::default(),
            hooks: AtomicUsize::new(0),
            answers: AtomicUsize::new(0),
            cleared: Mutex::default(),
        });
        let waiting = Waiting::on(&call);
        calls.push(call);
        Some(waiting)
    }

    /// What a call of this tool with these arguments would do, and in which folder; none where no such call is open.
    pub(super) fn about(&self, tool: &str, arguments: &str) -> Option<About> {
        let calls = self.0.lock();
        let call = calls.iter().find(|call| call.is(tool, arguments))?;
        Some(About {
            actions: Arc::clone(&call.actions),
            folder: call.folder.clone(),
            doubts: Arc::clone(&call.doubts),
        })
    }

    /// Lets the agent's own prompt ask about the call that this request is about. False where no such call waits.
    pub(super) fn prompt(&self, request: &ApprovalRequest) -> bool {
        let calls = self.0.lock();
        let mut alike = calls
            .iter()
            .filter(|call| call.is(request.tool.as_str(), &request.arguments) && call.is_judged());
        let found = alike.find(|call| call.prompt.lock().is_none());
        if let Some(call) = found {
            *call.prompt.lock() = Some(Prompt {
                call: request.call.clone(),
                reason: request.reason.clone(),
            });
        }
        found.is_some()
    }

    /// Clears a call; what is returned hears how it ended, or that no one says it any more. None where no such call waits.
    pub(super) fn clear(&self, same: SameCall<'_>, by: CallInRun<'_>) -> Option<ClearedCall> {
        let calls = self.0.lock();
        let mut waiting = calls.iter().filter(|call| {
            call.run == *by.run && call.is(same.tool, same.arguments) && call.is_judged()
        });
        // What is left to the agent's prompt is never cleared in place of what is not, nor the other way round.
        let prompted = |call: &&Arc<OpenCall>| {
            let prompt = call.prompt.lock();
            prompt
                .as_ref()
                .is_some_and(|prompt| prompt.call == *by.call)
        };
        let unprompted = |call: &&Arc<OpenCall>| call.prompt.lock().is_none();
        let call = waiting
            .clone()
            .find(prompted)
            .or_else(|| waiting.find(unprompted))?;
        let (tell, heard) = oneshot::channel();
        *call.cleared.lock() = Some(ClearedBy {
            call: by.call.clone(),
            approved: by.approved,
            report: Some(tell),
        });
        call.stage.send_replace(Stage::Cleared);
        Some(ClearedCall {
            ended: heard,
            prompted: call.prompt.lock().is_some(),
        })
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
            || running().filter(|call| call.theirs == report.tool && call.is_unreported());
        // One with a name of its own is no other.
        let unnamed = || of_tool().filter(|call| report.id.is_none() || call.id.lock().is_none());
        let alike =
            || unnamed().find(|call| arguments.is_some_and(|text| *call.arguments == *text));
        let only = || {
            let mut all = unnamed();
            all.next().filter(|_| all.next().is_none())
        };
        let Some(call) = named.or_else(alike).or_else(only) else {
            return false;
        };
        call.teller().is_some_and(|tell| tell.send(report).is_ok())
    }

    /// The agent says no more of its calls.
    pub(super) fn hang_up(&self) {
        for call in self.0.lock().iter() {
            drop(call.teller());
        }
    }

    /// A call of the executor has ended. The one that it cleared is followed no longer; where it cleared none, one that is alike does
    /// not run, and who waits for its answer hears why.
    pub(super) fn end(&self, ended: &CallId, like: &OpenCall, reason: String) {
        let mut calls = self.0.lock();
        let by = CallInRun {
            run: &like.run,
            call: ended,
            approved: false,
        };
        let cleared = calls.iter().position(|call| call.is_cleared_by(by));
        let alike = || {
            let is_alike =
                |call: &Arc<OpenCall>| call.run == like.run && call.is(&like.tool, &like.arguments);
            calls
                .iter()
                .position(|call| is_alike(call) && call.is_judged())
        };
        if let Some(at) = cleared.or_else(alike) {
            let call = calls.remove(at);
            call.stage.send_if_modified(|stage| {
                let waits = matches!(stage, Stage::Judged);
                if waits {
                    *stage = Stage::Over(reason);
                }
                waits
            });
        }
    }

    /// Whether a call waits for a decision.
    pub(super) fn waits(&self) -> bool {
        self.0.lock().iter().any(|call| call.is_judged())
    }
}
