//! Zed: servers in `settings.json`, called context servers.

use serde_json::json;

use crate::program::{
    ClientFileFormat, ClientProgram, ImportQuirks, InstallScope, SettingsProgram, in_config,
};

pub(super) static PROGRAM: SettingsProgram = SettingsProgram {
    client: Some(ClientProgram {
        name: "zed",
        paste: "~/.config/zed/settings.json",
        starts_in_project: false,
        format: ClientFileFormat::Json,
        servers: "context_servers",
        entry: |launch| json!({"command": launch.command, "args": launch.args, "env": {}}),
        project: None,
        user: Some(|env| in_config(env, "zed/settings.json")),
        other_extension: None,
        default: InstallScope::User,
    }),
    hooks: None,
    imports: Some(ImportQuirks {
        in_milliseconds: true,
        ..ImportQuirks::new("zed", &["/zed/settings.json"])
    }),
};
