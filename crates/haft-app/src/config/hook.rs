//! `HookSettings`: the settings `hook.*`, as they are now.

use std::time::Duration;

use haft_hook::Agent;
use parking_lot::RwLock;

use crate::config::{Settings, typed};

/// The settings `hook.*`.
#[derive(Debug, Clone)]
pub(crate) struct HookSettings {
    /// Who asks: `agent`, `haft`, or `auto`.
    pub(crate) ask: String,
    /// Whether haft runs the agent's commands in the jail.
    pub(crate) wraps: bool,
    /// Whether variables and functions of a command in the jail hold for the agent's next one.
    pub(crate) shell_state: KeptShellState,
    /// The maximum time that a hook waits for a decision.
    pub(crate) wait: Duration,
}

impl HookSettings {
    fn of(settings: &Settings) -> Self {
        Self {
            ask: settings.get(typed::HOOK_ASK),
            wraps: settings.get(typed::HOOK_WRAP) == "jail",
            shell_state: KeptShellState::of(&settings.get(typed::HOOK_SHELL_STATE)),
            wait: settings.get(typed::HOOK_WAIT),
        }
    }
}

/// Whether what a command sets in its shell holds for the agent's next command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum KeptShellState {
    /// Where the agent's own shell keeps it.
    AsAgent,
    /// Always.
    Always,
    /// Never.
    Never,
}

impl KeptShellState {
    fn of(setting: &str) -> Self {
        match setting {
            "keep" => Self::Always,
            "none" => Self::Never,
            _ => Self::AsAgent,
        }
    }

    /// Whether it holds for the next command of this agent.
    pub(crate) fn is_kept(self, agent: Agent) -> bool {
        match self {
            Self::AsAgent => agent.keeps_shell_state(),
            Self::Always => true,
            Self::Never => false,
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
