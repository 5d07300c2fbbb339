//! `ProgramSettings`: settings given in memory by the program that embeds the application.

use std::fmt;

use toml::Value;

use crate::config::document::{self, LayerEntry};
use crate::config::layer::{LayerContent, SettingsLayer};
use crate::problem::Problem;

/// Settings of the program that embeds the application. They are the strongest layer. Besides them, only the rules for which users chose
/// "always" apply, unless the program also wants the machine's settings.
///
/// ```
/// use haft_app::config::program::ProgramSettings;
///
/// let program = ProgramSettings::default().set("limits.max_calls", 50).set("tools.enable", vec!["delete_file"]);
/// assert!(!program.reads_machine());
/// ```
#[derive(Clone, Default)]
pub struct ProgramSettings {
    given: Vec<(String, Value)>,
    machine: bool,
}

impl fmt::Debug for ProgramSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Values may be secrets.
        let keys = self.given.iter().map(|(key, _)| key);
        f.debug_struct("ProgramSettings")
            .field("keys", &keys.collect::<Vec<_>>())
            .field("machine", &self.machine)
            .finish()
    }
}

impl ProgramSettings {
    /// Sets a value for a key, written as in `haft.toml`. It overrides an earlier value; lists are combined. Whether the key is known and
    /// takes such a value is checked when the settings are resolved.
    pub fn set(mut self, key: impl Into<String>, value: impl Into<Value>) -> Self {
        self.given.push((key.into(), value.into()));
        self
    }

    /// Also applies the machine's settings: `/etc/haft`, the user's file, the workspace's `haft.toml` and `HAFT_…` variables.
    pub fn with_machine(mut self) -> Self {
        self.machine = true;
        self
    }

    /// Returns whether the machine's settings also apply.
    pub fn reads_machine(&self) -> bool {
        self.machine
    }

    /// Appends other settings, which override these.
    pub(crate) fn then(mut self, other: Self) -> Self {
        self.given.extend(other.given);
        self.machine |= other.machine;
        self
    }

    /// Returns the settings as layers, in order: each may set a key again.
    pub(crate) fn to_layers(&self) -> Result<Vec<LayerContent>, Problem> {
        let sheet = |(key, value): &(String, Value)| {
            Ok(LayerContent {
                layer: SettingsLayer::Program,
                file: None,
                given: vec![given(key, value)?],
            })
        };
        self.given.iter().map(sheet).collect()
    }
}

fn given(key: &str, value: &Value) -> Result<LayerEntry, Problem> {
    let path = document::dotted(key).ok_or_else(|| {
        Problem::settings(format!("`{key}` is not a setting's key"))
            .advise("write it as in haft.toml: `limits.max_calls`")
    })?;
    document::from_value("the embedding program", path, value.clone())
}
