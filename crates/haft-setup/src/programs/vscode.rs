//! VS Code: servers in `mcp.json`.

use crate::program::{
    ClientFileFormat, ClientProgram, ImportQuirks, InstallScope, SettingsProgram, in_config,
    with_type,
};

pub(super) static PROGRAM: SettingsProgram = SettingsProgram {
    client: Some(ClientProgram {
        name: "vscode",
        paste: ".vscode/mcp.json in the project",
        starts_in_project: false,
        format: ClientFileFormat::Json,
        servers: "servers",
        entry: with_type,
        project: Some(".vscode/mcp.json"),
        user: Some(|env| in_config(env, "Code/User/mcp.json")),
        other_extension: None,
        default: InstallScope::Project,
    }),
    hooks: None,
    imports: Some(ImportQuirks::new(
        "vscode",
        &["/.vscode/mcp.json", "/User/mcp.json"],
    )),
};
