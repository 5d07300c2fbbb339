//! `Settings`: the merged settings of all layers, each value with its origin.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

use haft::audit::redact::Redactor;
use haft::policy::PolicyContext;
use toml::Value;

use crate::config::document::LayerEntry;
use crate::config::expand::{Expander, Secrets};
use crate::config::keys::{KEYS, SettingKey, SettingType};
use crate::config::layer::{LayerContent, SettingsFile, SettingsLayer};
use crate::config::program::ProgramSettings;
use crate::environment::Environment;
use crate::problem::{Problem, SourceLocation};
use crate::trust::trust_command;

pub mod bounds;
pub mod document;
pub mod expand;
pub(crate) mod fault;
pub mod first_file;
pub(crate) mod hook;
pub(crate) mod kept;
pub mod keys;
pub mod layer;
pub mod program;
pub mod schema;
pub mod typed;
pub mod value;
pub(crate) mod views;

/// The name of the settings file in a folder.
pub const FILE_NAME: &str = "haft.toml";

/// The inputs that determine the layers.
#[derive(Debug)]
pub struct LayerInputs<'a> {
    /// The process's variables.
    pub environment: &'a Environment,
    /// The workspace's root.
    pub workspace: &'a Path,
    /// Whether its haft.toml takes full effect.
    pub trusted: bool,
    /// The file of rules for which the user chose "always".
    pub always: Option<&'a Path>,
    /// `--config`.
    pub config: Option<&'a Path>,
    /// `-c`, in order.
    pub options: &'a [String],
    /// `--profile`.
    pub profile: Option<&'a str>,
    /// Settings of the embedding program; `None` for the command line.
    pub program: Option<&'a ProgramSettings>,
}

impl<'a> LayerInputs<'a> {
    /// Returns inputs with the machine's layers only: `/etc/haft`, the user's file, the workspace's, variables.
    pub fn new(environment: &'a Environment, workspace: &'a Path) -> Self {
        Self {
            environment,
            workspace,
            trusted: false,
            always: None,
            config: None,
            options: &[],
            profile: None,
            program: None,
        }
    }
}

/// The origin of a value.
#[derive(Debug, Clone)]
pub struct ValueOrigin {
    /// The layer.
    pub layer: SettingsLayer,
    /// The position in the source; `None` for a built-in value.
    pub place: Option<SourceLocation>,
}

/// The value of one key.
#[derive(Debug, Clone)]
pub struct SettingEntry {
    /// The key's row in the table.
    pub key: &'static SettingKey,
    /// The value as written: references to secrets stay references.
    pub written: Value,
    /// The value as used: references to secrets are replaced by the secrets.
    pub value: Value,
    /// The origin of the value; for a list, the origin of each item.
    pub sources: Vec<ValueOrigin>,
    /// The values that it overrides, strongest first.
    pub beaten: Vec<(ValueOrigin, Value)>,
}

/// All settings, merged from every layer, with the origin of each value.
#[derive(Debug, Clone, Default)]
pub struct Settings {
    entries: BTreeMap<Vec<String>, SettingEntry>,
    /// Secrets found during expansion.
    pub secrets: Secrets,
    /// Redacts these secrets and those of settings that are reloaded; shared by all components built from these settings.
    pub redactor: Redactor,
    /// Whether the workspace's own files take full effect.
    pub trusted: bool,
    /// The files that were read.
    pub files: Vec<SettingsFile>,
    /// Warnings for the user; at most one line per issue.
    pub warnings: Vec<String>,
    /// The same without the workspace's file, if that is not trusted.
    others: Option<Box<Self>>,
}

impl Settings {
    /// Reads every layer and merges them.
    ///
    /// # Errors
    /// A [`Problem`] that names the layer, the key and the values it takes.
    pub fn resolve(inputs: &LayerInputs<'_>) -> Result<Self, Problem> {
        let resolved = Self::of_layers(inputs, true);
        if inputs.trusted {
            return resolved;
        }
        let own = inputs.workspace.join(FILE_NAME);
        match resolved {
            Ok(mut settings) if settings.files.iter().any(|file| file.path == own) => {
                let mut others = Self::of_layers(inputs, false)?;
                others.redactor = settings.redactor.clone();
                settings.others = Some(Box::new(others));
                Ok(settings)
            }
            Err(problem) if is_of_workspace(&problem) => {
                let mut others = Self::of_layers(inputs, false)?;
                others.warnings.push(unread_warning(&problem));
                Ok(others)
            }
            resolved => resolved,
        }
    }

    /// Returns the settings to use where a problem with these is one of the workspace's file, and a warning: a folder that is not trusted
    /// stops nothing.
    pub(crate) fn without_workspace(&self, problem: &Problem) -> Option<(&Self, String)> {
        let others = self.others.as_deref().filter(|_| is_of_workspace(problem));
        Some((others?, unread_warning(problem)))
    }

    /// Returns the settings that one file alone gives, over the built-in values.
    ///
    /// # Errors
    /// A [`Problem`] that names the file, the position and the values that the key takes.
    pub fn of_file(
        environment: &Environment,
        workspace: &Path,
        file: &Path,
    ) -> Result<Self, Problem> {
        let alone = ProgramSettings::default();
        Self::resolve(&LayerInputs {
            trusted: true,
            config: Some(file),
            program: Some(&alone),
            ..LayerInputs::new(environment, workspace)
        })
    }

    /// Merges the layers, with or without the file of the workspace.
    fn of_layers(inputs: &LayerInputs<'_>, with_workspace: bool) -> Result<Self, Problem> {
        let mut settings = Self::built_in();
        settings.trusted = inputs.trusted;
        let mut warnings = Vec::new();
        for sheet in read_layers(inputs, with_workspace, &mut warnings)? {
            settings.apply(&sheet, inputs)?;
        }
        settings.warnings.extend(warnings);
        bounds::check(&mut settings)?;
        settings.redactor.learn(&settings.secrets.values);
        Ok(settings)
    }

    /// Returns the settings that result from these `-c` options alone.
    ///
    /// # Errors
    /// A [`Problem`] that names the option and the values it takes.
    #[cfg(test)]
    pub fn of_options(options: &[&str]) -> Result<Self, Problem> {
        let options: Vec<String> = options.iter().map(|&option| option.to_owned()).collect();
        Self::resolve(&LayerInputs {
            options: &options,
            ..LayerInputs::new(&Environment::default(), Path::new("/nowhere"))
        })
    }

    fn built_in() -> Self {
        let mut settings = Self::default();
        for key in KEYS.iter().filter(|key| !key.default.is_empty()) {
            let Ok(value) = parse_default(key.default) else {
                continue;
            };
            let entry = SettingEntry {
                key,
                written: value.clone(),
                value,
                sources: vec![ValueOrigin {
                    layer: SettingsLayer::BuiltIn,
                    place: None,
                }],
                beaten: Vec::new(),
            };
            let path = key.path.split('.').map(str::to_owned).collect();
            settings.entries.insert(path, entry);
        }
        settings
    }

    fn apply(&mut self, sheet: &LayerContent, inputs: &LayerInputs<'_>) -> Result<(), Problem> {
        self.files.extend(sheet.file.clone());
        let expander = Expander {
            environment: inputs.environment,
            base: sheet.base(inputs.workspace),
        };
        let mut ignored = Vec::new();
        for given in &sheet.given {
            let value = if sheet.layer == SettingsLayer::Untrusted {
                let old = self.entries.get(&given.path).map(|entry| &entry.value);
                if !value::may_tighten(given.key, old, &given.value) {
                    ignored.push(given.path.join("."));
                    continue;
                }
                given.value.clone()
            } else if sheet.layer == SettingsLayer::Always && given.key.kind == SettingType::Rules {
                // The user saw and saved the rule literally: a command may contain the syntax of a reference.
                given.value.clone()
            } else {
                expander.expand(given, &mut self.secrets)?
            };
            self.put(sheet.layer, given, value);
        }
        if !ignored.is_empty() {
            self.warnings
                .push(untrusted_warning(inputs.workspace, &ignored));
        }
        Ok(())
    }

    fn put(&mut self, layer: SettingsLayer, given: &LayerEntry, value: Value) {
        let source = |place: &SourceLocation| ValueOrigin {
            layer,
            place: Some(place.clone()),
        };
        let fresh = SettingEntry {
            key: given.key,
            written: given.value.clone(),
            value,
            sources: match given.key.kind {
                SettingType::Items | SettingType::Rules => given.items.iter().map(source).collect(),
                _ => vec![source(&given.place)],
            },
            beaten: Vec::new(),
        };
        let Some(old) = self.entries.remove(&given.path) else {
            self.entries.insert(given.path.clone(), fresh);
            return;
        };
        let merged = match given.key.kind {
            SettingType::Items | SettingType::Rules => old.and(fresh),
            _ => fresh.over(old),
        };
        self.entries.insert(given.path.clone(), merged);
    }

    /// Returns these settings without a key that has no built-in value.
    pub fn without(mut self, dotted: &str) -> Self {
        let path: Vec<String> = dotted.split('.').map(str::to_owned).collect();
        self.entries.remove(&path);
        self
    }

    /// Replaces the value of an existing entry.
    fn put_value(&mut self, dotted: &str, value: Value) {
        let path: Vec<String> = dotted.split('.').map(str::to_owned).collect();
        if let Some(entry) = self.entries.get_mut(&path) {
            entry.value = value;
        }
    }

    /// Returns the keys whose values differ between these settings and `other`.
    pub fn differences(&self, other: &Self) -> Vec<Vec<String>> {
        let value = |settings: &Self, path: &[String]| {
            let entry = settings.entries.get(path);
            entry.map(|entry| (entry.value.clone(), entry.layer()))
        };
        let paths: BTreeSet<&Vec<String>> =
            self.entries.keys().chain(other.entries.keys()).collect();
        let differs = |path: &&&Vec<String>| value(self, path) != value(other, path);
        paths
            .iter()
            .filter(differs)
            .map(|path| (*path).clone())
            .collect()
    }

    /// Returns these settings with the values of `others` for all keys except those that `keeps` selects.
    pub fn with_others_of(mut self, others: &Self, keeps: impl Fn(&[String]) -> bool) -> Self {
        self.entries.retain(|path, _| keeps(path));
        let rest = others.entries.iter().filter(|(path, _)| !keeps(path));
        let rest = rest.map(|(path, entry)| (path.clone(), entry.clone()));
        self.entries.extend(rest);
        self
    }

    /// Iterates over every key that has a value, by path.
    pub fn iter(&self) -> impl Iterator<Item = (&[String], &SettingEntry)> {
        self.entries
            .iter()
            .map(|(path, entry)| (path.as_slice(), entry))
    }

    /// Returns the entry of a key by its path.
    pub fn entry(&self, path: &[&str]) -> Option<&SettingEntry> {
        let path: Vec<String> = path.iter().map(|&part| part.to_owned()).collect();
        self.entries.get(&path)
    }

    fn at(&self, dotted: &str) -> Option<&SettingEntry> {
        let path: Vec<&str> = dotted.split('.').collect();
        self.entry(&path)
    }

    /// Returns a text, or the word of a choice.
    pub fn text(&self, dotted: &str) -> Option<&str> {
        self.at(dotted)?.value.as_str()
    }

    /// Returns a flag; `None` if the key has no value.
    pub fn flag(&self, dotted: &str) -> Option<bool> {
        self.at(dotted)?.value.as_bool()
    }

    /// Returns a number that is at least zero.
    pub fn amount(&self, path: &[&str]) -> Option<f64> {
        value::amount(&self.entry(path)?.value)
    }

    /// Returns a whole number; `None` if the key has no value, or a negative one.
    pub fn whole(&self, dotted: &str) -> Option<u64> {
        let number = self.at(dotted)?.value.as_integer()?;
        u64::try_from(number).ok()
    }

    /// Returns a duration, which settings give in seconds; `None` if the key has no value.
    pub fn seconds(&self, dotted: &str) -> Option<Duration> {
        let seconds = value::seconds(&self.at(dotted)?.value)?;
        Some(Duration::from_secs_f64(seconds))
    }

    /// Returns the error for a known value that this release does not support: haft refuses it instead of falling back to something weaker.
    pub fn unavailable(&self, dotted: &str, word: &str) -> Problem {
        let problem = Problem::settings(format!("`{dotted} = \"{word}\"` is not in this release"))
            .advise(format!("remove `{dotted}` to use the built-in value"));
        self.at_setting(problem, dotted)
    }

    /// Adds the position of the setting to a problem with it.
    pub(crate) fn at_setting(&self, problem: Problem, dotted: &str) -> Problem {
        let place = self
            .at(dotted)
            .and_then(|entry| entry.sources.first()?.place.clone());
        match place {
            Some(place) => problem.at(place),
            None => problem,
        }
    }

    /// Adds the position of the first setting in a table to a problem with it.
    pub(crate) fn at_table(&self, problem: Problem, table: &[&str]) -> Problem {
        let is_in = |path: &[String]| {
            path.len() > table.len() && path.iter().zip(table).all(|(own, name)| own == name)
        };
        let mut places = self
            .iter()
            .filter(|(path, _)| is_in(path))
            .filter_map(|(_, entry)| entry.sources.first()?.place.clone());
        match places.next() {
            Some(place) => problem.at(place),
            None => problem,
        }
    }

    /// Returns the items of a list, each with its origin.
    pub fn items(&self, dotted: &str) -> Vec<(&Value, &ValueOrigin)> {
        self.at(dotted).map_or_else(Vec::new, |entry| {
            let items = entry.value.as_array().map_or(&[][..], Vec::as_slice);
            items.iter().zip(&entry.sources).collect()
        })
    }
}

impl SettingEntry {
    /// Appends the items of `more`.
    fn and(mut self, more: Self) -> Self {
        let join = |list: &mut Value, more: Value| {
            if let (Value::Array(list), Value::Array(more)) = (list, more) {
                list.extend(more);
            }
        };
        join(&mut self.written, more.written);
        join(&mut self.value, more.value);
        self.sources.extend(more.sources);
        self
    }

    /// Overrides `old` with this value.
    fn over(mut self, old: Self) -> Self {
        self.beaten = old.beaten;
        if let Some(source) = old.sources.into_iter().next() {
            self.beaten.insert(0, (source, old.written));
        }
        self
    }

    /// Returns the layer that decided the value.
    pub fn layer(&self) -> SettingsLayer {
        let layers = self.sources.iter().map(|source| source.layer);
        layers.max().unwrap_or(SettingsLayer::BuiltIn)
    }
}

fn parse_default(text: &str) -> Result<Value, toml::de::Error> {
    let table: toml::Table = toml::from_str(&format!("v = {text}"))?;
    Ok(table
        .into_iter()
        .next()
        .map_or(Value::Boolean(false), |(_, v)| v))
}

/// Returns the existing layers, weakest first.
fn read_layers(
    inputs: &LayerInputs<'_>,
    with_workspace: bool,
    warnings: &mut Vec<String>,
) -> Result<Vec<LayerContent>, Problem> {
    let machine = inputs.program.is_none_or(ProgramSettings::reads_machine);
    let mut sheets = Vec::new();
    if machine {
        sheets = files(inputs)?;
        if with_workspace {
            let layer = if inputs.trusted {
                SettingsLayer::Workspace
            } else {
                SettingsLayer::Untrusted
            };
            sheets.extend(layer::from_workspace(layer, inputs.workspace)?);
        }
    }
    if let Some(path) = inputs.always
        && let Some((sheet, warning)) = kept::layer(path, &places(inputs))?
    {
        sheets.push(sheet);
        warnings.extend(warning);
    }
    if let Some(path) = inputs.config {
        let shown = path.display().to_string();
        let sheet = layer::from_file(SettingsLayer::File, path, &shown)?.ok_or_else(|| {
            Problem::settings("no such settings file")
                .at(SourceLocation::named(&shown))
                .advise("`haft config init` writes a first one")
        })?;
        sheets.push(sheet);
    }
    if machine {
        sheets.push(layer::from_environment(inputs.environment)?);
    }
    sheets.push(layer::from_options(inputs.options)?);
    if let Some(profile) = inputs.profile {
        sheets.push(layer::from_profile(profile)?);
    }
    if let Some(program) = inputs.program {
        sheets.extend(program.to_layers()?);
    }
    Ok(sheets)
}

/// Returns the folders that paths in rules are relative to.
fn places(inputs: &LayerInputs<'_>) -> PolicyContext {
    let shown = |path: &Path| path.to_string_lossy().into_owned();
    PolicyContext {
        workspace: Some(shown(inputs.workspace)),
        home: inputs.environment.folder("HOME").map(|home| shown(&home)),
        ..PolicyContext::default()
    }
}

/// Reads the files of the machine and the user.
fn files(inputs: &LayerInputs<'_>) -> Result<Vec<LayerContent>, Problem> {
    let mut sheets = Vec::new();
    let system = Path::new("/etc/haft/config.toml");
    sheets.extend(layer::from_file(
        SettingsLayer::System,
        system,
        &system.display().to_string(),
    )?);
    if let Some(path) = user_file(inputs.environment) {
        sheets.extend(layer::from_file(
            SettingsLayer::User,
            &path,
            &path.display().to_string(),
        )?);
    }
    Ok(sheets)
}

/// Returns `$XDG_CONFIG_HOME/haft/config.toml`, by default under `~/.config`.
pub fn user_file(environment: &Environment) -> Option<PathBuf> {
    let folder = environment
        .folder("XDG_CONFIG_HOME")
        .or_else(|| Some(environment.folder("HOME")?.join(".config")))?;
    Some(folder.join("haft").join("config.toml"))
}

/// Returns true if the problem is one of the workspace's file.
fn is_of_workspace(problem: &Problem) -> bool {
    problem
        .place()
        .is_some_and(|place| *place.source == *FILE_NAME)
}

fn unread_warning(problem: &Problem) -> String {
    format!(
        "{FILE_NAME} is in a folder that is not trusted, and counts for nothing: {problem}; mend it, or move it away"
    )
}

fn untrusted_warning(workspace: &Path, ignored: &[String]) -> String {
    const MAX_NAMED: usize = 5;
    let mut names = ignored
        .iter()
        .take(MAX_NAMED)
        .cloned()
        .collect::<Vec<_>>()
        .join(", ");
    if ignored.len() > MAX_NAMED {
        names = format!("{names} and {} more", ignored.len() - MAX_NAMED);
    }
    format!(
        "{FILE_NAME} is in a folder that is not trusted: {names} ignored (to use it: `{}`)",
        trust_command(workspace, None)
    )
}

#[cfg(test)]
mod tests;
