//! `Grant`: what a person allowed until the session ends.

use crate::approval::ApprovalRequest;
use crate::permission::{Condition, Permission};
use crate::spec::{Risk, ToolName};

/// What a call must have in common with another to be granted with it.
#[derive(Debug, Clone)]
pub(crate) struct Extent {
    /// The tool.
    pub(crate) tool: ToolName,
    /// The hash of its spec.
    pub(crate) spec_hash: String,
    /// How harmful the call is.
    pub(crate) risk: Risk,
    /// What it would do.
    pub(crate) permissions: Vec<Permission>,
    /// What settings decide about it.
    pub(crate) conditions: Vec<Condition>,
    /// The digest of the arguments that the permissions do not state.
    pub(crate) unstated: String,
}

/// A person allowed calls like one that they saw.
#[derive(Debug, Clone)]
pub(crate) struct Grant {
    extent: Extent,
    by: String,
}

impl Grant {
    /// The grant that an approval of this request for the session gives.
    pub(crate) fn of(request: &ApprovalRequest, by: &str) -> Self {
        let snapshot = &request.snapshot;
        Self {
            extent: Extent {
                tool: request.tool.clone(),
                spec_hash: request.spec_hash.clone(),
                risk: request.risk,
                permissions: snapshot.permissions.clone(),
                conditions: snapshot.conditions.clone(),
                unstated: request.unstated.clone(),
            },
            by: by.to_owned(),
        }
    }

    /// Whether it is about calls of this tool at all.
    pub(crate) fn is_for(&self, tool: &ToolName) -> bool {
        self.extent.tool == *tool
    }

    /// Who gave it, when it covers a call.
    pub(crate) fn covers(&self, call: &Extent) -> Option<&str> {
        let mine = &self.extent;
        let within = call
            .permissions
            .iter()
            .all(|permission| mine.permissions.contains(permission));
        // A call without effects of its own is granted as such, not through another call's effects.
        let alike = call.permissions.is_empty() == mine.permissions.is_empty();
        let same = mine.tool == call.tool
            && mine.spec_hash == call.spec_hash
            && mine.conditions == call.conditions
            && mine.unstated == call.unstated;
        (same && within && alike && call.risk <= mine.risk).then_some(&self.by)
    }
}
