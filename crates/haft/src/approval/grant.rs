//! `Grant`: what a person allowed until the session ends.

use crate::approval::ApprovalRequest;
use crate::permission::Permission;
use crate::spec::{Risk, ToolName};

/// These effects of this tool, up to this risk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Grant {
    tool: ToolName,
    risk: Risk,
    permissions: Vec<Permission>,
    by: String,
}

impl Grant {
    /// The grant that an approval of this request for the session gives.
    pub(crate) fn of(request: &ApprovalRequest, by: &str) -> Self {
        Self {
            tool: request.tool.clone(),
            risk: request.risk,
            permissions: request.permissions.clone(),
            by: by.to_owned(),
        }
    }

    /// Who gave it, when it covers a call.
    pub(crate) fn covers(
        &self,
        tool: &ToolName,
        risk: Risk,
        wanted: &[Permission],
    ) -> Option<&str> {
        let all = wanted
            .iter()
            .all(|permission| self.permissions.contains(permission));
        // A call without effects of its own is granted as such, not through another call's effects.
        let alike = wanted.is_empty() == self.permissions.is_empty();
        (self.tool == *tool && risk <= self.risk && all && alike).then_some(&self.by)
    }
}
