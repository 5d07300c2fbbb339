//! Who decides about calls: no one, automatic approval up to a risk, the user at this terminal.

use std::sync::Arc;

use haft::approval::inbox::WaitingCalls;
use haft::approval::review::Reviewer;
use haft::approval::{ApprovalRequest, Approver, ApproverReply, AutoApprove, Decision};
use haft::artifact::ArtifactStore;
use haft::audit::AuditSink;
use haft::audit::archive::Archive;
use haft::executor::Executor;
use haft::future::BoxFuture;
use haft::session::WaitMode;
use haft::spec::Risk;
use haft::toolset::view::merged;

use crate::config::Settings;
use crate::config::typed::APPROVAL_MODE;
use crate::desktop::{Desktop, DesktopState};
use crate::feed::AuditFeed;
use crate::host::{ApproverParts, MakeApprover, PendingCallMode};
use crate::policy_in_force::PolicyInForce;
use crate::problem::Problem;
use crate::rules::{RuleCheck, RuleFiles};
use crate::run::tally::Tally;
use crate::site::Site;
use crate::webhook::Webhook;
use crate::wiring::inventory::Inventory;
use crate::wiring::{changes, names, parts, reviewer};

/// Approves calls up to a risk, asks the user about the rest, and notifies the webhook and the desktop.
#[derive(Debug)]
struct RiskApprover {
    yes_up_to: Option<Risk>,
    person: Option<Arc<dyn Approver>>,
    webhook: Option<Webhook>,
    /// Shows desktop notices, if this process asks no user.
    desktop: Option<Desktop>,
}

impl RiskApprover {
    /// Returns whether it can decide, ask or notify at all.
    fn asks_anyone(&self) -> bool {
        self.yes_up_to.is_some()
            || self.person.is_some()
            || self.webhook.is_some()
            || self.desktop.is_some()
    }
}

impl Approver for RiskApprover {
    fn automatic(&self, request: &ApprovalRequest) -> Option<Decision> {
        AutoApprove::up_to(self.yes_up_to?).automatic(request)
    }

    fn ask<'a>(&'a self, request: &'a ApprovalRequest) -> BoxFuture<'a, ApproverReply> {
        if let Some(webhook) = self.webhook.clone() {
            // Nothing waits for it: its reply comes through the inbox.
            let request = request.clone();
            tokio::spawn(async move { webhook.notify(&request).await });
        }
        if let Some(desktop) = &self.desktop {
            desktop.schedule_notice(request);
        }
        match &self.person {
            Some(person) => person.ask(request),
            None => Box::pin(async { ApproverReply::Nobody }),
        }
    }

    fn notify<'a>(&'a self, request: &'a ApprovalRequest) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            if let Some(desktop) = &self.desktop {
                desktop.schedule_notice(request);
            }
            if let Some(webhook) = &self.webhook {
                webhook.notify(request).await;
            }
        })
    }
}

/// Who decides when the policy asks (`approval.mode`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ApprovalMode {
    /// The user.
    Ask,
    /// No one: calls that need approval are denied.
    Deny,
    /// haft itself, up to a risk; for the rest, the user, if one is at the terminal.
    Auto(Risk),
}

impl ApprovalMode {
    /// Reads the setting; an unknown word means no one.
    fn of(settings: &Settings) -> Self {
        match settings.get(APPROVAL_MODE).as_str() {
            "ask" => Self::Ask,
            "auto:safe" => Self::Auto(Risk::Safe),
            "auto:high" => Self::Auto(Risk::High),
            _ => Self::Deny,
        }
    }
}

/// The components that the executor is built from.
pub(crate) struct ExecutorInputs<'a> {
    pub(crate) policy: PolicyInForce,
    /// Every tool, to check rules that users save for good.
    pub(crate) tools: &'a Inventory,
    pub(crate) artifacts: &'a Arc<dyn ArtifactStore>,
    /// The confinement that commands run in.
    pub(crate) confined: &'a parts::CommandConfinement,
    pub(crate) archive: &'a Arc<Archive>,
    pub(crate) feed: &'a Arc<AuditFeed>,
    pub(crate) tally: &'a Arc<Tally>,
    /// What happens to calls that need approval, if the host decides that.
    pub(crate) when_asked: Option<PendingCallMode>,
    /// Whether and how desktop notices are shown; `None` if the host wants none.
    pub(crate) desktop: Option<&'a DesktopState>,
    pub(crate) inbox: Arc<dyn WaitingCalls>,
}

/// How approvals are obtained.
#[derive(Debug)]
pub(crate) struct ApprovalSettings {
    /// Checks whether a rule may be saved with a decision.
    pub(crate) rules: RuleCheck,
    /// Whether requests outlive the process.
    pub(crate) durable: bool,
    /// The webhook that is notified.
    pub(crate) webhook: Option<Webhook>,
    /// What happens to a call that is not decided in time.
    pub(crate) on_timeout: WaitMode,
}

/// Returns the check of whether a rule may be saved.
fn rule_check(wiring: &ExecutorInputs<'_>) -> Result<RuleCheck, Problem> {
    Ok(RuleCheck {
        policy: wiring.policy.clone(),
        tools: Arc::clone(wiring.tools.every()) as _,
        // The tools of servers are already in the registry.
        names: names::known(&wiring.tools.now().all)
            .into_iter()
            .map(str::to_owned)
            .collect(),
        internal: changes::own_tools(&wiring.confined.changes, &wiring.confined.network)?,
    })
}

/// Builds the executor with its approver, and returns how approvals are obtained.
pub(crate) fn executor(
    at: &Site,
    settings: &Settings,
    approver: Option<MakeApprover>,
    wiring: ExecutorInputs<'_>,
) -> Result<(Executor, ApprovalSettings), Problem> {
    let rules = rule_check(&wiring)?;
    let mut executor = Executor::new(wiring.policy.now())
        .with_artifacts(Arc::clone(wiring.artifacts))
        .with_changes(Arc::clone(&wiring.confined.log))
        .with_internal_tools(Arc::new(merged([
            Arc::clone(&rules.internal),
            Arc::clone(wiring.tools.internal()) as _,
        ])))
        .with_audit(Arc::clone(wiring.archive) as Arc<dyn AuditSink>)
        .with_audit(Arc::clone(wiring.feed) as Arc<dyn AuditSink>)
        .with_audit(Arc::clone(wiring.tally) as Arc<dyn AuditSink>)
        .with_rule_store(Arc::new(RuleFiles {
            home: at.home.path().to_owned(),
            check: rules.clone(),
        }));
    let mode = ApprovalMode::of(settings);
    let person = approver.filter(|_| mode != ApprovalMode::Deny).map(|make| {
        make(ApproverParts {
            principal: parts::principal(&at.environment),
            rules: rules.clone(),
            redactor: settings.redactor.clone(),
        })
    });
    let webhook = Webhook::of(settings)?;
    let state = wiring
        .desktop
        .filter(|_| mode == ApprovalMode::Ask && person.is_none());
    let desktop =
        state.and_then(|state| Desktop::new(state, at, &wiring.inbox, settings.redactor.clone()));
    let risk_approver = RiskApprover {
        yes_up_to: match mode {
            ApprovalMode::Auto(risk) => Some(risk),
            ApprovalMode::Ask | ApprovalMode::Deny => None,
        },
        person,
        webhook: webhook.clone().filter(|_| mode == ApprovalMode::Ask),
        desktop,
    };
    if risk_approver.asks_anyone() {
        executor = executor.with_approver(risk_approver);
    }
    if let Some(reviewer) = reviewer_in(mode, at, settings, &wiring)? {
        executor = executor.with_reviewer(reviewer);
    }
    // If no one or only the host's approver is asked, no request is stored for others.
    let durable =
        mode == ApprovalMode::Ask && wiring.when_asked.is_none_or(PendingCallMode::is_durable);
    if durable {
        executor = executor.with_inbox(wiring.inbox);
    }
    let on_timeout = match wiring.when_asked {
        Some(when) => when.wait_mode(),
        None => on_timeout(settings, durable),
    };
    let asks = ApprovalSettings {
        rules,
        durable,
        webhook,
        on_timeout,
    };
    Ok((executor, asks))
}

/// Returns the reviewer that the settings name; `None` where calls are denied instead of asked about.
fn reviewer_in(
    mode: ApprovalMode,
    at: &Site,
    settings: &Settings,
    wiring: &ExecutorInputs<'_>,
) -> Result<Option<Arc<dyn Reviewer>>, Problem> {
    let named = reviewer::reviewer(at, settings, &wiring.policy)?;
    Ok(named.filter(|_| mode != ApprovalMode::Deny))
}

/// Returns what happens to a call that is not decided in time.
fn on_timeout(settings: &Settings, durable: bool) -> WaitMode {
    match settings.text("policy.on_approval_timeout") {
        Some("suspend") | None if durable => WaitMode::WaitThenSuspend,
        _ => WaitMode::WaitThenDeny,
    }
}
