//! `Program`: settings that the program gives which embeds the application, in memory.

use std::fmt;

use toml::Value;

use crate::config::document::{self, Given};
use crate::config::layer::{Layer, Sheet};
use crate::problem::Problem;

/// Settings of the program that embeds the application. They are the strongest layer, and the only one but for what users chose
/// "always" for, unless the program wants those of the machine, too.
///
/// ```
/// use haft_app::config::program::Program;
///
/// let program = Program::default().set("limits.max_calls", 50).set("tools.enable", vec!["delete_file"]);
/// assert!(!program.reads_machine());
/// ```
#[derive(Clone, Default)]
pub struct Program {
    given: Vec<(String, Value)>,
    machine: bool,
}

impl fmt::Debug for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Values may be secrets.
        let keys = self.given.iter().map(|(key, _)| key);
        f.debug_struct("Program")
            .field("keys", &keys.collect::<Vec<_>>())
            .field("machine", &self.machine)
            .finish()
    }
}

impl Program {
    /// The same with this setting: a key as in `haft.toml`, and its value. It wins over one that was set before; lists add up. Whether
    /// the key is known and takes such a value is checked when the settings are resolved.
    pub fn set(mut self, key: impl Into<String>, value: impl Into<Value>) -> Self {
        self.given.push((key.into(), value.into()));
        self
    }

    /// The same, over the settings of the machine: `/etc/haft`, the user's file, the workspace's `haft.toml` and `HAFT_…` variables.
    pub fn with_machine(mut self) -> Self {
        self.machine = true;
        self
    }

    /// Whether the machine's settings count, too.
    pub fn reads_machine(&self) -> bool {
        self.machine
    }

    /// These settings, then those: where both give a key, those win.
    pub(crate) fn then(mut self, other: Self) -> Self {
        self.given.extend(other.given);
        self.machine |= other.machine;
        self
    }

    /// The settings as layers, in their order: each may give a key again.
    pub(crate) fn sheets(&self) -> Result<Vec<Sheet>, Problem> {
        let sheet = |(key, value): &(String, Value)| {
            Ok(Sheet {
                layer: Layer::Program,
                file: None,
                given: vec![given(key, value)?],
            })
        };
        self.given.iter().map(sheet).collect()
    }
}

fn given(key: &str, value: &Value) -> Result<Given, Problem> {
    let path = document::dotted(key).ok_or_else(|| {
        Problem::settings(format!("`{key}` is not a setting's key"))
            .advise("write it as in haft.toml: `limits.max_calls`")
    })?;
    document::from_value("the embedding program", path, value.clone())
}
