//! Code mode from settings: the interpreters, the limits of a script, and `tool_chain` among the tools.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use haft::audit::runs;
use haft::call::RunId;
use haft::journal::Journal;
use haft::session::RunLimits;
use haft::spec::Risk;
use haft::toolset::Toolset;
use haft_chain::python::PythonEngine;
use haft_chain::toolset::chain_tools;
use haft_chain::{ChainTool, RUNTIME, TOOL_CHAIN};
use haft_sandbox::code::{CodeConfig, CodeJail};
use haft_sandbox::{Sandbox, Spool};

use crate::config::{Settings, typed};
use crate::environment::Environment;
use crate::problem::Problem;
use crate::site::Site;
use crate::wiring::offer::ToolOffer;

/// The bundle of `tool_chain`, also its category.
pub(crate) const CHAIN: &str = "chain";
/// Advice in `haft doctor` and for callers of the missing tool.
pub(crate) const NO_PYTHON: &str =
    "scripts need python3: install it (Debian and Ubuntu: `apt install python3`)";

/// Returns the offer of `tool_chain`, if there is an interpreter.
pub(crate) fn offers(environment: &Environment) -> impl Iterator<Item = ToolOffer> {
    has_python(environment)
        .then(|| ToolOffer {
            name: TOOL_CHAIN.to_owned(),
            bundle: CHAIN,
            default: true,
        })
        .into_iter()
}

/// Returns whether there is a `python3` to try. Whether it works in the jail turns out when the first script runs.
pub(crate) fn has_python(environment: &Environment) -> bool {
    let path = environment.get("PATH").unwrap_or_default();
    let folders = std::env::split_paths(path).chain(["/usr/bin".into(), "/usr/local/bin".into()]);
    folders
        .map(|folder: PathBuf| folder.join("python3"))
        .any(|file| is_executable(&file))
}

fn is_executable(file: &Path) -> bool {
    file.is_file() && rustix::fs::access(file, rustix::fs::Access::EXEC_OK).is_ok()
}

/// Returns the source of interpreters for scripts; starts nothing yet.
pub(crate) fn jail(settings: &Settings, sandbox: &Sandbox) -> Result<CodeJail, Problem> {
    match settings.get(typed::CHAIN_ENGINE).as_str() {
        "auto" | "python" => {}
        other => return Err(settings.unavailable("chain.engine", other)),
    }
    let own = CodeConfig::default();
    let memory = settings.whole("sandbox.memory_mb");
    let config = CodeConfig {
        runtime: RUNTIME.into(),
        memory_mb: memory.unwrap_or(own.memory_mb),
        data_memory_mb: memory.unwrap_or(own.data_memory_mb),
        ..own
    };
    Ok(CodeJail::new(sandbox, config))
}

/// Reads the limits of a script.
pub(crate) fn limits(settings: &Settings) -> Result<RunLimits, Problem> {
    let limits = RunLimits {
        max_calls: settings.get(typed::CHAIN_MAX_CALLS),
        call_timeout: settings.get(typed::CHAIN_CALL_TIMEOUT),
        approval_timeout: settings.get(typed::CHAIN_APPROVAL_TIMEOUT),
        total_timeout: settings.get(typed::CHAIN_TOTAL_TIMEOUT),
        inline_bytes: Some(settings.get(typed::CHAIN_INLINE_BYTES)),
        max_risk_unapproved: match settings.get(typed::CHAIN_MAX_RISK).as_str() {
            "safe" => Risk::Safe,
            "high" => Risk::High,
            _ => Risk::Critical,
        },
        ..RunLimits::chain()
    };
    let sound = limits.check_chain();
    sound.map_err(|e| Problem::settings(format!("chain: {e}")))?;
    Ok(limits)
}

/// The interpreters of scripts, and the journal of what scripts did.
#[derive(Clone, Copy)]
pub(crate) struct Scripts<'a> {
    pub(crate) jail: &'a CodeJail,
    pub(crate) journal: &'a Arc<dyn Journal>,
}

/// Adds `tool_chain`, which lets a script call the other tools, to these tools.
pub(crate) fn tools(
    at: &Site,
    settings: &Settings,
    base: Arc<dyn Toolset>,
    scripts: Scripts<'_>,
) -> Result<Arc<dyn Toolset>, Problem> {
    let engine = Arc::new(PythonEngine::new(scripts.jail.clone()));
    let home = at.home.path().to_owned();
    let folder = move |run: &RunId| {
        let run = runs::run_dir(&home, run.as_str()).ok()?;
        Some(run.join("workspace"))
    };
    let to_problem = |e: String| Problem::failed(format!("cannot offer {TOOL_CHAIN}: {e}"));
    let journal = Some(Arc::clone(scripts.journal));
    let tool = ChainTool::new(engine, limits(settings)?, journal, Arc::new(folder));
    let tool = tool.map_err(|e| to_problem(e.to_string()))?;
    let tool = tool.with_spool(Arc::new(Spool::new(at.home.spool())));
    let tools = chain_tools(base, tool).map_err(|e| to_problem(e.to_string()))?;
    Ok(Arc::new(tools))
}
