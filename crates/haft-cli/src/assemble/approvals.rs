//! Who is asked: nobody, the rules' automatic yes up to a risk, the person at this terminal.

use std::sync::Arc;

use haft::approval::inbox::Inbox;
use haft::approval::{Answer, ApprovalRequest, Approver, AutoApprove, Decision};
use haft::artifact::ArtifactStore;
use haft::audit::archive::Archive;
use haft::audit::{AuditSink, BoxFuture};
use haft::executor::Executor;
use haft::policy::Policy;
use haft::session::Patience;
use haft::spec::Risk;

use crate::approvals::webhook::Webhook;
use crate::assemble::feed::Feed;
use crate::assemble::parts;
use crate::invocation::{Invocation, somebody_is_there};
use crate::problem::Problem;
use crate::settings::Settings;
use crate::terminal::Terminal;

/// Says yes up to a risk, asks the person about the rest and tells the webhook.
#[derive(Debug)]
struct Asked {
    yes_up_to: Option<Risk>,
    person: Option<Terminal>,
    webhook: Option<Webhook>,
}

impl Approver for Asked {
    fn automatic(&self, request: &ApprovalRequest) -> Option<Decision> {
        AutoApprove::up_to(self.yes_up_to?).automatic(request)
    }

    fn ask<'a>(&'a self, request: &'a ApprovalRequest) -> BoxFuture<'a, Answer> {
        if let Some(webhook) = self.webhook.clone() {
            // Nobody waits for it: what it says comes by the inbox.
            let request = request.clone();
            tokio::spawn(async move { webhook.notify(&request).await });
        }
        match &self.person {
            Some(person) => person.ask(request),
            None => Box::pin(async { Answer::Nobody }),
        }
    }

    fn notify<'a>(&'a self, request: &'a ApprovalRequest) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            if let Some(webhook) = &self.webhook {
                webhook.notify(request).await;
            }
        })
    }
}

/// Where results and records go, and who watches.
type Kept<'a> = (&'a Arc<dyn ArtifactStore>, &'a Arc<Archive>, &'a Arc<Feed>);

/// How people are asked.
#[derive(Debug)]
pub(crate) struct Asks {
    /// Whether what is asked outlives the process.
    pub(crate) durable: bool,
    /// Who else hears of it.
    pub(crate) webhook: Option<Webhook>,
}

/// The executor over these parts, with whoever is asked; and whether what is asked outlives the process.
pub(crate) fn executor(
    at: &Invocation,
    settings: &Settings,
    asks: bool,
    (policy, (artifacts, archive, feed), inbox): (Arc<Policy>, Kept<'_>, Arc<dyn Inbox>),
) -> Result<(Executor, Asks), Problem> {
    let mut executor = Executor::new(policy)
        .with_artifacts(Arc::clone(artifacts))
        .with_audit(Arc::clone(archive) as Arc<dyn AuditSink>)
        .with_audit(Arc::clone(feed) as Arc<dyn AuditSink>);
    #[cfg(feature = "testing")]
    if std::env::var_os("HAFT_TESTING_SKIP_CLEAR").is_some() {
        executor = executor.broken_without_clear();
    }
    let webhook = Webhook::of(settings)?;
    if let Some(approver) = approver(at, settings, asks, webhook.clone()) {
        executor = executor.with_approver(approver);
    }
    // Where nobody is to be asked, nothing is kept for them.
    let durable = settings.text("approval.mode").unwrap_or("ask") == "ask";
    if durable {
        executor = executor.with_inbox(inbox);
    }
    Ok((executor, Asks { durable, webhook }))
}

/// What becomes of a call that nobody decided about in time.
pub(crate) fn on_timeout(settings: &Settings, durable: bool) -> Patience {
    match settings.text("policy.on_approval_timeout") {
        Some("deny") => Patience::WaitThenDeny,
        _ if durable => Patience::WaitThenSuspend,
        _ => Patience::WaitThenDeny,
    }
}

/// The approver that `approval.mode` and this process's terminal give; none where Ask ends denied.
fn approver(
    at: &Invocation,
    settings: &Settings,
    asks: bool,
    webhook: Option<Webhook>,
) -> Option<impl Approver + 'static> {
    let mode = settings.text("approval.mode").unwrap_or("deny");
    let yes_up_to = match mode {
        "auto:safe" => Some(Risk::Safe),
        "auto:high" => Some(Risk::High),
        _ => None,
    };
    let person = (asks && mode != "deny" && somebody_is_there()).then(|| {
        let by = parts::principal(&at.environment);
        Terminal::new(
            at.screen,
            at.workspace.clone(),
            at.home.path().to_owned(),
            format!("{}@terminal", by.subject),
        )
    });
    let webhook = webhook.filter(|_| mode == "ask");
    let any = yes_up_to.is_some() || person.is_some() || webhook.is_some();
    any.then_some(Asked {
        yes_up_to,
        person,
        webhook,
    })
}
