//! The session's modes: the profiles of the policy, none looser than the one in the settings.

use std::sync::Arc;

use haft_app::app::App;
use haft_app::config::Settings;
use haft_app::config::keys::PROFILES;
use haft_app::config::typed::PROFILE;
use haft_app::problem::Problem;
use serde_json::{Value, json};

use crate::options::AcpOptions;

/// The modes of one session.
#[derive(Debug)]
pub(super) struct SessionModes {
    options: Arc<AcpOptions>,
    /// The profile in the settings when the session started, which is the loosest mode offered.
    loosest: String,
    now: parking_lot::Mutex<String>,
}

impl SessionModes {
    pub(super) fn new(options: Arc<AcpOptions>, settings: &Settings) -> Self {
        let profile = settings.get(PROFILE);
        Self {
            options,
            now: parking_lot::Mutex::new(profile.clone()),
            loosest: profile,
        }
    }

    pub(super) fn state(&self) -> Value {
        let modes = from(&self.loosest).iter().map(|id| {
            let (name, description) = words(id);
            json!({"id": id, "name": name, "description": description})
        });
        json!({
            "currentModeId": *self.now.lock(),
            "availableModes": modes.collect::<Vec<_>>(),
        })
    }

    /// Activates a mode under the current settings: rules kept since then apply, and no mode is looser than the profile in the
    /// settings.
    pub(super) fn set(&self, app: &App, mode: &str) -> Result<(), Problem> {
        let settings = self.options.settings(app.site())?;
        let named = settings.get(PROFILE);
        let allowed = from(&self.loosest).contains(&mode) && from(&named).contains(&mode);
        if !allowed {
            let mode: String = mode.chars().take(100).collect();
            let offered = from(&self.loosest)
                .iter()
                .filter(|id| from(&named).contains(id));
            let offered: Vec<&str> = offered.copied().collect();
            let offered = offered.join(", ");
            return Err(Problem::usage(format!(
                "the mode {mode:?} is not offered here: the settings name the profile {named}"
            ))
            .advise(format!(
                "choose one of {offered}; a looser one is started with haft run --acp --profile NAME"
            )));
        }
        app.take_settings(&settings.with_text(PROFILE, mode))?;
        mode.clone_into(&mut self.now.lock());
        Ok(())
    }
}

/// Returns the profiles from this one to the strictest.
fn from(profile: &str) -> &'static [&'static str] {
    let at = PROFILES.iter().position(|known| *known == profile);
    at.and_then(|at| PROFILES.get(at..)).unwrap_or_default()
}

fn words(profile: &str) -> (&'static str, &'static str) {
    match profile {
        "trusted" => (
            "Trusted",
            "Writes and confined commands run; haft asks about the network and about what cannot be undone.",
        ),
        "workspace" => ("Workspace", "Reading runs; haft asks about the rest."),
        _ => ("Read only", "Reading runs; all else is denied."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_looser_profile_than_that_of_the_settings_is_a_mode() {
        for (profile, expect) in [
            ("trusted", &["trusted", "workspace", "read-only"][..]),
            ("workspace", &["workspace", "read-only"]),
            ("read-only", &["read-only"]),
            ("other", &[]),
        ] {
            assert_eq!(from(profile), expect, "{profile}");
        }
    }
}
