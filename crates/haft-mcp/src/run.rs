//! `ClientRun`: a governed session with its protocol era and its requests in progress.

use std::collections::{BTreeMap, HashSet};
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use haft::approval::ApprovalId;
use haft::approval::inbox::RequestStatus;
use haft::bounds::PrincipalShares;
use haft::caller::LogLevel;
use haft::executor::Executor;
use haft::session::Session;
use haft::skill::Skill;
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::{OnceCell, watch};

use crate::era::Era;
use crate::in_flight::InFlightRequests;
use crate::offer::{Offer, OfferSubscription};
use crate::opener::{ClientInfo, RunFactory};
use crate::owner::DetachedCalls;
use crate::parked::ParkedCalls;
use crate::replies::Replies;
use crate::seal::Seal;
use crate::tasks::{CallTasks, TaskCaller};
use crate::wire::RpcError;

mod calling;

pub(crate) use calling::{ClientCall, ClientCallEnd};

/// How often a request is checked even though no change was reported.
const CHECK_INTERVAL: Duration = Duration::from_secs(60);

/// The resources that a client is subscribed to, with what keeps their updates coming.
type ResourceSubscriptions = BTreeMap<String, Option<OfferSubscription>>;

/// A run as the transports hold it.
#[derive(Debug)]
pub(crate) struct ClientRun {
    pub(crate) executor: Executor,
    pub(crate) session: Session,
    pub(crate) era: Era,
    pub(crate) in_flight: InFlightRequests,
    /// Answers to this server's requests.
    pub(crate) replies: Arc<Replies>,
    /// What the client said when it connected.
    pub(crate) client: ClientInfo,
    /// The requests that keep the run open until they are decided.
    pending_approvals: Mutex<HashSet<ApprovalId>>,
    /// The lowest level of log messages that a handshake-era client wants.
    log: Arc<AtomicU8>,
    /// The resources that such a client is subscribed to.
    subscribed: Mutex<ResourceSubscriptions>,
    /// Its calls that continue while their client is away.
    working: DetachedCalls,
    shared: SharedRunState,
    /// Set once its record has begun, with its first call.
    begun: OnceCell<()>,
    /// Whether the client was told of prompts.
    told_prompts: AtomicBool,
    ended: watch::Sender<bool>,
}

/// State that a server's runs share.
#[derive(Debug, Clone)]
pub(crate) struct SharedRunState {
    pub(crate) opener: Arc<dyn RunFactory>,
    /// Created on first use.
    pub(crate) seal: Arc<OnceLock<Option<Seal>>>,
    /// How long a call without progress waits for an approval.
    pub(crate) hold: Duration,
    /// The bytes of progress that clients have not received yet.
    pub(crate) untaken: PrincipalShares,
    /// Calls that wait for their clients.
    pub(crate) parked: Arc<ParkedCalls>,
    /// Calls that became tasks.
    pub(crate) tasks: Arc<CallTasks>,
    /// The time after which a call becomes a task.
    pub(crate) task_after: Duration,
}

impl SharedRunState {
    /// Returns the seal for states; `None` if the system provides no random bytes, in which case states cannot be used for asking.
    fn seal(&self) -> Option<&Seal> {
        let make = || Seal::new(self.opener.state_key());
        self.seal.get_or_init(make).as_ref()
    }
}

impl ClientRun {
    pub(crate) fn new(
        executor: Executor,
        session: Session,
        client: ClientInfo,
        shared: SharedRunState,
    ) -> Self {
        Self {
            executor,
            session,
            era: client.era,
            client,
            shared,
            replies: Arc::default(),
            pending_approvals: Mutex::default(),
            log: Arc::new(AtomicU8::new(LogLevel::Info as u8)),
            subscribed: Mutex::default(),
            working: DetachedCalls::default(),
            in_flight: InFlightRequests::default(),
            begun: OnceCell::new(),
            told_prompts: AtomicBool::new(false),
            ended: watch::Sender::new(false),
        }
    }

    /// Waits until a request of this run is decided and acted on, or no longer can be, or the run is over.
    pub(crate) async fn settled(&self, id: &ApprovalId) {
        if !self.lock_pending().insert(id.clone()) {
            // Another task is already waiting for it.
            return;
        }
        let inbox = self.executor.inbox();
        let mut changes = inbox.changes();
        let watching = async {
            while let Ok(Some(entry)) = inbox.get(id).await
                && matches!(
                    entry.status,
                    RequestStatus::Approved | RequestStatus::Running | RequestStatus::Pending
                )
                && (entry.is_open() || entry.status != RequestStatus::Pending)
            {
                tokio::select! {
                    () = tokio::time::sleep(CHECK_INTERVAL) => {}
                    heard = async {
                        while changes.recv().await.is_ok_and(|changed| changed != *id) {}
                    } => heard,
                }
            }
        };
        tokio::select! {
            () = watching => {}
            () = self.over() => {}
        }
        self.lock_pending().remove(id);
    }

    fn lock_pending(&self) -> MutexGuard<'_, HashSet<ApprovalId>> {
        self.pending_approvals.lock()
    }

    /// Returns the skills that this run may be shown.
    pub(crate) async fn skills(&self) -> Result<Vec<Skill>, RpcError> {
        let opener = Arc::clone(&self.shared.opener);
        let found = tokio::task::spawn_blocking(move || opener.skills()).await;
        let mut skills = found.map_err(|error| {
            tracing::error!(%error, "look for skills");
            RpcError::new(RpcError::INTERNAL, "the skills could not be read")
        })?;
        skills.retain(|skill| self.session.sees_skill(skill.name()));
        Ok(skills)
    }

    /// Begins the run's record, once: before its first call, since a client may come and go without one.
    pub(crate) async fn begin(&self) -> Result<(), RpcError> {
        let begun = self.begun.get_or_try_init(|| async {
            // A run that cannot be recorded is not started.
            self.shared.opener.start(&self.session).await
        });
        match begun.await {
            Ok(()) => Ok(()),
            Err(error) => Err(RpcError::new(RpcError::INTERNAL, error.to_string())),
        }
    }

    /// Returns whether its record has begun.
    pub(crate) fn has_begun(&self) -> bool {
        self.begun.initialized()
    }

    /// Returns whether it takes no more calls: its budget is used up, or a user stopped it.
    pub(crate) fn is_over(&self) -> bool {
        self.session.is_spent() || self.session.cancellation().is_cancelled()
    }

    /// Notes that the client is told of prompts.
    pub(crate) fn note_prompts_announced(&self) {
        self.told_prompts.store(true, Ordering::Relaxed);
    }

    /// Returns whether the client was told of prompts.
    pub(crate) fn has_announced_prompts(&self) -> bool {
        self.told_prompts.load(Ordering::Relaxed)
    }

    /// Tells the host about a message that never became a call.
    pub(crate) fn refused(&self, reason: &str) {
        self.shared.opener.refused(&self.session, reason);
    }

    /// Returns whether any of its calls continues while its client is away.
    pub(crate) fn is_at_work(&self) -> bool {
        self.working.any()
    }

    /// Sets the level of log messages that the client wants from now on.
    pub(crate) fn set_log(&self, level: LogLevel) {
        self.log.store(level as u8, Ordering::Relaxed);
    }

    /// Returns whether the host says that calls of one of its tools are tasks from the start.
    pub(crate) fn host_says_only_task(&self, tool: &str) -> bool {
        self.shared.opener.is_only_task(tool)
    }

    /// Returns what clients are offered besides tools, skills and artifacts.
    pub(crate) fn offer(&self) -> Option<Arc<dyn Offer>> {
        self.shared.opener.offer()
    }

    /// Returns the calls of all clients that became tasks.
    pub(crate) fn tasks(&self) -> &Arc<CallTasks> {
        &self.shared.tasks
    }

    /// Returns who asks about tasks in this run.
    pub(crate) fn task_caller(&self) -> TaskCaller<'_> {
        TaskCaller {
            principal: self.session.principal(),
            class: self.client.class,
        }
    }

    /// Returns the resources that the client is subscribed to.
    pub(crate) fn subscribed(&self) -> MutexGuard<'_, ResourceSubscriptions> {
        self.subscribed.lock()
    }

    /// Returns how long a call without progress waits for an approval.
    pub(crate) fn hold(&self) -> Duration {
        self.shared.hold
    }

    /// Waits until the run is over.
    pub(crate) async fn over(&self) {
        let mut ended = self.ended.subscribe();
        // The sender lives in `self`, so waiting cannot fail.
        let _closed = ended.wait_for(|ended| *ended).await;
    }

    /// Cancels the requests in progress, ends its streams and releases the run, once.
    pub(crate) fn end(&self) {
        let first = self.ended.send_if_modified(|ended| {
            let first = !*ended;
            *ended = true;
            first
        });
        if first {
            // Pending approvals remain pending without the client: calls that wait for them end suspended, which others can resume.
            self.session.suspend();
            self.in_flight.leave_all();
            self.subscribed().clear();
            self.shared.opener.release(&self.session);
        }
    }
}
