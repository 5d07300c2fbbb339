//! `Grant`: an approval that holds until the session ends.

use crate::approval::ApprovalRequest;
use crate::permission::{Condition, Permission};
use crate::policy::Cause;
use crate::spec::{Risk, ToolName};

/// What a call must share with an approved one to be covered by its grant.
#[derive(Debug, Clone)]
pub(crate) struct GrantExtent {
    pub(crate) tool: ToolName,
    /// The hash of its spec.
    pub(crate) spec_hash: String,
    pub(crate) risk: Risk,
    /// The permissions that the call needs.
    pub(crate) permissions: Vec<Permission>,
    /// What settings decide about the call.
    pub(crate) conditions: Vec<Condition>,
    /// The digest of the arguments that the permissions do not state.
    pub(crate) unstated: String,
    /// The guards, rules and budgets that ask about the call.
    pub(crate) causes: Vec<Cause>,
}

/// A user's permission for calls like one that they saw.
#[derive(Debug, Clone)]
pub(crate) struct Grant {
    extent: GrantExtent,
    by: String,
}

impl Grant {
    /// Creates the grant that results from approving this request for the session.
    pub(crate) fn of(request: &ApprovalRequest, by: &str) -> Self {
        let snapshot = &request.snapshot;
        Self {
            extent: GrantExtent {
                tool: request.tool.clone(),
                spec_hash: request.spec_hash.clone(),
                risk: request.risk,
                permissions: snapshot.permissions.clone(),
                conditions: snapshot.conditions.clone(),
                unstated: request.unstated.clone(),
                causes: request.causes.clone(),
            },
            by: by.to_owned(),
        }
    }

    /// Returns whether it is about calls of this tool at all.
    pub(crate) fn is_for(&self, tool: &ToolName) -> bool {
        self.extent.tool == *tool
    }

    /// Returns who gave the grant, if it covers a call.
    pub(crate) fn covers(&self, call: &GrantExtent) -> Option<&str> {
        let mine = &self.extent;
        let within = call
            .permissions
            .iter()
            .all(|permission| mine.permissions.contains(permission));
        // A call without effects is granted as such, not through another call's effects.
        let alike = call.permissions.is_empty() == mine.permissions.is_empty();
        let same = mine.tool == call.tool
            && mine.spec_hash == call.spec_hash
            && mine.conditions == call.conditions
            && mine.unstated == call.unstated;
        // The user answered the guards that asked then. One whose question depends on the run asks each time.
        let answered = |cause: &Cause| mine.causes.iter().any(|asked| asked == cause);
        let mut guards = call.causes.iter().filter(|cause| cause.needs_person());
        let answered = guards.all(|cause| !cause.each_time && answered(cause));
        (same && within && alike && answered && call.risk <= mine.risk).then_some(&self.by)
    }
}
