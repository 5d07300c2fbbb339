//! The live stream as server-sent events: approvals, runs, calls and their output.

use std::convert::Infallible;
use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use crate::console::sessions::ConsoleSession;
use axum::extract::{Extension, State};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::Stream;
use futures_util::stream::unfold;
use haft::approval::ApprovalId;
use haft::bounds::ConcurrencyPermit;
use haft::call::RunId;
use haft::change::ChangesMade;
use haft::clock;
use haft::progress::ProgressEvent;
use haft::progress::hub::Listener;
use haft::result::milliseconds;
use http::{StatusCode, Uri};
use serde::Serialize;
use serde_json::json;
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::watch;

use crate::api::state::{Api, ApiState, request_for};
use crate::bounds::LimitReached;
use crate::caller::ApiCaller;
use crate::tabs::OpenStream;
use crate::{query, reply};
use haft_app::feed::{CallEvent, FeedEvent};
use haft_app::view::approvals::ApprovalListItem;

/// Interval of silence after which a keep-alive is sent.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// What one client watches.
struct EventWatch {
    api: Arc<Api>,
    caller: ApiCaller,
    run: Option<RunId>,
    approvals: Receiver<ApprovalId>,
    feed: Receiver<FeedEvent>,
    /// `None` if the changes of calls are not recorded.
    changes: Option<Receiver<ChangesMade>>,
    progress: Listener,
    stopped: watch::Receiver<bool>,
    /// The console session that watches; the stream ends with it.
    session: Option<ConsoleSession>,
    greeted: bool,
    number: u64,
    _place: ConcurrencyPermit,
    /// Counts as an open console page.
    _page: Option<OpenStream>,
}

/// The first event to arrive.
enum WatchEvent {
    Approval(Result<ApprovalId, RecvError>),
    Feed(Result<FeedEvent, RecvError>),
    Changes(Result<ChangesMade, RecvError>),
    Progress(ProgressEvent),
}

/// Streams the events of all runs that the caller may see, or of one of them.
pub(crate) async fn events(
    State(api): ApiState,
    Extension(caller): Extension<ApiCaller>,
    session: Option<Extension<ConsoleSession>>,
    uri: Uri,
) -> Response {
    let Some(place) = api.bounds.streams.take(&caller.class().into()) else {
        let busy = LimitReached("streams of events are open").to_string();
        return reply::error(StatusCode::SERVICE_UNAVAILABLE, "unavailable", &busy);
    };
    let run = query::text(&uri, "run").map(RunId::new);
    // Checked at the source, so that no output is buffered for a reader that may not see it.
    let hears = {
        let (api, run) = (Arc::clone(&api), run.clone());
        move |other: &RunId| may_see(&api, caller, run.as_ref(), other)
    };
    let charge = api.bounds.output(caller.class());
    let watch = EventWatch {
        approvals: api.app.executor().inbox().changes(),
        feed: api.app.feed().watch(),
        changes: api.app.executor().changes().map(|log| log.watch()),
        progress: api.app.hub().listen_to(hears, charge),
        stopped: api.stopped.clone(),
        _page: session.as_ref().map(|_| api.tabs.open()),
        session: session.map(|Extension(session)| session),
        greeted: false,
        number: 0,
        caller,
        run,
        api,
        _place: place,
    };
    let keep_alive = KeepAlive::new().interval(KEEP_ALIVE).text("keep-alive");
    Sse::new(stream(watch))
        .keep_alive(keep_alive)
        .into_response()
}

/// Returns whether a caller that asked for one run, or for all, sees this one.
fn may_see(api: &Api, caller: ApiCaller, only: Option<&RunId>, run: &RunId) -> bool {
    only.is_none_or(|only| only == run) && api.may_read(caller, run.as_str())
}

fn stream(watch: EventWatch) -> impl Stream<Item = Result<Event, Infallible>> {
    unfold(watch, |mut watch| async move {
        let event = watch.next().await?;
        Some((Ok(event), watch))
    })
}

impl EventWatch {
    /// Returns the next event for this client; `None` when the server stops or the session ends.
    async fn next(&mut self) -> Option<Event> {
        if !self.greeted {
            self.greeted = true;
            return Some(self.event("hello", &json!({"version": env!("CARGO_PKG_VERSION")})));
        }
        loop {
            let heard = tokio::select! {
                biased;
                _ = self.stopped.wait_for(|stop| *stop) => return None,
                () = session_ended(&mut self.session) => return None,
                changed = self.approvals.recv() => WatchEvent::Approval(changed),
                told = self.feed.recv() => WatchEvent::Feed(told),
                made = next_change(&mut self.changes) => WatchEvent::Changes(made),
                event = self.progress.next() => WatchEvent::Progress(event),
            };
            let found = match heard {
                WatchEvent::Approval(changed) => self.approval(changed).await,
                WatchEvent::Feed(told) => self.event_of(told),
                WatchEvent::Changes(made) => self.changed(made),
                WatchEvent::Progress(event) => {
                    let mut json = Vec::new();
                    event.write_json(&mut json);
                    Some(self.next_event("progress", &String::from_utf8_lossy(&json)))
                }
            };
            if found.is_some() {
                return found;
            }
        }
    }

    fn event<T: Serialize + ?Sized>(&mut self, name: &str, data: &T) -> Event {
        let text = serde_json::to_string(data).unwrap_or_default();
        self.next_event(name, &text)
    }

    fn next_event(&mut self, name: &str, text: &str) -> Event {
        self.number += 1;
        Event::default()
            .event(name)
            .id(self.number.to_string())
            .data(text)
    }

    fn may_see(&self, run: &RunId) -> bool {
        may_see(&self.api, self.caller, self.run.as_ref(), run)
    }

    async fn approval(&mut self, changed: Result<ApprovalId, RecvError>) -> Option<Event> {
        // A client that fell behind is told to reload the lists, as after a lost connection.
        let Ok(id) = changed else {
            return Some(self.event("hello", &json!({"version": env!("CARGO_PKG_VERSION")})));
        };
        let entry = self.api.app.executor().inbox().get(&id).await.ok()??;
        if !self.may_see(&entry.request.run) {
            return None;
        }
        let entry = request_for(self.caller, entry);
        let item = ApprovalListItem::of(&self.api.app, &entry);
        Some(self.event("approval", &item))
    }

    fn event_of(&mut self, event: Result<FeedEvent, RecvError>) -> Option<Event> {
        match event {
            Ok(FeedEvent::Run { run, state }) if self.may_see(&run) => {
                Some(self.event("run", &json!({"run": run, "state": state.as_str()})))
            }
            Ok(FeedEvent::Call(call)) if self.may_see(&call.run) => Some(self.call_event(&call)),
            Ok(_) => None,
            Err(_) => Some(self.event("hello", &json!({"version": env!("CARGO_PKG_VERSION")}))),
        }
    }

    fn changed(&mut self, made: Result<ChangesMade, RecvError>) -> Option<Event> {
        let Ok(made) = made else {
            return Some(self.event("hello", &json!({"version": env!("CARGO_PKG_VERSION")})));
        };
        let event = json!({"run": made.run, "call": made.call, "paths": made.paths});
        self.may_see(&made.run)
            .then(|| self.event("changes", &event))
    }

    fn call_event(&mut self, told: &CallEvent) -> Event {
        let at = clock::rfc3339(told.at);
        let CallEvent {
            run,
            call,
            parent,
            tool,
            end,
            ..
        } = told;
        let event = match end {
            None => {
                json!({"run": run, "call": call, "parent": parent, "tool": tool, "phase": "started", "at": at})
            }
            Some((status, duration)) => json!({
                "run": run, "call": call, "parent": parent, "tool": tool, "phase": "ended",
                "status": status, "duration_ms": milliseconds(*duration), "at": at,
            }),
        };
        self.event("call", &event)
    }
}

/// Waits for the next change set; forever if there is no log.
async fn next_change(log: &mut Option<Receiver<ChangesMade>>) -> Result<ChangesMade, RecvError> {
    match log {
        Some(log) => log.recv().await,
        None => pending().await,
    }
}

/// Waits for the session to end; forever if there is none.
async fn session_ended(session: &mut Option<ConsoleSession>) {
    match session {
        Some(session) => session.ended().await,
        None => pending().await,
    }
}
