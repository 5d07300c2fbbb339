//! A batch: the calls of one reply. Concurrency-safe calls run in parallel, the others in order.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;

use crate::call::ToolCall;
use crate::executor::incoming::CallMode;
use crate::executor::{ExecutorParts, execute, named};
use crate::result::Outcome;
use crate::session::Session;

/// Maximum number of calls that run at once.
const MAX_CONCURRENT: usize = 16;

/// Runs the calls and returns their outcomes in the order of the calls.
pub(super) async fn execute_all(
    parts: &Arc<ExecutorParts>,
    session: &Session,
    calls: Vec<ToolCall>,
) -> Vec<Outcome> {
    let mut outcomes = Vec::with_capacity(calls.len());
    let mut group = Vec::new();
    for call in calls {
        let call = named::resolve(session, call);
        let safe = runs_in_parallel(session, &call.name);
        if !safe || group.len() == MAX_CONCURRENT {
            outcomes.append(&mut run_parallel(parts, session, std::mem::take(&mut group)).await);
        }
        if safe {
            group.push(call);
        } else {
            outcomes.push(execute(parts, session, CallMode::ByClient.incoming(call)).await);
        }
    }
    outcomes.append(&mut run_parallel(parts, session, group).await);
    outcomes
}

fn runs_in_parallel(session: &Session, name: &str) -> bool {
    session
        .tools()
        .entry(name)
        .is_some_and(|entry| entry.spec().concurrency_safe)
}

async fn run_parallel(
    parts: &Arc<ExecutorParts>,
    session: &Session,
    calls: Vec<ToolCall>,
) -> Vec<Outcome> {
    type Running<'a> = Pin<Box<dyn Future<Output = Outcome> + Send + 'a>>;
    let mut running: Vec<Running<'_>> = Vec::new();
    for call in calls {
        running.push(Box::pin(execute(
            parts,
            session,
            CallMode::ByClient.incoming(call),
        )));
    }
    let mut done: Vec<Option<Outcome>> = running.iter().map(|_| None).collect();
    poll_fn(|cx| {
        for (slot, future) in done.iter_mut().zip(&mut running) {
            if slot.is_none()
                && let Poll::Ready(outcome) = future.as_mut().poll(cx)
            {
                *slot = Some(outcome);
            }
        }
        if done.iter().all(Option::is_some) {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    })
    .await;
    done.into_iter().flatten().collect()
}
