//! Review: a model says what it thinks of a stored request before a person is asked, once, whatever becomes of this process.

use std::pin::pin;
use std::sync::Arc;

use tokio::time::timeout;

use crate::approval::inbox::{InboxError, RequestStatus};
use crate::approval::review::{Review, ReviewAnswer, ReviewVerdict, Reviewer};
use crate::executor::ExecutorParts;
use crate::executor::ask::{OpenRequest, wait_for_change};

impl OpenRequest<'_> {
    /// Asks the reviewer, if there is one and the request is not reviewed yet. Returns whether its verdict decided the request.
    pub(super) async fn review(&mut self, parts: &ExecutorParts) -> bool {
        let Some(reviewer) = &parts.reviewer else {
            return false;
        };
        if self.request.is_question() || self.request.review.is_some() {
            return false;
        }
        let begun = Review::begin(reviewer.model());
        // Stored before the model is asked: a process that dies meanwhile, or another one with the same call, asks it no second time.
        if !self.store_review(None, &begun).await {
            return false;
        }
        let Some(answer) = self.reviewer_answer(reviewer).await else {
            return false;
        };
        let review = begun.answered(&answer, &self.request, reviewer.powers());
        // What cannot be recorded decides nothing.
        let stored = self.store_review(Some(&begun), &review).await;
        let decision = review.decision().filter(|_| stored);
        self.request.review = Some(Box::new(review));
        let Some(decision) = decision else {
            return false;
        };
        if answer.verdict == ReviewVerdict::Deny {
            self.session.queue().note_denial();
        }
        match self.inbox.decide(&self.request.id, &decision).await {
            Ok(_) => true,
            // A person was first.
            Err(InboxError::Decided { .. } | InboxError::Over { .. }) => false,
            Err(error) => {
                tracing::warn!(%error, id = %self.request.id, "a reviewer's decision was not stored; a person is asked");
                false
            }
        }
    }

    async fn store_review(&self, was: Option<&Review>, now: &Review) -> bool {
        let stored = self.inbox.set_review(&self.request.id, was, now).await;
        stored.unwrap_or_else(|error| {
            tracing::warn!(%error, id = %self.request.id, "a review was not stored; a person is asked");
            false
        })
    }

    /// Returns the reviewer's answer; `None` if a person decided meanwhile, the time for a decision is over, or the session leaves.
    async fn reviewer_answer(&mut self, reviewer: &Arc<dyn Reviewer>) -> Option<ReviewAnswer> {
        if let Err(why) = self.session.queue().may_review() {
            return Some(ReviewAnswer::failed(why));
        }
        let request = self.request.clone();
        let limit = reviewer.time_limit();
        let mut answer = pin!(timeout(limit, reviewer.review(&request)));
        loop {
            tokio::select! {
                biased;
                () = self.session.waits_cancelled().cancelled() => return None,
                () = self.session.cancellation().cancelled() => return None,
                () = wait_for_change(&mut self.changes, &self.request.id) => {}
                answer = answer.as_mut() => {
                    return Some(answer.unwrap_or_else(|_| {
                        let seconds = limit.as_secs_f64();
                        ReviewAnswer::failed(format!("it did not answer within {seconds} s"))
                    }));
                }
                () = tokio::time::sleep_until(self.deadline) => return None,
            }
            let entry = self.inbox.get(&self.request.id).await;
            let is_open =
                matches!(entry, Ok(Some(entry)) if entry.status == RequestStatus::Pending);
            if !is_open {
                return None;
            }
        }
    }
}
