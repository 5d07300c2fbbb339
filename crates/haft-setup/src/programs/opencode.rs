//! `OpenCode`: servers in `opencode.json`; it has plugins instead of hooks.

use haft_hook::Agent;
use serde_json::json;

use super::plugin;
use crate::program::{
    ClientFileFormat, ClientProgram, HookProgram, ImportQuirks, InstallScope, SettingsProgram,
    in_config,
};
use crate::registration::Setup;

pub(super) static PROGRAM: SettingsProgram = SettingsProgram {
    client: Some(ClientProgram {
        name: "opencode",
        paste: "opencode.json in the project, or ~/.config/opencode/opencode.json",
        starts_in_project: true,
        format: ClientFileFormat::Json,
        servers: "mcp",
        entry: |launch| {
            let mut command = vec![launch.command.clone()];
            command.extend(launch.args.iter().cloned());
            json!({"type": "local", "command": command, "enabled": true})
        },
        project: Some("opencode.json"),
        user: Some(|env| in_config(env, "opencode/opencode.json")),
        other_extension: Some("jsonc"),
        default: InstallScope::Project,
    }),
    hooks: Some(HookProgram {
        starts_by_path: true,
        ..HookProgram::new(
            Agent::OpenCode,
            &["opencode"],
            |env| in_config(env, "opencode"),
            setup,
        )
    }),
    imports: Some(ImportQuirks {
        convert: Some(|text| {
            text.replace("{env:", "${env:")
                .replace("{file:", "${file:")
                .replace("$${", "${")
        }),
        inserts_files: true,
        in_milliseconds: true,
        ..ImportQuirks::new("opencode", &["/opencode.json", "/opencode.jsonc"])
    }),
};

/// Where haft's plugin is installed.
fn setup(program: &str) -> Setup {
    let content = plugin::file(
        Agent::OpenCode,
        include_str!("../plugins/opencode.js"),
        program,
    );
    plugin::setup(
        content,
        ".config/opencode/plugins/haft.js",
        ".opencode/plugins/haft.js",
        &["start OpenCode again: it loads plugins when it starts"],
    )
}
