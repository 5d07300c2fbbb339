//! What the commands of a run serve and which of them work in the background, in whichever process, as data.

use haft::clock;
pub use haft_builtins::services::ExposedPort;
use haft_builtins::services::{ServiceRecord, Services};
use serde::Serialize;

use crate::app::App;
use crate::problem::Problem;

/// A running command that serves, or that works in the background.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RunningService {
    /// Its name among the commands of this machine, by which it is ended.
    pub name: String,
    /// Its command line, cut.
    pub command: String,
    /// Its name among the run's background commands.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task: Option<String>,
    /// When it started, RFC 3339.
    pub started: String,
    /// The first ports that it serves at.
    pub ports: Vec<u16>,
    /// How many there are besides.
    #[serde(skip_serializing_if = "is_zero")]
    pub more_ports: u64,
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes a reference"
)]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl From<ServiceRecord> for RunningService {
    fn from(record: ServiceRecord) -> Self {
        Self {
            name: record.place,
            command: record.command,
            task: record.task,
            started: clock::rfc3339(i128::from(record.began) * 1_000_000_000),
            ports: record.ports.iter().map(|served| served.port).collect(),
            more_ports: record.more_ports,
        }
    }
}

/// Returns the ports of a run that are exposed on this machine.
pub async fn exposed(app: &App, run: &str) -> Vec<ExposedPort> {
    let Some(services) = app.network().services().cloned() else {
        return Vec::new();
    };
    let run = run.to_owned();
    let read = tokio::task::spawn_blocking(move || services.exposed(&run));
    read.await.unwrap_or_default()
}

/// Lists the commands of a run, oldest first.
pub async fn of_run(app: &App, run: &str) -> Vec<RunningService> {
    let mut found: Vec<RunningService> = records(app, run)
        .await
        .into_iter()
        .map(RunningService::from)
        .collect();
    for one in &mut found {
        one.command = app.redactor().redact(&one.command).into_owned();
    }
    found
}

pub(crate) async fn records(app: &App, run: &str) -> Vec<ServiceRecord> {
    let Some(services) = app.network().services().cloned() else {
        return Vec::new();
    };
    let run = run.to_owned();
    let read = tokio::task::spawn_blocking(move || services.of_run(&run));
    read.await.unwrap_or_default()
}

/// Ends the commands of a run, or one of them by its name or task; returns how many were told to. They are gone a moment later.
///
/// # Errors
/// The state folder cannot be changed.
pub async fn stop(app: &App, run: &str, one: Option<&str>) -> Result<usize, Problem> {
    let Some(services) = app.network().services().cloned() else {
        return Ok(0);
    };
    let mut records = records(app, run).await;
    let is_it = |record: &ServiceRecord, name: &str| {
        record.place == name || record.task.as_deref() == Some(name)
    };
    records.retain(|record| one.is_none_or(|name| is_it(record, name)));
    let stopped = tokio::task::spawn_blocking(move || stop_all(&services, &records)).await;
    let stopped = stopped.map_err(|error| Problem::failed(format!("cannot end it: {error}")))?;
    stopped.map_err(|error| {
        Problem::failed(format!("cannot end a command: {error}"))
            .advise("make haft's state folder writable")
    })
}

fn stop_all(services: &Services, records: &[ServiceRecord]) -> std::io::Result<usize> {
    let mut count = 0;
    for record in records {
        count += usize::from(services.stop(record)?);
    }
    Ok(count)
}
