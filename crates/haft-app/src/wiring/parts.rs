//! Components built from settings: limits, the view of tools, sandbox, principal.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use haft::call::Principal;
use haft::change::ChangeLog;
use haft::policy::Policy;
use haft::progress::Pace;
use haft::session::RunLimits;
use haft::skill::set::SkillSet;
use haft::spec::{Exposure, Overflow};
use haft::tool::Tool;
use haft::toolset::Toolset;
use haft::toolset::registry::ToolRegistry;
use haft::toolset::view::{ToolSettings, ToolsetExt, merged};
use haft::workspace::Workspace;
use haft_builtins::Builtins;
use haft_builtins::command::changes::CommandChanges;
use haft_builtins::command::{CommandNetwork, CommandSurroundings};
use haft_builtins::files::FileOptions;
use haft_builtins::skills::{SKILL_TOOLS, SkillTools};
use haft_chain::TOOL_CHAIN;
use haft_mcp::upstream::RemoteTool;
use haft_sandbox::{Backend, Config, KeptFindings, Places, Sandbox, Spool, Strength};
use serde_json::{Map, Value};

use crate::config::layer::SettingsLayer;
use crate::config::{SettingEntry, Settings, typed, value};
use crate::environment::Environment;
use crate::environment_part::EnvironmentPart;
use crate::own_program::OwnProgramFiles;
use crate::problem::Problem;
use crate::site::Site;
use crate::wiring::chain::Scripts;
use crate::wiring::changes::ChangeParts;
use crate::wiring::memory::MemoryKeeper;
use crate::wiring::offer::ToolOffer;
#[cfg(feature = "testing")]
use crate::wiring::paged;
use crate::wiring::policy::PolicyInputs;
use crate::wiring::selection;
use crate::wiring::{chain, changes, discover, network, skills, surroundings, web};

/// Maximum size of a progress event, in bytes, whatever the settings say.
const MAX_EVENT: usize = 1 << 20;

/// Reads the limits of a run.
pub(crate) fn limits(settings: &Settings) -> Result<RunLimits, Problem> {
    let limits = RunLimits {
        max_calls: settings.get(typed::MAX_CALLS),
        call_timeout: settings.get(typed::CALL_TIMEOUT),
        approval_timeout: settings.get(typed::APPROVAL_TIMEOUT),
        total_timeout: settings.get(typed::TOTAL_TIMEOUT),
        inline_tokens: settings.get(typed::INLINE_TOKENS),
        inline_media_bytes: settings.get(typed::INLINE_MEDIA_BYTES),
        ..RunLimits::default()
    };
    limits
        .check()
        .map_err(|e| Problem::settings(e.to_string()))?;
    Ok(limits)
}

/// Reads how live output is batched.
pub(crate) fn pace(settings: &Settings) -> Pace {
    Pace {
        gather: Duration::from_millis(settings.get(typed::FLUSH_MS)),
        bytes: settings.get(typed::FLUSH_BYTES).min(MAX_EVENT),
    }
}

/// The folder of the state folder in which is kept what works here.
const FINDINGS: &str = "findings";

/// Builds the sandbox of commands.
pub(crate) fn sandbox(
    settings: &Settings,
    places: Places,
    findings: Option<KeptFindings>,
) -> Result<Sandbox, Problem> {
    let backend = match settings.get(typed::SANDBOX_BACKEND).as_str() {
        "auto" | "jail" => Backend::Jail,
        "passthrough" => Backend::Passthrough,
        other => return Err(settings.unavailable("sandbox.backend", other)),
    };
    sandbox_with(settings, backend, places, findings)
}

/// Builds the sandbox of an MCP server. If its settings choose no jail, no strength is required, unless the settings require one for all.
pub(crate) fn sandbox_of_server(
    settings: &Settings,
    backend: Backend,
    places: Places,
) -> Result<Sandbox, Problem> {
    let source = settings.source(typed::SANDBOX_REQUIRE);
    let is_said = source.is_some_and(|source| source.layer != SettingsLayer::BuiltIn);
    if backend == Backend::Passthrough && !is_said {
        return Ok(Sandbox::new(Config {
            backend,
            require: Strength::None,
            places,
            ..Config::default()
        }));
    }
    sandbox_with(settings, backend, places, None)
}

fn sandbox_with(
    settings: &Settings,
    backend: Backend,
    places: Places,
    findings: Option<KeptFindings>,
) -> Result<Sandbox, Problem> {
    let require = settings.get(typed::SANDBOX_REQUIRE);
    Ok(Sandbox::new(Config {
        backend,
        require: require.parse::<Strength>().map_err(Problem::settings)?,
        places,
        findings,
        detect_interpreters: true,
        ..Config::default()
    }))
}

/// Returns the paths that no jail shows, and those that tools may change: nothing there is started outside a jail.
fn places(at: &Site, workspace: &Workspace, written: &[PathBuf]) -> Places {
    let writable = [Some(workspace.root().to_path_buf()), network::packages(at)];
    let hidden = workspace.hidden().iter().cloned();
    let writable = writable.into_iter().flatten();
    let places = Places::declared(hidden, writable.chain(written.iter().cloned()));
    let own = OwnProgramFiles::current();
    let places = places.with_fixed(own.files.iter().cloned());
    places.with_pinned(own.links.iter().cloned())
}

/// The standard tools and the host's own, on or off, plus those of servers, if any.
#[derive(Debug, Clone)]
pub(crate) struct ToolCatalogue {
    /// All tools.
    pub(crate) registry: Arc<ToolRegistry>,
    offers: Vec<ToolOffer>,
}

impl ToolCatalogue {
    /// Adds a tool of an MCP server; if its schema is unusable, only this tool is left out, and the reason is returned.
    pub(crate) fn add_remote(&mut self, tool: RemoteTool) -> Option<String> {
        let name = tool.spec().name.to_string();
        let clashes = selection::is_tool(&self.offers, &name);
        let added = self.registry.add_all([Arc::new(tool) as Arc<dyn Tool>]);
        if let Err(error) = added {
            return Some(format!("`{name}` is not offered: {error}"));
        }
        if !clashes {
            self.offers.push(ToolOffer {
                name,
                bundle: "",
                default: true,
            });
        }
        None
    }

    /// Returns everything that settings can turn on and off.
    pub(crate) fn offers(&self) -> &[ToolOffer] {
        &self.offers
    }

    /// Returns the names of all tools, including those created elsewhere.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.offers.iter().map(|offer| offer.name.as_str())
    }
}

/// The confinement that commands run in.
#[derive(Debug)]
pub(crate) struct CommandConfinement {
    pub(crate) sandbox: Sandbox,
    /// The paths that no jail shows, and those from which nothing is started outside a jail.
    pub(crate) places: Places,
    /// Their network access.
    pub(crate) network: CommandNetwork,
    /// What they see besides the workspace.
    pub(crate) surroundings: CommandSurroundings,
    /// What they get of this process's environment.
    pub(crate) environment: EnvironmentPart,
    /// Configured surroundings that this machine does not have.
    pub(crate) absent: Vec<PathBuf>,
    /// The log of changes made by calls.
    pub(crate) log: Arc<ChangeLog>,
    /// How their changes are judged and applied.
    pub(crate) changes: CommandChanges,
}

impl CommandConfinement {
    /// Builds the confinement that the settings choose.
    pub(crate) fn of(
        at: &Site,
        settings: &Settings,
        ground: &PolicyInputs,
    ) -> Result<Self, Problem> {
        let base = places(at, &ground.workspace, &[]);
        let written = surroundings::written(at, settings, ground, &base)?;
        let by_servers = surroundings::written_by_servers(at, settings);
        let by_servers = by_servers.map(|(_, folder)| folder);
        let all: Vec<PathBuf> = written.iter().cloned().chain(by_servers).collect();
        let places = places(at, &ground.workspace, &all);
        let around = surroundings::surroundings(at, settings, ground, &places, written)?;
        let findings = KeptFindings::in_folder(at.home.join(FINDINGS));
        let sandbox = sandbox(settings, places.clone(), Some(findings))?;
        let log = Arc::new(ChangeLog::new(at.home.path()));
        Ok(Self {
            network: network::network(at, settings, &places)?,
            changes: changes::changes(
                at,
                settings,
                &ChangeParts {
                    workspace: &ground.workspace,
                    sandbox: &sandbox,
                    toolchains: &around.toolchains,
                    log: &log,
                },
            )?,
            absent: surroundings::absent(at, settings),
            environment: EnvironmentPart::of_settings(settings, &at.environment),
            surroundings: around,
            sandbox,
            places,
            log,
        })
    }
}

/// What exists beyond the workspace: the skills found, memory if it is on, the host's tools.
pub(crate) struct HostResources<'a> {
    pub(crate) skills: &'a Arc<SkillSet>,
    pub(crate) memory: Option<MemoryKeeper>,
    pub(crate) own: &'a [Arc<dyn Tool>],
}

/// Returns every tool on this workspace, without those of servers.
pub(crate) fn standard(
    at: &Site,
    settings: &Settings,
    ground: &PolicyInputs,
    confined: &CommandConfinement,
    knowledge: HostResources<'_>,
) -> Result<ToolCatalogue, Problem> {
    let mut builtins = Builtins::new(ground.workspace.clone());
    builtins.sandbox = Some(confined.sandbox.clone());
    builtins.network = confined.network.clone();
    builtins.surroundings = confined.surroundings.clone();
    builtins.changes = Some(confined.changes.clone());
    builtins.memory_mb = settings.whole("sandbox.memory_mb");
    builtins.spool = Some(Arc::new(Spool::new(at.home.spool())));
    builtins.web = Some(web::web(settings, &confined.sandbox)?);
    builtins.inline_media_bytes = limits(settings)?.inline_media_bytes;
    match knowledge.memory {
        Some(MemoryKeeper::Here(memory)) => builtins.memory = Some(memory),
        Some(MemoryKeeper::Server(server)) => builtins.memory_server = Some(server),
        None => {}
    }
    builtins.files = FileOptions {
        read_before_write: settings.flag("files.read_before_write"),
        check: checkers(settings)?,
        home: Some(at.home.path().to_owned()),
    };
    builtins.discover = discover::options(settings, knowledge.skills)?;
    catalogue(at, &builtins, knowledge.own)
}

/// Returns the standard tools just for their names, when what the settings wire them to is wrong.
pub(crate) fn unwired_catalogue(
    at: &Site,
    workspace: &Workspace,
) -> Result<ToolCatalogue, Problem> {
    let mut builtins = Builtins::new(workspace.clone());
    builtins.sandbox = Some(Sandbox::new(Config::default()));
    builtins.web = Some(web::unwired());
    catalogue(at, &builtins, &[])
}

fn catalogue(
    at: &Site,
    builtins: &Builtins,
    own: &[Arc<dyn Tool>],
) -> Result<ToolCatalogue, Problem> {
    let to_problem = |e: String| Problem::failed(format!("cannot offer the standard tools: {e}"));
    let tools = builtins.tools().map_err(|e| to_problem(e.to_string()))?;
    #[cfg(feature = "testing")]
    let tools = match at.environment.get("HAFT_TESTING_PAGES") {
        Some(folder) => [tools, paged::tools(folder)].concat(),
        None => tools,
    };
    let offers = tools.iter().map(|builtin| ToolOffer {
        name: builtin.tool.spec().name.to_string(),
        bundle: builtin.bundle,
        default: builtin.default,
    });
    let offers = offers.chain(skills::offers());
    let mut offers: Vec<ToolOffer> = offers.chain(chain::offers(&at.environment)).collect();
    let registry = ToolRegistry::new();
    let added = registry.add_all(tools.into_iter().map(|builtin| builtin.tool));
    added.map_err(|e| to_problem(e.to_string()))?;
    for tool in own {
        let name = tool.spec().name.as_str();
        if selection::is_tool(&offers, name) {
            return Err(selection::name_clash(name));
        }
        offers.push(ToolOffer {
            name: name.to_owned(),
            bundle: "",
            default: true,
        });
    }
    let added = registry.add_all(own.iter().cloned());
    added.map_err(|e| Problem::usage(format!("cannot offer the program's tools: {e}")))?;
    Ok(ToolCatalogue {
        registry: Arc::new(registry),
        offers,
    })
}

/// Reads `files.check`: a table of patterns, each with a command as a list of words.
fn checkers(settings: &Settings) -> Result<Vec<(String, Vec<String>)>, Problem> {
    let Some(entry) = settings.entry(&["files", "check"]) else {
        return Ok(Vec::new());
    };
    let read: Result<BTreeMap<String, Vec<String>>, _> = entry.value.clone().try_into();
    if let Ok(table) = read {
        return Ok(table.into_iter().collect());
    }
    let problem = Problem::settings("`files.check` takes a table of commands by file pattern")
        .advise(
            "write files.check = { \"*.py\" = [\"python3\", \"-m\", \"py_compile\", \"{path}\"] }",
        );
    let place = entry
        .sources
        .first()
        .and_then(|source| source.place.clone());
    Err(match place {
        Some(place) => problem.at(place),
        None => problem,
    })
}

/// Returns a line for each name in the settings that only a server's tool could have, but none has now.
pub(crate) fn missing_server_tools(all: &ToolCatalogue, settings: &Settings) -> Vec<String> {
    selection::missing_server_tools(&all.offers, settings)
}

/// Returns the names of the tools that are on.
pub(crate) fn on(all: &ToolCatalogue, settings: &Settings) -> Result<BTreeSet<String>, Problem> {
    selection::enabled(&all.offers, settings)
}

/// Returns the tools that are on, described, bound and limited as the settings say; skill tools only appear while there are skills.
///
/// A tool that a deny rule without a specifier names is not listed; if it is called anyway, that rule denies it.
pub(crate) fn view(
    all: &ToolCatalogue,
    on: &BTreeSet<String>,
    skills: &SkillTools,
    wishes: ToolConfig<'_>,
) -> Result<Arc<dyn Toolset>, Problem> {
    let settings = wishes.settings;
    let mut own = wishes.of(on);
    for name in selection::deferred_tools(&all.offers, on, settings)? {
        // A tool that a rule removes stays removed: no search finds it.
        let tool = own.entry(name).or_default();
        tool.exposure = tool.exposure.or(Some(Exposure::Deferred));
    }
    own.remove(TOOL_CHAIN);
    let locale = settings.text("locale");
    let standard = on
        .iter()
        .filter(|name| !SKILL_TOOLS.contains(&name.as_str()) && *name != TOOL_CHAIN);
    let standard = Arc::clone(&all.registry).only(standard);
    let of_skills = Arc::clone(skills.registry()) as Arc<dyn Toolset>;
    let view = merged([Arc::new(standard) as _, of_skills]).configured(own, locale);
    Ok(Arc::new(view.map_err(binding_problem)?))
}

fn binding_problem(error: impl std::fmt::Display) -> Problem {
    Problem::settings(format!("cannot bind a tool's arguments: {error}"))
        .advise("`haft tools NAME` shows its arguments")
}

/// What configures individual tools: settings, and deny rules without a specifier.
#[derive(Clone, Copy)]
pub(crate) struct ToolConfig<'a> {
    pub(crate) settings: &'a Settings,
    pub(crate) policy: &'a Policy,
}

impl ToolConfig<'_> {
    /// Returns their configuration of the tools that are on.
    fn of(self, on: &BTreeSet<String>) -> BTreeMap<String, ToolSettings> {
        let mut own: BTreeMap<String, ToolSettings> = BTreeMap::new();
        for (path, entry) in self.settings.iter() {
            if let [section, name, leaf] = path
                && section == "tools"
                && on.contains(name)
            {
                apply(own.entry(name.clone()).or_default(), leaf, entry);
            }
        }
        let removed = |name: &&String| self.policy.removes(name).is_some();
        for name in on.iter().filter(removed) {
            own.entry(name.clone()).or_default().exposure = Some(Exposure::Unlisted);
        }
        own
    }
}

/// Adds `tool_chain` on top of the same tools, if it is on.
pub(crate) fn with_chain(
    at: &Site,
    wishes: ToolConfig<'_>,
    base: Arc<dyn Toolset>,
    on: &BTreeSet<String>,
    scripts: Scripts<'_>,
) -> Result<Arc<dyn Toolset>, Problem> {
    let settings = wishes.settings;
    // Invalid limits are an error in the settings even if the tool is off.
    chain::limits(settings)?;
    if !on.contains(TOOL_CHAIN) {
        return Ok(base);
    }
    let mut own = wishes.of(on);
    own.retain(|name, _| name == TOOL_CHAIN);
    let all = chain::tools(at, settings, base, scripts)?;
    Ok(Arc::new(
        all.configured(own, settings.text("locale"))
            .map_err(binding_problem)?,
    ))
}

fn apply(tool: &mut ToolSettings, leaf: &str, entry: &SettingEntry) {
    let value = &entry.value;
    match leaf {
        "description" => tool.description = value.as_str().map(str::to_owned),
        "i18n" => {
            let texts = value.as_table().into_iter().flatten();
            let text = |(tag, text): (&String, &toml::Value)| {
                Some((tag.clone(), text.as_str()?.to_owned()))
            };
            tool.i18n = texts.filter_map(text).collect();
        }
        "bind" => tool.bind = json_object(value),
        "timeout_s" => tool.timeout = value::seconds(value).map(Duration::from_secs_f64),
        "overflow" => {
            tool.overflow = match value.as_str() {
                Some("store") => Some(Overflow::Store),
                Some("clip") => Some(Overflow::Clip),
                Some("fail") => Some(Overflow::Fail),
                _ => None,
            }
        }
        "inline_tokens" => {
            tool.inline_tokens = value.as_integer().and_then(|n| usize::try_from(n).ok());
        }
        _ => {}
    }
}

fn json_object(value: &toml::Value) -> Map<String, Value> {
    match serde_json::to_value(value) {
        Ok(Value::Object(map)) => map,
        _ => Map::new(),
    }
}

/// Returns the user of this machine who started the process.
pub(crate) fn principal(environment: &Environment) -> Principal {
    let named = ["USER", "LOGNAME"]
        .iter()
        .find_map(|name| environment.get(name));
    let uid = rustix::process::getuid().as_raw();
    match named.filter(|name| !name.is_empty()) {
        Some(name) => Principal::local(name),
        None => Principal::local(user_name(uid).unwrap_or_else(|| format!("uid-{uid}"))),
    }
}

/// Returns the user's name in `/etc/passwd`; a machine may keep its users elsewhere.
fn user_name(uid: u32) -> Option<String> {
    /// Maximum size of the file, in bytes.
    const MAX_PASSWD: u64 = 1024 * 1024;
    let file = std::fs::File::open("/etc/passwd").ok()?;
    let lines = BufReader::new(file.take(MAX_PASSWD)).lines();
    lines.map_while(Result::ok).find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next().filter(|name| !name.is_empty())?;
        let its_uid = fields.nth(1)?.parse::<u32>().ok()?;
        (its_uid == uid).then(|| name.to_owned())
    })
}
