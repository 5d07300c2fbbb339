//! `HttpModel`: a model behind HTTP, in any of the four dialects: sends requests, reads streamed or complete answers, retries.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use haft::future::BoxFuture;
use haft_http::direct::Direct;
use haft_wire::{Dialect, Reply, ReplyLimits, Request};
use http::header::{ACCEPT, CONTENT_TYPE, USER_AGENT};
use http::{HeaderMap, HeaderName, HeaderValue};

use crate::model::{EventSink, Model, ModelError, ModelEvent, ModelRequest};
use crate::provider::ModelName;

mod key;
mod place;
mod provider_client;
pub mod retry;
pub mod timeouts;

pub use haft_http::dial::{Dial, Io};

use key::ApiKey;
use place::ProviderLocation;
use provider_client::{Post, ProviderClient};
use retry::Retry;
use timeouts::Timeouts;

/// The version of Anthropic's API that requests name.
const ANTHROPIC_VERSION: &str = "2023-06-01";

/// How a model behind HTTP is reached.
#[derive(Debug, Clone)]
pub struct HttpSettings {
    /// A base URL other than the provider's own.
    pub base_url: Option<String>,
    /// Additional headers of each request, such as `anthropic-beta`.
    pub headers: Vec<(String, String)>,
    /// Whether answers are streamed.
    pub stream: bool,
    /// How long each wait may take.
    pub timeouts: Timeouts,
    /// How often a request is retried.
    pub retry: Retry,
    /// Limits on what is read of an answer.
    pub limits: ReplyLimits,
    /// How connections are made; `None` = directly.
    pub dial: Option<Arc<dyn Dial>>,
}

impl Default for HttpSettings {
    /// The provider's own URL, streaming, the default limits, direct connections.
    fn default() -> Self {
        Self {
            base_url: None,
            headers: Vec::new(),
            stream: true,
            timeouts: Timeouts::default(),
            retry: Retry::default(),
            limits: ReplyLimits::default(),
            dial: None,
        }
    }
}

/// A model behind HTTP.
pub struct HttpModel {
    name: String,
    model: String,
    dialect: Dialect,
    stream: bool,
    headers: HeaderMap,
    key: Option<ApiKey>,
    retry: Retry,
    client: ProviderClient,
}

impl HttpModel {
    /// Creates the model with this name. `variable` reads the environment; only the provider's key is read there.
    ///
    /// # Errors
    /// If the key is not set, the base URL is unusable, or a header is invalid.
    pub fn new(
        name: &ModelName,
        settings: HttpSettings,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<Self, ModelError> {
        let provider = name.provider;
        let base = settings.base_url.as_deref().or(provider.base_url);
        let Some(base) = base else {
            let message = format!(
                "the provider {} needs a base URL (--base-url)",
                provider.name
            );
            return Err(ModelError::Setting(message));
        };
        let place = ProviderLocation::parse(base)?;
        let key = ApiKey::find(provider, variable)?;
        if key.is_some() && !place.is_secure() && !place.is_this_machine() {
            let message = format!(
                "the key of {} would be sent to {place} unencrypted; use an https:// URL",
                provider.name
            );
            return Err(ModelError::Setting(message));
        }
        let dial = settings.dial.unwrap_or_else(|| Arc::new(Direct::default()));
        Ok(Self {
            name: name.to_string(),
            model: name.model.clone(),
            dialect: provider.dialect,
            stream: settings.stream,
            headers: headers(provider.dialect, &settings.headers, key.as_ref())?,
            key,
            retry: settings.retry,
            client: ProviderClient::new(place, dial, settings.timeouts, settings.limits),
        })
    }

    /// Sends a request until it is answered, or until another attempt is pointless.
    async fn ask(
        &self,
        request: ModelRequest<'_>,
        watch: &mut EventSink<'_>,
    ) -> Result<Reply, ModelError> {
        let body = self.dialect.write(&Request {
            model: &self.model,
            system: request.system,
            messages: request.messages,
            tools: request.tools,
            choice: request.choice,
            parallel: request.parallel,
            max_tokens: request.max_tokens,
            stream: self.stream,
            extra: request.extra,
        })?;
        let path = self.dialect.path(&self.model, self.stream);
        let post = Post {
            dialect: self.dialect,
            path: &path,
            headers: &self.headers,
            body: Bytes::from(body),
        };
        let mut tried = 0;
        loop {
            let mut discards = false;
            let mut show = |event: ModelEvent| {
                discards |= matches!(event, ModelEvent::Delta(_));
                watch(event);
            };
            let error = match self.client.send(&post, &mut show).await {
                Ok(reply) => return Ok(reply),
                Err(error) => self.without_key(error),
            };
            tried += 1;
            // Nothing of a reply is run before it is whole, so asking again does nothing twice.
            let Some(pause) = self.retry.pause(&error, tried) else {
                return Err(error);
            };
            watch(ModelEvent::Retry {
                pause,
                why: error.to_string(),
                discards,
            });
            tokio::time::sleep(pause).await;
        }
    }

    /// Returns the error with the key removed, in case the provider repeated it.
    fn without_key(&self, error: ModelError) -> ModelError {
        let Some(key) = &self.key else {
            return error;
        };
        match error {
            ModelError::Status {
                place,
                status,
                message,
                retry_after,
            } => ModelError::Status {
                place,
                status,
                message: key.hidden_in(&message),
                retry_after,
            },
            ModelError::Wire(wire) if key.is_in(&wire.to_string()) => {
                ModelError::Other(key.hidden_in(&wire.to_string()))
            }
            other => other,
        }
    }
}

impl fmt::Debug for HttpModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpModel")
            .field("name", &self.name)
            .field("dialect", &self.dialect)
            .finish_non_exhaustive()
    }
}

impl Model for HttpModel {
    fn name(&self) -> &str {
        &self.name
    }

    fn dialect(&self) -> Dialect {
        self.dialect
    }

    fn reply<'a>(
        &'a self,
        request: ModelRequest<'a>,
        watch: &'a mut EventSink<'_>,
    ) -> BoxFuture<'a, Result<Reply, ModelError>> {
        Box::pin(self.ask(request, watch))
    }
}

/// Builds the headers of every request.
fn headers(
    dialect: Dialect,
    further: &[(String, String)],
    key: Option<&ApiKey>,
) -> Result<HeaderMap, ModelError> {
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(
        ACCEPT,
        HeaderValue::from_static("text/event-stream, application/json"),
    );
    headers.insert(
        USER_AGENT,
        HeaderValue::from_static(concat!("haft/", env!("CARGO_PKG_VERSION"))),
    );
    if dialect == Dialect::Anthropic {
        let version = HeaderName::from_static("anthropic-version");
        headers.insert(version, HeaderValue::from_static(ANTHROPIC_VERSION));
    }
    for (name, value) in further {
        let wrong = || {
            ModelError::Setting(format!(
                "{name:?} is not a valid header name, or its value is not a valid header value"
            ))
        };
        let name = HeaderName::try_from(name).map_err(|_| wrong())?;
        let value = HeaderValue::try_from(value).map_err(|_| wrong())?;
        headers.insert(name, value);
    }
    if let Some(key) = key {
        let (name, value) = key.header(dialect)?;
        headers.insert(name, value);
    }
    Ok(headers)
}
