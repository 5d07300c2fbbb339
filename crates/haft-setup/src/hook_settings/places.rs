//! `places`: the files of agents' hooks on this machine, for the user and for one folder, wherever variables move them.

use std::path::{Path, PathBuf};

use crate::registration::{
    AgentFile, AgentFileContent, FolderVariable, PlaceCondition, RegistrationScope, SettingsFormat,
    Setup,
};
use haft_hook::Agent;
use serde_json::Value;

use crate::clients::InstallScope;
use crate::hook_settings::format::HookFormat;
use crate::hook_settings::program::HookLauncher;
use crate::problem::Problem;
use crate::program::HookRegistration;
use crate::programs::registrations;
use crate::site::SetupSite;

/// A file of an agent that haft is registered in.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct HookTarget {
    pub(crate) path: PathBuf,
    pub(crate) form: HookFileFormat,
    /// When it is used, if several files can hold the same hooks.
    pub(crate) condition: PlaceCondition,
}

/// The form of a file.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum HookFileFormat {
    /// Settings with a list for each event.
    Shared(HookLayout),
    /// A file that belongs to haft as a whole.
    Whole { text: String, is_program: bool },
}

/// The layout of hooks in a file of settings.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct HookLayout {
    pub(crate) format: HookFormat,
    /// The names above the events.
    pub(crate) parent: &'static [&'static str],
    /// The members at the top that must be there.
    pub(crate) root: Vec<(&'static str, Value)>,
    pub(crate) entries: Vec<HookRegistration>,
    /// Whether the file is for haft alone.
    pub(crate) is_own: bool,
}

/// Returns every file of a level that may register haft, with the entries for this program.
///
/// # Errors
/// There is no home folder.
pub(crate) fn places(
    agent: Agent,
    level: InstallScope,
    site: SetupSite<'_>,
    program: &HookLauncher,
) -> Result<Vec<HookTarget>, Problem> {
    let scope = match level {
        InstallScope::User => RegistrationScope::User,
        InstallScope::Project => RegistrationScope::Project,
    };
    let setup: Setup = registrations(agent, program.name_for(agent));
    let mut all: Vec<HookTarget> = Vec::new();
    for place in setup.places.iter().filter(|place| place.scope == scope) {
        for file in &place.files {
            let path = path_of(file, level, site)?;
            if all.iter().any(|known| known.path == path) {
                continue;
            }
            all.push(HookTarget {
                form: form(agent, file, program),
                condition: place.condition,
                path,
            });
        }
    }
    Ok(all)
}

fn path_of(file: &AgentFile, level: InstallScope, site: SetupSite<'_>) -> Result<PathBuf, Problem> {
    if level == InstallScope::Project {
        return Ok(site.workspace.join(file.path));
    }
    let moved = |moved: FolderVariable| {
        let folder = site.environment.folder(moved.variable)?;
        let rest = Path::new(file.path).strip_prefix(moved.replaces).ok()?;
        Some(folder.join(rest))
    };
    let home = || Some(site.environment.folder("HOME")?.join(file.path));
    let path = file.moved_by.and_then(moved).or_else(home);
    path.ok_or_else(|| {
        Problem::failed("there is no home folder: HOME is not set")
            .advise("set HOME to an absolute path")
    })
}

fn form(agent: Agent, file: &AgentFile, program: &HookLauncher) -> HookFileFormat {
    match &file.content {
        AgentFileContent::Shared {
            format,
            root,
            entries,
        } => {
            let own = entries.iter().map(|entry| HookRegistration {
                event: entry.event.to_owned(),
                value: with_options(&entry.value, agent, program),
            });
            let is_below = entries.first().is_some_and(|entry| entry.keys.len() > 1);
            HookFileFormat::Shared(HookLayout {
                format: match format {
                    SettingsFormat::Toml => HookFormat::Toml,
                    SettingsFormat::Json | SettingsFormat::Jsonc => HookFormat::Json,
                },
                parent: if is_below { &["hooks"] } else { &[] },
                root: root.clone(),
                entries: own.collect(),
                is_own: false,
            })
        }
        AgentFileContent::Own { text, executable } => own_json(agent, text, program)
            .unwrap_or_else(|| {
                let line = format!(" hook {}\n", agent.name());
                let tail = format!(" hook {}{}\n", agent.name(), program.tail());
                HookFileFormat::Whole {
                    text: if *executable {
                        text.replace(&line, &tail)
                    } else {
                        text.clone()
                    },
                    is_program: *executable,
                }
            }),
    }
}

/// Returns the form of a file of haft's own that is JSON with hooks. The user may have added others, so it is edited like any other file.
fn own_json(agent: Agent, text: &str, program: &HookLauncher) -> Option<HookFileFormat> {
    let json: Value = serde_json::from_str(text).ok()?;
    let Value::Object(root) = &json else {
        return None;
    };
    let mut entries = Vec::new();
    for (event, list) in root.get("hooks")?.as_object()? {
        entries.push(HookRegistration {
            event: event.clone(),
            value: with_options(list.get(0)?, agent, program),
        });
    }
    // The events that decide come first, as in other files.
    entries.sort_by_key(|entry| !decides(&entry.event));
    let version = root
        .get("version")
        .map(|version| ("version", version.clone()));
    Some(HookFileFormat::Shared(HookLayout {
        format: HookFormat::Json,
        parent: &["hooks"],
        root: version.into_iter().collect(),
        entries,
        is_own: true,
    }))
}

/// Whether the answer to an event decides about a call. A plugin decides, too.
pub(crate) fn decides(event: &str) -> bool {
    let lower = event.to_ascii_lowercase();
    ["pre", "before", "permission", "haft."]
        .iter()
        .any(|begin| lower.starts_with(begin))
}

/// Appends this program's options to the command lines of an entry.
fn with_options(value: &Value, agent: Agent, program: &HookLauncher) -> Value {
    let end = format!(" hook {}", agent.name());
    match value {
        Value::String(line) if line.ends_with(&end) => {
            Value::String(line.clone() + &program.tail())
        }
        Value::Array(items) => {
            let items = items.iter();
            Value::Array(
                items
                    .map(|item| with_options(item, agent, program))
                    .collect(),
            )
        }
        Value::Object(members) => {
            let members = members.iter();
            let each =
                members.map(|(name, inner)| (name.clone(), with_options(inner, agent, program)));
            Value::Object(each.collect())
        }
        other => other.clone(),
    }
}
