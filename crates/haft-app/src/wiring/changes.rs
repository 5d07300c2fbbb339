//! How changes made by commands are handled, from settings.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use haft::change::ChangeLog;
use haft::clock;
use haft::policy;
use haft::toolset::Toolset;
use haft::toolset::registry::ToolRegistry;
use haft::workspace::Workspace;
use haft_builtins::command::CommandNetwork;
use haft_builtins::command::changes::{
    BuildOutputs, ChangeMode, ChangeOptions, CommandChanges, IgnoredChanges, OnPartial,
};
use haft_builtins::command::meaning::PictureReader;
use haft_builtins::web::reader::JailedReader;
use haft_sandbox::{FoundToolchain, Sandbox, Toolchains};
use tokio::task::AbortHandle;

use crate::config::{Settings, typed};
use crate::own_program::own_program;
use crate::problem::Problem;
use crate::site::Site;

/// How often leftovers of commands are removed.
const SWEEP_INTERVAL: Duration = Duration::from_hours(24);

/// What the changes of commands are made with.
pub(crate) struct ChangeParts<'a> {
    pub(crate) workspace: &'a Workspace,
    pub(crate) sandbox: &'a Sandbox,
    pub(crate) toolchains: &'a Toolchains,
    pub(crate) log: &'a Arc<ChangeLog>,
}

/// Builds what judges and applies the changes of commands.
pub(crate) fn changes(
    at: &Site,
    settings: &Settings,
    parts: &ChangeParts<'_>,
) -> Result<CommandChanges, Problem> {
    let ChangeParts {
        workspace,
        sandbox,
        toolchains,
        log,
    } = *parts;
    let options = ChangeOptions {
        mode: mode(settings),
        // Each key takes two words; any other word means the strictest.
        on_partial: match settings.get(typed::ON_PARTIAL).as_str() {
            "apply" => OnPartial::Apply,
            _ => OnPartial::Discard,
        },
        ignored: ignored(at, settings, workspace)?,
        toolchains: toolchains
            .all()
            .iter()
            .flat_map(FoundToolchain::folders)
            .map(Path::to_owned)
            .collect(),
        ask_before: commands(settings) == policy::CommandPolicy::Ask,
        home: at.environment.folder("HOME"),
        pictures: own_program().map(|program| {
            let reader = JailedReader::new(sandbox.clone(), program);
            Arc::new(reader) as Arc<dyn PictureReader>
        }),
        ..ChangeOptions::new(Arc::clone(log))
    };
    Ok(CommandChanges::new(
        options,
        workspace.clone(),
        sandbox.clone(),
    ))
}

/// Returns what happens to changes to files that git ignores.
fn ignored(
    at: &Site,
    settings: &Settings,
    workspace: &Workspace,
) -> Result<IgnoredChanges, Problem> {
    Ok(match settings.get(typed::IGNORED_CHANGES).as_str() {
        "apply" => IgnoredChanges::Apply,
        "outputs" => {
            let named = settings.items("policy.build_outputs");
            // Settings are checked to be texts when they are loaded.
            let names = named.iter().filter_map(|(name, _)| name.as_str());
            let path = at.environment.get("PATH").unwrap_or_default();
            let programs = std::env::split_paths(path);
            let environment = at.environment.folder("VIRTUAL_ENV");
            let programs = programs.chain(environment);
            let outputs = BuildOutputs::new(names, workspace.root(), programs);
            let outputs = outputs
                .map_err(|error| Problem::settings(format!("policy.build_outputs: {error}")))?;
            IgnoredChanges::Outputs(Box::new(outputs))
        }
        _ => IgnoredChanges::Ask,
    })
}

/// Removes unused leftovers of commands, now and every day, unless another process did.
pub(crate) fn sweep(changes: &CommandChanges) -> AbortHandle {
    // A process that exits before it is done leaves the rest to the next one. The task ends with the runtime.
    tokio::spawn(sweep_daily(changes.clone())).abort_handle()
}

async fn sweep_daily(changes: CommandChanges) {
    loop {
        let changes = changes.clone();
        let sweep = move || changes.sweep_if_due(clock::wall(), SWEEP_INTERVAL);
        if let Ok(Err(error)) = tokio::task::spawn_blocking(sweep).await {
            tracing::warn!(%error, "sweep what commands left");
        }
        tokio::time::sleep(SWEEP_INTERVAL).await;
    }
}

fn mode(settings: &Settings) -> ChangeMode {
    match settings.get(typed::SANDBOX_CHANGES).as_str() {
        "direct" => ChangeMode::Direct,
        "copy" => ChangeMode::Copy,
        _ => ChangeMode::Review,
    }
}

/// Returns when the profile `workspace` asks about a command.
pub(crate) fn commands(settings: &Settings) -> policy::CommandPolicy {
    match settings.get(typed::COMMANDS).as_str() {
        "copy" => policy::CommandPolicy::Copy,
        _ => policy::CommandPolicy::Ask,
    }
}

/// Returns the executor's own tools.
pub(crate) fn own_tools(
    changes: &CommandChanges,
    network: &CommandNetwork,
) -> Result<Arc<dyn Toolset>, Problem> {
    let to_problem = |e: String| Problem::failed(format!("cannot make haft's own tools: {e}"));
    let apply = changes.tool().map_err(|e| to_problem(e.to_string()))?;
    let asking = network.tools().map_err(|e| to_problem(e.to_string()))?;
    let tools = ToolRegistry::new();
    let more = haft_agent::spend_more().map_err(|e| to_problem(e.to_string()))?;
    let all = [apply, more].into_iter().chain(asking);
    tools.add_all(all).map_err(|e| to_problem(e.to_string()))?;
    Ok(Arc::new(tools))
}
