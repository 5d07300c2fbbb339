//! Ask: stores the request before it asks anyone, waits for a decision, and claims it once before anything runs.

use std::future::{pending, poll_fn};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;
use tokio::time::Instant;

use crate::approval::inbox::{
    InboxError, RequestEnding, RequestStatus, StoredApproval, Submission, WaitingCalls,
};
use crate::approval::review::Review;
use crate::approval::{ApprovalId, ApprovalRequest, Approver, ApproverReply, Decision};
use crate::error::ErrorKind;
use crate::executor::ExecutorParts;
use crate::executor::claim::{RequestClaim, repeat_outcome};
use crate::executor::early_end::EarlyEnd;
use crate::executor::noted::note_waiting;
use crate::future::BoxFuture;
use crate::session::nest::CallScope;
use crate::session::{Session, WaitMode};
use crate::spec::CallPhrases;

mod decision_wait;
mod no_decision;
mod review;

pub(super) use decision_wait::DecisionWait;
use decision_wait::WaitFallback;
use no_decision::{
    because, decision_timeout, no_approver, not_decided_in_time, too_many_pending, withdrawn,
};
pub(super) use no_decision::{in_doubt, not_recorded};

/// Wait before retrying an inbox that does not answer.
const RETRY_DELAY: Duration = Duration::from_millis(500);

/// Maximum time an approver may take to be notified of a request that no call waits for.
const NOTIFY_TIMEOUT: Duration = Duration::from_secs(5);

/// Why a request is withdrawn whose call is gone.
const GONE: &str = "the call ended before the decision";

/// Why a request is withdrawn whose call was denied.
const LATE: &str = "nobody decided while the call waited";

/// Why an approval is void.
const CHANGED: &str = "the call would no longer do what was shown";

/// A decided request.
pub(super) struct DecidedRequest {
    /// The request as it was stored.
    pub(super) request: ApprovalRequest,
    pub(super) decision: Decision,
}

/// A decision that one call has claimed and acts on.
pub(super) struct ClaimedDecision {
    pub(super) decided: DecidedRequest,
    /// The claim, to be finished with the call's outcome.
    pub(super) claimed: RequestClaim,
}

impl ClaimedDecision {
    /// Wraps a decided request that was just claimed.
    pub(super) fn of(
        inbox: &Arc<dyn WaitingCalls>,
        entry: StoredApproval,
    ) -> Result<Self, InboxError> {
        let id = &entry.request.id;
        let claimed = RequestClaim::new(inbox, id);
        let decision = entry.decision.ok_or_else(|| InboxError::Open(id.clone()))?;
        let decided = DecidedRequest {
            request: entry.request,
            decision,
        };
        Ok(Self { decided, claimed })
    }
}

/// What came of asking.
pub(super) struct AskResult {
    /// The decision, claimed.
    pub(super) decision: Result<ClaimedDecision, EarlyEnd>,
    /// What a reviewer said of the request.
    pub(super) review: Option<Box<Review>>,
}

impl From<EarlyEnd> for AskResult {
    fn from(stop: EarlyEnd) -> Self {
        Self {
            decision: Err(stop),
            review: None,
        }
    }
}

/// Returns whether a call of this session can get a decision: from an approver now, or from an operator who opens the inbox later.
pub(super) fn can_get_decision(parts: &ExecutorParts, session: &Session) -> bool {
    if session.wait_mode() == WaitMode::DenyAtOnce {
        return false;
    }
    let anyone = parts.approver.is_some() || parts.reviewer.is_some();
    parts.inbox.is_durable() || anyone || session.approver().is_some()
}

/// Returns the decision that an approver has without asking a user, if any. Where only a person may answer, nothing that decides by
/// itself is consulted.
pub(super) fn automatic(
    parts: &ExecutorParts,
    session: &Session,
    request: &ApprovalRequest,
) -> Option<Decision> {
    let mut approvers = approvers(parts, session);
    approvers.find_map(|approver| {
        let elsewhere = approver.existing_decision(request);
        let may = !request.needs_person();
        elsewhere.or_else(|| approver.automatic(request).filter(|_| may))
    })
}

fn approvers<'a>(
    parts: &'a ExecutorParts,
    session: &'a Session,
) -> impl Iterator<Item = &'a Arc<dyn Approver>> {
    parts.approver.iter().chain(session.approver())
}

/// Stores the request, asks, waits, and claims the decision. Identical calls of the same run share one request.
pub(super) async fn ask(
    parts: &ExecutorParts,
    session: &Session,
    nest: &CallScope,
    request: ApprovalRequest,
    wait: DecisionWait<'_>,
) -> AskResult {
    let stored = store(parts, session, nest, request, wait).await;
    match stored {
        Ok(mut open_request) => {
            let decision = open_request.run(parts).await;
            let review = open_request.request.review.take();
            AskResult { decision, review }
        }
        Err(stop) => stop.into(),
    }
}

/// Stores the request, or finds the one that an identical call has stored.
async fn store<'a>(
    parts: &'a ExecutorParts,
    session: &'a Session,
    nest: &'a CallScope,
    request: ApprovalRequest,
    wait: DecisionWait<'a>,
) -> Result<OpenRequest<'a>, EarlyEnd> {
    let inbox = &parts.inbox;
    let place = session
        .queue()
        .place(&**inbox, &request, session.is_resumed());
    let place = place.await.map_err(|e| not_recorded(&e))?;
    let place = place.ok_or_else(|| too_many_pending(&request))?;
    let changes = inbox.changes();
    session.note_asked();
    // From here on, dropping this withdraws the request: it may be stored even if the inbox reports a failure.
    let mut open_request = OpenRequest {
        inbox,
        session,
        nest,
        phrases: parts.phrases(&request),
        request,
        changes,
        wait,
        deadline: Instant::now() + wait.limit,
        waits: true,
    };
    // Before the request is stored: if this process dies at any moment after that, the call is found when it is made again.
    let noted = note_waiting(parts, session, nest, &open_request.request).await;
    noted.map_err(|e| not_recorded(&e))?;
    let filed = inbox.submit(&open_request.request).await;
    if let Submission::Existing(entry) = filed.map_err(|e| not_recorded(&e))? {
        let noted = note_waiting(parts, session, nest, &entry.request).await;
        noted.map_err(|e| not_recorded(&e))?;
        if entry.status == RequestStatus::Pending {
            // The request stays valid even if this process cannot note that it waits, too.
            let _ = inbox.set_attended(&entry.request.id, true).await;
        }
        open_request.request = entry.request;
    }
    drop(place);
    // The wait for a decision begins once the request is stored.
    open_request.deadline = Instant::now() + wait.limit;
    Ok(open_request)
}

/// A request that this call waits for. Dropping it while the call waits withdraws the request; if the session leaves
/// and the inbox is durable, the request stays pending instead.
struct OpenRequest<'a> {
    inbox: &'a Arc<dyn WaitingCalls>,
    session: &'a Session,
    /// The state of the call.
    nest: &'a CallScope,
    request: ApprovalRequest,
    /// What is said of the call where it did not run.
    phrases: CallPhrases,
    changes: Receiver<ApprovalId>,
    wait: DecisionWait<'a>,
    deadline: Instant,
    waits: bool,
}

/// The event that ended a wait.
enum WakeReason {
    /// The request may have changed.
    Poll,
    /// An approver answered.
    Answered(ApproverReply),
    /// The deadline has passed.
    TimedOut,
    /// The session is leaving.
    SessionLeft,
    /// The session was cancelled.
    Cancelled,
}

impl OpenRequest<'_> {
    async fn run(&mut self, parts: &ExecutorParts) -> Result<ClaimedDecision, EarlyEnd> {
        // Boxed: few processes have a reviewer, and the future of every call that asks would be as large.
        if Box::pin(self.review(parts)).await && self.wait.ahead && self.inbox.is_durable() {
            return self.leave_decided().await;
        }
        let own = self.request.clone();
        let mut asking = Box::pin(first_answer(parts, self.session, &own));
        let mut spoken = false;
        // No approver in this process can answer, and the session waits for no others.
        let idle = !self.wait.alone && approvers(parts, self.session).next().is_none();
        loop {
            if let Some(claimed) = self.try_claim().await? {
                return Ok(claimed);
            }
            if self.inbox.is_durable() && (self.wait.at_once || idle) {
                notify(parts, self.session, &own).await;
                return self.suspend().await;
            }
            let woken = self.next_event((!spoken).then_some(asking.as_mut())).await;
            match woken {
                WakeReason::Poll => {}
                WakeReason::Answered(ApproverReply::Later)
                    if self.wait.then == WaitFallback::Withdraw =>
                {
                    return self.give_up().await;
                }
                WakeReason::Answered(ApproverReply::Later) => return self.suspend().await,
                WakeReason::Answered(ApproverReply::Nobody) => {
                    spoken = true;
                    if !self.inbox.is_durable() {
                        return Err(self.withdraw(no_approver(&self.request)).await);
                    }
                    if !self.wait.alone {
                        return self.suspend().await;
                    }
                }
                WakeReason::Answered(ApproverReply::Decided(decision)) => {
                    spoken = true;
                    self.store_decision(&decision).await?;
                }
                WakeReason::TimedOut if self.suspends() => return self.suspend().await,
                WakeReason::TimedOut => {
                    let _ = self
                        .inbox
                        .end(&self.request.id, RequestEnding::Expired, "")
                        .await;
                    // One that another call runs does not expire: its end is waited for, and looked for in case its process exits.
                    self.deadline = Instant::now() + RETRY_DELAY;
                }
                WakeReason::SessionLeft if self.stays_pending() => return self.suspend().await,
                WakeReason::SessionLeft | WakeReason::Cancelled => {
                    let why = "the session ended before the request was decided";
                    return Err(self
                        .withdraw(EarlyEnd::failed(ErrorKind::Cancelled, why))
                        .await);
                }
            }
        }
    }

    /// Returns whether the request stays pending for a later decision when the session leaves.
    fn stays_pending(&self) -> bool {
        self.inbox.is_durable() && self.wait.then != WaitFallback::Withdraw
    }

    fn suspends(&self) -> bool {
        self.inbox.is_durable() && self.wait.then == WaitFallback::Suspend
    }

    /// Reads the request: claims the decision if there is one, and returns an error if the request has ended.
    async fn try_claim(&mut self) -> Result<Option<ClaimedDecision>, EarlyEnd> {
        let Some(entry) = self.read().await? else {
            let not_found = InboxError::NotFound(self.request.id.clone());
            return Err(not_recorded(&not_found));
        };
        match entry.status {
            RequestStatus::Pending | RequestStatus::Running if entry.outcome.is_none() => Ok(None),
            RequestStatus::Expired => {
                Err(self.end_wait(decision_timeout(&self.request, self.wait.limit)))
            }
            RequestStatus::Withdrawn => Err(self.end_wait(withdrawn(&entry, self.phrases))),
            RequestStatus::InDoubt => Err(self.end_wait(in_doubt(&self.request.id, self.phrases))),
            // The answer to a question goes to every call that asks it, however often.
            RequestStatus::Answered | RequestStatus::Denied if self.request.is_question() => {
                let _ = self.inbox.claim(&self.request.id).await;
                self.claim(entry).map(Some)
            }
            // A second identical call gets the same denial.
            RequestStatus::Denied if entry.claimed => self.claim(entry).map(Some),
            _ if entry.outcome.is_some() => Err(self.deliver(&entry).await),
            // The same answer: the process that claimed it may have exited, and nothing runs on it.
            RequestStatus::Answered if entry.claimed => self.claim(entry).map(Some),
            RequestStatus::Approved if !self.fits(&entry).await? => Ok(None),
            _ => match self.inbox.claim(&self.request.id).await {
                Ok(entry) => self.claim(entry).map(Some),
                // Another call runs it and will deliver the outcome.
                Err(InboxError::Claimed(_)) => Ok(None),
                Err(error) => Err(self.end_wait(not_recorded(&error))),
            },
        }
    }

    /// Returns whether an approval holds for this call. If it does not, the request is voided, so that nothing runs on it. Returns
    /// false if another call claimed it first.
    async fn fits(&mut self, entry: &StoredApproval) -> Result<bool, EarlyEnd> {
        let Err(conflict) = (self.wait.fits)(&entry.request) else {
            return Ok(true);
        };
        let ended = self.end(RequestEnding::Void, CHANGED).await;
        ended.map_err(|error| not_recorded(&error))?;
        match self.read().await? {
            Some(entry) if entry.status != RequestStatus::Withdrawn => Ok(false),
            Some(_) | None => Err(self.end_wait(conflict)),
        }
    }

    fn claim(&mut self, entry: StoredApproval) -> Result<ClaimedDecision, EarlyEnd> {
        self.waits = false;
        ClaimedDecision::of(self.inbox, entry).map_err(|e| not_recorded(&e))
    }

    /// Returns the outcome of a request that another call or process ran.
    async fn deliver(&mut self, entry: &StoredApproval) -> EarlyEnd {
        self.waits = false;
        // It is delivered even if the inbox cannot note it.
        let _ = self.inbox.deliver(&self.request.id).await;
        repeat_outcome(&self.request.id, entry.outcome.as_deref())
    }

    /// Ends the wait without withdrawing the request.
    fn end_wait(&mut self, stop: EarlyEnd) -> EarlyEnd {
        self.waits = false;
        stop
    }

    /// Reads the request, retrying until the inbox answers or the deadline passes.
    async fn read(&self) -> Result<Option<StoredApproval>, EarlyEnd> {
        loop {
            match self.inbox.get(&self.request.id).await {
                Ok(entry) => return Ok(entry),
                Err(error) if Instant::now() >= self.deadline => return Err(not_recorded(&error)),
                Err(error) => {
                    tracing::warn!(%error, id = %self.request.id, "read a request");
                    tokio::select! {
                        () = tokio::time::sleep(RETRY_DELAY) => {}
                        () = self.session.cancellation().cancelled() => return Err(not_recorded(&error)),
                    }
                }
            }
        }
    }

    /// Waits for the first event that could matter.
    async fn next_event(
        &mut self,
        asking: Option<Pin<&mut (dyn Future<Output = ApproverReply> + Send + '_)>>,
    ) -> WakeReason {
        let mut asking = asking;
        let asking = async {
            match asking.as_mut() {
                Some(asking) => asking.as_mut().await,
                None => pending().await,
            }
        };
        tokio::select! {
            biased;
            () = self.session.waits_cancelled().cancelled() => WakeReason::SessionLeft,
            () = self.session.cancellation().cancelled() => WakeReason::Cancelled,
            () = wait_for_change(&mut self.changes, &self.request.id) => WakeReason::Poll,
            answer = asking => WakeReason::Answered(answer),
            () = tokio::time::sleep_until(self.deadline) => WakeReason::TimedOut,
        }
    }

    /// Stores an approver's decision, unless another one came first.
    async fn store_decision(&mut self, decision: &Decision) -> Result<(), EarlyEnd> {
        match self.inbox.decide(&self.request.id, decision).await {
            Ok(_) | Err(InboxError::Decided { .. } | InboxError::Over { .. }) => Ok(()),
            Err(error) => Err(self.withdraw(not_recorded(&error)).await),
        }
    }

    /// Leaves the request pending for a later decision; one made at this very moment is still claimed.
    async fn suspend(&mut self) -> Result<ClaimedDecision, EarlyEnd> {
        self.waits = false;
        let left = self.inbox.set_attended(&self.request.id, false).await;
        left.map_err(|e| not_recorded(&e))?;
        self.deadline = Instant::now();
        match self.try_claim().await? {
            Some(taken) => Ok(taken),
            None => Err(EarlyEnd::suspended(&self.request)),
        }
    }

    /// Leaves the decision to the process that makes the call.
    async fn leave_decided(&mut self) -> Result<ClaimedDecision, EarlyEnd> {
        self.waits = false;
        let left = self.inbox.set_attended(&self.request.id, false).await;
        left.map_err(|e| not_recorded(&e))?;
        Err(EarlyEnd::suspended(&self.request))
    }

    /// Withdraws a request that got no decision while the call could wait; one made at this very moment is still claimed.
    async fn give_up(&mut self) -> Result<ClaimedDecision, EarlyEnd> {
        let stop = not_decided_in_time(&self.request);
        if self.end(RequestEnding::Withdrawn, LATE).await.is_err() {
            // Dropping this tries to withdraw it again.
            return Err(stop);
        }
        self.deadline = Instant::now();
        let entry = self.read().await?;
        if entry.is_none_or(|entry| entry.status == RequestStatus::Withdrawn) {
            return Err(self.end_wait(stop));
        }
        match self.try_claim().await? {
            Some(taken) => Ok(taken),
            None => Err(self.end_wait(stop)),
        }
    }

    async fn withdraw(&mut self, stop: EarlyEnd) -> EarlyEnd {
        let _ = self.end(RequestEnding::Withdrawn, GONE).await;
        self.end_wait(stop)
    }

    /// Ends the request without its call: `why` says what ended it.
    async fn end(&self, ending: RequestEnding, why: &str) -> Result<(), InboxError> {
        let why = because(why, self.phrases);
        self.inbox.end(&self.request.id, ending, &why).await
    }
}

impl Drop for OpenRequest<'_> {
    fn drop(&mut self) {
        if !self.waits {
            return;
        }
        let (inbox, id) = (Arc::clone(self.inbox), self.request.id.clone());
        let left = self.session.waits_cancelled().is_cancelled() && self.stays_pending();
        self.nest.outermost().repeat().is_left |= left;
        let gone = because(GONE, self.phrases);
        // Without a runtime the process is exiting: the request stays, and expires in its time.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move {
                if left {
                    inbox.set_attended(&id, false).await
                } else {
                    inbox.end(&id, RequestEnding::Withdrawn, &gone).await
                }
            });
        }
    }
}

/// Completes when this request has changed, or when the receiver lagged and may have missed it.
async fn wait_for_change(changes: &mut Receiver<ApprovalId>, id: &ApprovalId) {
    loop {
        match changes.recv().await {
            Ok(changed) if changed != *id => {}
            Ok(_) | Err(RecvError::Lagged(_)) => return,
            Err(RecvError::Closed) => tokio::time::sleep(RETRY_DELAY).await,
        }
    }
}

/// Returns the first answer of any approver; `Nobody` if all of them say so.
async fn first_answer<'a>(
    parts: &'a ExecutorParts,
    session: &'a Session,
    request: &'a ApprovalRequest,
) -> ApproverReply {
    let now = session.wait_mode() == WaitMode::WaitThenWithdraw;
    let ask = |approver: &'a Arc<dyn Approver>| {
        if now {
            approver.ask_now(request)
        } else {
            approver.ask(request)
        }
    };
    let mut answers: Vec<Option<BoxFuture<'_, ApproverReply>>> = approvers(parts, session)
        .map(|approver| Some(ask(approver)))
        .collect();
    poll_fn(|cx| {
        for slot in &mut answers {
            let Some(future) = slot else { continue };
            match future.as_mut().poll(cx) {
                Poll::Ready(ApproverReply::Nobody) => *slot = None,
                Poll::Ready(answer) => return Poll::Ready(answer),
                Poll::Pending => {}
            }
        }
        if answers.iter().all(Option::is_none) {
            return Poll::Ready(ApproverReply::Nobody);
        }
        Poll::Pending
    })
    .await
}

/// Notifies the approvers, which pass requests on, that a request is pending.
async fn notify(parts: &ExecutorParts, session: &Session, request: &ApprovalRequest) {
    for approver in approvers(parts, session) {
        let notified = pin!(approver.notify(request));
        if tokio::time::timeout(NOTIFY_TIMEOUT, notified)
            .await
            .is_err()
        {
            tracing::warn!(id = %request.id, "an approver did not get a request in time");
        }
    }
}
