//! `Launch`: the command with which a client starts haft.

use toml::Value;

/// How a client starts haft.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Launch {
    /// The program.
    pub command: String,
    /// Its arguments.
    pub args: Vec<String>,
}

impl Launch {
    /// Returns it as a TOML table of this name in the table of servers.
    pub fn to_toml(&self, servers: &str, name: &str) -> String {
        let values = self.to_toml_values();
        let lines = values.map(|(key, value)| format!("{key} = {value}\n"));
        format!("[{servers}.{name}]\n{}", lines.concat())
    }

    /// Returns its members with their values as TOML.
    pub(crate) fn to_toml_values(&self) -> [(&'static str, String); 2] {
        let text = |text: &str| Value::String(text.to_owned()).to_string();
        let args: Vec<String> = self.args.iter().map(|arg| text(arg)).collect();
        let args = format!("[{}]", args.join(", "));
        [("command", text(&self.command)), ("args", args)]
    }
}
