//! `AgentStatus`: which agents are on this machine, which events haft is registered for, and what prevents haft from being asked.

use std::path::{Path, PathBuf};

use crate::programs::{self, registrations};
use haft_hook::{Agent, gaps};
use haft_sandbox::Places;
use serde::Serialize;

use crate::clients::InstallScope;
use crate::hook_settings::places::{self, HookTarget, decides};
use crate::hook_settings::program::HookLauncher;
use crate::hook_settings::version::{self, find_program};
use crate::hook_settings::{Switch, events, spots, switch};
use crate::plain_file;
use crate::program::HookPosition;
use crate::program::MAX_BYTES;
use crate::site::SetupSite;

/// Whether an agent asks haft about its calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum HookCoverage {
    /// Every event that decides is registered, and nothing is known to prevent haft from being asked.
    Yes,
    /// Some of them are missing, or there are warnings.
    Partly,
    /// None of them is registered, or hooks are switched off.
    No,
}

/// What haft knows about an agent on this machine.
#[derive(Debug, Clone, Serialize)]
pub struct AgentStatus {
    /// Its name in `haft hook NAME`.
    pub agent: &'static str,
    /// Its vendor's name for it.
    pub title: &'static str,
    /// Its program on `PATH`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub program: Option<PathBuf>,
    /// The version that the program prints.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Its settings folder, if that exists.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub folder: Option<PathBuf>,
    /// Whether it asks haft about its calls.
    pub governed: HookCoverage,
    /// The files that register haft.
    pub files: Vec<HookFile>,
    /// The files that may register haft, but could not be read or understood.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unreadable: Vec<PathBuf>,
    /// The events that haft should be registered for but is not.
    pub missing: Vec<String>,
    /// The events that the installed version does not have yet.
    pub unsupported: Vec<UnsupportedEvent>,
    /// What prevents haft from being asked, and what to do about it.
    pub warnings: Vec<String>,
    /// Whether a call is denied when the hook fails; `None` if that depends on the version and the version is unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fails_closed: Option<bool>,
    /// The switch that denies a call when the hook fails, if the agent has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub switch: Option<Switch>,
    /// What happens to a call when the hook fails.
    pub failure: &'static str,
    /// What the user has to do after an install.
    pub steps: &'static [&'static str],
    /// What its hooks do not see, without the gaps that only versions older than the installed one have.
    pub gaps: Vec<&'static str>,
}

/// A file that registers haft.
#[derive(Debug, Clone, Serialize)]
pub struct HookFile {
    /// The file.
    pub file: PathBuf,
    /// `user` or `project`.
    pub level: &'static str,
    /// The events that it registers haft for.
    pub events: Vec<String>,
}

/// An event that the installed version does not have.
#[derive(Debug, Clone, Serialize)]
pub struct UnsupportedEvent {
    /// Its name.
    pub event: String,
    /// The first version that has it.
    pub since: &'static str,
}

impl AgentStatus {
    /// Whether haft is in its settings, or may be: a file of them cannot be read.
    pub fn may_be_registered(&self) -> bool {
        !self.files.is_empty() || !self.unreadable.is_empty()
    }

    /// Whether the agent is on this machine, or haft is in its settings.
    pub fn is_here(&self) -> bool {
        let is_used = self.program.is_some() || self.folder.is_some();
        is_used || !self.files.is_empty() || !self.warnings.is_empty()
    }
}

/// Returns the status of every agent. Asks their programs for their versions in parallel. Blocks.
pub fn all(site: SetupSite<'_>, places: &Places) -> Vec<AgentStatus> {
    std::thread::scope(|scope| {
        let each = Agent::ALL.map(|agent| scope.spawn(move || status(agent, site, places)));
        let each = each.into_iter().zip(Agent::ALL);
        // If a thread panicked, the status comes without asking the program.
        each.map(|(thread, agent)| thread.join().unwrap_or_else(|_| read(agent, site)))
            .collect()
    })
}

/// Returns the status of one agent without looking for its program.
pub fn read(agent: Agent, site: SetupSite<'_>) -> AgentStatus {
    StatusBuilder::new(agent, site).status()
}

/// Returns the status of one agent. Asks its program for its version. Blocks.
pub fn status(agent: Agent, site: SetupSite<'_>, places: &Places) -> AgentStatus {
    let mut look = StatusBuilder::new(agent, site);
    match find_program(agent, site.environment, places) {
        Ok(Some(found)) => {
            look.program = Some(found.program);
            look.version = found.version;
        }
        Ok(None) => {}
        Err(refused) => look
            .warnings
            .push(format!("its program was not started: {refused}")),
    }
    look.status()
}

/// A status in the making.
struct StatusBuilder<'a> {
    agent: Agent,
    site: SetupSite<'a>,
    program: Option<PathBuf>,
    version: Option<String>,
    files: Vec<HookFile>,
    spots: Vec<HookPosition>,
    known: Vec<String>,
    unreadable: Vec<PathBuf>,
    warnings: Vec<String>,
    is_off: bool,
}

impl<'a> StatusBuilder<'a> {
    fn new(agent: Agent, site: SetupSite<'a>) -> Self {
        let mut look = Self {
            agent,
            site,
            program: None,
            version: None,
            files: Vec::new(),
            spots: Vec::new(),
            known: Vec::new(),
            unreadable: Vec::new(),
            warnings: Vec::new(),
            is_off: false,
        };
        for level in [InstallScope::User, InstallScope::Project] {
            look.read(level);
        }
        look
    }

    /// Reads the files of a level.
    fn read(&mut self, level: InstallScope) {
        let program = HookLauncher::default();
        let Ok(all) = places::places(self.agent, level, self.site, &program) else {
            return;
        };
        for place in all {
            for event in events(self.agent, &place) {
                if !self.known.contains(&event) {
                    self.known.push(event);
                }
            }
            let text = match plain_file::read(&place.path, MAX_BYTES) {
                Ok(text) => text,
                Err(e) if e.kind() == std::io::ErrorKind::NotFound => continue,
                Err(e) => {
                    self.warnings
                        .push(format!("{} cannot be read: {e}", place.path.display()));
                    self.unreadable.push(place.path);
                    continue;
                }
            };
            match spots(self.agent, &place, &text) {
                Ok(found) if found.is_empty() => {}
                Ok(found) => self.add(level, &place, found),
                Err(wrong) => {
                    let wrong = wrong.problem("is not understood", &place.path, &text);
                    let at = wrong.place().map(ToString::to_string).unwrap_or_default();
                    self.warnings.push(format!("{at} {}", wrong.what()));
                    self.unreadable.push(place.path);
                }
            }
        }
    }

    fn add(&mut self, level: InstallScope, place: &HookTarget, found: Vec<HookPosition>) {
        let file = place.path.clone();
        if found.iter().any(|spot| self.is_there(&spot.event)) {
            self.warnings.push(format!(
                "haft is registered twice for the same event, the second time in {}: it answers once, and takes longer",
                file.display()
            ));
        }
        for spot in &found {
            self.check(spot, &file);
        }
        if let Some(review) = &programs::hooks(self.agent).review {
            let reviewed = (review.count)(self.site, &file, &found);
            if reviewed < found.len() {
                self.is_off |= reviewed == 0;
                self.warnings.push(format!(
                    "{} of {} hooks in {} were not reviewed, and {}",
                    found.len() - reviewed,
                    found.len(),
                    file.display(),
                    review.not_reviewed
                ));
            }
        }
        let mut events: Vec<String> = found.iter().map(|spot| spot.event.clone()).collect();
        events.dedup();
        // In the order in which haft registers them: those that decide come first.
        events.sort_by_key(|event| self.known.iter().position(|known| known == event));
        let level = match level {
            InstallScope::User => "user",
            InstallScope::Project => "project",
        };
        self.files.push(HookFile {
            file,
            level,
            events,
        });
        self.spots.extend(found);
    }

    fn is_there(&self, event: &str) -> bool {
        self.spots.iter().any(|spot| spot.event == event)
    }

    /// Warns if an entry cannot do its work.
    fn check(&mut self, spot: &HookPosition, file: &Path) {
        let shown = file.display();
        if let Some(matcher) = &spot.matcher {
            self.warnings.push(format!(
                "{} in {shown} is only for `{matcher}`: other tools reach no hook",
                spot.event
            ));
        }
        let Some(program) = spot.words.first() else {
            return;
        };
        let is_there = if program.contains('/') {
            Path::new(program).is_file()
        } else {
            let path = self.site.environment.get("PATH").unwrap_or_default();
            std::env::split_paths(path).any(|folder| folder.join(program).is_file())
        };
        let warning = format!(
            "{shown} starts `{program}`, which is not there: haft hook uninstall {0}, then haft hook install {0}",
            self.agent.name()
        );
        if !is_there && !self.warnings.contains(&warning) {
            self.warnings.push(warning);
        }
    }

    /// Returns what switches the agent's hooks off: the file, and the setting in it.
    fn off(&self) -> Vec<String> {
        let hooks = programs::hooks(self.agent);
        let Some(folder) = (hooks.folder)(self.site.environment) else {
            return Vec::new();
        };
        let off = (hooks.off)(&folder, self.site).into_iter();
        off.map(|off| {
            let file = off.file.display();
            format!("{file} switches hooks off: {}", off.setting)
        })
        .collect()
    }

    /// Whether a call is denied when the hook fails; `None` if that depends on the version and the version is unknown.
    fn fails_closed(&self) -> Option<bool> {
        let Some(switch) = switch(self.agent) else {
            return Some(!self.agent.limits().fails_open);
        };
        let Some(since) = switch.since else {
            return Some(true);
        };
        let version = self.version.as_deref()?;
        Some(!version::is_older(version, since))
    }

    fn status(mut self) -> AgentStatus {
        if !self.spots.is_empty() {
            let off = self.off();
            self.is_off |= !off.is_empty();
            self.warnings.extend(off);
        }
        let version = self.version.clone();
        let lacks = |event: &str| {
            let since = (programs::hooks(self.agent).since)(event)?;
            let is_older = version
                .as_deref()
                .is_some_and(|version| version::is_older(version, since));
            is_older.then_some(since)
        };
        let unsupported = self.known.iter().filter_map(|event| {
            Some(UnsupportedEvent {
                event: event.clone(),
                since: lacks(event)?,
            })
        });
        let unsupported: Vec<UnsupportedEvent> = unsupported.collect();
        let missing = self.known.iter().filter(|event| !self.is_there(event));
        let missing: Vec<String> = missing.cloned().collect();
        let deciding: Vec<&String> = self.known.iter().filter(|event| decides(event)).collect();
        let decided = deciding
            .iter()
            .filter(|event| self.is_there(event) && lacks(event).is_none());
        let governed = match decided.count() {
            0 => HookCoverage::No,
            _ if self.is_off => HookCoverage::No,
            count if count == deciding.len() && self.warnings.is_empty() => HookCoverage::Yes,
            _ => HookCoverage::Partly,
        };
        let folder = (programs::hooks(self.agent).folder)(self.site.environment);
        let fails_closed = self.fails_closed();
        let known = gaps(self.agent).iter().copied();
        let known = known.filter(|gap| version::is_about(gap, self.version.as_deref()));
        let known = known.collect();
        AgentStatus {
            agent: self.agent.name(),
            title: self.agent.title(),
            program: self.program,
            version: self.version,
            folder: folder.filter(|folder| folder.is_dir()),
            governed,
            files: self.files,
            missing,
            unsupported,
            unreadable: self.unreadable,
            warnings: self.warnings,
            fails_closed,
            switch: switch(self.agent),
            failure: self.agent.limits().failure,
            steps: registrations(self.agent, "haft").steps,
            gaps: known,
        }
    }
}
