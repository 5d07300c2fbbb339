//! What `run_command` does so that the commands of one run reach each other's servers.

use std::sync::Arc;

use haft::context::CallContext;
use haft::error::ToolError;
use haft_sandbox::{CommandSpec, RunningCommand};

use crate::command::{Commands, RunCommandInput};
use crate::services::{Membership, ServiceGroup, ServiceLabel, Services};
use crate::work::blocking;

/// The group that a command joins once it runs.
pub(super) struct PreparedGroup {
    group: Arc<ServiceGroup>,
    label: ServiceLabel,
}

impl Commands {
    /// Has a command share its loopback with the others of its run. One that only reads serves nothing and needs no server.
    pub(super) async fn share_loopback(
        &self,
        spec: &mut CommandSpec,
        input: &RunCommandInput,
        context: &CallContext,
    ) -> Result<Option<PreparedGroup>, ToolError> {
        let Some(services) = self.network.services() else {
            return Ok(None);
        };
        if !self.jailed() || spec.mounts.only_reads {
            return Ok(None);
        }
        let (shared, group) = services.prepare(context, &self.sandbox).await?;
        spec.loopback = Some(shared);
        let label = ServiceLabel {
            run: context.run().to_string(),
            command: Self::words(input)?.0,
            background: !input.ends(),
        };
        Ok(Some(PreparedGroup { group, label }))
    }
}

impl PreparedGroup {
    /// Makes the command a member, if its loopback can be shared here.
    pub(super) fn join(self, running: &RunningCommand) -> Option<Arc<Membership>> {
        Services::join(&self.group, running, self.label).map(Arc::new)
    }
}

/// Names a command in the background where its run's commands are listed.
pub(super) async fn name_task(membership: Option<&Arc<Membership>>, task: &str) {
    if let Some(membership) = membership.map(Arc::clone) {
        let task = task.to_owned();
        let named = blocking(move |_| {
            membership.set_task(&task);
            Ok(())
        });
        // Without the name, if the host is shutting down, it is listed all the same.
        let _ = named.await;
    }
}
