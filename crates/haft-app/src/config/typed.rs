//! Settings that always have a value, each with its type. Their defaults are in the table of keys and nowhere else.

use std::marker::PhantomData;
use std::time::Duration;

use toml::Value;

use crate::config::{Settings, ValueOrigin, value};

/// A setting that always has a value of this type: the table of keys has a default for it.
#[derive(Debug)]
pub struct Setting<T> {
    /// Its dotted key.
    pub key: &'static str,
    kind: PhantomData<fn() -> T>,
}

impl<T> Clone for Setting<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Setting<T> {}

/// A type that a setting's value can have.
pub trait FromValue: Default {
    /// Reads a value; returns `None` if it has another type.
    fn from_value(value: &Value) -> Option<Self>;
}

impl FromValue for bool {
    fn from_value(value: &Value) -> Option<Self> {
        value.as_bool()
    }
}

impl FromValue for u64 {
    fn from_value(value: &Value) -> Option<Self> {
        Self::try_from(value.as_integer()?).ok()
    }
}

/// A number too large for this machine becomes the maximum.
impl FromValue for usize {
    fn from_value(value: &Value) -> Option<Self> {
        let number = u64::from_value(value)?;
        Some(Self::try_from(number).unwrap_or(Self::MAX))
    }
}

impl FromValue for Duration {
    fn from_value(value: &Value) -> Option<Self> {
        value::seconds(value).map(Self::from_secs_f64)
    }
}

/// A text, or the word of a choice.
impl FromValue for String {
    fn from_value(value: &Value) -> Option<Self> {
        value.as_str().map(str::to_owned)
    }
}

impl Settings {
    /// Returns the value of a setting that always has one.
    ///
    /// ```
    /// use haft_app::config::program::ProgramSettings;
    /// use haft_app::config::typed::MAX_CALLS;
    /// use haft_app::config::{LayerInputs, Settings};
    /// use haft_app::environment::Environment;
    ///
    /// let program = ProgramSettings::default().set("limits.max_calls", 50);
    /// let (environment, workspace) = (Environment::default(), std::path::Path::new("/srv/work"));
    /// let settings = Settings::resolve(&LayerInputs {
    ///     program: Some(&program),
    ///     ..LayerInputs::new(&environment, workspace)
    /// })?;
    /// assert_eq!(settings.get(MAX_CALLS), 50);
    /// assert_eq!(settings.source(MAX_CALLS).unwrap().layer.as_str(), "program");
    /// # Ok::<(), haft_app::Problem>(())
    /// ```
    pub fn get<T: FromValue>(&self, setting: Setting<T>) -> T {
        let given = self
            .at(setting.key)
            .and_then(|entry| T::from_value(&entry.value));
        // Settings without layers have no entry; the table has the default.
        given.or_else(|| default_of(setting)).unwrap_or_default()
    }

    /// Returns these settings with another word for a setting that always has one.
    pub fn with_text(mut self, setting: Setting<String>, text: &str) -> Self {
        self.put_value(setting.key, Value::String(text.to_owned()));
        self
    }

    /// Returns the origin of a setting's value.
    pub fn source<T>(&self, setting: Setting<T>) -> Option<&ValueOrigin> {
        self.at(setting.key)?.sources.first()
    }
}

fn default_of<T: FromValue>(setting: Setting<T>) -> Option<T> {
    let key = super::keys::KEYS
        .iter()
        .find(|key| key.path == setting.key)?;
    T::from_value(&super::parse_default(key.default).ok()?)
}

macro_rules! settings {
    ($($(#[$doc:meta])* $name:ident: $kind:ty = $key:literal;)*) => {
        $(
            $(#[$doc])*
            pub const $name: Setting<$kind> = Setting { key: $key, kind: PhantomData };
        )*

        #[cfg(test)]
        mod tests {
            use super::*;

            #[test]
            fn every_one_has_a_default_of_its_type() {
                $(assert!(default_of(super::$name).is_some(), $key);)*
            }

            #[test]
            fn settings_without_layers_have_the_defaults_of_the_table() {
                let (none, built_in) = (Settings::default(), Settings::built_in());
                $(assert_eq!(none.get(super::$name), built_in.get(super::$name));)*
            }
        }
    };
}

settings! {
    /// `policy.profile`
    PROFILE: String = "policy.profile";
    /// `policy.commands`
    COMMANDS: String = "policy.commands";
    /// `policy.ignored_changes`
    IGNORED_CHANGES: String = "policy.ignored_changes";
    /// `policy.on_partial`
    ON_PARTIAL: String = "policy.on_partial";
    /// `policy.secret_files`
    SECRET_FILES: String = "policy.secret_files";
    /// `policy.untrusted_content`
    UNTRUSTED_CONTENT: String = "policy.untrusted_content";
    /// `policy.rule_of_two`
    RULE_OF_TWO: String = "policy.rule_of_two";
    /// `policy.reviewer.timeout_s`
    REVIEWER_TIMEOUT: Duration = "policy.reviewer.timeout_s";
    /// `policy.trust_workspace`
    TRUST_WORKSPACE: String = "policy.trust_workspace";
    /// `policy.keep_marks_s`
    KEEP_MARKS: u64 = "policy.keep_marks_s";
    /// `approval.mode`
    APPROVAL_MODE: String = "approval.mode";
    /// `limits.max_calls`
    MAX_CALLS: u64 = "limits.max_calls";
    /// `limits.call_timeout_s`
    CALL_TIMEOUT: Duration = "limits.call_timeout_s";
    /// `limits.approval_timeout_s`
    APPROVAL_TIMEOUT: Duration = "limits.approval_timeout_s";
    /// `limits.total_timeout_s`
    TOTAL_TIMEOUT: Duration = "limits.total_timeout_s";
    /// `limits.inline_tokens`
    INLINE_TOKENS: usize = "limits.inline_tokens";
    /// `limits.inline_media_bytes`
    INLINE_MEDIA_BYTES: usize = "limits.inline_media_bytes";
    /// `chain.engine`
    CHAIN_ENGINE: String = "chain.engine";
    /// `chain.max_tool_calls`
    CHAIN_MAX_CALLS: u64 = "chain.max_tool_calls";
    /// `chain.call_timeout_s`
    CHAIN_CALL_TIMEOUT: Duration = "chain.call_timeout_s";
    /// `chain.approval_timeout_s`
    CHAIN_APPROVAL_TIMEOUT: Duration = "chain.approval_timeout_s";
    /// `chain.total_timeout_s`
    CHAIN_TOTAL_TIMEOUT: Duration = "chain.total_timeout_s";
    /// `chain.max_inline_result_bytes`
    CHAIN_INLINE_BYTES: usize = "chain.max_inline_result_bytes";
    /// `chain.max_risk_unapproved`
    CHAIN_MAX_RISK: String = "chain.max_risk_unapproved";
    /// `sandbox.backend`
    SANDBOX_BACKEND: String = "sandbox.backend";
    /// `sandbox.require`
    SANDBOX_REQUIRE: String = "sandbox.require";
    /// `sandbox.network`
    SANDBOX_NETWORK: String = "sandbox.network";
    /// `network.ssh_agent`
    SSH_AGENT: String = "network.ssh_agent";
    /// `network.gpg_agent`
    GPG_AGENT: String = "network.gpg_agent";
    /// `sandbox.changes`
    SANDBOX_CHANGES: String = "sandbox.changes";
    /// `web.robots`
    WEB_ROBOTS: bool = "web.robots";
    /// `web.max_bytes`
    WEB_MAX_BYTES: usize = "web.max_bytes";
    /// `memory.enabled`
    MEMORY_ENABLED: bool = "memory.enabled";
    /// `memory.provider`
    MEMORY_PROVIDER: String = "memory.provider";
    /// `memory.recall.tool`
    MEMORY_RECALL_TOOL: String = "memory.recall.tool";
    /// `memory.write.tool`
    MEMORY_WRITE_TOOL: String = "memory.write.tool";
    /// `memory.write_mode`
    MEMORY_WRITE_MODE: String = "memory.write_mode";
    /// `skills.as_tools`
    SKILLS_AS_TOOLS: bool = "skills.as_tools";
    /// `skills.max_tokens`
    SKILL_TOKENS: usize = "skills.max_tokens";
    /// `agent.max_turns`
    AGENT_TURNS: u64 = "agent.max_turns";
    /// `agent.suggest`
    AGENT_SUGGEST: bool = "agent.suggest";
    /// `record.on_fault`
    RECORD_ON_FAULT: String = "record.on_fault";
    /// `artifacts.max_bytes`
    ARTIFACT_BYTES: u64 = "artifacts.max_bytes";
    /// `progress.enabled`
    PROGRESS: bool = "progress.enabled";
    /// `progress.flush_ms`
    FLUSH_MS: u64 = "progress.flush_ms";
    /// `progress.flush_bytes`
    FLUSH_BYTES: usize = "progress.flush_bytes";
    /// `console.start`
    CONSOLE_START: String = "console.start";
    /// `console.notify`
    CONSOLE_NOTIFY: String = "console.notify";
    /// `hook.ask`
    HOOK_ASK: String = "hook.ask";
    /// `hook.wrap`
    HOOK_WRAP: String = "hook.wrap";
    /// `hook.shell_state`
    HOOK_SHELL_STATE: String = "hook.shell_state";
    /// `hook.wait_s`
    HOOK_WAIT: Duration = "hook.wait_s";
    /// `serve.http`
    HTTP: String = "serve.http";
    /// `serve.tools`
    SERVED_TOOLS: String = "serve.tools";
    /// `serve.lazy_above`
    LAZY_ABOVE: usize = "serve.lazy_above";
    /// `serve.behind_proxy`
    BEHIND_PROXY: bool = "serve.behind_proxy";
}
