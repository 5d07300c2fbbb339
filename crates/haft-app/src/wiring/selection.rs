//! Which tools are on: the default set, `tools.enable`, `tools.disable`, `tools.NAME.enabled`, in this order. What an embedding program
//! turns off stays off, whatever other layers say.

use std::collections::BTreeSet;

use haft::spec::ToolClass;
use haft_builtins::classes;
use haft_chain::TOOL_CHAIN;

use crate::config::Settings;
use crate::config::layer::SettingsLayer;
use crate::problem::Problem;
use crate::wiring::chain::NO_PYTHON;
use crate::wiring::offer::ToolOffer;

/// Tools that come with `run_command`.
const WITH_COMMANDS: [&str; 4] = [
    "await_command",
    "command_input",
    "kill_command",
    "expose_port",
];

/// Bundles: the names of tool categories.
const BUNDLES: [&str; 7] = [
    "files", "commands", "web", "memory", "skills", "discover", "chain",
];

/// Standard tools that later releases add, or other settings remove: naming them is not an error.
const OPTIONAL_TOOLS: [&str; 4] = [
    "recall_memory",
    "write_memory",
    "memory",
    "compress_history",
];

/// Tools that exist once the settings configure what they need: naming them earlier is not an error.
const CONFIGURED: [(&str, &str); 2] = [
    (
        "web_search",
        "no search service is configured; `web.search.provider` in settings names one",
    ),
    (TOOL_CHAIN, NO_PYTHON),
];

/// Returns the names of the tools that are on.
pub(crate) fn enabled(all: &[ToolOffer], settings: &Settings) -> Result<BTreeSet<String>, Problem> {
    check_tables(all, settings)?;
    let mut on: BTreeSet<String> = all
        .iter()
        .filter(|offer| offer.default)
        .map(|offer| offer.name.clone())
        .collect();
    for name in named(all, settings, "tools.enable")? {
        on.insert(name);
    }
    for name in named(all, settings, "tools.disable")? {
        on.remove(&name);
    }
    let barred = disabled_by_host(all, settings);
    let own = |name: &str| {
        let entry = settings.entry(&["tools", name, "enabled"])?;
        let wanted = entry.value.as_bool()?;
        let lifts = wanted && barred.contains(name) && entry.layer() < SettingsLayer::Program;
        (!lifts).then_some(wanted)
    };
    for offer in all {
        match own(&offer.name) {
            Some(true) => on.insert(offer.name.clone()),
            Some(false) => on.remove(&offer.name),
            None => false,
        };
    }
    // Waiting for a command and killing it make no sense without starting one, and vice versa.
    let with_commands = on.contains("run_command");
    for offer in all
        .iter()
        .filter(|offer| WITH_COMMANDS.contains(&offer.name.as_str()))
    {
        if with_commands && own(&offer.name) != Some(false) {
            on.insert(offer.name.clone());
        } else {
            on.remove(&offer.name);
        }
    }
    Ok(on)
}

/// Returns the tools that the embedding program turns off: only the program itself can turn one back on by name, no other layer.
fn disabled_by_host(all: &[ToolOffer], settings: &Settings) -> BTreeSet<String> {
    let words = settings.items("tools.disable").into_iter();
    let words = words.filter(|(_, source)| source.layer == SettingsLayer::Program);
    words
        .flat_map(|(word, _)| matching_tools(all, word.as_str().unwrap_or_default()))
        .collect()
}

/// The tools that find and expand deferred tools: never deferred themselves.
const FINDERS: [&str; 2] = ["tool_search", "tool_expand_tools"];

/// Returns the names of the tools that must be found and expanded before they are listed.
pub(crate) fn deferred_tools(
    all: &[ToolOffer],
    on: &BTreeSet<String>,
    settings: &Settings,
) -> Result<BTreeSet<String>, Problem> {
    let names = named(all, settings, "tools.defer")?.into_iter();
    let deferred: BTreeSet<String> = names
        .filter(|name| on.contains(name) && !FINDERS.contains(&name.as_str()))
        .collect();
    let Some(off) = FINDERS.iter().find(|name| !on.contains(**name)) else {
        return Ok(deferred);
    };
    if deferred.is_empty() {
        return Ok(deferred);
    }
    let message = format!("`tools.defer` needs `{off}`, which is off");
    Err(Problem::settings(message).advise(format!(
        "turn `{off}` on, or remove `tools.defer`: without `{off}` the deferred tools cannot be called"
    )))
}

/// Tools named by a list in the settings, including future ones of a server or skill.
#[derive(Debug, Clone, Default)]
pub(crate) struct ToolSelection {
    all: bool,
    names: BTreeSet<String>,
    /// Prefixes of dotted names: `docs.` for `docs.*`.
    prefixes: Vec<String>,
}

impl ToolSelection {
    /// Returns whether a tool of this name is among them.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.all
            || self.names.contains(name)
            || self.prefixes.iter().any(|prefix| name.starts_with(prefix))
    }
}

/// Returns the tools that a list of names, classes, bundles and `SERVER.*` stands for.
pub(crate) fn resolve_selection(
    all: &[ToolOffer],
    settings: &Settings,
    key: &str,
) -> Result<ToolSelection, Problem> {
    let mut chosen = ToolSelection {
        names: named(all, settings, key)?.into_iter().collect(),
        ..ToolSelection::default()
    };
    for (item, _) in settings.items(key) {
        let word = item.as_str().unwrap_or_default();
        if word == "*" {
            chosen.all = true;
        } else if let Some(prefix) = word
            .strip_suffix('*')
            .filter(|prefix| prefix.ends_with('.'))
        {
            chosen.prefixes.push(prefix.to_owned());
        } else if word == SKILL_BUNDLE {
            chosen.prefixes.push(SKILL_PREFIX.to_owned());
        } else if word.contains('.') {
            // A tool of a server that is not connected now, or of a skill.
            chosen.names.insert(word.to_owned());
        }
    }
    Ok(chosen)
}

/// The bundle of the skill tools, and the name prefix of a skill's own tool.
const SKILL_BUNDLE: &str = "skills";
const SKILL_PREFIX: &str = "skill.";

/// Returns the tools that a list of names, classes and bundles stands for. An unknown name is an error: a misspelt `disable` would leave a
/// tool on that the operator wanted off.
fn named(all: &[ToolOffer], settings: &Settings, key: &str) -> Result<Vec<String>, Problem> {
    let mut out = Vec::new();
    for (item, source) in settings.items(key) {
        let word = item.as_str().unwrap_or_default();
        let found = matching_tools(all, word);
        // A dotted name may belong to a server that is not connected now.
        if found.is_empty() && !known(word) && !word.contains('.') {
            let problem =
                Problem::settings(format!("unknown tool, class or bundle `{word}` in `{key}`"))
                    .advise(match nearest(all, word) {
                        Some(near) => format!("did you mean `{near}`?"),
                        None => format!(
                            "`haft tools` lists the tools; bundles are {}",
                            BUNDLES.join(", ")
                        ),
                    });
            return Err(match &source.place {
                Some(place) => problem.at(place.clone()),
                None => problem,
            });
        }
        out.extend(found);
    }
    Ok(out)
}

/// Returns the names of standard tools that other settings would add.
pub(crate) fn optional_tools() -> impl Iterator<Item = &'static str> {
    OPTIONAL_TOOLS
        .into_iter()
        .chain(CONFIGURED.map(|(name, _)| name))
}

/// Refuses a settings table for a tool that does not exist: a tool meant to be off would stay on.
fn check_tables(all: &[ToolOffer], settings: &Settings) -> Result<(), Problem> {
    for (path, entry) in settings.iter() {
        let [section, name, key] = path else {
            continue;
        };
        if section != "tools" {
            continue;
        }
        // `memory` is also a tool: the other tools of the bundle would stay on.
        let switches_off = key == "enabled" && entry.value.as_bool() == Some(false);
        let bundle = BUNDLES.contains(&name.as_str());
        if name.contains('.') || (is_tool(all, name) && !(bundle && switches_off)) {
            continue;
        }
        let problem = if bundle {
            let list = if switches_off { "disable" } else { "enable" };
            Problem::settings(format!("`tools.{name}.{key}` names a bundle, not a tool")).advise(
                format!("write tools.{list} = [\"{name}\"] for all its tools"),
            )
        } else {
            Problem::settings(format!("unknown tool `{name}` in `tools.{name}`")).advise(
                match nearest(all, name) {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => "`haft tools` lists the tools".to_owned(),
                },
            )
        };
        let place = entry
            .sources
            .first()
            .and_then(|source| source.place.clone());
        return Err(match place {
            Some(place) => problem.at(place),
            None => problem,
        });
    }
    Ok(())
}

/// Returns the problem that a tool of the host has the name of another tool.
pub(crate) fn name_clash(name: &str) -> Problem {
    Problem::usage(format!(
        "there is already a tool `{name}`: a standard one, on or off, or one of the program's"
    ))
    .advise("rename the program's tool: rules and settings could not tell the two apart")
}

/// Returns whether there is such a tool, or would be with other settings.
pub(crate) fn is_tool(all: &[ToolOffer], name: &str) -> bool {
    all.iter().any(|offer| offer.name == name) || optional_tools().any(|n| n == name)
}

/// Returns a line for each dotted name in the settings that no tool has: its server may not be connected now, or it is misspelt.
pub(crate) fn missing_server_tools(all: &[ToolOffer], settings: &Settings) -> Vec<String> {
    let mut named = BTreeSet::new();
    for (path, _) in settings.iter() {
        if let [section, name, _] = path
            && section == "tools"
        {
            named.insert((format!("tools.{name:?}"), name.clone()));
        }
    }
    for key in [
        "tools.enable",
        "tools.disable",
        "tools.defer",
        "serve.pinned",
    ] {
        for (item, _) in settings.items(key) {
            named.insert((key.to_owned(), item.as_str().unwrap_or_default().to_owned()));
        }
    }
    let absent = |name: &String| {
        name.contains('.')
            && !name.starts_with(SKILL_PREFIX)
            && matching_tools(all, name).is_empty()
    };
    named.retain(|(_, name)| absent(name));
    named
        .into_iter()
        .map(|(key, name)| format!("`{key}` names `{name}`, which is not a tool here"))
        .collect()
}

fn matching_tools(all: &[ToolOffer], word: &str) -> Vec<String> {
    let is_of_class =
        |name: &str| classes().any(|(tool, class)| class.as_str() == word && tool == name);
    let fits = |offer: &&ToolOffer| {
        let name = offer.name.as_str();
        name == word
            || word == "*"
            || is_of_class(name)
            || (BUNDLES.contains(&word) && offer.bundle == word)
            || is_of_server(name, word)
    };
    all.iter()
        .filter(fits)
        .map(|offer| offer.name.clone())
        .collect()
}

/// Returns whether a word such as `docs.*` includes this tool.
fn is_of_server(name: &str, word: &str) -> bool {
    let prefix = word
        .strip_suffix('*')
        .filter(|prefix| prefix.ends_with('.'));
    prefix.is_some_and(|prefix| name.starts_with(prefix))
}

fn known(word: &str) -> bool {
    word == "*"
        || BUNDLES.contains(&word)
        || OPTIONAL_TOOLS.contains(&word)
        || missing_configuration(word).is_some()
        || ToolClass::ALL.iter().any(|class| class.as_str() == word)
}

fn nearest(all: &[ToolOffer], word: &str) -> Option<String> {
    let names = all.iter().map(|offer| offer.name.as_str());
    let words: Vec<&str> = names
        .chain(BUNDLES)
        .chain(ToolClass::ALL.map(ToolClass::as_str))
        .collect();
    crate::nearest::nearest(word, &words).map(str::to_owned)
}

/// Returns what a tool lacks that is missing because nothing is configured for it to work with.
pub(crate) fn missing_configuration(name: &str) -> Option<&'static str> {
    let (_, lacks) = CONFIGURED.iter().find(|(tool, _)| *tool == name)?;
    Some(lacks)
}

/// Returns how to turn a tool on.
pub(crate) fn how_to_enable(name: &str) -> String {
    format!(
        "the tool is off; `tools.enable = [\"{name}\"]` in settings, or -c tools.{name}.enabled=true, turns it on"
    )
}

#[cfg(test)]
mod tests {
    use super::{deferred_tools, enabled};
    use crate::config::Settings;
    use crate::wiring::offer::ToolOffer;

    fn offers() -> Vec<ToolOffer> {
        let offer = |name: &str, bundle, default| ToolOffer {
            name: name.to_owned(),
            bundle,
            default,
        };
        vec![
            offer("read_file", "files", true),
            offer("write_file", "files", true),
            offer("delete_file", "files", false),
            offer("run_command", "commands", false),
            offer("await_command", "commands", false),
        ]
    }

    fn on(options: &[&str]) -> Result<String, String> {
        let settings = Settings::of_options(options).unwrap();
        let on = enabled(&offers(), &settings).map_err(|e| e.to_string())?;
        Ok(on.into_iter().collect::<Vec<_>>().join(" "))
    }

    #[test]
    fn enable_adds_disable_wins_and_a_tool_s_own_word_beats_both() {
        let rows: [(&[&str], &str); 9] = [
            (&[], "read_file write_file"),
            (
                &["tools.enable=delete_file"],
                "delete_file read_file write_file",
            ),
            (
                &["tools.enable=commands"],
                "await_command read_file run_command write_file",
            ),
            (
                &["tools.run_command.enabled=true"],
                "await_command read_file run_command write_file",
            ),
            (&["tools.enable=await_command"], "read_file write_file"),
            (
                &["tools.enable=commands", "tools.await_command.enabled=false"],
                "read_file run_command write_file",
            ),
            (
                &["tools.disable=Edit", "tools.enable=delete_file"],
                "read_file",
            ),
            (
                &["tools.disable=files", "tools.read_file.enabled=true"],
                "read_file",
            ),
            (
                &["tools.enable=web_search", "tools.disable=srv.tool"],
                "read_file write_file",
            ),
        ];
        for (options, expect) in rows {
            assert_eq!(on(options).unwrap(), expect, "{options:?}");
        }
        let wrong = on(&["tools.disable=read_fil"]).unwrap_err();
        assert!(wrong.contains("bundle `read_fil` in"), "{wrong}");
    }

    #[test]
    fn deferring_leaves_out_what_is_off_and_what_finds_the_deferred() {
        let mut all = offers();
        all.extend(["tool_search", "tool_expand_tools"].map(|name| ToolOffer {
            name: name.to_owned(),
            bundle: "discover",
            default: true,
        }));
        let check = |options: &[&str], expect: Result<&str, &str>| {
            let settings = Settings::of_options(options).unwrap();
            let on = enabled(&all, &settings).unwrap();
            match (deferred_tools(&all, &on, &settings), expect) {
                (Ok(names), Ok(expect)) => {
                    let names: Vec<String> = names.into_iter().collect();
                    assert_eq!(names.join(" "), expect, "{options:?}");
                }
                (Err(problem), Err(says)) => {
                    let said = problem.to_string();
                    assert!(said.contains(says), "{options:?}: {said}");
                }
                (found, expect) => panic!("{options:?}: {found:?}, not {expect:?}"),
            }
        };
        check(&[], Ok(""));
        check(&["tools.defer=files"], Ok("read_file write_file"));
        check(&["tools.defer=Edit"], Ok("write_file"));
        check(&["tools.defer=*"], Ok("read_file write_file"));
        check(&["tools.defer=tool_search"], Ok(""));
        check(&["tools.defer=delete_file"], Ok(""));
        check(&["tools.defer=read_fil"], Err("bundle `read_fil` in"));
        let off = "tools.disable=discover";
        check(
            &["tools.defer=Edit", off],
            Err("needs `tool_search`, which is off"),
        );
        check(&[off], Ok(""));
    }
}
