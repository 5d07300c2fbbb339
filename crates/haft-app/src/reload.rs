//! Settings and rules that change while haft serves: detects changes, reloads and applies them, or reports what it cannot apply.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use haft::policy::{Policy, RuleList};
use haft::toolset::view::ToolsetExt as _;
use haft_builtins::skills::SKILL_TOOLS;

use crate::app::App;
use crate::config::{FILE_NAME, Settings, user_file};
use crate::home::rule_file;
use crate::policy_diff;
use crate::problem::Problem;
use crate::servers::Servers;
use crate::site::Site;
use crate::trust;
use crate::wiring::chain::Scripts;
use crate::wiring::names;
use crate::wiring::parts::{self, ToolConfig};
use crate::wiring::policy::{self, PolicyInputs};
use crate::wiring::served::{self, ToolsetParts};
use crate::wiring::servers::ServerInputs;
use crate::wiring::surroundings::written_by_servers;

mod files;

use files::WatchedFiles;

/// How often the files are checked.
const POLL_INTERVAL: Duration = Duration::from_secs(1);
/// How long the files must stay unchanged before they are loaded.
const SETTLE_TIME: Duration = Duration::from_millis(200);
/// Maximum number of keys that a notice names.
const MAX_NAMED: usize = 8;

/// Reads all settings again.
pub type LoadSettings = Box<dyn Fn() -> Result<Settings, Problem> + Send>;

/// The outcome of a change to the settings files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reload {
    /// These keys are now in force.
    Taken(Vec<String>),
    /// The files do not load; the previous settings stay in force.
    Refused(String),
    /// The files load again and match what is in force.
    Recovered,
}

impl App {
    /// Returns why the changed settings files do not load, if they don't; the previous settings stay in force.
    pub fn settings_fault(&self) -> Option<String> {
        self.0.surroundings.settings_fault.get()
    }

    /// Applies changed settings: policy, tools, external servers with their pins, limits of runs that start from now on. If one of them
    /// cannot be applied, nothing changes. Returns the names of the servers whose pins changed.
    ///
    /// # Errors
    /// A rule, a name or a limit is invalid.
    pub fn take_settings(&self, settings: &Settings) -> Result<Vec<String>, Problem> {
        let parts = &self.0;
        let at = &parts.surroundings.site;
        let policy = policy::again(at, settings, &parts.offered.guards, &parts.kept.files)?;
        let limits = parts::limits(settings)?;
        let before = self.servers();
        let stock = parts
            .offered
            .inventory
            .with(self.rebuild_servers(settings, &policy)?);
        let pinned = stock.servers.pinned_since(&before);
        let pinned: Vec<String> = pinned.map(str::to_owned).collect();
        let on = names::enabled_tools(&parts.surroundings.notices, settings, &policy, &stock.all)?;
        let wishes = ToolConfig {
            settings,
            policy: &policy,
        };
        let tools = parts::view(&stock.all, &on, &parts.offered.skill_tools, wishes)?;
        let scripts = Scripts {
            jail: &parts.offered.code,
            journal: &parts.kept.journal,
        };
        // The skill toolset contains those that were on at the start.
        let off = SKILL_TOOLS.iter().filter(|name| !on.contains(**name));
        let off: Vec<&str> = off.copied().collect();
        let tools = if off.is_empty() {
            tools
        } else {
            Arc::new(tools.except(off))
        };
        let base = tools;
        let tools = parts::with_chain(at, wishes, Arc::clone(&base), &on, scripts)?;
        let kit = ToolsetParts {
            at,
            wishes,
            all: &stock.all,
            on: &on,
            scripts,
        };
        let served = served::tools(kit, &base, &tools)?;
        parts.kept.redactor.learn(&settings.secrets.values);
        // The policy goes first, so that no tool is offered under old rules that the new ones tighten.
        parts.surroundings.rules.policy.replace(Arc::clone(&policy));
        parts.executor.replace_policy(Arc::clone(&policy));
        parts.offered.handle.replace(tools);
        parts
            .offered
            .inventory
            .replace(stock, &parts.surroundings.notices);
        parts.offered.served.replace(served);
        parts.surroundings.hook.replace(settings);
        parts.runs.change_terms(|terms| {
            terms.limits = limits;
            policy.profile().as_str().clone_into(&mut terms.profile);
        });
        Ok(pinned)
    }

    /// Creates the servers that changed settings name; unchanged ones are reused.
    fn rebuild_servers(
        &self,
        settings: &Settings,
        policy: &Arc<Policy>,
    ) -> Result<Servers, Problem> {
        let parts = &self.0;
        let ground = PolicyInputs {
            workspace: parts.kept.files.clone(),
            policy: Arc::clone(policy),
            in_force: parts.surroundings.rules.policy.clone(),
        };
        let basis = ServerInputs {
            at: &parts.surroundings.site,
            settings,
            ground: &ground,
            confined: &parts.surroundings.confined,
            redactor: &parts.kept.redactor,
        };
        basis.servers(Some(&self.servers()))
    }

    /// Returns whether these settings and the current pins result in other servers than the present ones.
    fn have_servers_changed(&self, settings: &Settings) -> Result<bool, Problem> {
        let now = self.rebuild_servers(settings, &self.0.executor.policy())?;
        Ok(!now.is_same(&self.servers()))
    }

    /// Returns the servers that can only be applied by a restart: only at the start does haft keep tools away from the files with their
    /// secrets, and refuse to start anything from the folders that they write to.
    fn waiting_servers(&self, settings: &Settings, hidden: &[PathBuf]) -> BTreeSet<String> {
        let places = &self.0.surroundings.confined.places;
        let is_new = |file: &PathBuf| !hidden.contains(file);
        let new_files = settings.secrets.files.iter().any(is_new);
        let written = written_by_servers(&self.0.surroundings.site, settings);
        let mut waiting: BTreeSet<String> = written
            .filter(|(_, folder)| !places.may_change(folder))
            .map(|(name, _)| name.to_owned())
            .collect();
        for (path, entry) in settings.iter() {
            if let [mcp, servers, name, ..] = path
                && [mcp.as_str(), servers.as_str()] == ["mcp", "servers"]
                && new_files
                && entry.written.to_string().contains("${file:")
            {
                waiting.insert(name.clone());
            }
        }
        waiting
    }
}

/// The settings in force, and the files that they come from.
#[derive(Debug)]
pub struct Reloader {
    app: App,
    settings: Settings,
    files: WatchedFiles,
    /// The settings files; `files` also contains those of the pins.
    sources: BTreeSet<PathBuf>,
    /// The files that were not empty when last loaded.
    nonempty: BTreeSet<PathBuf>,
    /// The files with secrets that tools are kept away from.
    hidden: Vec<PathBuf>,
    /// Changed keys that need a restart, as last reported.
    later: BTreeSet<String>,
    load: Loader,
}

struct Loader(LoadSettings);

impl std::fmt::Debug for Loader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Loader")
    }
}

impl Reloader {
    /// Returns a reloader for an application that was built with these settings. `config` is the file named in addition to the usual ones;
    /// `load` reads all settings as at the start, without asking the user. The first look always loads them: they may have changed since
    /// the start.
    pub fn new(app: &App, settings: &Settings, config: Option<&Path>, load: LoadSettings) -> Self {
        let sources = files_of(app.site(), settings, config);
        let files = WatchedFiles::new(with_pins(&sources, app));
        Self {
            app: app.clone(),
            settings: settings.clone(),
            files,
            sources,
            nonempty: nonempty_files(settings),
            hidden: settings.secrets.files.clone(),
            later: BTreeSet::new(),
            load: Loader(load),
        }
    }

    /// Checks the files periodically and reports the outcome of changes through the application's notices; never returns.
    pub async fn watch(mut self) {
        loop {
            let changing = self.files.are_changing();
            tokio::time::sleep(if changing { SETTLE_TIME } else { POLL_INTERVAL }).await;
            let looked = tokio::task::spawn_blocking(move || {
                let found = self.look();
                (self, found)
            });
            let Ok((reloader, found)) = looked.await else {
                return;
            };
            self = reloader;
            if let Some(reload) = found {
                self.report(&reload);
            }
        }
    }

    /// Applies changes once the files stay the same from one look to the next; returns `None` if nothing has changed, or the files are
    /// still being written.
    pub fn look(&mut self) -> Option<Reload> {
        if !self.files.have_changed() {
            return None;
        }
        let loaded = (self.load.0)();
        if !self.files.confirm_loaded() {
            return None;
        }
        let reloaded = loaded.and_then(|settings| {
            self.refuse_emptied(&settings)?;
            let spoken = nonempty_files(&settings);
            let reloaded = self.take(settings)?;
            self.nonempty = spoken;
            Ok(reloaded)
        });
        let fault = &self.app.0.surroundings.settings_fault;
        match reloaded {
            Ok(reloaded) => {
                let broken = fault.replace(None).is_some();
                if reloaded.is_empty() {
                    return broken.then_some(Reload::Recovered);
                }
                Some(Reload::Taken(reloaded))
            }
            Err(problem) => {
                let text = self
                    .app
                    .redactor()
                    .redact(&describe_problem(&problem))
                    .into_owned();
                let before = fault.replace(Some(text.clone()));
                (before.as_ref() != Some(&text)).then_some(Reload::Refused(text))
            }
        }
    }

    /// A file that had settings and is now empty was emptied by accident: to drop its rules, the user deletes it.
    fn refuse_emptied(&self, settings: &Settings) -> Result<(), Problem> {
        let mut emptied = settings.files.iter().filter(|file| file.empty);
        let Some(file) = emptied.find(|file| self.nonempty.contains(&file.path)) else {
            return Ok(());
        };
        let own = file.path == self.app.site().workspace.join(FILE_NAME);
        let shown = if own {
            FILE_NAME.to_owned()
        } else {
            file.path.display().to_string()
        };
        let what = format!("{shown} is now empty: its previous settings stay in force");
        Err(Problem::settings(what).advise("delete the file to drop them"))
    }

    /// Applies the changes that are possible while haft runs.
    fn take(&mut self, loaded: Settings) -> Result<Vec<String>, Problem> {
        let changed = self.settings.differences(&loaded);
        let waiting = self.app.waiting_servers(&loaded, &self.hidden);
        let is_live = |path: &[String]| match path {
            [mcp, servers, name, ..] if mcp == "mcp" && servers == "servers" => {
                !waiting.contains(name)
            }
            _ => is_live(path),
        };
        let (now, later): (Vec<_>, Vec<_>) = changed.into_iter().partition(|path| is_live(path));
        self.report_restart_keys(&later);
        let of_reviewer =
            |path: &Vec<String>| path.starts_with(&["policy".into(), "reviewer".into()]);
        if let Some(reviewer) = self.app.executor().reviewer()
            && later.iter().any(of_reviewer)
        {
            // What was taken from it counts at once; what was added, when haft starts the next time.
            reviewer.retire();
        }
        let settings = loaded.with_others_of(&self.settings, is_live);
        let before = rules_of(&self.app);
        let old = self.app.executor().policy();
        if now.is_empty() && !self.app.have_servers_changed(&settings)? {
            return Ok(Vec::new());
        }
        let pinned = self.app.take_settings(&settings)?;
        self.files.follow(with_pins(&self.sources, &self.app));
        let pinned = pinned.iter().map(|name| format!("the pin of {name}"));
        if now.is_empty() {
            return Ok(pinned.collect());
        }
        let learned = now.iter().all(|path| *path == ["policy", "allow"]);
        if learned && before == rules_of(&self.app) {
            // Rules that this process saved itself, with an approval.
            self.settings = settings;
            return Ok(Vec::new());
        }
        for warning in &settings.warnings {
            self.app.warn(warning);
        }
        let new = self.app.executor().policy();
        let policies = [&*old, &*new];
        for line in policy_diff::of_reload(policies, [&self.settings, &settings], is_live) {
            let line = self.app.redactor().redact(&line).into_owned();
            self.app.warn(&format!("policy: {line}"));
        }
        self.settings = settings;
        let keys = now.iter().map(|path| path.join("."));
        Ok(keys.chain(pinned).collect())
    }

    fn report_restart_keys(&mut self, later: &[Vec<String>]) {
        let later: BTreeSet<String> = later.iter().map(|path| path.join(".")).collect();
        if later != self.later && !later.is_empty() {
            let keys: Vec<&str> = later.iter().map(String::as_str).collect();
            let named = list(&keys);
            self.app.warn(&format!(
                "changed settings that apply when haft starts the next time: {named}"
            ));
        }
        let of_commands = |key: &String| key.starts_with("sandbox.") || key.starts_with("network.");
        let old = &self.app.0.surroundings.has_old_command_settings;
        old.store(later.iter().any(of_commands), Ordering::Relaxed);
        self.later = later;
    }

    fn report(&self, reload: &Reload) {
        let text = match reload {
            Reload::Taken(keys) => {
                let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
                format!("changed settings are in force: {}", list(&keys))
            }
            Reload::Refused(fault) => {
                format!("changed settings do not load, so the old ones stay in force: {fault}")
            }
            Reload::Recovered => {
                "the settings load again; they say what is in force already".to_owned()
            }
        };
        self.app.warn(&text);
    }
}

/// Returns what is wrong, where, and what to do.
fn describe_problem(problem: &Problem) -> String {
    let advice = problem.advice().map(|advice| format!("; {advice}"));
    format!("{problem}{}", advice.unwrap_or_default())
}

/// Returns the rules in force, without their reasons.
fn rules_of(app: &App) -> Vec<(RuleList, String, String)> {
    let rules = app.executor().policy().view().rules.into_iter();
    let mut rules: Vec<_> = rules
        .map(|rule| (rule.list, rule.rule, rule.layer))
        .collect();
    rules.sort();
    rules
}

fn list(keys: &[&str]) -> String {
    match keys.get(..MAX_NAMED) {
        Some(some) if keys.len() > MAX_NAMED => {
            format!("{} and {} more", some.join(", "), keys.len() - MAX_NAMED)
        }
        _ => keys.join(", "),
    }
}

/// Returns whether a changed key takes effect while haft runs. All others take effect at the next start: tools, stores and connections are
/// built from them.
fn is_live(path: &[String]) -> bool {
    let path: Vec<&str> = path.iter().map(String::as_str).collect();
    match path.as_slice() {
        ["policy", key] => [
            "profile",
            "allow",
            "ask",
            "deny",
            "secret_files",
            "secret_names",
            "untrusted_content",
            "rule_of_two",
            "trust_workspace",
        ]
        .contains(key),
        // A bound argument may contain a secret that nothing redacts yet.
        ["tools", _, key] => *key != "bind",
        ["limits", key] => *key != "inline_media_bytes",
        ["chain", key] => *key != "engine",
        ["budgets" | "hook", ..] | ["tools", _] | ["locale"] => true,
        _ => false,
    }
}

/// Returns every file that settings may come from, whether it exists or not.
fn files_of(site: &Site, settings: &Settings, config: Option<&Path>) -> BTreeSet<PathBuf> {
    let workspace = site.workspace.to_string_lossy();
    let usual = [
        PathBuf::from("/etc/haft/config.toml"),
        site.workspace.join(FILE_NAME),
        rule_file(site.home.path(), &workspace),
        site.home.join(trust::FILE),
    ];
    let paths = usual
        .into_iter()
        .chain(user_file(&site.environment))
        .chain(config.map(Path::to_owned))
        .chain(settings.files.iter().map(|file| file.path.clone()));
    paths.collect()
}

/// Returns the settings files and the files of the external servers' pins.
fn with_pins(sources: &BTreeSet<PathBuf>, app: &App) -> BTreeSet<PathBuf> {
    let servers = app.servers();
    let sources = sources.iter().cloned();
    sources.chain(servers.pin_files()).collect()
}

/// Returns the files of these settings that are not empty.
fn nonempty_files(settings: &Settings) -> BTreeSet<PathBuf> {
    let files = settings.files.iter().filter(|file| !file.empty);
    files.map(|file| file.path.clone()).collect()
}
