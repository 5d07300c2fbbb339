//! `haft hook install | uninstall | status`: adds haft to the hooks of coding agents, removes it, and shows where it is registered.

use std::path::Path;

use haft_app::clients::{InstallScope, text_of};
use haft_app::hook::wrap_setting::{self, WrapSetting};
use haft_app::hook_settings::status::AgentStatus;
use haft_app::hook_settings::{
    self, HookEditOptions, HookLauncher, InstallEdit, agent_named, registrations, switch,
};
use haft_app::nearest::nearest;
use haft_app::problem::Problem;
use haft_hook::Agent;
use serde_json::{Value, json};

use crate::args::{Hook, HookAction, HookFiles};
use crate::commands::mcp::{described, diff};
use crate::commands::{ExitResult, consent, own_place};
use crate::exit::Exit;
use crate::invocation::Invocation;
use crate::screen::{BOLD, DIM, styled, visible};

mod governed;
mod status;

/// What is asked before haft goes into files.
const INSTALL_QUESTION: &str = "put haft into these files?";

/// What a user must know before the first call waits.
const DECIDED_WHERE: &str = "what haft asks about you decide in the browser (`haft console`) or at a terminal (`haft approvals`), unless the agent's own prompt asks";

/// Runs the command.
pub(crate) fn run(at: &Invocation, hook: &Hook) -> ExitResult {
    match (&hook.agent, &hook.action) {
        (None, Some(HookAction::Install(typed))) if typed.print => print(at, &typed.files),
        (None, Some(HookAction::Install(typed))) => {
            own_place::check(at, typed.here)?;
            install(at, &typed.files)
        }
        (None, Some(HookAction::Uninstall(typed))) => uninstall(at, typed),
        (None, Some(HookAction::Status { agent })) => status::run(at, agent.as_deref()),
        (agent, _) => {
            let agent = agent.as_deref().unwrap_or("AGENT");
            Err(Problem::usage("the agent's name comes last")
                .advise(format!("haft hook install {agent}")))
        }
    }
}

/// Finds an agent by its name.
///
/// # Errors
/// There is no such agent. The [`Problem`] lists the agents.
pub(crate) fn agent(name: &str) -> Result<Agent, Problem> {
    agent_named(name).ok_or_else(|| {
        let names = Agent::ALL.map(Agent::name);
        let near = nearest(name, &names).map(|near| format!("did you mean `{near}`? "));
        Problem::usage(format!("unknown agent `{name}`")).advise(format!(
            "{}there are {}",
            near.unwrap_or_default(),
            names.join(", ")
        ))
    })
}

/// Returns this program as an entry names it. In the files of a project, which others share, that is its name if the user's `PATH` leads to
/// it. In the user's own files it is the path, because a project may put a folder first on `PATH` in which the agent can write.
fn program(at: &Invocation, shared: bool) -> Result<HookLauncher, Problem> {
    let running = std::env::current_exe()
        .map_err(|e| Problem::failed(format!("cannot find the haft binary: {e}")))?;
    let path = at.site.environment.get("PATH").unwrap_or_default();
    let folders = std::env::split_paths(path).filter(|folder| folder.is_absolute());
    let first = folders
        .map(|folder| folder.join("haft"))
        .find(|file| file.is_file());
    let real = |file: &Path| file.canonicalize().ok();
    let on_path = first.filter(|file| real(file) == real(&running));
    let path = text_of(on_path.as_deref().unwrap_or(&running))?;
    Ok(HookLauncher {
        name: match on_path {
            Some(_) if shared => "haft".to_owned(),
            _ => path.clone(),
        },
        path,
        options: options(at)?,
    })
}

/// Returns the options that an entry holds. A hook takes its settings from files, which it finds by the state folder.
fn options(at: &Invocation) -> Result<Vec<String>, Problem> {
    let typed = &at.options;
    if typed.config.is_some() || typed.profile.is_some() || typed.trust || !typed.set.is_empty() {
        let why = "a hook takes its settings from files: --config, --profile, -c and --trust cannot be carried into it";
        return Err(Problem::usage(why).advise("write them into haft's settings"));
    }
    let variable = at.site.environment.get("HAFT_HOME");
    if typed.home.is_none() && variable.is_none_or(str::is_empty) {
        return Ok(Vec::new());
    }
    Ok(vec!["--home".to_owned(), text_of(at.site.home.path())?])
}

fn order<'a>(
    at: &'a Invocation,
    typed: &HookFiles,
    agent: Agent,
) -> Result<HookEditOptions<'a>, Problem> {
    let level = if typed.project {
        at.site.check_workspace()?;
        InstallScope::Project
    } else {
        InstallScope::User
    };
    Ok(HookEditOptions {
        agent,
        level,
        site: at.site.setup(),
        dry_run: typed.dry_run,
    })
}

/// Returns the named agent, or all that fit.
fn agents(
    at: &Invocation,
    typed: &HookFiles,
    fits: fn(&AgentStatus) -> bool,
) -> Result<Vec<Agent>, Problem> {
    if let Some(name) = &typed.agent {
        return Ok(vec![agent(name)?]);
    }
    let all = hook_settings::status::all(at.site.setup(), &at.places()).into_iter();
    Ok(all
        .filter(fits)
        .filter_map(|status| Agent::from_name(status.agent))
        .collect())
}

fn print(at: &Invocation, typed: &HookFiles) -> ExitResult {
    let program = program(at, typed.project)?;
    let mut all = Vec::new();
    for agent in agents(at, typed, AgentStatus::is_here)? {
        all.extend(hook_settings::snippet(order(at, typed, agent)?, &program)?);
    }
    if at.screen.json {
        at.screen.document(&all)?;
        return Ok(Exit::Done);
    }
    for one in &all {
        at.screen.say(&visible::line(&format!(
            "put this in {}",
            one.file.display()
        )));
        at.screen.raw(one.text.as_bytes())?;
    }
    Ok(Exit::Done)
}

fn install(at: &Invocation, typed: &HookFiles) -> ExitResult {
    let agents = agents(at, typed, AgentStatus::is_here)?;
    if agents.is_empty() {
        return Err(Problem::usage("no coding agent was found here")
            .advise("name one: haft hook install claude"));
    }
    let done = put(at, typed, &agents)?;
    if at.screen.json {
        at.screen.document(&described_install(typed, &done))?;
        return Ok(Exit::Done);
    }
    say_put(at, typed, &done);
    if !typed.dry_run {
        for (agent, _) in &done.agents {
            say_governed(at, *agent);
        }
    }
    Ok(Exit::Done)
}

/// What an install did, or would do.
pub(crate) struct HookInstall {
    agents: Vec<(Agent, Vec<InstallEdit>)>,
    wrap: Option<WrapSetting>,
}

impl HookInstall {
    /// Returns the edits of all files, haft's own settings included.
    fn edits(&self) -> impl Iterator<Item = &InstallEdit> {
        let own = self.wrap.as_ref().and_then(WrapSetting::edit);
        self.agents.iter().flat_map(|(_, edits)| edits).chain(own)
    }
}

/// Returns what an install would do, or does it.
pub(crate) fn plan(
    at: &Invocation,
    typed: &HookFiles,
    agents: &[Agent],
    dry_run: bool,
) -> Result<HookInstall, Problem> {
    let program = program(at, typed.project)?;
    let edits = agents.iter().map(|agent| {
        let order = order(at, typed, *agent)?;
        let edits = hook_settings::install(HookEditOptions { dry_run, ..order }, &program)?;
        Ok((*agent, edits))
    });
    Ok(HookInstall {
        agents: edits.collect::<Result<Vec<_>, Problem>>()?,
        wrap: governed::wrap(at, agents, dry_run)?,
    })
}

/// Shows what an install would change, asks, and does it.
fn put(at: &Invocation, typed: &HookFiles, agents: &[Agent]) -> Result<HookInstall, Problem> {
    let shown = plan(at, typed, agents, true)?;
    if !is_agreed(at, typed, shown.edits(), INSTALL_QUESTION)? {
        return Err(Problem::usage("not installed").advise("nothing was changed"));
    }
    if typed.dry_run {
        return Ok(shown);
    }
    plan(at, typed, agents, false)
}

/// Shows what an install of haft in an agent's hooks would change, and asks whether to do it.
///
/// # Errors
/// It cannot be done, or no user can be asked.
pub(crate) fn is_wanted(at: &Invocation, typed: &HookFiles, agent: Agent) -> Result<bool, Problem> {
    let shown = plan(at, typed, &[agent], true)?;
    is_agreed(at, typed, shown.edits(), INSTALL_QUESTION)
}

/// Says what an install did, how commands run from now on, and last whether each agent is governed.
pub(crate) fn say_put(at: &Invocation, typed: &HookFiles, done: &HookInstall) {
    for (agent, edits) in &done.agents {
        say_installed(at, typed, *agent, edits);
    }
    if let Some(edit) = done.wrap.as_ref().and_then(WrapSetting::edit) {
        say_edit(at, typed, edit, "hook.wrap = \"jail\"");
    }
    for (agent, _) in &done.agents {
        let (_, line) = governed::commands_of(*agent, done.wrap.as_ref());
        at.screen.say(&visible::line(&line));
    }
    if !done.agents.is_empty() {
        at.screen.say(DECIDED_WHERE);
    }
}

/// Says in one line whether an agent is governed, and what is not.
pub(crate) fn say_governed(at: &Invocation, agent: Agent) {
    let status = hook_settings::status::status(agent, at.site.setup(), &at.places());
    at.screen.say(&governed::line(&status));
}

/// Returns whether an agent is governed: `yes`, `partly` or `no`.
pub(crate) fn governed_word(at: &Invocation, agent: Agent) -> Value {
    let status = hook_settings::status::status(agent, at.site.setup(), &at.places());
    json!(status.governed)
}

/// Shows what would change and asks the user to confirm.
fn is_agreed<'e>(
    at: &Invocation,
    typed: &HookFiles,
    edits: impl Iterator<Item = &'e InstallEdit>,
    question: &str,
) -> Result<bool, Problem> {
    let changed: Vec<&InstallEdit> = edits.filter(|edit| edit.changes()).collect();
    if !at.screen.json {
        for edit in &changed {
            at.screen.out(&diff(edit))?;
        }
    }
    let changes = !changed.is_empty();
    if typed.yes || typed.dry_run || !changes {
        return Ok(true);
    }
    consent::agree(at, question, "an edit of an agent's hooks")
}

/// Says what was done to a file.
fn say_edit(at: &Invocation, typed: &HookFiles, edit: &InstallEdit, what: &str) {
    let file = visible::line(&edit.file.display().to_string());
    let line = match (edit.changes(), typed.dry_run) {
        (false, _) => format!("{file} already has {what}"),
        (true, true) => format!("would change {file}"),
        (true, false) => format!("put {what} into {file}"),
    };
    at.screen.say(&line);
    if let Some(backup) = &edit.backup {
        let line = format!("  backup of the file: {}", backup.display());
        at.screen.say(&styled(DIM, &visible::line(&line)));
    }
}

fn say_installed(at: &Invocation, typed: &HookFiles, agent: Agent, edits: &[InstallEdit]) {
    let title = agent.title();
    for edit in edits {
        say_edit(at, typed, edit, "haft");
        if edit.changes() && edit.file.starts_with(&at.site.workspace) {
            let line =
                "  it may hold paths of this machine: look before you put it under version control";
            at.screen.say(&styled(DIM, line));
        }
    }
    if typed.dry_run || !edits.iter().any(InstallEdit::changes) {
        return;
    }
    for step in registrations(agent, "haft").steps {
        at.screen.say(&format!("{} {step}", styled(BOLD, "to do:")));
    }
    if switch(agent).is_none() {
        let line = format!("{title}: {}", agent.limits().failure);
        at.screen.say(&line);
    }
    let name = agent.name();
    at.screen.say(&format!(
        "undo with: haft hook uninstall {name}{}",
        if typed.project { " --project" } else { "" }
    ));
}

fn uninstall(at: &Invocation, typed: &HookFiles) -> ExitResult {
    let agents = agents(at, typed, AgentStatus::may_be_registered)?;
    let mut moved = Vec::new();
    let mut shown = Vec::new();
    for agent in &agents {
        let order = order(at, typed, *agent)?;
        moved.extend(hook_settings::hooks_to_review(order)?);
        let edits = hook_settings::uninstall(HookEditOptions {
            dry_run: true,
            ..order
        })?;
        shown.push((*agent, edits));
    }
    let wrap = if outlives(at, typed, &agents) {
        None
    } else {
        wrap_setting::unwrap(&at.site, true)?
    };
    let edits = shown.iter().flat_map(|(_, edits)| edits).chain(&wrap);
    if !is_agreed(at, typed, edits, "remove haft from these files?")? {
        return Err(Problem::usage("not uninstalled").advise("nothing was changed"));
    }
    let mut done = Vec::new();
    for agent in &agents {
        done.push((*agent, hook_settings::uninstall(order(at, typed, *agent)?)?));
    }
    if wrap.is_some() {
        wrap_setting::unwrap(&at.site, typed.dry_run)?;
    }
    if at.screen.json {
        let all = done
            .iter()
            .map(|(agent, edits)| described_agent(typed, *agent, edits));
        at.screen.document(&all.collect::<Vec<_>>())?;
        return Ok(Exit::Done);
    }
    for (agent, edits) in &done {
        say_removed(at, typed, *agent, edits);
    }
    if let Some(edit) = wrap {
        let word = if typed.dry_run {
            "would remove"
        } else {
            "removed"
        };
        let line = format!("{word} hook.wrap = \"jail\" from {}", edit.file.display());
        at.screen.say(&visible::line(&line));
    }
    for advice in moved {
        at.screen.say(&visible::line(&advice));
    }
    Ok(Exit::Done)
}

/// Whether haft stays in the hooks of an agent whose commands it runs in the jail: then `hook.wrap` stays, too.
fn outlives(at: &Invocation, typed: &HookFiles, removed: &[Agent]) -> bool {
    let level = if typed.project { "project" } else { "user" };
    Agent::ALL.into_iter().any(|agent| {
        let status = hook_settings::status::read(agent, at.site.setup());
        let mut files = status.files.iter();
        let stays = files.any(|file| file.level != level || !removed.contains(&agent));
        agent.limits().can_rewrite && stays
    })
}

fn say_removed(at: &Invocation, typed: &HookFiles, agent: Agent, edits: &[InstallEdit]) {
    let changed: Vec<&InstallEdit> = edits.iter().filter(|edit| edit.changes()).collect();
    if changed.is_empty() {
        at.screen
            .say(&format!("haft is not in these hooks of {}", agent.title()));
    }
    for edit in changed {
        let file = visible::line(&edit.file.display().to_string());
        let line = match (typed.dry_run, &edit.after) {
            (true, _) => format!("would change {file}"),
            (false, None) => format!("removed {file}"),
            (false, Some(_)) => format!("removed haft from {file}"),
        };
        at.screen.say(&line);
    }
    if !typed.project {
        let status = hook_settings::status::read(agent, at.site.setup());
        for file in status.files.iter().filter(|file| file.level == "project") {
            let shown = file.file.display();
            let line = format!(
                "{shown} has haft, too: haft hook uninstall {} --project",
                agent.name()
            );
            at.screen.say(&visible::line(&line));
        }
    }
}

/// Returns what an install did as `--json` shows it, agent by agent.
pub(crate) fn described_install(typed: &HookFiles, done: &HookInstall) -> Vec<Value> {
    let each = done.agents.iter().map(|(agent, edits)| {
        let mut shown = described_agent(typed, *agent, edits);
        if let Some(map) = shown.as_object_mut() {
            let (jailed, why) = governed::commands_of(*agent, done.wrap.as_ref());
            map.insert("jailed".into(), json!(jailed));
            map.insert("commands".into(), json!(why));
        }
        shown
    });
    each.collect()
}

fn described_agent(typed: &HookFiles, agent: Agent, edits: &[InstallEdit]) -> Value {
    let files = edits.iter().map(|edit| described(edit, typed.dry_run));
    let files: Vec<Value> = files.collect();
    json!({"agent": agent.name(), "files": files, "steps": registrations(agent, "haft").steps})
}
