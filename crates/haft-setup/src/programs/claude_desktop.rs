//! Claude Desktop: servers in `claude_desktop_config.json`.

use crate::program::{
    ClientFileFormat, ClientProgram, ImportQuirks, InstallScope, SettingsProgram, in_config, plain,
};

pub(super) static PROGRAM: SettingsProgram = SettingsProgram {
    client: Some(ClientProgram {
        name: "claude-desktop",
        paste: "claude_desktop_config.json",
        starts_in_project: false,
        format: ClientFileFormat::Json,
        servers: "mcpServers",
        entry: plain,
        project: None,
        user: Some(|env| in_config(env, "Claude/claude_desktop_config.json")),
        other_extension: None,
        default: InstallScope::User,
    }),
    hooks: None,
    imports: Some(ImportQuirks::new(
        "claude-desktop",
        &["claude_desktop_config.json"],
    )),
};
