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
        let text = |text: &str| Value::String(text.to_owned()).to_string();
        let args: Vec<String> = self.args.iter().map(|arg| text(arg)).collect();
        format!(
            "[{servers}.{name}]\ncommand = {}\nargs = [{}]\n",
            text(&self.command),
            args.join(", ")
        )
    }
}
