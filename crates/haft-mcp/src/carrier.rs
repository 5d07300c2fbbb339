//! `Carrier`: takes a request to the person behind one MCP call, by the ways that its client has and may use.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use haft::approval::{Answer, ApprovalId, ApprovalRequest, Approver, Decision};
use haft::future::BoxFuture;
use haft::spec::Risk;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::time::Instant;

use crate::asking::InputRequest;
use crate::elicit::{self, ElicitReply, Elicitation, Way};
use crate::era::Era;
use crate::opener::RunFactory;
use crate::progress::ProgressLine;
use crate::replies::{OwnRequest, Replies, Reply};
use crate::seal::MOST_REQUESTS;
use crate::wire::reply;

/// How long a console may take to be found.
const FIND: Duration = Duration::from_secs(10);

/// How often a call that waits says so.
const REMIND: Duration = Duration::from_secs(10);

/// What a call's client can be told, and by which ways.
#[derive(Debug)]
pub(crate) struct Carrier {
    pub(crate) era: Era,
    pub(crate) can: Elicitation,
    /// Its forms may decide: settings name it, and it came with the operator's token.
    pub(crate) trusted: bool,
    /// Knows where the console is.
    pub(crate) opener: Arc<dyn RunFactory>,
    /// The console's address, where there is one; looked for when a person is asked.
    pub(crate) console: OnceLock<String>,
    /// Whether somebody could decide elsewhere: in the console, or in a durable inbox.
    pub(crate) elsewhere: bool,
    /// What goes to the client before the answer.
    pub(crate) notes: Option<mpsc::Sender<Vec<u8>>>,
    /// The call's progress, where the client asked for it.
    pub(crate) line: Option<Arc<ProgressLine>>,
    pub(crate) replies: Arc<Replies>,
    /// What a stateless client brought back.
    pub(crate) back: Back,
    /// When a call without progress stops waiting: before its client gives up.
    pub(crate) until: Instant,
    pub(crate) asked: Mutex<Vec<PendingQuestion>>,
}

/// What a stateless client brought back: the requests that its state names, with what its person did.
#[derive(Debug, Default)]
pub(crate) struct Back(pub(crate) Mutex<Vec<(ApprovalId, ElicitReply)>>);

/// What the client is given to ask.
#[derive(Debug)]
pub(crate) struct PendingQuestion {
    pub(crate) id: ApprovalId,
    /// The params of its `elicitation/create`.
    pub(crate) params: Value,
    /// Until when it can be decided, in nanoseconds since 1970.
    pub(crate) expires: i128,
    way: Way,
}

impl PendingQuestion {
    /// The same as a stateless client gets it with its call's answer.
    pub(crate) fn into_request(self) -> InputRequest {
        InputRequest {
            name: self.id.as_str().to_owned(),
            method: "elicitation/create",
            // A value is always JSON.
            params: serde_json::value::to_raw_value(&self.params).unwrap_or_default(),
        }
    }
}

impl Back {
    /// The first of the requests.
    pub(crate) fn first(&self) -> Option<ApprovalId> {
        let back = self.0.lock();
        back.first().map(|(id, _)| id.clone())
    }

    /// What was brought back for this request, once.
    fn take(&self, id: &ApprovalId) -> Option<ElicitReply> {
        let mut back = self.0.lock();
        let nth = back.iter().position(|(known, _)| known == id)?;
        Some(back.swap_remove(nth).1)
    }
}

impl Approver for Carrier {
    fn ask<'a>(&'a self, request: &'a ApprovalRequest) -> BoxFuture<'a, Answer> {
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

    fn ask_now<'a>(&'a self, request: &'a ApprovalRequest) -> BoxFuture<'a, Answer> {
        if !self.era.is_modern() {
            return self.ask(request);
        }
        // The call's answer, with which the client would be asked, comes when the call waits no longer.
        Box::pin(async move {
            self.find_console().await;
            self.wait(request, false).await
        })
    }
}

/// What a client replied, and to what it was asked.
struct FormReply {
    way: Way,
    said: ElicitReply,
}

impl Carrier {
    /// What the client is given to ask, where it can and may ask anything.
    fn question(&self, request: &ApprovalRequest) -> Option<PendingQuestion> {
        let may = request.is_question() || (self.trusted && request.risk < Risk::Critical);
        let form = || elicit::by_form(request, self.era).filter(|_| self.can.form && may);
        let url = || {
            let address = self.address(request.id.as_str()).filter(|_| self.can.url)?;
            Some(elicit::by_url(request, &address, self.era))
        };
        let (way, params) = match form() {
            Some(params) => (Way::Form, params),
            None => (Way::Url, url()?),
        };
        Some(PendingQuestion {
            id: request.id.clone(),
            params,
            expires: request.expires,
            way,
        })
    }

    /// Looks where people decide. Without it they are asked all the same, in whatever other ways there are.
    async fn find_console(&self) {
        let found = tokio::time::timeout(FIND, self.opener.reach_console()).await;
        if let Ok(Some(console)) = found {
            // Another request of the same call may have found it.
            let _ = self.console.set(console);
        }
    }

    /// Where the request stands in the console.
    pub(crate) fn address(&self, id: &str) -> Option<String> {
        let console = self.console.get()?.trim_end_matches('/');
        Some(format!("{console}/waiting/{id}"))
    }

    /// Asks on the call's own stream, and waits.
    async fn ask_by_stream(
        &self,
        request: &ApprovalRequest,
        question: Option<PendingQuestion>,
    ) -> Answer {
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
        let said = ElicitReply::of(reply.result.as_deref());
        // Whoever said yes to an address is there now: the decision comes from the console.
        let there = way == Way::Url && matches!(said, ElicitReply::Accept(_));
        let said = FormReply { way, said };
        match self.decided(request, said, reply.operator) {
            Some(decision) => decision.into(),
            None => self.wait(request, there).await,
        }
    }

    /// Leaves it to the call's answer to ask; a call that comes back with what was said waits.
    async fn ask_back(
        &self,
        request: &ApprovalRequest,
        question: Option<PendingQuestion>,
    ) -> Answer {
        let Some(question) = question else {
            return self.wait(request, false).await;
        };
        let Some(said) = self.back.take(&request.id) else {
            self.leave(question);
            return Answer::Later;
        };
        let goes_on = matches!(said, ElicitReply::Accept(_)) && question.way == Way::Url;
        // Whether the caller is the operator was looked at when the client was found trusted.
        let way = question.way;
        if let Some(decision) = self.decided(request, FormReply { way, said }, true) {
            return decision.into();
        }
        let answer = self.wait(request, false).await;
        if answer == Answer::Later && goes_on {
            self.leave(question);
        }
        answer
    }

    fn leave(&self, question: PendingQuestion) {
        let mut asked = self.asked.lock();
        if asked.len() < MOST_REQUESTS {
            asked.push(question);
        }
    }

    /// What a form decided: a question's by any client, a call's by one that is trusted.
    fn decided(
        &self,
        request: &ApprovalRequest,
        reply: FormReply,
        operator: bool,
    ) -> Option<Decision> {
        let FormReply { way, said } = reply;
        let is_form = way == Way::Form;
        let may = request.is_question() || (self.trusted && operator);
        let decision = said.decision(request).filter(|_| is_form && may);
        if is_form && decision.is_none() {
            tracing::debug!(id = %request.id, "a form decided nothing");
        }
        decision
    }

    /// Sends the question and waits for the client's answer; none where it cannot be sent.
    async fn elicit(
        &self,
        notes: &mpsc::Sender<Vec<u8>>,
        question: PendingQuestion,
    ) -> Option<Reply> {
        let sent = OwnRequest::send(&self.replies, notes, |id| {
            reply::request(id, "elicitation/create", &question.params)
        });
        let mut sent = sent.await?;
        if question.way == Way::Url {
            self.leave(question);
        }
        sent.answer().await
    }

    /// Waits for a decision made elsewhere. `there`: the person is there, and the client knows that it takes its time.
    async fn wait(&self, request: &ApprovalRequest, there: bool) -> Answer {
        if !self.elsewhere {
            return Answer::Nobody;
        }
        if there || self.line.is_some() {
            self.remind(request).await;
        }
        tokio::time::sleep_until(self.until).await;
        Answer::Later
    }

    /// Says now and then that the call waits, to a client that asked for progress. Never ends.
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
            tokio::time::sleep(REMIND).await;
        }
    }

    /// What the client is to ask with the call's answer (2026-07-28).
    pub(crate) fn take_questions(&self) -> Vec<PendingQuestion> {
        let mut asked = self.asked.lock();
        std::mem::take(&mut *asked)
    }

    /// Tells the client that what it sent its person to is done (2025-11-25).
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
