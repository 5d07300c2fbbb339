//! Invoke: recorded before it runs, then the one `Tool::call`, under deadline and cancellation, panics caught.

use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use crate::audit::What;
use crate::call::CallId;
use crate::context::{CallContext, Host};
use crate::error::ErrorKind;
use crate::error::ToolError;
use crate::executor::Parts;
use crate::executor::clear::Cleared;
use crate::executor::exit::OpenCall;
use crate::executor::stop::{Given, Stop};
use crate::progress::{Live, LiveEnd};
use crate::session::Session;
use crate::session::nest::Nest;
use crate::spec::Risk;
use crate::toolset::Entry;

/// What a tool gave. Made here alone.
pub(super) struct Invoked {
    entry: Arc<Entry>,
    given: Given,
}

impl Invoked {
    /// The entry and what its tool gave.
    pub(super) fn into_parts(self) -> (Arc<Entry>, Given) {
        (self.entry, self.given)
    }
}

/// Runs a cleared call.
pub(super) async fn invoke(
    parts: &Arc<Parts>,
    session: &Session,
    open: &mut OpenCall<'_>,
    cleared: Cleared,
) -> Result<Invoked, Stop> {
    started(parts, session, open, cleared.risk()).await?;
    let limit = cleared
        .spec()
        .timeout
        .unwrap_or(session.limits().call_timeout);
    let limit = limit.min(session.time_left());
    let shared = cleared.spec().concurrency_safe;
    let (_lane, waited) = match free(session, shared) {
        Some(lane) => (lane, false),
        None => (turn(session, shared, limit).await?, true),
    };
    // Nobody of this session writes beside it from here on.
    if let Some(path) = cleared.changed_file() {
        return Err(conflict(path));
    }
    let (entry, tool, arguments) = cleared.into_parts();
    let context = CallContext {
        call: open.id().clone(),
        origin: open.origin(),
        session: session.clone(),
        host: Arc::clone(parts) as Arc<dyn Host>,
        nest: Arc::clone(open.nest()),
        entry: Arc::clone(&entry),
        approved: open.claimed.is_some(),
        live: live(session, open.id()),
    };
    let _end = LiveEnd(context.live.clone());
    // Waits for a person or for other calls are not the tool's time.
    let begun = if open.decided_by.is_none() && !waited {
        open.begun()
    } else {
        Instant::now()
    };
    #[expect(clippy::disallowed_methods, reason = "the one line that calls a tool")]
    let running = catch_unwind(AssertUnwindSafe(|| tool.call(&arguments, &context)));
    let given = match running {
        Ok(running) => bounded(session, (open.nest(), limit), running).await,
        Err(_) => Err(panicked()),
    };
    session.spend_time(begun.elapsed().saturating_sub(open.nest().waited().0));
    Ok(Invoked { entry, given })
}

/// The call's side of the live channel, where somebody watches.
fn live(session: &Session, call: &CallId) -> Option<Arc<Live>> {
    let sink = session.progress_sink()?;
    let run = session.run().clone();
    Some(Live::new(run, call.clone(), Arc::clone(sink)))
}

/// Writes that the call is about to run; an effect of risk high or more waits until that is safe on disk.
async fn started(
    parts: &Parts,
    session: &Session,
    open: &mut OpenCall<'_>,
    risk: Risk,
) -> Result<(), Stop> {
    if !open.is_recorded() {
        return Ok(());
    }
    let what = What::CallStarted(open.record());
    if risk >= Risk::High {
        parts.record_durably(session, what).await?;
    } else {
        parts.record(session, what)?;
    }
    Ok(())
}

/// Held while a tool runs; never read.
enum Lane<'a> {
    Shared {
        _guard: tokio::sync::RwLockReadGuard<'a, ()>,
    },
    Alone {
        _guard: tokio::sync::RwLockWriteGuard<'a, ()>,
    },
}

/// The lane, where nobody has to be waited for: the common case, which needs no timer.
fn free(session: &Session, shared: bool) -> Option<Lane<'_>> {
    let lane = session.lane();
    if shared {
        lane.try_read()
            .ok()
            .map(|guard| Lane::Shared { _guard: guard })
    } else {
        lane.try_write()
            .ok()
            .map(|guard| Lane::Alone { _guard: guard })
    }
}

/// Waits until the call may run beside what else runs in this session.
async fn turn(session: &Session, shared: bool, limit: Duration) -> Result<Lane<'_>, Stop> {
    let lane = session.lane();
    let turn = async {
        if shared {
            Lane::Shared {
                _guard: lane.read().await,
            }
        } else {
            Lane::Alone {
                _guard: lane.write().await,
            }
        }
    };
    tokio::select! {
        turn = tokio::time::timeout(limit, turn) => turn.map_err(|_| {
            Stop::new(ErrorKind::Timeout, "other calls of this session did not end in time")
                .advise("the call did not run; call again when they have ended")
        }),
        () = session.cancellation().cancelled() => Err(cancelled().into()),
    }
}

/// The tool's future under the host's deadline and the session's cancellation. A tool that is ready at once needs no
/// timer; time in which a call within waits for a person does not count.
async fn bounded(
    session: &Session,
    (nest, limit): (&Nest, Duration),
    running: Pin<Box<dyn Future<Output = Given> + Send + '_>>,
) -> Given {
    let mut running = pin!(CatchPanic(running));
    let begun = Instant::now();
    let at_once = poll_fn(|cx| Poll::Ready(running.as_mut().poll(cx))).await;
    if let Poll::Ready(given) = at_once {
        return given;
    }
    tokio::select! {
        biased;
        given = running => given,
        () = session.cancellation().cancelled() => Err(cancelled()),
        () = nest.elapsed(begun, limit) => Err(timed_out(limit)),
    }
}

/// Turns a panic while polling into a failure.
struct CatchPanic<'a>(Pin<Box<dyn Future<Output = Given> + Send + 'a>>);

impl Future for CatchPanic<'_> {
    type Output = Given;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Given> {
        let polled = catch_unwind(AssertUnwindSafe(|| self.0.as_mut().poll(cx)));
        polled.unwrap_or_else(|_| Poll::Ready(Err(panicked())))
    }
}

fn conflict(path: &str) -> Stop {
    let message = format!("{path} changed after the person saw it who approved; nothing was done");
    Stop::new(ErrorKind::Conflict, message).advise("read it again, then call again")
}

fn panicked() -> ToolError {
    ToolError::failed("the tool panicked")
        .with_advice("this is a fault of the tool; the run goes on")
}

fn cancelled() -> ToolError {
    ToolError::new(ErrorKind::Cancelled, "the session was cancelled")
}

fn timed_out(limit: Duration) -> ToolError {
    ToolError::new(
        ErrorKind::Timeout,
        format!("no answer within {} s", limit.as_secs_f64()),
    )
    .with_advice("ask for less, or raise the tool's timeout_s")
}
