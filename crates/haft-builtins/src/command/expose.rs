//! `expose_port`: opens a port at which a command of the run serves to this machine's browsers, once the user agreed.

use std::sync::Arc;

use haft::call::Origin;
use haft::context::CallContext;
use haft::error::{ErrorKind, ToolError};
use haft::permission::{Condition, EXPOSE_EFFECT, EXPOSED_CONDITION, Effect, Permission};
use haft::result::ToolResult;
use haft::spec::{CallPhrases, Exposure as ToolExposure, Risk, ToolSpec};
use haft::tool::{Depth, Intent, TypedTool};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::command::{COMMANDS, Commands};
use crate::describe::{builtin, writes};
use crate::services::{Exposure, ServiceGroup, ServiceRecord, Services, address};
use crate::work::blocking;

/// Maximum number of ports of one run that are exposed at once.
const MAX_EXPOSED: usize = 16;
/// Maximum number of served ports that an error names.
const NAMED: usize = 8;

/// What `expose_port` takes.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ExposePortInput {
    /// The port at which a command of this run serves.
    #[schemars(range(min = 1024))]
    pub port: u16,
    /// Another run, for the user at a terminal alone.
    #[serde(default)]
    #[schemars(with = "String")]
    pub run: Option<String>,
}

/// What `expose_port` gives.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct ExposePortData {
    /// Where the user opens it, on this machine alone.
    pub url: String,
    /// The command that serves there now.
    pub command: String,
}

/// The tool `expose_port`; on with `run_command`, found by search.
#[derive(Debug)]
pub struct ExposePort(pub Arc<Commands>);

impl TypedTool for ExposePort {
    const NAME: &'static str = "expose_port";
    const DESCRIPTION: &'static str = "Open a port of this run's server to the user's browser. Other commands of the run reach the server at \
        127.0.0.1 without it. The user is asked; the address in data.url works on this machine until the run ends.";
    type Input = ExposePortInput;

    fn describe(spec: ToolSpec) -> ToolSpec {
        let spec = writes(builtin::<ExposePortData>(spec, COMMANDS), Risk::Safe);
        ToolSpec {
            exposure: ToolExposure::Searchable,
            concurrency_safe: true,
            idempotent: true,
            phrases: CallPhrases {
                waits: "waits for the user's approval of a port",
                undone: "the port was not opened",
                in_doubt: "the port may have been opened until that process ended",
            },
            ..spec
        }
    }

    fn intent(&self, input: &Self::Input, depth: Depth) -> Result<Intent, ToolError> {
        let exposes = Permission {
            effect: Effect::Other {
                kind: EXPOSE_EFFECT.to_owned(),
                value: input.port.to_string(),
            },
            // Strangers' code answers the user's browser then: no profile allows that by itself.
            risk: Risk::Critical,
        };
        Ok(Intent::of([exposes])
            .with_stated(&["port"])
            .with_conditions(depth, || self.conditions(input)))
    }

    async fn run(
        &self,
        input: Self::Input,
        context: &CallContext,
    ) -> Result<ToolResult, ToolError> {
        let services = self.0.network.services();
        let services = services.ok_or_else(|| {
            ToolError::unavailable("servers of commands are not shared in this program")
        })?;
        let found = self.find(services, &input, context).await?;
        let ServingCommand { group, record } = found;
        let listed = blocking({
            let group = Arc::clone(&group);
            move |_| Ok(group.exposed())
        });
        let listed = listed.await?;
        let known = listed
            .iter()
            .find(|one| one.run == record.run && one.port == input.port);
        let at = match known {
            Some(known) => known.at,
            None if listed.len() >= MAX_EXPOSED => {
                let message = format!("{MAX_EXPOSED} ports of this run are open already");
                return Err(ToolError::new(ErrorKind::Budget, message));
            }
            None => open(group, &record.run, input.port, context).await?,
        };
        let data = ExposePortData {
            url: format!("http://{at}/"),
            command: record.command,
        };
        let summary = format!("{} leads to port {} of this run", data.url, input.port);
        Ok(ToolResult::data(&data)?.with_summary(summary))
    }
}

/// The command that serves a port, and its group.
struct ServingCommand {
    group: Arc<ServiceGroup>,
    record: ServiceRecord,
}

impl ExposePort {
    /// States what serves at the port now, and who reaches it: the approval holds for nothing else. A call does not know its run before it
    /// is made: of several runs that serve at the port, each is stated.
    fn conditions(&self, input: &ExposePortInput) -> Vec<Condition> {
        let all = self.0.network.services().map(Services::all);
        let mut serving = all.unwrap_or_default();
        serving.retain(|record| {
            let named = input.run.as_ref().is_none_or(|run| *run == record.run);
            named && record.serves(input.port)
        });
        let several = serving.len() > 1;
        let each = serving.iter().take(NAMED).map(|record| {
            let run = if several {
                format!(" (run {})", record.run)
            } else {
                String::new()
            };
            let (command, at) = (&record.command, address(&record.run));
            let what = format!("`{command}`{run} at http://{at}:{}/", input.port);
            Condition::new(EXPOSED_CONDITION, what)
        });
        let reach = "every program and user of this machine, until the run ends";
        each.chain([Condition::new("reached by", reach)]).collect()
    }

    /// Finds the command that serves the port in the run of the call, or in the one that a user at a terminal names.
    async fn find(
        &self,
        services: &Services,
        input: &ExposePortInput,
        context: &CallContext,
    ) -> Result<ServingCommand, ToolError> {
        let run = match &input.run {
            Some(_) if context.origin() != Origin::Host => {
                return Err(
                    ToolError::denied("run: a call opens ports of its own run alone")
                        .with_advice("omit run"),
                );
            }
            Some(run) => run.clone(),
            None => context.run().to_string(),
        };
        let reading = services.clone();
        let own = services.group(context, &self.0.sandbox);
        let named = input.run.is_some();
        let records = blocking(move |_| {
            Ok(if named {
                reading.of_run(&run)
            } else {
                own.records()
            })
        });
        let records = records.await?;
        let serving = records
            .iter()
            .find(|record| record.serves(input.port))
            .cloned();
        let record = serving.ok_or_else(|| nothing_there(input.port, &records))?;
        Ok(ServingCommand {
            group: services.group_of(&record, &self.0.sandbox),
            record,
        })
    }
}

/// Opens the port until the run of the call ends, and returns where.
async fn open(
    group: Arc<ServiceGroup>,
    run: &str,
    port: u16,
    context: &CallContext,
) -> Result<std::net::SocketAddr, ToolError> {
    let exposure = Exposure::open(group, run, port).await;
    let exposure = exposure.map_err(|error| {
        ToolError::unavailable(format!("open port {port} on this machine: {error}"))
    })?;
    let at = exposure.exposed().at;
    let context = context.clone();
    tokio::spawn(async move {
        tokio::select! {
            () = exposure.serve() => {}
            () = context.cancelled() => {}
        }
    });
    Ok(at)
}

fn nothing_there(port: u16, records: &[ServiceRecord]) -> ToolError {
    let message = format!("no command of the run serves at port {port}");
    let served = records.iter().flat_map(|record| &record.ports).take(NAMED);
    let served: Vec<String> = served.map(|served| served.port.to_string()).collect();
    let advice = if served.is_empty() {
        "start the server with run_command and background=true, and try again once it listens"
            .to_owned()
    } else {
        format!("ports that are served: {}", served.join(", "))
    };
    ToolError::not_found(message).with_advice(advice)
}
