//! `ApiKey`: the credential for a provider; it never appears in messages, logs or debug output.

use std::fmt;

use haft_wire::Dialect;
use http::header::AUTHORIZATION;
use http::{HeaderName, HeaderValue};

use crate::model::ModelError;
use crate::provider::Provider;

/// An API key.
pub(super) struct ApiKey {
    key: String,
    /// The variable that it comes from.
    from: &'static str,
}

impl ApiKey {
    /// Finds the provider's key; `None` if the provider works without one and none is set.
    pub(super) fn find(
        provider: &Provider,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<Option<Self>, ModelError> {
        for from in provider.keys {
            let key = variable(from).map(|key| key.trim().to_owned());
            if let Some(key) = key.filter(|key| !key.is_empty()) {
                return Ok(Some(Self { key, from }));
            }
        }
        if provider.key_optional {
            return Ok(None);
        }
        let names = provider.keys.join(" or ");
        Err(ModelError::Setting(format!(
            "no key for {}: set {names}",
            provider.name
        )))
    }

    /// Returns the header that carries it.
    pub(super) fn header(&self, dialect: Dialect) -> Result<(HeaderName, HeaderValue), ModelError> {
        let (name, value) = match dialect {
            Dialect::OpenAiChat | Dialect::OpenAiResponses => {
                (AUTHORIZATION, format!("Bearer {}", self.key))
            }
            Dialect::Anthropic => (HeaderName::from_static("x-api-key"), self.key.clone()),
            Dialect::Gemini => (HeaderName::from_static("x-goog-api-key"), self.key.clone()),
        };
        let mut value = HeaderValue::try_from(value).map_err(|_| {
            ModelError::Setting(format!(
                "the value of {} is not a key: it is not plain text",
                self.from
            ))
        })?;
        value.set_sensitive(true);
        Ok((name, value))
    }

    /// Returns whether a text contains it.
    pub(super) fn is_in(&self, text: &str) -> bool {
        text.contains(&self.key)
    }

    /// Returns the text with the key removed.
    pub(super) fn hidden_in(&self, text: &str) -> String {
        text.replace(&self.key, &format!("[{}]", self.from))
    }
}

impl fmt::Debug for ApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ApiKey({})", self.from)
    }
}
