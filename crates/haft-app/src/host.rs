//! `Host`: what the program around an application provides: who is asked, and where warnings go.

use std::fmt;
use std::sync::Arc;

use haft::approval::Approver;
use haft::audit::redact::Redactor;
use haft::call::Principal;

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

/// What the program around an application provides. The default asks no one and logs warnings.
#[derive(Default)]
pub struct Host {
    /// Makes the approver where a user can be asked here; it is not called where settings say that no one is asked.
    pub approver: Option<MakeApprover>,
    /// Where warnings go.
    pub notices: Notices,
}

impl fmt::Debug for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Host")
            .field("approver", &self.approver.is_some())
            .field("notices", &self.notices)
            .finish()
    }
}
