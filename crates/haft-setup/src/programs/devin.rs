//! The Devin CLI: hooks in `config.json`, or in a project's `hooks.v1.json`.

use haft_hook::Agent;

use crate::program::{HookProgram, SettingsProgram, in_home};
use crate::registration::{HookEntry, RegistrationPlace, RegistrationScope, Setup, plain_file};

pub(super) static PROGRAM: SettingsProgram = SettingsProgram {
    client: None,
    hooks: Some(HookProgram::new(
        Agent::Devin,
        &["devin"],
        |env| in_home(env, ".config/devin"),
        setup,
    )),
    imports: None,
};

/// Where haft is registered. The events are at the top of a project's file, and below `hooks` in the user's.
fn setup(program: &str) -> Setup {
    let file = |path, entry| plain_file(Agent::Devin, program, path, entry);
    Setup::new(
        vec![
            RegistrationPlace::new(
                RegistrationScope::User,
                vec![file(".config/devin/config.json", HookEntry::new)],
            ),
            RegistrationPlace::new(
                RegistrationScope::Project,
                vec![file(".devin/hooks.v1.json", HookEntry::at_the_top)],
            ),
        ],
        &["a project's hooks run after its folder is trusted"],
    )
}
