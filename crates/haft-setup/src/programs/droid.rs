//! Factory Droid: hooks in `hooks.json` if that exists, else in `settings.json`.

use haft_hook::Agent;

use crate::program::{HookProgram, SettingsProgram, in_home};
use crate::registration::{
    HookEntry, PlaceCondition, RegistrationPlace, RegistrationScope, Setup, plain_file,
};

pub(super) static PROGRAM: SettingsProgram = SettingsProgram {
    client: None,
    hooks: Some(HookProgram::new(
        Agent::Droid,
        &["droid"],
        |env| in_home(env, ".factory"),
        setup,
    )),
    imports: None,
};

/// Where haft is registered: in the settings, unless there is a hooks file, which hides the settings' hooks.
fn setup(program: &str) -> Setup {
    let file = |path, entry| plain_file(Agent::Droid, program, path, entry);
    let mut places = Vec::new();
    for scope in [RegistrationScope::User, RegistrationScope::Project] {
        let hooks = file(".factory/hooks.json", HookEntry::at_the_top);
        let settings = file(".factory/settings.json", HookEntry::new);
        places.push(RegistrationPlace::new(scope, vec![hooks]).when(PlaceCondition::FileExists));
        places.push(RegistrationPlace::new(scope, vec![settings]));
    }
    Setup::new(places, &[])
}
