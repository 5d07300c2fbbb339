//! `Grant`: an approval that holds until the session ends.

use serde::{Deserialize, Serialize};

use crate::approval::ApprovalRequest;
use crate::call::Principal;
use crate::permission::{Condition, Permission};
use crate::policy::{Cause, Safeguards};
use crate::spec::{Risk, ToolName};

/// What a call must share with an approved one to be covered by its grant.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct GrantExtent {
    pub(crate) tool: ToolName,
    /// The hash of its spec.
    pub(crate) spec_hash: String,
    /// The root of the workspace, if there is one.
    pub(crate) workspace: String,
    pub(crate) principal: Principal,
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
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Grant {
    extent: GrantExtent,
    /// What restricted calls where it was given: it holds only where nothing of that is missing.
    #[serde(default, skip_serializing_if = "Safeguards::is_empty")]
    safeguards: Safeguards,
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
                workspace: request.workspace.clone(),
                principal: request.principal.clone(),
                risk: request.risk,
                permissions: snapshot.permissions.clone(),
                conditions: snapshot.conditions.clone(),
                unstated: request.unstated.clone(),
                causes: request.causes.clone(),
            },
            safeguards: request.safeguards.clone(),
            by: by.to_owned(),
        }
    }

    /// Returns whether it is about calls of this tool at all.
    pub(crate) fn is_for(&self, tool: &ToolName) -> bool {
        self.extent.tool == *tool
    }

    /// Returns who gave the grant, if it covers a call where these safeguards apply.
    pub(crate) fn covers(&self, call: &GrantExtent, here: &Safeguards) -> Option<&str> {
        let mine = &self.extent;
        let within = call
            .permissions
            .iter()
            .all(|permission| mine.permissions.contains(permission));
        // A call without effects is granted as such, not through another call's effects.
        let alike = call.permissions.is_empty() == mine.permissions.is_empty();
        let same = mine.tool == call.tool
            && mine.spec_hash == call.spec_hash
            && mine.workspace == call.workspace
            && mine.principal == call.principal
            && mine.conditions == call.conditions
            && mine.unstated == call.unstated;
        // The user answered the guards that asked then. One whose question depends on the run asks each time.
        let answered = |cause: &Cause| mine.causes.iter().any(|asked| asked == cause);
        let mut guards = call.causes.iter().filter(|cause| cause.needs_person());
        let answered = guards.all(|cause| !cause.each_time && answered(cause));
        let restricted = self.safeguards.missing_in(here).is_none();
        let covers = same && within && alike && answered && restricted && call.risk <= mine.risk;
        covers.then_some(&self.by)
    }
}
