//! `HookSettings`: what settings say of agents' hooks, now.

use std::time::Duration;

use parking_lot::RwLock;

use crate::config::{Settings, typed};

/// What settings say of hooks.
#[derive(Debug, Clone)]
pub(crate) struct HookSettings {
    /// Who asks: `agent`, `haft`, or `auto`.
    pub(super) ask: String,
    /// Whether the agent's commands are run in the jail.
    pub(super) wraps: bool,
    /// How long a hook may take at most.
    pub(super) wait: Duration,
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

/// Those that are in force: each event is answered by what they say then.
#[derive(Debug)]
pub(crate) struct HookSettingsInForce(RwLock<HookSettings>);

impl HookSettingsInForce {
    /// Those of these settings.
    pub(crate) fn new(settings: &Settings) -> Self {
        Self(RwLock::new(HookSettings::of(settings)))
    }

    /// What they say now.
    pub(crate) fn now(&self) -> HookSettings {
        self.0.read().clone()
    }

    /// Puts those of other settings in force.
    pub(crate) fn replace(&self, settings: &Settings) {
        *self.0.write() = HookSettings::of(settings);
    }
}
