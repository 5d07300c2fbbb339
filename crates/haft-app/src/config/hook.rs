//! `HookSettings`: the settings `hook.*`, as they are now.

use std::time::Duration;

use parking_lot::RwLock;

use crate::config::{Settings, typed};

/// The settings `hook.*`.
#[derive(Debug, Clone)]
pub(crate) struct HookSettings {
    /// Who asks: `agent`, `haft`, or `auto`.
    pub(crate) ask: String,
    /// Whether haft runs the agent's commands in the jail.
    pub(crate) wraps: bool,
    /// The maximum time that a hook waits for a decision.
    pub(crate) wait: Duration,
}

impl HookSettings {
    fn of(settings: &Settings) -> Self {
        Self {
            ask: settings.get(typed::HOOK_ASK),
            wraps: settings.get(typed::HOOK_WRAP) == "jail",
            wait: settings.get(typed::HOOK_WAIT),
        }
    }
}

/// The settings in force. Each event is answered by those of its moment.
#[derive(Debug)]
pub(crate) struct HookSettingsInForce(RwLock<HookSettings>);

impl HookSettingsInForce {
    /// Puts these settings in force.
    pub(crate) fn new(settings: &Settings) -> Self {
        Self(RwLock::new(HookSettings::of(settings)))
    }

    /// Returns the settings of this moment.
    pub(crate) fn now(&self) -> HookSettings {
        self.0.read().clone()
    }

    /// Puts other settings in force.
    pub(crate) fn replace(&self, settings: &Settings) {
        *self.0.write() = HookSettings::of(settings);
    }
}
