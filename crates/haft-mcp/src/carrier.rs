//! `ClientApprover`: takes an approval request to the user behind an MCP call, in the ways that the client supports and may use.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use haft::approval::{ApprovalId, ApprovalRequest, Approver, ApproverReply, Decision};
use haft::future::BoxFuture;
use haft::spec::Risk;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::time::Instant;

use crate::client_caller::InputRequest;
use crate::elicit::{self, ElicitReply, Elicitation, ElicitationMode};
use crate::era::Era;
use crate::opener::RunFactory;
use crate::progress::ProgressLine;
use crate::replies::{OwnRequest, Replies, Reply};
use crate::seal::MAX_REQUESTS;
use crate::wire::reply;

/// Time limit for finding a console.
const FIND_TIMEOUT: Duration = Duration::from_secs(10);

/// Interval between reminders that a call is waiting.
const REMINDER_INTERVAL: Duration = Duration::from_secs(10);

/// What a call's client can be asked, and how.
#[derive(Debug)]
pub(crate) struct ClientApprover {
    pub(crate) era: Era,
    pub(crate) can: Elicitation,
    /// Whether its forms may decide: the settings name it, and it has the operator's token.
    pub(crate) trusted: bool,
    /// Knows the console's address.
    pub(crate) opener: Arc<dyn RunFactory>,
    /// The console's address, if there is one; looked up when the user is asked.
    pub(crate) console: OnceLock<String>,
    /// Whether a decision is possible elsewhere: in the console, or in a durable inbox.
    pub(crate) elsewhere: bool,
    /// Sends messages to the client before the response.
    pub(crate) notes: Option<mpsc::Sender<Vec<u8>>>,
    /// The call's progress, if the client asked for it.
    pub(crate) line: Option<Arc<ProgressLine>>,
    pub(crate) replies: Arc<Replies>,
    /// What a stateless client brought back.
    pub(crate) back: ReturnedReplies,
    /// When a call without progress stops waiting: before its client gives up.
    pub(crate) until: Instant,
    pub(crate) questions: Mutex<Vec<PendingQuestion>>,
}

/// What a stateless client brought back: the requests named in its state, with its user's replies.
#[derive(Debug, Default)]
pub(crate) struct ReturnedReplies(pub(crate) Mutex<Vec<(ApprovalId, ElicitReply)>>);

/// A question for the client to ask.
#[derive(Debug)]
pub(crate) struct PendingQuestion {
    pub(crate) id: ApprovalId,
    /// The `params` of its `elicitation/create`.
    pub(crate) params: Value,
    /// When the request expires, in nanoseconds since 1970; until then it can be decided.
    pub(crate) expires: i128,
    way: ElicitationMode,
}

impl PendingQuestion {
    /// Converts it to the request that a stateless client gets with its call's response.
    pub(crate) fn into_request(self) -> InputRequest {
        InputRequest {
            name: self.id.as_str().to_owned(),
            method: "elicitation/create",
            // A value always serializes.
            params: serde_json::value::to_raw_value(&self.params).unwrap_or_default(),
        }
    }
}

impl ReturnedReplies {
    /// Returns the first of the requests.
    pub(crate) fn first(&self) -> Option<ApprovalId> {
        let back = self.0.lock();
        back.first().map(|(id, _)| id.clone())
    }

    /// Takes what was brought back for this request, once.
    fn take(&self, id: &ApprovalId) -> Option<ElicitReply> {
        let mut back = self.0.lock();
        let nth = back.iter().position(|(known, _)| known == id)?;
        Some(back.swap_remove(nth).1)
    }
}

impl Approver for ClientApprover {
    fn ask<'a>(&'a self, request: &'a ApprovalRequest) -> BoxFuture<'a, ApproverReply> {
        Box::pin(async move {
            self.find_console().await;
            let question = self.question(request);
            if self.era.is_modern() {
                self.ask_back(request, question).await
            } else {
                self.ask_by_stream(request, question).await
            }
        })
    }

    fn wait_limit(&self, request: &ApprovalRequest, now: bool) -> Option<Duration> {
        let waits = self.elsewhere && self.line.is_none();
        // A client that is sent a question may take its time.
        let sends = !self.era.is_modern() && self.notes.is_some();
        // Whether there is a console to open is known only when the user is asked.
        let asks = sends && (self.can.url || self.question(request).is_some());
        let brings = self.era.is_modern() && !now && self.question(request).is_some();
        (waits && !asks && !brings).then(|| self.until.saturating_duration_since(Instant::now()))
    }

    fn patience(&self) -> Option<Duration> {
        Some(self.until.saturating_duration_since(Instant::now()))
    }

    fn ask_now<'a>(&'a self, request: &'a ApprovalRequest) -> BoxFuture<'a, ApproverReply> {
        if !self.era.is_modern() {
            return self.ask(request);
        }
        // The response through which the client would be asked comes only when the call stops waiting.
        Box::pin(async move {
            self.find_console().await;
            self.wait(request, false).await
        })
    }
}

/// A client's reply, and how it was asked.
struct FormReply {
    way: ElicitationMode,
    said: ElicitReply,
}

impl ClientApprover {
    /// Returns what the client is to ask, if it can and may ask anything.
    fn question(&self, request: &ApprovalRequest) -> Option<PendingQuestion> {
        // A client may accept a form by itself: what only a person may answer is decided in the console.
        let by_client = self.trusted && request.risk < Risk::Critical && !request.needs_person();
        let may = request.is_question() || by_client;
        let form = || elicit::by_form(request, self.era).filter(|_| self.can.form && may);
        let url = || {
            let address = self.address(request.id.as_str()).filter(|_| self.can.url)?;
            Some(elicit::by_url(request, &address, self.era))
        };
        let (way, params) = match form() {
            Some(params) => (ElicitationMode::Form, params),
            None => (ElicitationMode::Url, url()?),
        };
        Some(PendingQuestion {
            id: request.id.clone(),
            params,
            expires: request.expires,
            way,
        })
    }

    /// Looks for the console. Without it, the user is still asked in whatever other ways there are.
    async fn find_console(&self) {
        let found = tokio::time::timeout(FIND_TIMEOUT, self.opener.reach_console()).await;
        if let Ok(Some(console)) = found {
            // Another request of the same call may have found it.
            let _ = self.console.set(console);
        }
    }

    /// Returns the request's address in the console.
    pub(crate) fn address(&self, id: &str) -> Option<String> {
        let console = self.console.get()?.trim_end_matches('/');
        Some(format!("{console}/waiting/{id}"))
    }

    /// Asks on the call's own stream, and waits.
    async fn ask_by_stream(
        &self,
        request: &ApprovalRequest,
        question: Option<PendingQuestion>,
    ) -> ApproverReply {
        let (Some(question), Some(notes)) = (question, &self.notes) else {
            return self.wait(request, false).await;
        };
        let way = question.way;
        let elicited = self.elicit(notes, question);
        let reply = tokio::select! {
            biased;
            reply = elicited => reply,
            () = self.remind(request) => None,
        };
        let Some(reply) = reply else {
            return self.wait(request, false).await;
        };
        let reply_content = ElicitReply::of(reply.result.as_deref());
        // A user who accepted a URL is in the console now, and the decision comes from there.
        let there = way == ElicitationMode::Url && matches!(reply_content, ElicitReply::Accept(_));
        let reply_content = FormReply {
            way,
            said: reply_content,
        };
        match self.decided(request, reply_content, reply.operator) {
            Some(decision) => decision.into(),
            None => self.wait(request, there).await,
        }
    }

    /// Leaves the question for the call's response; a call that brings back an answer waits.
    async fn ask_back(
        &self,
        request: &ApprovalRequest,
        question: Option<PendingQuestion>,
    ) -> ApproverReply {
        let Some(question) = question else {
            return self.wait(request, false).await;
        };
        let Some(returned) = self.back.take(&request.id) else {
            self.queue_question(question);
            return ApproverReply::Later;
        };
        let continues_in_browser =
            matches!(returned, ElicitReply::Accept(_)) && question.way == ElicitationMode::Url;
        // That the caller is the operator was checked when the client was found to be trusted.
        let way = question.way;
        if let Some(decision) = self.decided(
            request,
            FormReply {
                way,
                said: returned,
            },
            true,
        ) {
            return decision.into();
        }
        let answer = self.wait(request, false).await;
        if answer == ApproverReply::Later && continues_in_browser {
            self.queue_question(question);
        }
        answer
    }

    fn queue_question(&self, question: PendingQuestion) {
        let mut questions = self.questions.lock();
        if questions.len() < MAX_REQUESTS {
            questions.push(question);
        }
    }

    /// Returns what a form decided. Any client's form may answer a question; only a trusted client's may decide about a call.
    fn decided(
        &self,
        request: &ApprovalRequest,
        reply: FormReply,
        operator: bool,
    ) -> Option<Decision> {
        let FormReply { way, said } = reply;
        let is_form = way == ElicitationMode::Form;
        let may = request.is_question() || (self.trusted && operator);
        let decision = said.decision(request).filter(|_| is_form && may);
        if is_form && decision.is_none() {
            tracing::debug!(id = %request.id, "a form decided nothing");
        }
        decision
    }

    /// Sends the question and waits for the client's reply; `None` if it cannot be sent.
    async fn elicit(
        &self,
        notes: &mpsc::Sender<Vec<u8>>,
        question: PendingQuestion,
    ) -> Option<Reply> {
        let sent = OwnRequest::send(&self.replies, notes, |id| {
            reply::request(id, "elicitation/create", &question.params)
        });
        let mut sent = sent.await?;
        if question.way == ElicitationMode::Url {
            self.queue_question(question);
        }
        sent.answer().await
    }

    /// Waits for a decision made elsewhere. `there`: the user is in the console, and the client knows that this takes time.
    async fn wait(&self, request: &ApprovalRequest, there: bool) -> ApproverReply {
        if !self.elsewhere {
            return ApproverReply::Nobody;
        }
        if there || self.line.is_some() {
            self.remind(request).await;
        }
        tokio::time::sleep_until(self.until).await;
        ApproverReply::Later
    }

    /// Reports periodically that the call is waiting, to a client that asked for progress. Never completes.
    async fn remind(&self, request: &ApprovalRequest) {
        let Some(line) = &self.line else {
            return std::future::pending().await;
        };
        let what = match self.address(request.id.as_str()) {
            Some(address) => format!("{}, {address}", request.id),
            None => request.id.to_string(),
        };
        loop {
            line.say(&format!("pending: approval {what}"));
            tokio::time::sleep(REMINDER_INTERVAL).await;
        }
    }

    /// Takes the questions for the client to ask with the call's response (2026-07-28).
    pub(crate) fn take_questions(&self) -> Vec<PendingQuestion> {
        let mut questions = self.questions.lock();
        std::mem::take(&mut *questions)
    }

    /// Tells the client that the interactions it sent its user to are complete (2025-11-25).
    pub(crate) async fn complete(&self) {
        let Some(notes) = self.notes.as_ref().filter(|_| !self.era.is_modern()) else {
            return;
        };
        for PendingQuestion { id, .. } in self.take_questions() {
            let params = json!({"elicitationId": id}).to_string();
            let done = reply::notification("notifications/elicitation/complete", Some(&params));
            let _gone = notes.send(done).await;
        }
    }
}
