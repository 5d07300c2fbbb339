//! `Host`: what the program around an application provides: who is asked, tools and guards of its own, where warnings go.

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

/// What an approver of the host's own is made with, once the application's policy and tools are there.
#[derive(Debug)]
pub struct ApproverParts {
    /// For whom calls are made.
    pub principal: Principal,
    /// Says whether a rule may be kept with an approval.
    pub rules: RuleCheck,
    /// Hides secrets of the settings from what is shown.
    pub redactor: Redactor,
}

/// Makes the approver that a host asks with.
pub type MakeApprover = Box<dyn FnOnce(ApproverParts) -> Arc<dyn Approver> + Send>;

/// What becomes of a call that the policy asks about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum WhenAsked {
    /// It is denied at once.
    #[default]
    Deny,
    /// It waits for the approver, at most `limits.approval_timeout_s`, and is denied then. The request ends with the process.
    Wait,
    /// It waits for the approver, where there is one, at most `limits.approval_timeout_s`, and is suspended then; without an approver at
    /// once. The request stays in the inbox: it can be decided in another process, and the call is resumed afterwards.
    Suspend,
}

impl WhenAsked {
    /// Whether requests outlive the process.
    pub(crate) fn is_durable(self) -> bool {
        self == Self::Suspend
    }

    /// How sessions wait.
    pub(crate) fn wait_mode(self) -> WaitMode {
        match self {
            Self::Deny | Self::Wait => WaitMode::WaitThenDeny,
            Self::Suspend => WaitMode::WhileAsked,
        }
    }
}

/// What the program around an application provides. The default asks no one, adds nothing and logs warnings.
#[derive(Default)]
pub struct Host {
    /// Makes the approver where a user can be asked here; it is not called where settings say that no one is asked.
    pub approver: Option<MakeApprover>,
    /// What becomes of calls that the policy asks about; none where settings say it.
    pub when_asked: Option<WhenAsked>,
    /// Tools beside the standard ones. They are on unless settings switch them off.
    pub tools: Vec<Arc<dyn Tool>>,
    /// Guards beside the standard ones.
    pub guards: Vec<Arc<dyn Guard>>,
    /// Where warnings go.
    pub notices: Notices,
    /// Whether requests that no approver here shows are told on the user's desktop, where settings allow it (`console.notify`).
    pub desktop: bool,
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
            .finish()
    }
}
