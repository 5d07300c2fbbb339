//! Invoke: records the start, then makes the one `PreparedCall::run`, under deadline and cancellation, with panics caught.

use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use crate::audit::EventKind;
use crate::call::CallId;
use crate::context::{CallContext, NestedExecutor};
use crate::error::ErrorKind;
use crate::error::ToolError;
use crate::executor::ExecutorParts;
use crate::executor::early_end::{EarlyEnd, ToolReturn};
use crate::executor::exit::{OpenCall, STOPPED_MESSAGE};
use crate::executor::judge::ClearedCall;
use crate::progress::{LiveOutput, LiveOutputGuard};
use crate::result::ToolResult;
use crate::session::lane::LanePermit;
use crate::session::nest::CallScope;
use crate::session::{CallEndReason, Session};
use crate::spec::{Risk, ToolSpec};
use crate::tool::PreparedCall;
use crate::toolset::ToolEntry;

/// Grace period in which a tool past its deadline may return what it has.
const LATE_GRACE: Duration = Duration::from_secs(10);
/// Grace period after a cancelled session: shorter than an ending run waits for its calls.
const CANCEL_GRACE: Duration = Duration::from_millis(2500);

/// What a tool returned. Only this module creates it.
pub(super) struct InvokedCall {
    entry: Arc<ToolEntry>,
    given: ToolReturn,
}

impl InvokedCall {
    /// Returns the result, unless the tool failed without one.
    pub(super) fn result(&self) -> Option<&ToolResult> {
        self.given.as_ref().ok()
    }

    /// Returns the entry and what its tool returned.
    pub(super) fn into_parts(self) -> (Arc<ToolEntry>, ToolReturn) {
        (self.entry, self.given)
    }
}

/// Runs a cleared call.
pub(super) async fn invoke(
    parts: &Arc<ExecutorParts>,
    session: &Session,
    open: &mut OpenCall<'_>,
    mut cleared: ClearedCall,
) -> Result<InvokedCall, EarlyEnd> {
    // From here on the call may run, whatever happens to it.
    cleared.spend();
    if open.is_recorded() {
        record_start(parts, session, open, cleared.judgement().ruling().risk).await?;
    }
    let limit = TimeLimit::of(session, cleared.spec());
    // A server orders its own calls, and one of them may wait long for a decision.
    let shared = cleared.spec().concurrency_safe || cleared.spec().listing.is_some();
    let (place, waited) = match LanePermit::free(session.lane(), shared) {
        Some(place) => (place, false),
        // Boxed, like everything here that few calls need: the future of every call would be as large.
        None => (
            Box::pin(wait_for_turn(session, shared, limit.time)).await?,
            true,
        ),
    };
    let nest = Arc::clone(open.nest());
    let _seated = nest.seat().take(place);
    // From here on no other call of this session writes in parallel.
    if let Some(difference) = cleared.difference(parts, session)? {
        return Err(conflict(cleared.spec(), &difference));
    }
    if waited && let Some(name) = cleared.unjudged_name(parts, session)? {
        return Err(conflict_by_link(cleared.spec(), &name));
    }
    let (entry, call, judgement) = cleared.into_parts();
    let decided = judgement.decision().is_some();
    let context = CallContext {
        call: open.id().clone(),
        origin: open.record.origin(),
        session: session.clone(),
        host: Arc::clone(parts) as Arc<dyn NestedExecutor>,
        nest: Arc::clone(open.nest()),
        entry,
        judgement,
        live: live_channel(session, open.id()),
        resumption: open.resumption().cloned(),
        limit: limit.time,
    };
    let _end = LiveOutputGuard(context.live.clone());
    // Time spent waiting for the user or for other calls does not count against the tool.
    let start_result = if !decided && !waited {
        open.received_at()
    } else {
        Instant::now()
    };
    let clock = Clock {
        started: start_result,
        nest: open.nest(),
        limit,
    };
    let (given, spent) = run(&context, clock, call).await;
    session.spend_time(spent);
    let given = left(session, open.nest(), given);
    let entry = context.entry;
    Ok(InvokedCall { entry, given })
}

/// Returns the call's side of the live channel, if there is a progress sink.
fn live_channel(session: &Session, call: &CallId) -> Option<Arc<LiveOutput>> {
    let sink = session.progress_sink()?;
    let run = session.run().clone();
    Some(LiveOutput::new(run, call.clone(), Arc::clone(sink)))
}

/// Records that the call is about to run; for risk high or more, waits until the record is durable.
async fn record_start(
    parts: &ExecutorParts,
    session: &Session,
    open: &mut OpenCall<'_>,
    risk: Risk,
) -> Result<(), EarlyEnd> {
    let what = EventKind::CallStarted(open.record());
    if risk >= Risk::High {
        parts.record_durably(session, what).await?;
    } else {
        parts.record(session, what)?;
    }
    Ok(())
}

/// Waits until the call may run beside the other running calls of this session.
async fn wait_for_turn(
    session: &Session,
    shared: bool,
    limit: Duration,
) -> Result<LanePermit, EarlyEnd> {
    let turn = LanePermit::acquire(session.lane(), shared);
    tokio::select! {
        turn = tokio::time::timeout(limit, turn) => turn.map_err(|_| {
            EarlyEnd::failed(ErrorKind::Timeout, "other calls of this session did not end in time")
                .advise("the call did not run; call again when they have ended")
        }),
        () = session.cancellation().cancelled() => Err(cancelled().into()),
    }
}

/// Runs the tool under the host's deadline and the session's cancellation. Returns what it gave and the time it took. A tool that
/// is ready at once needs no timer.
async fn run(
    context: &CallContext,
    clock: Clock<'_>,
    call: Box<dyn PreparedCall>,
) -> (ToolReturn, Duration) {
    let session = &context.session;
    #[expect(clippy::disallowed_methods, reason = "the one place that calls a tool")]
    let running = catch_unwind(AssertUnwindSafe(|| call.run(context)));
    let Ok(running) = running else {
        return (Err(panicked()), clock.time_spent());
    };
    let mut running = CatchPanic(running);
    let at_once = poll_fn(|cx| Poll::Ready(Pin::new(&mut running).poll(cx))).await;
    let Poll::Ready(given) = at_once else {
        let given = Box::pin(bounded(session, clock, running)).await;
        return (given, clock.time_spent());
    };
    let spent = clock.time_spent();
    if spent > clock.limit.time {
        // The tool blocked its thread for longer than its limit.
        return (ended(given, clock.limit.into_timeout()), spent);
    }
    (as_cancelled(session, given), spent)
}

/// Waits for a tool that was not ready at once; time in which a nested call waits for an approval does not count.
async fn bounded(session: &Session, clock: Clock<'_>, mut running: CatchPanic<'_>) -> ToolReturn {
    let Clock {
        started,
        nest,
        limit,
    } = clock;
    let (ending, error, grace) = tokio::select! {
        biased;
        given = &mut running => return as_cancelled(session, given),
        () = session.cancellation().cancelled() => (CallEndReason::Cancelled, cancelled(), CANCEL_GRACE),
        () = nest.elapsed(started, limit.time) => (CallEndReason::Late, limit.into_timeout(), LATE_GRACE),
    };
    if !nest.end_now(ending) {
        return Err(error);
    }
    match tokio::time::timeout(grace, running).await {
        Ok(given) => ended(given, error),
        Err(_) => Err(error),
    }
}

/// A result ends a resumed call for good. A call that was cut off because the session leaves can be resumed again.
fn left(session: &Session, nest: &CallScope, given: ToolReturn) -> ToolReturn {
    match &given {
        Ok(_) => nest.set_resumable(false),
        Err(error)
            if error.kind() == ErrorKind::Cancelled
                && nest.is_resumable()
                && session.waits_cancelled().is_cancelled() =>
        {
            return Err(ToolError::new(ErrorKind::Cancelled, STOPPED_MESSAGE));
        }
        Err(_) => {}
    }
    given
}

/// Returns what a tool gave before it was told to end. A failure in a cancelled session counts as cancellation, which the tool can
/// notice first: through the session's token, or a nested call.
fn as_cancelled(session: &Session, given: ToolReturn) -> ToolReturn {
    let failed = given.as_ref().map_or(true, |result| result.error.is_some());
    if failed && session.cancellation().is_cancelled() {
        return ended(given, cancelled());
    }
    given
}

/// Returns what a tool gave after it was told to end: its content is kept, but it did not succeed.
fn ended(given: ToolReturn, error: ToolError) -> ToolReturn {
    match given {
        Ok(result) => {
            let reported = result.error.as_ref().map(ToolError::kind);
            if reported == Some(error.kind()) {
                return Ok(result);
            }
            Ok(ToolResult {
                summary: None,
                // The server did not send this.
                original: None,
                ..result.with_error(error)
            })
        }
        Err(said) if said.waits_for().is_some() => Err(said),
        Err(_) => Err(error),
    }
}

/// A running call's clock, which stops while a user decides.
#[derive(Clone, Copy)]
struct Clock<'a> {
    started: Instant,
    nest: &'a CallScope,
    limit: TimeLimit,
}

impl Clock<'_> {
    /// Returns how long the call has run.
    fn time_spent(&self) -> Duration {
        self.started.elapsed().saturating_sub(self.nest.waited().0)
    }
}

/// A call's time limit, and where it comes from.
#[derive(Debug, Clone, Copy)]
struct TimeLimit {
    time: Duration,
    /// Its name, for the caller.
    name: &'static str,
    /// The setting that changes it, for the operator.
    setting: &'static str,
}

impl TimeLimit {
    /// Returns the shortest of the tool's own limit, the limit per call, and what is left of the run's.
    fn of(session: &Session, spec: &ToolSpec) -> Self {
        let script = session.is_script();
        let setting = |own, of_script| if script { of_script } else { own };
        let mut limit = Self {
            time: session.limits().call_timeout,
            name: "the time limit of each call",
            setting: setting("limits.call_timeout_s", "chain.call_timeout_s"),
        };
        let own = spec.timeout.map(|time| Self {
            time,
            name: "the tool's own time limit",
            setting: "the tool's timeout_s",
        });
        let total = Self {
            time: session.time_left(),
            name: setting("the time limit of the run", "the time limit of the script"),
            setting: setting("limits.total_timeout_s", "chain.total_timeout_s"),
        };
        for other in own.into_iter().chain([total]) {
            if other.time < limit.time {
                limit = other;
            }
        }
        limit
    }

    /// Returns the failure of a call that exceeded it.
    fn into_timeout(self) -> ToolError {
        ToolError::new(
            ErrorKind::Timeout,
            format!(
                "the call was stopped after {} s by {}",
                self.time.as_secs_f64(),
                self.name
            ),
        )
        .with_advice("ask for less")
        .for_operator(format!("raise {}", self.setting))
    }
}

/// Turns a panic while polling into a failure.
struct CatchPanic<'a>(Pin<Box<dyn Future<Output = ToolReturn> + Send + 'a>>);

impl Future for CatchPanic<'_> {
    type Output = ToolReturn;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<ToolReturn> {
        let polled = catch_unwind(AssertUnwindSafe(|| self.0.as_mut().poll(cx)));
        polled.unwrap_or_else(|_| Poll::Ready(Err(panicked())))
    }
}

fn conflict(spec: &ToolSpec, difference: &str) -> EarlyEnd {
    let undone = spec.phrases.undone;
    let message = format!("the approval does not apply to this call: {difference}; {undone}");
    EarlyEnd::failed(ErrorKind::Conflict, message)
        .advise("check what changed, then call again to request approval again")
}

fn conflict_by_link(spec: &ToolSpec, name: &str) -> EarlyEnd {
    let undone = spec.phrases.undone;
    let message = format!(
        "while the call waited for its turn, a link gave one of its files another name, {name}; {undone}"
    );
    EarlyEnd::failed(ErrorKind::Conflict, message)
        .advise("call again: it is judged by that name, too")
}

fn panicked() -> ToolError {
    ToolError::failed("the tool panicked")
        .with_advice("this is a bug in the tool; the run continues")
}

fn cancelled() -> ToolError {
    ToolError::new(ErrorKind::Cancelled, "the session was cancelled")
}
