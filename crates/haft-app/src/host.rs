//! `Host`: what the program around an application provides: an approver, its own tools and guards, a receiver of warnings.

use std::fmt;
use std::sync::Arc;

use haft::approval::Approver;
use haft::audit::redact::Redactor;
use haft::call::Principal;
use haft::policy::Guard;
use haft::session::WaitMode;
use haft::tool::Tool;

use crate::notices::Notices;
use crate::rules::RuleCheck;

/// What the host's own approver is created with, once the application's policy and tools exist.
#[derive(Debug)]
pub struct ApproverParts {
    /// The principal that calls are made for.
    pub principal: Principal,
    /// Checks whether a rule may be saved with an approval.
    pub rules: RuleCheck,
    /// Hides secrets of the settings in what the approver shows.
    pub redactor: Redactor,
}

/// Creates the host's approver.
pub type MakeApprover = Box<dyn FnOnce(ApproverParts) -> Arc<dyn Approver> + Send>;

/// What happens to a call that needs approval.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum PendingCallMode {
    /// It is denied at once.
    #[default]
    Deny,
    /// It waits for the approver, at most `limits.approval_timeout_s`, and is then denied. The request ends with the process.
    Wait,
    /// It waits for the approver, at most `limits.approval_timeout_s`, and is then suspended; without an approver, at once. The request
    /// stays in the inbox: it can be decided in another process, and the call is resumed afterwards.
    Suspend,
}

impl PendingCallMode {
    /// Returns whether requests outlive the process.
    pub(crate) fn is_durable(self) -> bool {
        self == Self::Suspend
    }

    /// Returns how sessions wait for a decision.
    pub(crate) fn wait_mode(self) -> WaitMode {
        match self {
            Self::Deny | Self::Wait => WaitMode::WaitThenDeny,
            Self::Suspend => WaitMode::WhileAsked,
        }
    }
}

/// What the program around an application provides. The default has no approver, adds nothing and logs warnings.
#[derive(Default)]
pub struct Host {
    /// Creates the approver if the host can ask a user; it is not called if the settings rule out asking.
    pub approver: Option<MakeApprover>,
    /// What happens to calls that need approval; `None` to use the settings.
    pub when_asked: Option<PendingCallMode>,
    /// Tools besides the standard ones. They are on unless the settings turn them off.
    pub tools: Vec<Arc<dyn Tool>>,
    /// Guards besides the standard ones.
    pub guards: Vec<Arc<dyn Guard>>,
    /// The receiver of warnings.
    pub notices: Notices,
    /// Whether requests that no approver shows here cause desktop notices, if the settings allow it (`console.notify`).
    pub desktop: bool,
    /// Whether a command is started as soon as the application is assembled: what its jail needs is then looked up meanwhile.
    pub starts_command: bool,
}

impl fmt::Debug for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tools = self.tools.iter().map(|tool| tool.spec().name.as_str());
        f.debug_struct("Host")
            .field("approver", &self.approver.is_some())
            .field("when_asked", &self.when_asked)
            .field("tools", &tools.collect::<Vec<_>>())
            .field("guards", &self.guards.len())
            .field("notices", &self.notices)
            .field("desktop", &self.desktop)
            .field("starts_command", &self.starts_command)
            .finish()
    }
}
