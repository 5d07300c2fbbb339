//! `App`: the application assembled from settings: policy, tools, sandbox, archive, artifacts, executor.

use std::path::Path;
use std::sync::{Arc, atomic::AtomicBool};
use std::time::{Duration, Instant};

use haft::artifact::ArtifactStore;
use haft::audit::archive::Archive;
use haft::audit::index::RunIndex;
use haft::audit::redact::Redactor;
use haft::call::Principal;
use haft::change::ChangeLog;
use haft::executor::Executor;
use haft::journal::Journal;
use haft::memory::MemoryStore;
use haft::progress;
use haft::progress::hub::Hub;
use haft::session::UnknownToolHint;
use haft::skill::set::SkillSet;
use haft::workspace::Workspace;
use haft_builtins::command::changes::CommandChanges;
use haft_builtins::command::{CommandNetwork, CommandSurroundings};
use haft_builtins::skills::SkillTools;
use haft_builtins::web::upstream::UpstreamProxy;
use haft_sandbox::Sandbox;
use haft_sandbox::code::CodeJail;
use tokio::task::AbortHandle;

use crate::config::fault::SettingsFault;
use crate::config::hook::HookSettingsInForce;
use crate::config::{Settings, typed};
use crate::desktop::DesktopState;
use crate::disk::{DiskUse, Gauge};
use crate::feed::AuditFeed;
use crate::host::Host;
use crate::notices::Notices;
use crate::oauth::ResourceServer;
use crate::policy_in_force::PolicyInForce;
use crate::problem::Problem;
use crate::record_log::RecordLog;
use crate::rules::RuleCheck;
use crate::run::tally::Tally;
use crate::run::{RunSettings, Runs};
use crate::running::background::ConsoleRequest;
use crate::site::Site;
use crate::upstream;
use crate::webhook::Webhook;
use crate::wiring::approvals::ApprovalSettings;
use crate::wiring::parts::{self};
use crate::wiring::{approvals, artifacts, changes, memory, oauth, policy};

mod prepared;
mod saved_rules;

pub(crate) use prepared::OfferedTools;
use prepared::{ToolDependencies, prepare};

/// The assembled application: everything that an entry point needs. Clones share it.
#[derive(Debug, Clone)]
pub struct App(pub(crate) Arc<AppParts>);

#[derive(Debug)]
pub(crate) struct AppParts {
    pub(crate) executor: Executor,
    /// Starts, suspends, resumes and finishes runs.
    pub(crate) runs: Runs,
    pub(crate) offered: OfferedTools,
    pub(crate) kept: KeptState,
    pub(crate) surroundings: Surroundings,
}

/// What is kept of runs, files and results, and told of them.
#[derive(Debug)]
pub(crate) struct KeptState {
    pub(crate) archive: Arc<Archive>,
    /// The log of finished runs; `None` if their records go with the state folder.
    pub(crate) log: Option<RecordLog>,
    pub(crate) redactor: Redactor,
    pub(crate) index: Arc<dyn RunIndex>,
    pub(crate) memory: Arc<dyn MemoryStore>,
    /// What memory holds, in a sentence for models.
    pub(crate) memory_told: String,
    pub(crate) artifacts: Arc<dyn ArtifactStore>,
    /// The workspace's files.
    pub(crate) files: Workspace,
    pub(crate) journal: Arc<dyn Journal>,
    /// Events of this application's runs, for watchers.
    pub(crate) feed: Arc<AuditFeed>,
    /// Live output of running tools, for watchers.
    pub(crate) hub: Arc<Hub>,
    /// Figures that lists show about the runs of this process.
    pub(crate) tally: Arc<Tally>,
    /// Measures the disk use of the state folder.
    pub(crate) disk: Gauge,
}

/// Where the application works, for whom, and what the settings and this machine determine beside tools and stores.
#[derive(Debug)]
pub(crate) struct Surroundings {
    /// The workspace, state folder and variables.
    pub(crate) site: Site,
    pub(crate) principal: Principal,
    pub(crate) workspace: String,
    /// The confinement that commands run in.
    pub(crate) confined: parts::CommandConfinement,
    pub(crate) upstream: Option<UpstreamProxy>,
    /// Checks whether a rule may be saved with a decision, against the policy in force.
    pub(crate) rules: RuleCheck,
    /// The webhook that approval requests are sent to.
    pub(crate) webhook: Option<Webhook>,
    pub(crate) progress: bool,
    pub(crate) pace: progress::Pace,
    /// The authorization server whose access tokens are accepted besides those of the state folder.
    pub(crate) oauth: Option<ResourceServer>,
    /// The receiver of warnings.
    pub(crate) notices: Notices,
    pub(crate) settings_fault: SettingsFault,
    /// Whether settings of commands changed that apply at the next start here, and to other processes' commands now.
    pub(crate) has_old_command_settings: AtomicBool,
    /// The settings about agents' hooks.
    pub(crate) hook: HookSettingsInForce,
    /// How a console gets started, and how the user is notified that one is needed.
    pub(crate) console: ConsoleSettings,
    /// When the application was assembled.
    pub(crate) began: Instant,
}

/// What the settings and this machine determine about consoles and desktop notices.
#[derive(Debug)]
pub(crate) struct ConsoleSettings {
    pub(crate) wanted: ConsoleRequest,
    pub(crate) desktop: DesktopState,
}

impl ConsoleSettings {
    fn new(at: &Site, settings: &Settings, basis: &ToolDependencies) -> Self {
        Self {
            wanted: ConsoleRequest::new(at, settings),
            desktop: DesktopState::of(at, settings, &basis.confined.sandbox.config().places),
        }
    }
}

/// Reads the settings that apply to every run.
fn terms(at: &Site, settings: &Settings, asks: &ApprovalSettings) -> Result<RunSettings, Problem> {
    Ok(RunSettings {
        principal: parts::principal(&at.environment),
        workspace: at.workspace.display().to_string(),
        profile: policy::profile(settings).as_str().to_owned(),
        limits: parts::limits(settings)?,
        pace: parts::pace(settings),
        skill_tokens: settings.get(typed::SKILL_TOKENS),
        keep_marks: Duration::from_secs(settings.get(typed::KEEP_MARKS)),
        durable: asks.durable,
        on_timeout: asks.on_timeout,
    })
}

impl App {
    /// Assembles the application for this site from the settings. Needs a tokio runtime.
    ///
    /// # Errors
    /// Settings or rules are wrong, or a store, the archive or the state folder cannot be opened.
    pub fn build(at: &Site, settings: &Settings, host: Host) -> Result<Self, Problem> {
        let prepared = prepare(at, settings, &host)?;
        let (settings, basis, offered) = (prepared.settings, prepared.basis, prepared.offered);
        let artifacts = artifacts::artifacts(at, settings)?;
        let principal = parts::principal(&at.environment);
        let console = ConsoleSettings::new(at, settings, &basis);
        let wiring = approvals::ExecutorInputs {
            policy: basis.ground.in_force.clone(),
            tools: &offered.inventory,
            artifacts: &artifacts,
            confined: &basis.confined,
            archive: &basis.archive,
            feed: &basis.feed,
            tally: &basis.tally,
            when_asked: host.when_asked,
            desktop: host.desktop.then_some(&console.desktop),
            inbox: Arc::clone(&basis.stores.inbox),
        };
        let (executor, asked) = approvals::executor(at, settings, host.approver, wiring)?;
        let runs = basis.runs(at, &executor, &offered, terms(at, settings, &asked)?);
        let kept = KeptState {
            archive: basis.archive,
            log: basis.log,
            redactor: settings.redactor.clone(),
            index: basis.stores.index,
            memory: basis.stores.memory,
            memory_told: memory::describe(settings),
            artifacts,
            files: basis.ground.workspace,
            journal: basis.stores.journal,
            feed: basis.feed,
            hub: Hub::new(parts::pace(settings)),
            tally: basis.tally,
            disk: Gauge::default(),
        };
        let surroundings = Surroundings {
            site: at.clone(),
            workspace: at.workspace.display().to_string(),
            confined: basis.confined,
            upstream: upstream::upstream(settings)?,
            rules: asked.rules,
            webhook: asked.webhook,
            progress: settings.get(typed::PROGRESS),
            pace: parts::pace(settings),
            oauth: oauth::resource_server(settings, &principal.tenant)?,
            principal,
            notices: basis.notices,
            settings_fault: SettingsFault::default(),
            has_old_command_settings: AtomicBool::new(false),
            hook: HookSettingsInForce::new(settings),
            console,
            began: Instant::now(),
        };
        Ok(Self(Arc::new(AppParts {
            executor,
            runs,
            offered,
            kept,
            surroundings,
        })))
    }

    /// Returns the time since the application was assembled.
    pub fn uptime(&self) -> Duration {
        self.0.surroundings.began.elapsed()
    }

    /// Returns the last measured disk use of the state folder; `None` until the first measurement, which this call starts, is done.
    pub fn disk_use(&self) -> Option<DiskUse> {
        self.0.kept.disk.last(self.home())
    }

    /// Removes what earlier commands left behind, until the process exits or the returned handle is aborted.
    pub fn sweep(&self) -> AbortHandle {
        changes::sweep(&self.0.surroundings.confined.changes)
    }

    /// Returns the site that the application works at.
    pub fn site(&self) -> &Site {
        &self.0.surroundings.site
    }

    /// Returns the runs: start, suspend, resume, finish.
    pub fn runs(&self) -> &Runs {
        &self.0.runs
    }

    /// Returns the executor, for operations other than calls.
    pub fn executor(&self) -> &Executor {
        &self.0.executor
    }

    /// Returns the proxy for haft's own requests.
    pub(crate) fn upstream(&self) -> Option<&UpstreamProxy> {
        self.0.surroundings.upstream.as_ref()
    }

    /// Returns the store of large results.
    pub fn artifacts(&self) -> &Arc<dyn ArtifactStore> {
        &self.0.kept.artifacts
    }

    /// Returns the log of changes made by calls.
    ///
    /// # Errors
    /// A [`Problem`] if the folder for the changes cannot be created.
    pub fn changes(&self) -> Result<&Arc<ChangeLog>, Problem> {
        let log = self.0.executor.changes();
        log.ok_or_else(|| Problem::failed("what calls change is not noted here"))
    }

    /// Returns the workspace's files, with haft's own hidden.
    pub fn files(&self) -> &Workspace {
        &self.0.kept.files
    }

    /// Returns the skills of workspace, settings and user, which are discovered on demand.
    pub fn skills(&self) -> &Arc<SkillSet> {
        &self.0.offered.skills
    }

    /// Returns the live set of tools that depend on skills.
    pub fn skill_tools(&self) -> &Arc<SkillTools> {
        &self.0.offered.skill_tools
    }

    /// Returns the journal of chains, from which interrupted ones are resumed.
    pub fn journal(&self) -> &Arc<dyn Journal> {
        &self.0.kept.journal
    }

    /// Returns the run index.
    pub fn index(&self) -> &Arc<dyn RunIndex> {
        &self.0.kept.index
    }

    /// Returns the feed of events in this application's runs.
    pub fn feed(&self) -> &AuditFeed {
        &self.0.kept.feed
    }

    /// Returns the hub of live output of running tools.
    pub fn hub(&self) -> &Arc<Hub> {
        &self.0.kept.hub
    }

    /// Returns the sink for a served session's live output; `None` if the settings turn it off.
    pub fn watched(&self) -> Option<Arc<dyn progress::ProgressSink>> {
        let hub = Arc::clone(&self.0.kept.hub);
        self.0.surroundings.progress.then_some(hub as _)
    }

    /// Returns how live output is batched.
    pub fn pace(&self) -> progress::Pace {
        self.0.surroundings.pace
    }

    /// Warns the host of a problem besides what it asked for.
    pub fn warn(&self, text: &str) {
        self.0.surroundings.notices.warn(text);
    }

    /// Returns where a console is needed for this application's approval requests.
    pub fn wanted_console(&self) -> &ConsoleRequest {
        &self.0.surroundings.console.wanted
    }

    /// Returns the webhook that approval requests are sent to.
    pub fn webhook(&self) -> Option<&Webhook> {
        self.0.surroundings.webhook.as_ref()
    }

    /// Describes how memory is stored.
    pub fn memory_description(&self) -> &str {
        &self.0.kept.memory_told
    }

    /// Returns the redactor that hides secrets.
    pub fn redactor(&self) -> &Redactor {
        &self.0.kept.redactor
    }

    /// Returns the store of what is remembered across runs.
    pub fn memory(&self) -> &Arc<dyn MemoryStore> {
        &self.0.kept.memory
    }

    /// Returns the log of finished runs.
    ///
    /// # Errors
    /// The state folder is a temporary one.
    pub(crate) fn record_log(&self) -> Result<&RecordLog, Problem> {
        let log = self.0.kept.log.as_ref();
        log.ok_or_else(|| Problem::usage("a temporary state folder has no log of its runs"))
    }

    /// Returns haft's state folder.
    pub fn home(&self) -> &Path {
        self.0.kept.archive.home()
    }

    /// Returns the principal that calls are made for.
    pub fn principal(&self) -> &Principal {
        &self.0.surroundings.principal
    }

    /// Returns the sandbox that confines commands.
    pub fn sandbox(&self) -> &Sandbox {
        &self.0.surroundings.confined.sandbox
    }

    /// Returns what handles the changes that commands make.
    pub fn command_changes(&self) -> &CommandChanges {
        &self.0.surroundings.confined.changes
    }

    /// Returns the network access of commands.
    pub fn network(&self) -> &CommandNetwork {
        &self.0.surroundings.confined.network
    }

    /// Returns what commands see besides the workspace.
    pub(crate) fn surroundings(&self) -> &CommandSurroundings {
        &self.0.surroundings.confined.surroundings
    }

    /// Returns the paths that settings expose to commands but that this machine does not have.
    pub(crate) fn absent_surroundings(&self) -> &[std::path::PathBuf] {
        &self.0.surroundings.confined.absent
    }

    /// Returns the source of interpreters for scripts.
    pub fn code(&self) -> &CodeJail {
        &self.0.offered.code
    }

    /// Returns whether running tools show their output live.
    pub fn shows_progress(&self) -> bool {
        self.0.surroundings.progress
    }

    /// Returns how to turn on a tool that is off; `None` if there is no such tool.
    pub fn how_to_enable(&self, name: &str) -> Option<String> {
        self.0.offered.absent.advice(name)
    }

    /// Returns what explains why a tool is unavailable.
    pub fn absent(&self) -> Arc<dyn UnknownToolHint> {
        Arc::clone(&self.0.offered.absent)
    }

    /// Returns the check of whether a rule may be saved with an approval.
    pub fn rule_check(&self) -> RuleCheck {
        RuleCheck {
            // Includes what was learned from approvals.
            policy: PolicyInForce::new(self.executor().policy()),
            ..self.0.surroundings.rules.clone()
        }
    }

    /// Returns the workspace's root.
    pub fn workspace(&self) -> &str {
        &self.0.surroundings.workspace
    }

    /// Returns the profile's name.
    pub fn profile(&self) -> &'static str {
        self.executor().policy().profile().as_str()
    }

    /// Waits until everything recorded so far can be read.
    ///
    /// # Errors
    /// A [`Problem`] if the archive cannot be written.
    pub async fn flush(&self) -> Result<(), Problem> {
        let flushed = self.0.kept.archive.flush().await;
        self.0.kept.tally.flush().await;
        flushed.map_err(|e| Problem::failed(e.to_string()))
    }

    /// Suspends or finishes the remaining runs and writes what is buffered; nothing is recorded afterwards.
    pub async fn shut_down(&self) {
        self.0.runs.release_all().await;
        self.0.offered.code.shut_down().await;
        self.0.offered.inventory.close().await;
        let (archive, log) = (Arc::clone(&self.0.kept.archive), self.0.kept.log.clone());
        let write_rest = move || {
            archive.shut_down();
            if let Some(log) = log {
                log.shut_down();
            }
        };
        if tokio::task::spawn_blocking(write_rest).await.is_err() {
            self.0
                .surroundings
                .notices
                .warn("the archive's writer stopped early: the last lines may be missing");
        }
    }
}
