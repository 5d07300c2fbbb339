//! `ApprovalPrompt`: shows one request to the user at the terminal with the choices, and interprets the typed lines.

use std::io::IsTerminal as _;
use std::sync::Arc;

use haft::approval::{ApprovalRequest, ApprovalScope, ApproverReply, Decision};
use haft::audit::redact::Redactor;
use haft::policy::RuleOfTwoState;
use haft::spec::Risk;
use rustix::termios::{QueueSelector, tcflush};
use tokio::sync::mpsc::Receiver;

use super::choice::{InboxMove, PromptKind, TypedChoice, choice, choices, unclear};
use super::fact;
use super::questions::{self, FormResult};
use crate::screen::{self, BOLD, DIM, Screen, styled, visible};
use haft_app::rules::RuleCheck;

/// Where requests are shown, and in whose name they are decided.
#[derive(Debug)]
pub(crate) struct ApprovalPrompt {
    pub(crate) screen: Screen,
    pub(crate) place: PromptKind,
    /// The user who decides, for the record.
    pub(crate) by: Arc<str>,
    /// The origin of the decisions, for the record.
    pub(crate) from: &'static str,
    /// Checks whether a rule may be kept.
    pub(crate) rules: RuleCheck,
    /// Removes secrets.
    pub(crate) redactor: Redactor,
}

/// The result of the user's input.
#[derive(Debug)]
pub(crate) enum UserReply {
    /// A decision, or the end of the input.
    Answer(ApproverReply),
    /// Go to another request.
    Go(InboxMove),
}

/// Drops what was typed before the request was on the screen, because it does not answer it: complete lines, and the beginning of an
/// unfinished one in the terminal.
fn drop_typed(lines: &mut Receiver<String>) {
    let stdin = std::io::stdin();
    if stdin.is_terminal() {
        // A closed terminal has no input to drop.
        let _gone = tcflush(stdin, QueueSelector::IFlush);
    }
    while lines.try_recv().is_ok() {}
}

impl ApprovalPrompt {
    /// Shows a request and reads lines until they decide it or lead to another one.
    pub(crate) async fn put(
        &self,
        request: &ApprovalRequest,
        lines: &mut Receiver<String>,
    ) -> UserReply {
        drop_typed(lines);
        if self.place == PromptKind::Prompt
            && let Some(form) = &request.form
        {
            let answered = questions::put(self.screen, form, lines).await;
            return UserReply::Answer(self.answered(answered));
        }
        self.show(request);
        drop_typed(lines);
        let keeps = self.rules.problem(request, None).is_none();
        loop {
            let columns = screen::columns();
            self.screen
                .err(&choices(request, self.place, keeps, columns));
            let Some(line) = lines.recv().await else {
                return UserReply::Answer(ApproverReply::Nobody);
            };
            let choice = choice(&line, request, self.place);
            if choice == TypedChoice::Unclear {
                self.screen.err(&unclear(&line, request));
                continue;
            }
            if let Some(reply) = self.act(request, choice, lines).await {
                return reply;
            }
        }
    }

    /// Acts on a choice; returns `None` if the choice is open again.
    async fn act(
        &self,
        request: &ApprovalRequest,
        choice: TypedChoice,
        lines: &mut Receiver<String>,
    ) -> Option<UserReply> {
        let answer = match choice {
            TypedChoice::Go(step) => return Some(UserReply::Go(step)),
            TypedChoice::No(words) => self.denied(false, words),
            TypedChoice::Stop => self.denied(true, None),
            TypedChoice::Why => {
                self.explain(request);
                return None;
            }
            TypedChoice::Unclear => return None,
            TypedChoice::Once if request.is_question() => {
                let form = request.form.as_ref()?;
                match questions::put(self.screen, form, lines).await {
                    // The request is still pending.
                    FormResult::Refused => return None,
                    answered => self.answered(answered),
                }
            }
            TypedChoice::Session | TypedChoice::Always | TypedChoice::Edit
                if request.is_question() =>
            {
                return None;
            }
            TypedChoice::Once => self.approved(ApprovalScope::Once, None),
            TypedChoice::Session => self.approved(ApprovalScope::Session, None),
            TypedChoice::Always => self.always(request, lines).await?,
            TypedChoice::Edit => {
                self.screen
                    .err("the arguments as JSON on one line; Enter alone leaves them:");
                match lines.recv().await {
                    None => ApproverReply::Nobody,
                    Some(line) if line.trim().is_empty() => return None,
                    Some(line) => self.approved(ApprovalScope::Once, Some(line)),
                }
            }
        };
        Some(UserReply::Answer(answer))
    }

    fn answered(&self, answered: FormResult) -> ApproverReply {
        match answered {
            FormResult::Gone => ApproverReply::Nobody,
            FormResult::Refused => self.denied(false, None),
            FormResult::Answers(answers) => {
                let answers = serde_json::Value::Object(answers).to_string();
                let choice = haft::approval::Choice::Answer { answers };
                Decision::new(choice, self.by.as_ref(), self.from).into()
            }
        }
    }

    fn show(&self, request: &ApprovalRequest) {
        self.screen.err("");
        if let Some(form) = &request.form {
            let title = self.redactor.redact(&form.title).into_owned();
            self.screen.err(&styled(BOLD, &visible::line(&title)));
        } else {
            for line in fact::lines(request, &self.redactor) {
                self.screen.err(&line);
            }
        }
        let risk = match request.risk {
            Risk::Critical => styled(BOLD, "critical"),
            risk => risk.to_string(),
        };
        let client = request.client.as_deref().map(|client| {
            let client = self.redactor.redact(client);
            format!(" ({})", visible::line(&client))
        });
        self.screen.err(&format!(
            "{} · {risk} · asked by {}{}",
            visible::line(request.tool.as_str()),
            request.origin.as_str(),
            client.unwrap_or_default()
        ));
        let redacted = |text: &str| visible::line(&self.redactor.redact(text));
        self.screen
            .err(&format!("why: {}", redacted(&request.reason)));
        if let Some(two) = request.rule_of_two.and_then(RuleOfTwoState::sentence) {
            self.screen.err(&format!("rule of two: {}", redacted(&two)));
        }
        if let Some(review) = &request.review {
            self.screen
                .err(&format!("reviewer: {}", redacted(&review.sentence())));
        }
        let rule = format!("rule: {}", redacted(&request.rule));
        self.screen.err(&styled(DIM, &rule));
    }

    fn explain(&self, request: &ApprovalRequest) {
        for permission in &request.snapshot.permissions {
            let effect = &permission.effect;
            let value = self.redactor.redact_exactly(effect.value());
            let value = match effect.path() {
                Some(_) => visible::path(&value),
                None => visible::line(&value),
            };
            self.screen.err(&format!(
                "  {} {value} ({})",
                effect.kind(),
                permission.risk
            ));
        }
        if let Some(more) = &request.snapshot.more_permissions {
            self.screen
                .err(&format!("  and {} more effects", more.count));
        }
        self.screen.err(&format!(
            "  arguments: {}",
            visible::line(&self.redactor.redact_exactly(&request.arguments))
        ));
        for rule in &request.suggested {
            self.screen.err(&format!(
                "  `{}` in policy.allow would allow it for good",
                visible::line(&self.redactor.redact(rule))
            ));
        }
    }

    fn approved(&self, scope: ApprovalScope, edited: Option<String>) -> ApproverReply {
        let yes = Decision::approve(self.by.as_ref(), self.from).hold_for(scope);
        match edited {
            Some(edited) => yes.with_arguments(edited).into(),
            None => yes.into(),
        }
    }

    fn denied(&self, stop: bool, words: Option<String>) -> ApproverReply {
        let mut no = Decision::deny(self.by.as_ref(), self.from);
        if let Some(words) = words {
            no = no.with_message(words);
        }
        if stop { no.end_run().into() } else { no.into() }
    }
}
