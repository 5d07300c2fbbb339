//! `ModelName`: `PROVIDER:MODEL` as users write it, and the known providers.

use std::fmt;
use std::str::FromStr;

use haft_wire::Dialect;

/// The properties of a provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Provider {
    /// Its name in `PROVIDER:MODEL`, such as `anthropic`.
    pub name: &'static str,
    /// The dialect that it speaks.
    pub dialect: Dialect,
    /// Its URL, without the dialect's path; `None` if the user has to give it.
    pub base_url: Option<&'static str>,
    /// The variables that may hold its key; the first one that is set is used.
    pub keys: &'static [&'static str],
    /// Whether it works without a key.
    pub key_optional: bool,
}

const fn provider(
    name: &'static str,
    dialect: Dialect,
    base_url: &'static str,
    keys: &'static [&'static str],
) -> Provider {
    Provider {
        name,
        dialect,
        base_url: Some(base_url),
        keys,
        key_optional: false,
    }
}

/// All providers.
pub const PROVIDERS: &[Provider] = &[
    provider(
        "openai",
        Dialect::OpenAiResponses,
        "https://api.openai.com",
        &["OPENAI_API_KEY"],
    ),
    provider(
        "openai-chat",
        Dialect::OpenAiChat,
        "https://api.openai.com",
        &["OPENAI_API_KEY"],
    ),
    provider(
        "anthropic",
        Dialect::Anthropic,
        "https://api.anthropic.com",
        &["ANTHROPIC_API_KEY"],
    ),
    provider(
        "gemini",
        Dialect::Gemini,
        "https://generativelanguage.googleapis.com",
        &["GEMINI_API_KEY", "GOOGLE_API_KEY"],
    ),
    provider(
        "openrouter",
        Dialect::OpenAiChat,
        "https://openrouter.ai/api",
        &["OPENROUTER_API_KEY"],
    ),
    provider(
        "groq",
        Dialect::OpenAiChat,
        "https://api.groq.com/openai",
        &["GROQ_API_KEY"],
    ),
    provider(
        "mistral",
        Dialect::OpenAiChat,
        "https://api.mistral.ai",
        &["MISTRAL_API_KEY"],
    ),
    provider(
        "deepseek",
        Dialect::OpenAiChat,
        "https://api.deepseek.com",
        &["DEEPSEEK_API_KEY"],
    ),
    Provider {
        key_optional: true,
        ..provider("ollama", Dialect::OpenAiChat, "http://127.0.0.1:11434", &[])
    },
    Provider {
        base_url: None,
        key_optional: true,
        ..provider(
            "compatible",
            Dialect::OpenAiChat,
            "",
            &["COMPATIBLE_API_KEY"],
        )
    },
];

/// A model of a provider.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelName {
    /// The provider.
    pub provider: &'static Provider,
    /// The model, as the provider names it.
    pub model: String,
}

/// The error for a text that does not name a model.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ModelNameError {
    /// The provider is unknown.
    #[error(
        "unknown model provider {name:?}: write PROVIDER:MODEL with one of {}",
        all()
    )]
    Unknown {
        /// The text before the colon, bounded.
        name: String,
    },
    /// The text names no model.
    #[error("{0:?} names no model: write PROVIDER:MODEL, as in anthropic:claude-sonnet-4-6")]
    NoModel(String),
}

/// Returns the names of all providers.
fn all() -> String {
    let names: Vec<&str> = PROVIDERS.iter().map(|provider| provider.name).collect();
    names.join(", ")
}

impl FromStr for ModelName {
    type Err = ModelNameError;

    fn from_str(text: &str) -> Result<Self, ModelNameError> {
        let shown = |text: &str| haft::text::clip(text, 100).into_owned();
        let (name, model) = text.split_once(':').unwrap_or((text, ""));
        let Some(provider) = PROVIDERS.iter().find(|provider| provider.name == name) else {
            return Err(ModelNameError::Unknown { name: shown(name) });
        };
        // For one provider it becomes part of a path.
        let odd = |c: char| c.is_control() || c.is_whitespace() || matches!(c, '?' | '#' | '%');
        let climbs = model.split('/').any(|part| matches!(part, "" | "." | ".."));
        if climbs || model.contains(odd) {
            return Err(ModelNameError::NoModel(shown(text)));
        }
        Ok(Self {
            provider,
            model: model.to_owned(),
        })
    }
}

impl fmt::Display for ModelName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.provider.name, self.model)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_and_those_that_are_none_say_what_to_write() {
        for (text, provider, model) in [
            ("openai:gpt-5.2", "openai", "gpt-5.2"),
            ("ollama:qwen3:8b", "ollama", "qwen3:8b"),
            (
                "openrouter:anthropic/claude-sonnet-4.6",
                "openrouter",
                "anthropic/claude-sonnet-4.6",
            ),
        ] {
            let name: ModelName = text.parse().unwrap();
            assert_eq!((name.provider.name, name.model.as_str()), (provider, model));
            assert_eq!(name.to_string(), text);
        }
        for (text, says) in [
            (
                "gpt-5",
                "openai, openai-chat, anthropic, gemini, openrouter",
            ),
            ("", "unknown model provider"),
            ("OpenAI:gpt-5", "unknown model provider"),
            ("openai", "names no model"),
            ("openai:", "names no model"),
            ("gemini:../x", "names no model"),
            ("gemini:x?key=1", "names no model"),
            ("openai:a b", "names no model"),
        ] {
            let error = text.parse::<ModelName>().unwrap_err().to_string();
            assert!(error.contains(says), "{text}: {error}");
        }
    }
}
