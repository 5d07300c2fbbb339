//! `RunWatch`: streams of changes: `subscriptions/listen`, the handshake era's GET stream, and notifications on stdio.

use std::collections::VecDeque;
use std::sync::Arc;

use haft::toolset::ToolsetChanges;
use serde_json::json;
use serde_json::value::RawValue;
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;
use tokio::time::{Instant, timeout_at};

use crate::core::write_tail;
use crate::filter::SubscriptionFilter;
use crate::offer::{OfferChange, OfferRequest, OfferSubscription};
use crate::offered::{self, OfferResult};
use crate::run::ClientRun;
use crate::tasks::{TaskFormat, TaskSubscription};
use crate::wire::RequestId;
use crate::wire::reply;

const SUBSCRIPTION_KEY: &str = "io.modelcontextprotocol/subscriptionId";

/// A change to what a client sees.
#[derive(Debug, Clone)]
pub(crate) enum ListenEvent {
    /// The tools changed.
    Tools,
    /// The prompts changed.
    Prompts,
    /// The resources changed.
    Resources,
    /// The resource with this URI changed.
    Updated(Arc<str>),
    /// A task changed: its whole state, as raw JSON.
    Task(Arc<RawValue>),
    /// The run is over.
    Over,
}

/// Follows a run's lists and resources.
#[derive(Debug)]
pub(crate) struct RunWatch {
    run: Arc<ClientRun>,
    filter: SubscriptionFilter,
    listed: Option<ToolsetChanges>,
    offered: Option<Receiver<OfferChange>>,
    tasks: Option<TaskSubscription>,
    /// Keeps the updates for the filter's resources coming.
    held: Vec<OfferSubscription>,
    next: VecDeque<ListenEvent>,
}

impl RunWatch {
    /// Follows, from now on, what passes the filter and what the run is subscribed to.
    pub(crate) fn new(run: &Arc<ClientRun>, filter: SubscriptionFilter) -> Self {
        let offer = run.offer();
        Self {
            listed: filter.tools.then(|| run.session.changes()),
            offered: offer.and_then(|offer| offer.changes(&run.session)),
            tasks: None,
            held: Vec::new(),
            next: VecDeque::new(),
            run: Arc::clone(run),
            filter,
        }
    }

    /// Follows changes for a stateless stream; removes from the filter what is not available.
    pub(crate) async fn subscribe(run: &Arc<ClientRun>, mut filter: SubscriptionFilter) -> Self {
        let kinds = offered::kinds(run);
        filter.prompts &= kinds.prompts;
        filter.resources &= kinds.resources;
        let ids = std::mem::take(&mut filter.tasks);
        let followed = TaskSubscription::new(run.tasks(), ids, run.task_caller());
        if let Some(followed) = &followed {
            filter.tasks = followed.ids().to_vec();
        }
        let mut uris = std::mem::take(&mut filter.uris);
        if !kinds.subscriptions {
            uris.clear();
        }
        // Listen before subscribing, so that nothing is missed in between.
        let mut watch = Self::new(run, filter);
        watch.tasks = followed;
        watch.follow(uris).await;
        watch
    }

    /// Follows those of the resources that this client may read. Leaves out any that need a user's approval, or that take longer
    /// than the time for which a call is held: a client waits for the stream to begin.
    async fn follow(&mut self, uris: Vec<String>) {
        let run = Arc::clone(&self.run);
        let until = Instant::now() + run.hold();
        for uri in uris {
            if self.filter.uris.contains(&uri) {
                continue;
            }
            let wanted = OfferRequest::Subscribe { uri: uri.clone() };
            let given = timeout_at(until, offered::get_alone(&run, &wanted)).await;
            if matches!(given, Ok(Ok(OfferResult::Result(_)))) {
                let offer = run.offer();
                self.held
                    .extend(offer.and_then(|offer| offer.follow(&run.session, &uri)));
                self.filter.uris.push(uri);
            }
        }
    }

    /// Returns what it follows.
    pub(crate) fn filter(&self) -> &SubscriptionFilter {
        &self.filter
    }

    /// Waits for the next change.
    pub(crate) async fn next(&mut self) -> ListenEvent {
        loop {
            if let Some(change) = self.next.pop_front() {
                return change;
            }
            let tools = async {
                match &mut self.listed {
                    Some(changes) => changes.changed().await,
                    None => std::future::pending().await,
                }
            };
            let offered = async {
                match &mut self.offered {
                    Some(changes) => changes.recv().await,
                    None => std::future::pending().await,
                }
            };
            let followed = async {
                match &mut self.tasks {
                    Some(tasks) => tasks.next().await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                () = self.run.over() => return ListenEvent::Over,
                () = tools => return ListenEvent::Tools,
                task = followed => {
                    let mut json = Vec::new();
                    task.write(&mut json, TaskFormat::Notice, None);
                    let json = String::from_utf8(json).ok();
                    if let Some(json) = json.and_then(|json| RawValue::from_string(json).ok()) {
                        return ListenEvent::Task(json.into());
                    }
                }
                heard = offered => match heard {
                    Ok(change) => self.write_change(change),
                    Err(RecvError::Lagged(_)) => self.write_all_changed(),
                    Err(RecvError::Closed) => self.offered = None,
                },
            }
        }
    }

    fn write_change(&mut self, change: OfferChange) {
        let change = match change {
            OfferChange::Prompts if self.filter.prompts => ListenEvent::Prompts,
            OfferChange::Resources if self.filter.resources => ListenEvent::Resources,
            OfferChange::Updated(uri) if self.follows(&uri) => ListenEvent::Updated(uri),
            _ => return,
        };
        self.next.push_back(change);
    }

    fn follows(&self, uri: &str) -> bool {
        self.filter.uris.iter().any(|one| one == uri) || self.run.subscribed().contains_key(uri)
    }

    /// Reports a change of everything, when individual changes were missed.
    fn write_all_changed(&mut self) {
        self.write_change(OfferChange::Prompts);
        self.write_change(OfferChange::Resources);
        let mut uris = self.filter.uris.clone();
        uris.extend(self.run.subscribed().keys().cloned());
        for uri in uris {
            self.next.push_back(ListenEvent::Updated(uri.into()));
        }
    }
}

impl ListenEvent {
    /// Returns the notification, for a subscription's stream if there is one; `None` for the end.
    pub(crate) fn notification(&self, subscription: Option<&RequestId>) -> Option<Vec<u8>> {
        let meta =
            subscription.map(|id| format!("\"_meta\":{{\"{SUBSCRIPTION_KEY}\":{}}}", id.as_str()));
        let (method, uri) = match self {
            Self::Tools => ("notifications/tools/list_changed", None),
            Self::Prompts => ("notifications/prompts/list_changed", None),
            Self::Resources => ("notifications/resources/list_changed", None),
            Self::Updated(uri) => ("notifications/resources/updated", Some(uri)),
            Self::Task(task) => {
                let body = task.get().strip_suffix('}').unwrap_or_default();
                let params = format!(
                    "{body},{}}}",
                    meta.unwrap_or_else(|| "\"_meta\":{}".to_owned())
                );
                return Some(reply::notification("notifications/tasks", Some(&params)));
            }
            Self::Over => return None,
        };
        let uri = uri.map(|uri| format!("\"uri\":{}", json!(&**uri)));
        let members: Vec<String> = uri.into_iter().chain(meta).collect();
        let params = (!members.is_empty()).then(|| format!("{{{}}}", members.join(",")));
        Some(reply::notification(method, params.as_deref()))
    }
}

/// Returns the first frame of a `subscriptions/listen` stream, which says what will be sent.
pub(crate) fn acknowledged(id: &RequestId, filter: &SubscriptionFilter) -> Vec<u8> {
    let mut will = serde_json::Map::new();
    for (name, wanted) in [
        ("toolsListChanged", filter.tools),
        ("promptsListChanged", filter.prompts),
        ("resourcesListChanged", filter.resources),
    ] {
        if wanted {
            will.insert(name.to_owned(), true.into());
        }
    }
    if !filter.uris.is_empty() {
        will.insert("resourceSubscriptions".to_owned(), json!(filter.uris));
    }
    if !filter.tasks.is_empty() {
        will.insert("taskIds".to_owned(), json!(filter.tasks));
    }
    let (id, will) = (id.as_str(), serde_json::Value::Object(will));
    let params = format!("{{\"notifications\":{will},\"_meta\":{{\"{SUBSCRIPTION_KEY}\":{id}}}}}");
    reply::notification("notifications/subscriptions/acknowledged", Some(&params))
}

/// Returns the last frame of a `subscriptions/listen` stream, for an orderly end.
pub(crate) fn finished(id: &RequestId, server: &RawValue) -> Vec<u8> {
    let mut out = reply::begin(id, 192);
    out.extend_from_slice(b"{\"resultType\":\"complete\",\"_meta\":{\"");
    out.extend_from_slice(SUBSCRIPTION_KEY.as_bytes());
    out.extend_from_slice(b"\":");
    out.extend_from_slice(id.as_str().as_bytes());
    out.push(b',');
    write_tail(&mut out, server);
    out.extend_from_slice(b"}}");
    reply::end(&mut out);
    out
}
