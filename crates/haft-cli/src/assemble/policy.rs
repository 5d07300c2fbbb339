//! The policy from settings: profile, the rules of all layers with their layers, the guards' places.

use std::path::PathBuf;

use haft::policy::{Places, Policy, Profile, RuleSet, RuleText, RulesError};

use crate::assemble::stores;
use crate::invocation::Invocation;
use crate::problem::{Place, Problem};
use crate::serve::reach;
use crate::settings::{FILE_NAME, Settings, Source};

/// The rules as written and where they are read.
#[derive(Debug, Clone)]
pub(crate) struct Written {
    /// Rules of all layers.
    pub(crate) rules: RuleSet,
    /// What `//` and `~/` mean in them.
    pub(crate) places: Places,
}

/// Collects the rules of all layers.
pub(crate) fn written(at: &Invocation, settings: &Settings) -> Result<Written, Problem> {
    let list = |key: &str| -> Result<Vec<RuleText>, Problem> {
        let items = settings.items(key).into_iter();
        items.map(|(value, source)| rule(value, source)).collect()
    };
    let shown = |path: &std::path::Path| path.to_string_lossy().into_owned();
    Ok(Written {
        rules: RuleSet {
            allow: list("policy.allow")?,
            ask: list("policy.ask")?,
            deny: list("policy.deny")?,
        },
        places: Places {
            workspace: Some(shown(&at.workspace)),
            home: at.environment.folder("HOME").map(|home| shown(&home)),
        },
    })
}

fn rule(value: &toml::Value, source: &Source) -> Result<RuleText, Problem> {
    let read: Result<RuleText, _> = value.clone().try_into();
    let mut rule = read.map_err(|e: toml::de::Error| {
        let problem = Problem::settings(format!("read a rule: {}", e.message()));
        match &source.place {
            Some(place) => problem.at(place.clone()),
            None => problem,
        }
    })?;
    source.layer.as_str().clone_into(&mut rule.layer);
    Ok(rule)
}

/// The policy in force. A rule that cannot be read or breaks its own example is an error where it stands.
pub(crate) fn build(at: &Invocation, settings: &Settings) -> Result<Policy, Problem> {
    let mut builder = Policy::builder(profile(settings))
        .rules(written(at, settings)?.rules)
        .workspace(&at.workspace)
        .own_files(own_files(at, settings));
    if let Some(home) = at.environment.folder("HOME") {
        builder = builder.home(&home);
    }
    builder.build().map_err(|error| told(&error, settings))
}

/// What no tool touches: haft's state, its settings, the secrets' files, the key of its certificate. The workspace's haft.toml may be read.
pub(crate) fn own_files(at: &Invocation, settings: &Settings) -> Vec<PathBuf> {
    let readable = at.workspace.join(FILE_NAME);
    let home = at.home.path().to_owned();
    let files = settings
        .files
        .iter()
        .filter(|file| **file != readable)
        .cloned();
    let given = [home]
        .into_iter()
        .chain(files)
        .chain(settings.secrets.files.iter().cloned())
        .chain(stores::own_files(at, settings))
        .chain(reach::files(settings));
    let mut all: Vec<PathBuf> = given.collect();
    // By the name given, and by where links lead.
    all.extend(
        all.clone()
            .iter()
            .filter_map(|path| path.canonicalize().ok()),
    );
    all.sort();
    all.dedup();
    all
}

/// The verdict where no rule matches.
pub(super) fn profile(settings: &Settings) -> Profile {
    match settings.text("policy.profile") {
        Some("trusted") => Profile::Trusted,
        Some("workspace") => Profile::Workspace,
        // The key takes three words; were there a fourth, the strictest stands for it.
        _ => Profile::ReadOnly,
    }
}

fn told(error: &RulesError, settings: &Settings) -> Problem {
    let (RulesError::Unreadable { rule, list, .. } | RulesError::Example { rule, list, .. }) =
        error;
    let problem =
        Problem::settings(error.to_string()).advise("`haft policy check` lists every fault");
    match place(settings, &format!("policy.{list}"), rule) {
        Some(place) => problem.at(place),
        None => problem,
    }
}

/// Where a rule stands.
fn place(settings: &Settings, key: &str, rule: &str) -> Option<Place> {
    let items = settings.items(key);
    let text = |value: &toml::Value| {
        let table = value.get("rule").and_then(toml::Value::as_str);
        value.as_str().or(table).map(str::to_owned)
    };
    let (_, source) = items
        .into_iter()
        .find(|(value, _)| text(value).as_deref() == Some(rule))?;
    source.place.clone()
}
