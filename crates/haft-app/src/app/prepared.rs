//! `ToolDependencies`: what the application opens and reads first: whatever a setting can get wrong is found here.

use std::path::Path;
use std::sync::Arc;

use haft::audit::archive::Archive;
use haft::executor::Executor;
use haft::policy::Guard;
use haft::session::UnknownToolHint;
use haft::skill::set::SkillSet;
use haft::toolset::Toolset;
use haft::toolset::view::ReplaceableToolset;
use haft_builtins::skills::SkillTools;
use haft_sandbox::code::CodeJail;
use parking_lot::RwLock;

use crate::config::Settings;
use crate::feed::AuditFeed;
use crate::host::Host;
use crate::notices::Notices;
use crate::problem::Problem;
use crate::provenance::FileLabels;
use crate::record_log::RecordLog;
use crate::run::live::LiveRuns;
use crate::run::tally::{Tally, TallyParts};
use crate::run::{RunParts, RunSettings, Runs};
use crate::site::Site;
use crate::wiring::chain::Scripts;
use crate::wiring::inventory::Inventory;
use crate::wiring::parts::{self, HostResources, ToolConfig};
use crate::wiring::policy::PolicyInputs;
use crate::wiring::served::{ServedToolsets, ToolsetParts};
use crate::wiring::stores::Stores;
use crate::wiring::{
    absent, chain, memory, names, policy, record, served, servers, skills, stores,
};

/// The tools offered to callers, and what comes with them.
#[derive(Debug)]
pub(crate) struct OfferedTools {
    /// Every tool, on or off, and the external servers.
    pub(crate) inventory: Inventory,
    /// The tools that callers see: enabled and configured.
    pub(crate) tools: Arc<dyn Toolset>,
    /// The same toolset, as the handle that replaces it.
    pub(crate) handle: Arc<ReplaceableToolset>,
    /// The views of them that MCP clients see.
    pub(crate) served: ServedToolsets,
    pub(crate) skills: Arc<SkillSet>,
    pub(crate) skill_tools: Arc<SkillTools>,
    pub(crate) code: CodeJail,
    /// Explains why a tool is unavailable.
    pub(crate) absent: Arc<dyn UnknownToolHint>,
    /// Guards of the embedding program.
    pub(crate) guards: Vec<Arc<dyn Guard>>,
}

/// The components that the tools depend on.
pub(super) struct ToolDependencies {
    pub(super) ground: PolicyInputs,
    pub(super) confined: parts::CommandConfinement,
    pub(super) archive: Arc<Archive>,
    pub(super) stores: Stores,
    pub(super) feed: Arc<AuditFeed>,
    pub(super) tally: Arc<Tally>,
    pub(super) notices: Notices,
    /// The log of finished runs; `None` if their records go with the state folder.
    pub(super) log: Option<RecordLog>,
}

impl ToolDependencies {
    /// Opens the workspace, the archive and the stores, and creates the state folder for them.
    fn open(at: &Site, settings: &Settings, host: &Host) -> Result<Self, Problem> {
        at.home.create()?;
        let ground = policy::build(at, settings, &host.guards)?;
        let confined = parts::CommandConfinement::of(at, settings, &ground)?;
        if host.starts_command {
            confined.sandbox.look_ahead();
        }
        let stores = stores::stores(at, settings)?;
        let tally = Tally::new(TallyParts {
            index: Arc::clone(&stores.index),
            redactor: settings.redactor.clone(),
            log: Arc::clone(&confined.log),
            workspace: ground.workspace.clone(),
        });
        Ok(Self {
            archive: archive(at, settings)?,
            feed: AuditFeed::new(),
            log: record::log(at, settings, &host.notices)?,
            notices: host.notices.clone(),
            tally,
            ground,
            confined,
            stores,
        })
    }

    /// Creates the runs on top of these components.
    pub(super) fn runs(
        &self,
        at: &Site,
        executor: &Executor,
        offered: &OfferedTools,
        terms: RunSettings,
    ) -> Runs {
        let journal = Arc::clone(&self.stores.journal);
        self.tally.look_up_in(Arc::clone(executor.inbox()));
        Runs::new(RunParts {
            executor: executor.clone(),
            tools: Arc::clone(&offered.tools),
            archive: Arc::clone(&self.archive),
            index: Arc::clone(&self.stores.index),
            live: Arc::new(LiveRuns::new(at.home.clone(), journal)),
            feed: Arc::clone(&self.feed),
            tally: Arc::clone(&self.tally),
            notices: self.notices.clone(),
            log: self.log.clone(),
            absent: Arc::clone(&offered.absent),
            files: Arc::new(FileLabels::of(at.home.path(), Path::new(&terms.workspace))),
            terms: RwLock::new(Arc::new(terms)),
        })
    }

    /// Builds the tools that the settings ask for, plus those of the host.
    fn offer(&self, at: &Site, settings: &Settings, host: &Host) -> Result<OfferedTools, Problem> {
        let (ground, confined) = (&self.ground, &self.confined);
        let memory = memory::build(at, settings, &self.archive, &self.stores)?;
        let skills = Arc::new(skills::set(at, settings));
        let servers = servers::ServerInputs {
            at,
            settings,
            ground,
            confined,
            redactor: &settings.redactor,
        };
        let servers = servers.servers(None)?;
        let knowledge = HostResources {
            skills: &skills,
            memory,
            own: &host.tools,
        };
        let own = parts::standard(at, settings, ground, confined, knowledge)?;
        let inventory = Inventory::new(own, servers, &self.notices);
        let stock = inventory.now();
        let all = &stock.all;
        let on = names::enabled_tools(&host.notices, settings, &ground.policy, all)?;
        let skill_tools = skills::tools(settings, &ground.workspace, &skills, &on)?;
        let code = chain::jail(settings, &confined.sandbox)?;
        let wishes = ToolConfig {
            settings,
            policy: &ground.policy,
        };
        let base = parts::view(all, &on, &skill_tools, wishes)?;
        let scripts = Scripts {
            jail: &code,
            journal: &self.stores.journal,
        };
        let tools = parts::with_chain(at, wishes, Arc::clone(&base), &on, scripts)?;
        let kit = ToolsetParts {
            at,
            wishes,
            all,
            on: &on,
            scripts,
        };
        let served = ServedToolsets::new(served::tools(kit, &base, &tools)?);
        let handle = Arc::new(ReplaceableToolset::new(tools));
        Ok(OfferedTools {
            absent: absent::hint(at, Arc::clone(inventory.every()) as _),
            served,
            tools: Arc::clone(&handle) as _,
            handle,
            inventory,
            skills,
            skill_tools,
            code,
            guards: host.guards.clone(),
        })
    }
}

/// What was prepared, and the settings that count.
pub(super) struct PreparedParts<'s> {
    pub(super) settings: &'s Settings,
    pub(super) basis: ToolDependencies,
    pub(super) offered: OfferedTools,
}

/// Reads the rules and prepares the tools. A fault in the file of a workspace that is not trusted is a warning, and the file does not count.
pub(super) fn prepare<'s>(
    at: &Site,
    settings: &'s Settings,
    host: &Host,
) -> Result<PreparedParts<'s>, Problem> {
    let problem = match prepare_by(at, settings, host) {
        Err(problem) => problem,
        prepared => return prepared,
    };
    let (others, warning) = settings.without_workspace(&problem).ok_or(problem)?;
    let prepared = prepare_by(at, others, host)?;
    host.notices.warn(&warning);
    Ok(prepared)
}

fn prepare_by<'s>(
    at: &Site,
    settings: &'s Settings,
    host: &Host,
) -> Result<PreparedParts<'s>, Problem> {
    let basis = ToolDependencies::open(at, settings, host)?;
    let offered = basis.offer(at, settings, host)?;
    Ok(PreparedParts {
        settings,
        basis,
        offered,
    })
}

/// Opens the archive of runs, which redacts secrets.
fn archive(at: &Site, settings: &Settings) -> Result<Arc<Archive>, Problem> {
    let archive = Archive::new(at.home.path(), settings.redactor.clone());
    Ok(Arc::new(
        archive.map_err(|e| Problem::failed(e.to_string()))?,
    ))
}
