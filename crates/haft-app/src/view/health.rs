//! Checks of what works on this machine; each one says what to do if it fails.

mod access;
mod agents;
mod console;
mod git;
mod mounts;
mod record;
mod reviewer;
mod servers;
mod system;
mod toolchains;

use std::fmt::Write as _;
use std::path::Path;

use haft::approval::inbox::RequestStatus;
use haft::artifact::quota::QuotaUsage;
use haft::audit::index::RunFilter;
use haft::memory::MemoryAccess;
use haft::toolset::Toolset;
use haft_builtins::command::changes::{ChangeMode, CommandChanges};
use haft_builtins::web::http::Http;
use haft_sandbox::{Backend, Places, Sandbox, Strength};
use serde::Serialize;

use crate::app::App;
use crate::config::document::MAX_BYTES;
use crate::config::layer::is_empty;
use crate::config::{FILE_NAME, Settings};
use crate::own_program::{INSTALL_ELSEWHERE, OwnPlace};
use crate::plain_file;
use crate::problem::Problem;
use crate::requests;
use crate::site::Site;
use crate::upstream;
use crate::view::when;
use crate::wiring::{chain, parts};

pub use agents::agents;

/// Checks that may fail without breaking haft.
const OPTIONAL: [&str; 18] = [
    "haft",
    "agent",
    "console",
    "notices",
    "scripts",
    "git",
    "mounts",
    "skills",
    "web",
    "proxy",
    "changes",
    "toolchains",
    "system programs",
    "mcp server",
    "access tokens",
    "oauth",
    "record anchor",
    "reviewer",
];

/// A line of the report (contract §9).
#[derive(Debug, Serialize)]
pub struct HealthCheck {
    /// What is checked: `settings`, `home`, `sandbox`, …
    pub name: &'static str,
    /// Whether it works.
    pub ok: bool,
    /// What was found.
    pub detail: String,
    /// What to do; empty if it works.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub advice: String,
}

impl HealthCheck {
    /// Returns whether this failed and haft depends on it.
    pub fn is_broken(&self) -> bool {
        !self.ok && !OPTIONAL.contains(&self.name)
    }
}

/// The result of all checks.
#[derive(Debug, Serialize)]
pub struct HealthReport {
    /// The checks, in display order.
    pub checks: Vec<HealthCheck>,
    /// The sandbox that confines commands.
    pub sandbox: SandboxStatus,
}

/// The sandbox backend and its strength.
#[derive(Debug, Serialize)]
pub struct SandboxStatus {
    /// `jail` or `passthrough`.
    pub backend: &'static str,
    /// The strength, as in the settings.
    pub strength: &'static str,
}

impl HealthReport {
    /// Returns whether a check failed that haft depends on.
    pub fn is_broken(&self) -> bool {
        self.checks.iter().any(HealthCheck::is_broken)
    }
}

impl HealthReport {
    /// Adds that the settings do not load, and why.
    pub fn note_settings(&mut self, problem: &Problem) {
        let detail = problem.to_string();
        let advice = problem.advice().unwrap_or("correct the settings");
        let advice = format!("{advice}; the checks below are of the built-in settings");
        self.checks.retain(|check| check.name != "settings");
        self.checks
            .insert(0, check("settings", false, detail, &advice));
    }
}

fn check(name: &'static str, ok: bool, detail: impl Into<String>, advice: &str) -> HealthCheck {
    HealthCheck {
        name,
        ok,
        detail: detail.into(),
        advice: if ok { String::new() } else { advice.to_owned() },
    }
}

/// Runs all checks.
pub async fn report(app: &App) -> HealthReport {
    if let Some(findings) = &app.sandbox().config().findings {
        // What works is to be seen now, also by the processes after this one.
        findings.forget();
    }
    let at = app.site();
    let mut checks = vec![
        settings(app),
        workspace(at),
        home(at),
        index(app).await,
        artifacts(app).await,
        skills(app),
        memory(app).await,
        inbox(app).await,
    ];
    checks.extend(record::checks(app).await);
    checks.extend(reviewer::check_model(app));
    checks.extend(own_program(at));
    if at.has_folder() {
        checks.extend(mounts::second_names(at));
    }
    checks.extend(console::checks(app).await);
    checks.push(check_web(app).await);
    checks.extend(check_proxy(app).await);
    let (jail, sandbox) = check_confinement(app.sandbox()).await;
    let has_jail = jail.iter().all(|check| check.ok);
    checks.extend(jail);
    if at.has_folder() && has_jail {
        checks.push(changes(app.command_changes()));
    }
    checks.push(network(app, &sandbox));
    checks.extend(toolchains::checks(app));
    if has_jail {
        checks.extend(system::checks(app.sandbox()));
    }
    checks.extend(servers::checks(app));
    checks.extend(access::checks(app).await);
    if has_jail {
        checks.push(check_scripts(at, app).await);
    }
    checks.push(git::check(app));
    HealthReport { checks, sandbox }
}

/// Reports the profile in force; in a server, also why it has not applied changed settings.
fn settings(app: &App) -> HealthCheck {
    let profile = format!("profile {}", app.profile());
    if let Some(fault) = app.settings_fault() {
        let detail =
            format!("{profile}; changed settings do not load, so the old ones stay: {fault}");
        let advice = "correct the file: a server looks at it every second";
        return check("settings", false, detail, advice);
    }
    let own = plain_file::read_beneath(&app.site().workspace, FILE_NAME, MAX_BYTES);
    if own.is_ok_and(|text| is_empty(&text)) {
        let holds =
            "a running server keeps what it read from it before; delete the file to drop that";
        return check(
            "settings",
            true,
            format!("{profile}; {FILE_NAME} is empty: {holds}"),
            "",
        );
    }
    check("settings", true, profile, "")
}

fn workspace(at: &Site) -> HealthCheck {
    if !at.has_folder() {
        let detail = "none: this server shows what happens in all folders, and makes no calls";
        return check("workspace", true, detail, "");
    }
    let shown = at.workspace.display().to_string();
    match at.check_workspace() {
        Ok(()) => check("workspace", true, shown, ""),
        Err(problem) => {
            let advice = "change to a folder of its own, or name one with --workspace";
            check("workspace", false, format!("{shown}: {problem}"), advice)
        }
    }
}

/// Returns a line if tools of agents may change haft's own program.
fn own_program(at: &Site) -> Option<HealthCheck> {
    let place = OwnPlace::find(at)?;
    Some(check("haft", false, place.words(), INSTALL_ELSEWHERE))
}

/// Checks that the state folder is writable, and that nobody but its owner has access to it.
fn home(at: &Site) -> HealthCheck {
    let path = at.home.path();
    let probe = at.home.join(".doctor");
    let written = plain_file::write_private(&probe, "").and_then(|()| std::fs::remove_file(&probe));
    let shown = path.display().to_string();
    match (written, at.home.open_mode()) {
        (Err(e), _) => check(
            "home",
            false,
            format!("{shown}: {e}"),
            "make it writable, or choose another with --home",
        ),
        (Ok(()), Some(mode)) => {
            let detail = format!("{shown}: other users have access (mode {mode:03o})");
            check("home", false, detail, &format!("chmod 700 {shown}"))
        }
        (Ok(()), None) => check("home", true, shown, ""),
    }
}

/// Checks that root certificates are found, and reports whether a search service is configured.
async fn check_web(app: &App) -> HealthCheck {
    let search = match app.all().snapshot().entry("web_search") {
        Some(_) => "web_search is configured",
        None => "no search service is configured (web.search.provider)",
    };
    match Http::guarded().roots().await {
        Ok(roots) => check(
            "web",
            true,
            format!("{roots} root certificates; {search}"),
            "",
        ),
        Err(e) => check(
            "web",
            false,
            format!("{e}; {search}"),
            "https needs them: install ca-certificates, or set SSL_CERT_FILE",
        ),
    }
}

/// Checks that the configured proxy accepts connections, or reports that one set in variables is not used.
async fn check_proxy(app: &App) -> Option<HealthCheck> {
    let http = Http::trusted().with_upstream(app.upstream().cloned());
    match http.check_upstream().await {
        Some(Ok(address)) => Some(check(
            "proxy",
            true,
            format!("{address} accepts connections"),
            "",
        )),
        Some(Err(why)) => Some(check(
            "proxy",
            false,
            why,
            "correct `network.proxy`, or start the proxy",
        )),
        None => {
            let environment = &app.site().environment;
            let name = upstream::unused_variable(|name| environment.get(name).is_some())?;
            let detail = format!(
                "{name} is set but not used: `network.proxy = \"${{env:{name}}}\"` sends haft's own requests through it"
            );
            Some(check("proxy", true, detail, ""))
        }
    }
}

async fn index(app: &App) -> HealthCheck {
    match app.index().list(&RunFilter::newest(1)).await {
        Ok(_) => check("index", true, "haft.db opens", ""),
        Err(e) => check(
            "index",
            false,
            e.to_string(),
            "move haft.db in the state folder away; archives stay",
        ),
    }
}

async fn artifacts(app: &App) -> HealthCheck {
    let store = app.artifacts();
    let all = store.list(app.principal(), None).await;
    let usage = store.usage(app.principal()).await;
    match all.and_then(|all| Ok((all.len(), usage?))) {
        Ok((count, QuotaUsage { used, limit })) => {
            let (used, limit) = (when::size(used), when::size(limit));
            let detail = format!("{count} kept, {used} of {limit} (artifacts.max_bytes)");
            check("artifacts", true, detail, "")
        }
        Err(e) => check(
            "artifacts",
            false,
            e.to_string(),
            "make the artifacts folder in the state folder, or what `artifacts.url` names, writable",
        ),
    }
}

fn skills(app: &App) -> HealthCheck {
    let found = app.skills().current();
    let (usable, broken) = (found.skills().len(), found.broken().len());
    let mut detail = format!("{usable} found");
    if broken > 0 {
        let _ = write!(detail, ", {broken} do not load");
    }
    if !found.withheld().is_empty() {
        detail.push_str(", those of the workspace withheld: it is not trusted");
    }
    let advice = "`haft skills list` says what is wrong with them";
    check("skills", broken == 0, detail, advice)
}

/// Checks the inbox of approval requests.
async fn inbox(app: &App) -> HealthCheck {
    let durable = app.executor().inbox().is_durable();
    let mut waiting = 0;
    let pending = requests::with_status(RequestStatus::Pending);
    match requests::visit(app, pending, |_| waiting += 1).await {
        Ok(()) if !durable => check(
            "approvals",
            true,
            "haft does not ask about calls (approval.mode)",
            "",
        ),
        Ok(()) => check("approvals", true, format!("{waiting} waiting"), ""),
        Err(e) => {
            let advice = "free disk space, or repair the database that store.url names";
            check("approvals", false, e.to_string(), advice)
        }
    }
}

async fn memory(app: &App) -> HealthCheck {
    let summary = app.memory_description();
    match app
        .memory()
        .counts(&MemoryAccess::now(app.principal()))
        .await
    {
        Ok(counts) => {
            let (accepted, waiting) = (counts.accepted, counts.candidate);
            let detail = format!("{summary}, {accepted} kept, {waiting} waiting");
            check("memory", true, detail, "")
        }
        Err(e) => check(
            "memory",
            false,
            e.to_string(),
            "move haft.db in the state folder away; archives stay",
        ),
    }
}

/// Checks the jail by running it; reports what is missing for full strength on lines of its own.
async fn check_confinement(sandbox: &Sandbox) -> (Vec<HealthCheck>, SandboxStatus) {
    if sandbox.config().backend == Backend::Passthrough {
        return unconfined(sandbox.config().require);
    }
    let probe = sandbox.probe().await;
    let need = sandbox.config().require;
    let enough = probe.strength >= need;
    let mut checks = Vec::new();
    if enough {
        checks.push(check("sandbox", true, probe.detail(), ""));
    }
    // If the strength suffices, what is missing is a detail, not a fault; otherwise it is all that matters.
    for missing in probe.missing.iter().filter(|one| enough || one.decides) {
        let name = if enough { "jail part" } else { "sandbox" };
        let detail = if enough {
            format!("{}: {}", missing.what, missing.why)
        } else {
            format!(
                "commands do not run: the jail needs {}, and {}",
                missing.what, missing.why
            )
        };
        let mut line = check(name, enough, detail, &missing.fix);
        line.advice.clone_from(&missing.fix);
        checks.push(line);
    }
    if checks.is_empty() {
        let advice = "lower sandbox.require";
        checks.push(check("sandbox", false, probe.detail(), advice));
    }
    let strength = SandboxStatus {
        backend: "jail",
        strength: probe.strength.word(),
    };
    (checks, strength)
}

/// Returns why the jail is not full here, as the settings have it and this machine lets it be; `None` if it is.
///
/// # Errors
/// The settings name no sandbox that there is.
pub async fn jail_shortfall(
    settings: &Settings,
    places: Places,
) -> Result<Option<String>, Problem> {
    let sandbox = parts::sandbox(settings, places, None)?;
    if sandbox.config().backend == Backend::Passthrough {
        return Ok(Some("sandbox.backend is \"passthrough\"".to_owned()));
    }
    let probe = sandbox.probe().await;
    if probe.strength == Strength::Full {
        return Ok(None);
    }
    Ok(Some(match probe.needs() {
        needs if needs.is_empty() => format!("its strength is {}", probe.strength),
        needs => format!("it needs {needs}"),
    }))
}

/// Reports `passthrough`, which always fails: it confines nothing, or the required strength rules it out.
fn unconfined(require: Strength) -> (Vec<HealthCheck>, SandboxStatus) {
    let strength = Strength::None.word();
    let (detail, advice) = if require > Strength::None {
        (
            format!(
                "sandbox.backend = \"passthrough\" is below sandbox.require = \"{require}\": no command runs"
            ),
            "remove sandbox.backend from the settings; or, to run commands without any confinement, set sandbox.require = \"none\" as well",
        )
    } else {
        let detail = "sandbox.backend = \"passthrough\": commands run unconfined and can read and write everything that this user can";
        (
            detail.to_owned(),
            "remove sandbox.backend from the settings",
        )
    };
    let backend = "passthrough";
    let check = check("sandbox", false, detail, advice);
    (vec![check], SandboxStatus { backend, strength })
}

/// Checks how changes of commands are applied, by running one on a copy of the workspace.
fn changes(changes: &CommandChanges) -> HealthCheck {
    let copy = "copy: a command's changes are judged and applied when it has ended";
    let review = "review: all that a command changed needs approval";
    let direct = "direct: commands change the workspace at once";
    let detail = match changes.mode() {
        ChangeMode::Direct => return check("changes", true, direct, ""),
        ChangeMode::Copy => copy,
        ChangeMode::Review => review,
    };
    match changes.usable() {
        Ok(()) => check("changes", true, detail, ""),
        Err(why) => {
            let detail = format!("{direct}, because copies do not work here: {why}");
            let advice = "profile `workspace` requires approval before a command runs; a copy needs overlays in user namespaces (Linux 5.11), \
                nothing mounted below the workspace, and a state folder that is not on an overlay or network file system";
            check("changes", false, detail, advice)
        }
    }
}

/// Checks the network access of commands, and whether the jail here can enforce it.
fn network(app: &App, sandbox: &SandboxStatus) -> HealthCheck {
    let network = app.network();
    let (word, meaning) = (network.word(), network.meaning());
    if app.sandbox().config().backend == Backend::Passthrough {
        let detail = format!(
            "{word} has no effect: commands without a jail reach everything this machine can"
        );
        return check(
            "network",
            false,
            detail,
            "remove sandbox.backend from the settings",
        );
    }
    let listed = matches!(word, "allow-list" | "install");
    let own = Strength::NoProc.word();
    let enough = !listed || [own, Strength::Full.word()].contains(&sandbox.strength);
    let advice = "it needs a jail with namespaces: see above, or set sandbox.network = \"none\"";
    check("network", enough, format!("{word}: {meaning}"), advice)
}

/// Checks the interpreter for scripts, by running it in the jail.
async fn check_scripts(at: &Site, app: &App) -> HealthCheck {
    if !chain::has_python(&at.environment) {
        return check("scripts", false, "there is no python3", chain::NO_PYTHON);
    }
    let probe = app.code().probe().await;
    if let Some(missing) = &probe.missing {
        let detail = format!("{}: {}", missing.what, missing.why);
        return check("scripts", false, detail, &missing.fix);
    }
    let python = probe.python.as_deref().unwrap_or(Path::new("python3"));
    let mut detail = format!(
        "{} ({}), {}",
        probe.version,
        python.display(),
        probe.strength
    );
    match &probe.why_not {
        None => detail.push_str(", forked from a zygote"),
        Some(why) => {
            let _ = write!(detail, ", started afresh for each script ({why})");
        }
    }
    if probe.data {
        detail.push_str(", with numpy or pandas");
    }
    for refused in &probe.passed_over {
        let _ = write!(detail, "; not used: {refused}");
    }
    check("scripts", true, detail, "")
}
