//! Amp: it has plugins instead of hooks.

use haft_hook::Agent;

use super::plugin;
use crate::program::{HookProgram, SettingsProgram, in_config};
use crate::registration::Setup;

pub(super) static PROGRAM: SettingsProgram = SettingsProgram {
    client: None,
    hooks: Some(HookProgram {
        starts_by_path: true,
        ..HookProgram::new(Agent::Amp, &["amp"], |env| in_config(env, "amp"), setup)
    }),
    imports: None,
};

/// Where haft's plugin is installed.
fn setup(program: &str) -> Setup {
    let content = plugin::file(Agent::Amp, include_str!("../plugins/amp.js"), program);
    plugin::setup(
        content,
        ".config/amp/plugins/haft.ts",
        ".amp/plugins/haft.ts",
        &[
            "start Amp again, or enter `plugins: reload`; an early version loads plugins only with `PLUGINS=all` in the environment",
        ],
    )
}
