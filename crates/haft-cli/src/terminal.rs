//! `Terminal`: asks the person at the prompt; the deciding fact first, Enter alone means no.

use std::io::{self, BufRead};
use std::sync::Arc;
use std::thread;

use haft::approval::{Answer, ApprovalId, ApprovalRequest, Approver, Decision, HoldFor};
use haft::audit::redact::Redactor;
use haft::future::BoxFuture;
use haft::spec::Risk;
use tokio::sync::{Mutex, mpsc};

use crate::screen::{BOLD, DIM, Screen, YELLOW, styled, visible};
use haft_app::host::ApproverParts;
use haft_app::rules::RuleCheck;

pub(crate) mod fact;
mod keep;
mod questions;

use questions::Answered;

/// From where its decisions come.
const FROM: &str = "terminal";

/// Lines a person may have typed ahead; more wait in the terminal.
const TYPED_AHEAD: usize = 64;

/// The person at this terminal.
#[derive(Debug)]
pub(crate) struct Terminal {
    screen: Screen,
    /// Who sits there, for the record.
    by: Arc<str>,
    /// Whether a rule may be kept.
    rules: RuleCheck,
    /// Hides secrets.
    redactor: Redactor,
    /// One question at a time; lines come from a thread that starts with the first.
    lines: Mutex<Option<mpsc::Receiver<String>>>,
}

/// What a typed line means.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Choice {
    Once,
    Session,
    Always,
    Edit,
    No,
    Stop,
    Why,
    Unclear,
}

impl Terminal {
    /// A prompt on stdin and stderr, which must be terminals.
    pub(crate) fn new(screen: Screen, parts: ApproverParts) -> Self {
        Self {
            screen,
            by: format!("{}@terminal", parts.principal.subject).into(),
            rules: parts.rules,
            redactor: parts.redactor,
            lines: Mutex::new(None),
        }
    }

    async fn put(&self, request: &ApprovalRequest) -> Answer {
        let mut lines = self.lines.lock().await;
        let lines = lines.get_or_insert_with(read_lines);
        // What was typed before the question was seen is no answer to it.
        while lines.try_recv().is_ok() {}
        // The prompt goes when somebody else decides.
        let _gone = Gone(self.screen, &request.id);
        if let Some(form) = &request.form {
            return self.answered(questions::put(self.screen, form, lines).await);
        }
        self.show(request);
        let keeps = self.rules.problem(request, None).is_none();
        loop {
            self.screen.err(&choices(request, keeps));
            let Some(line) = lines.recv().await else {
                return Answer::Nobody;
            };
            match choice(&line, request) {
                Choice::Once => return self.approved(HoldFor::Once, None),
                Choice::Session => return self.approved(HoldFor::Session, None),
                Choice::No => return self.denied(false),
                Choice::Stop => return self.denied(true),
                Choice::Why => self.explain(request),
                Choice::Unclear => {}
                Choice::Always => {
                    if let Some(answer) = self.always(request, lines).await {
                        return answer;
                    }
                }
                Choice::Edit => {
                    self.screen
                        .err("the arguments as JSON on one line; Enter alone leaves them:");
                    match lines.recv().await {
                        None => return Answer::Nobody,
                        Some(line) if line.trim().is_empty() => {}
                        Some(line) => return self.approved(HoldFor::Once, Some(line)),
                    }
                }
            }
        }
    }

    fn answered(&self, answered: Answered) -> Answer {
        match answered {
            Answered::Gone => Answer::Nobody,
            Answered::Refused => Decision::deny(self.by.as_ref(), FROM).into(),
            Answered::Answers(answers) => {
                let answers = serde_json::Value::Object(answers).to_string();
                let choice = haft::approval::Choice::Answer { answers };
                Decision::new(choice, self.by.as_ref(), FROM).into()
            }
        }
    }

    fn show(&self, request: &ApprovalRequest) {
        self.screen.err("");
        for line in fact::lines(request, &self.redactor) {
            self.screen.err(&line);
        }
        let risk = match request.risk {
            Risk::Critical => styled(BOLD, "critical"),
            risk => risk.to_string(),
        };
        self.screen.err(&format!(
            "{} · {risk} · asked by {}",
            request.tool,
            request.origin.as_str()
        ));
        self.screen
            .err(&format!("why: {}", visible::line(&request.reason)));
        self.screen.err(&styled(
            DIM,
            &format!("rule: {}", visible::line(&request.rule)),
        ));
    }

    fn explain(&self, request: &ApprovalRequest) {
        for permission in &request.snapshot.permissions {
            let effect = &permission.effect;
            let value = visible::line(&self.redactor.redact(effect.value()));
            self.screen.err(&format!(
                "  {} {value} ({})",
                effect.kind(),
                permission.risk
            ));
        }
        self.screen.err(&format!(
            "  arguments: {}",
            visible::line(&self.redactor.redact(&request.arguments))
        ));
        for rule in &request.suggested {
            self.screen.err(&format!(
                "  `{}` in policy.allow would allow it for good",
                visible::line(&self.redactor.redact(rule))
            ));
        }
    }

    fn approved(&self, scope: HoldFor, edited: Option<String>) -> Answer {
        let yes = Decision::approve(self.by.as_ref(), FROM).hold_for(scope);
        match edited {
            Some(edited) => yes.with_arguments(edited).into(),
            None => yes.into(),
        }
    }

    fn denied(&self, stop: bool) -> Answer {
        let no = Decision::deny(self.by.as_ref(), FROM);
        if stop { no.end_run().into() } else { no.into() }
    }
}

impl Approver for Terminal {
    fn ask<'a>(&'a self, request: &'a ApprovalRequest) -> BoxFuture<'a, Answer> {
        Box::pin(self.put(request))
    }
}

/// The choices; `keeps` is whether a rule could be kept under which the same call would run unasked.
fn choices(request: &ApprovalRequest, keeps: bool) -> String {
    let yes = if request.risk == Risk::Critical {
        format!("type {} to run it", styled(BOLD, request.tool.as_str()))
    } else {
        let always = if keeps {
            "  a always (shows the rule)"
        } else {
            ""
        };
        format!("y once  s session{always}")
    };
    format!(
        "{}  {yes}  e edit  n no  q no and stop  ? why",
        styled(YELLOW, "run it?")
    )
}

fn choice(line: &str, request: &ApprovalRequest) -> Choice {
    let word = line.trim();
    let critical = request.risk == Risk::Critical;
    match word.to_lowercase().as_str() {
        "" | "n" | "no" => Choice::No,
        "q" | "quit" => Choice::Stop,
        "?" | "why" => Choice::Why,
        // Changed arguments are judged anew, but nobody could type the word for a call not yet seen.
        "e" | "edit" if !critical => Choice::Edit,
        "y" | "yes" if !critical => Choice::Once,
        "s" | "session" if !critical => Choice::Session,
        "a" | "always" if !critical => Choice::Always,
        _ if critical && word == request.tool.as_str() => Choice::Once,
        _ => Choice::Unclear,
    }
}

/// Says, when the prompt is taken away before it was answered, that nobody waits for its answer.
struct Gone<'a>(Screen, &'a ApprovalId);

impl Drop for Gone<'_> {
    fn drop(&mut self) {
        self.0.detail(&format!("approval {} is settled", self.1));
    }
}

/// Lines of stdin as they come. The thread ends with the process: a read cannot be taken back.
fn read_lines() -> mpsc::Receiver<String> {
    let (send, receive) = mpsc::channel(TYPED_AHEAD);
    let reader = thread::Builder::new().name("haft-prompt".into());
    let started = reader.spawn(move || {
        for line in io::stdin().lock().lines() {
            let Ok(line) = line else { return };
            if send.blocking_send(line).is_err() {
                return;
            }
        }
    });
    if started.is_err() {
        tracing::error!("start the prompt's thread");
    }
    receive
}

#[cfg(test)]
mod tests;
