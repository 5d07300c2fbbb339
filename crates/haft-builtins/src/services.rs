//! Services: the servers that commands of one run start, reached by its other commands at 127.0.0.1, listed and opened to the host.
//!
//! Each command keeps a network namespace of its own, with its own way out. haft joins the loopbacks of the commands of a run: where one
//! listens, it listens in the others at the same port, and passes what arrives there on. So a connection to a server of the run is never
//! one to the outside, and what leaves is always a connection of the command that made it.

mod exposed;
mod exposure;
mod group;
mod member;
mod record;
mod relay;

use std::collections::HashMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};

use haft::context::CallContext;
use haft_sandbox::{RunningCommand, Sandbox, SharedLoopback};
use parking_lot::Mutex;

pub use crate::services::exposed::ExposedPort;
pub(crate) use crate::services::exposure::{Exposure, address};
pub use crate::services::group::ServiceGroup;
pub(crate) use crate::services::member::Membership;
pub use crate::services::record::{ServedPort, ServiceRecord};
use crate::work::blocking;
use haft::error::ToolError;

/// The folder in haft's state folder.
const FOLDER: &str = "services";
/// Maximum number of groups whose records are read for a list.
const MAX_GROUPS: usize = 256;

/// Finds the services of runs. Clones share what they know.
#[derive(Clone)]
pub struct Services(Arc<Inner>);

struct Inner {
    folder: PathBuf,
    groups: Mutex<HashMap<String, Weak<ServiceGroup>>>,
}

impl fmt::Debug for Services {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Services").field(&self.0.folder).finish()
    }
}

/// How a command is shown where its services are listed.
#[derive(Debug, Clone)]
pub(crate) struct ServiceLabel {
    pub(crate) run: String,
    pub(crate) command: String,
    /// Whether it is listed before anything listens.
    pub(crate) background: bool,
}

impl Services {
    /// Keeps the records of services in this state folder.
    pub fn new(home: &Path) -> Self {
        Self(Arc::new(Inner {
            folder: home.join(FOLDER),
            groups: Mutex::default(),
        }))
    }

    /// Returns the group of the commands of a call's run: those of all runs that belong together reach each other.
    pub(crate) fn group(&self, context: &CallContext, sandbox: &Sandbox) -> Arc<ServiceGroup> {
        let own = context
            .group()
            .map(|group| format!("session-{}", group.name()));
        self.named(own.unwrap_or_else(|| context.run().to_string()), sandbox)
    }

    fn named(&self, name: String, sandbox: &Sandbox) -> Arc<ServiceGroup> {
        let mut groups = self.0.groups.lock();
        groups.retain(|_, group| group.strong_count() > 0);
        if let Some(group) = groups.get(&name).and_then(Weak::upgrade) {
            return group;
        }
        let group = ServiceGroup::new(self.0.folder.join(record::file_name(&name)), sandbox);
        let group = Arc::new(group);
        groups.insert(name, Arc::downgrade(&group));
        group
    }

    /// Returns what the command of a call shares of its loopback, and the group that it becomes a member of once it runs.
    pub(crate) async fn prepare(
        &self,
        context: &CallContext,
        sandbox: &Sandbox,
    ) -> Result<(SharedLoopback, Arc<ServiceGroup>), ToolError> {
        let group = self.group(context, sandbox);
        let reading = Arc::clone(&group);
        let ports = blocking(move |_| Ok(reading.ports_at_start())).await?;
        Ok((SharedLoopback { ports }, group))
    }

    /// Makes a command a member of its group, until the returned value is dropped or the command has ended.
    pub(crate) fn join(
        group: &Arc<ServiceGroup>,
        running: &RunningCommand,
        label: ServiceLabel,
    ) -> Option<Membership> {
        Membership::begin(group, running, label)
    }

    /// Returns the commands of a run that serve, or work in the background, in whichever process. Blocks.
    pub fn of_run(&self, run: &str) -> Vec<ServiceRecord> {
        let mut found: Vec<ServiceRecord> = self.all();
        found.retain(|one| one.run == run);
        found
    }

    /// Returns those of all runs, oldest first. Blocks.
    pub fn all(&self) -> Vec<ServiceRecord> {
        let Ok(groups) = std::fs::read_dir(&self.0.folder) else {
            return Vec::new();
        };
        let groups = groups.take(MAX_GROUPS).flatten();
        let mut found: Vec<_> = groups
            .flat_map(|group| record::read(&group.path()))
            .collect();
        found.sort_by(|one, two| (one.began, &one.place).cmp(&(two.began, &two.place)));
        found
    }

    /// Returns the ports of a run that are exposed, in whichever process. Blocks.
    pub fn exposed(&self, run: &str) -> Vec<ExposedPort> {
        let Ok(groups) = std::fs::read_dir(&self.0.folder) else {
            return Vec::new();
        };
        let groups = groups.take(MAX_GROUPS).flatten();
        let all = groups.flat_map(|group| record::read_exposed(&group.path()));
        all.filter(|one| one.run == run).collect()
    }

    /// Ends a command by its place, in whichever process it was started; returns whether there was one. Blocks.
    ///
    /// # Errors
    /// The state folder cannot be changed.
    pub fn stop(&self, record: &ServiceRecord) -> std::io::Result<bool> {
        record::remove(&self.0.folder, record)
    }

    /// Returns the group of one of these commands.
    pub fn group_of(&self, record: &ServiceRecord, sandbox: &Sandbox) -> Arc<ServiceGroup> {
        self.named(record.group.clone(), sandbox)
    }
}
