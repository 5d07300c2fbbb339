//! `RequestParams`: a request's `params`, parsed once, with each member as raw JSON.

use haft::caller::LogLevel;
use haft::text::clip;
use std::borrow::Cow;
use std::collections::HashMap;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use super::RpcError;
use crate::filter::{MAX_SUBSCRIPTIONS, SubscriptionFilter};
use crate::offer::Reference;

/// The members that any method uses; others are ignored.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct RequestParams<'a> {
    #[serde(borrow)]
    name: Option<&'a RawValue>,
    #[serde(borrow)]
    arguments: Option<&'a RawValue>,
    #[serde(borrow)]
    uri: Option<&'a RawValue>,
    #[serde(borrow)]
    cursor: Option<&'a RawValue>,
    #[serde(borrow, rename = "protocolVersion")]
    protocol_version: Option<&'a RawValue>,
    #[serde(borrow, rename = "clientInfo")]
    client_info: Option<&'a RawValue>,
    #[serde(borrow, rename = "requestId")]
    request_id: Option<&'a RawValue>,
    #[serde(borrow)]
    notifications: Option<&'a RawValue>,
    #[serde(borrow)]
    capabilities: Option<&'a RawValue>,
    #[serde(borrow, rename = "requestState")]
    request_state: Option<&'a RawValue>,
    #[serde(borrow, rename = "inputResponses")]
    input_responses: Option<&'a RawValue>,
    #[serde(borrow)]
    level: Option<&'a RawValue>,
    #[serde(borrow, rename = "taskId")]
    task_id: Option<&'a RawValue>,
    #[serde(borrow, rename = "ref")]
    reference: Option<&'a RawValue>,
    #[serde(borrow)]
    argument: Option<&'a RawValue>,
    #[serde(borrow, rename = "_meta")]
    meta: Option<&'a RawValue>,
    /// The whole object as received.
    #[serde(skip)]
    whole: Option<&'a RawValue>,
}

/// The members of `_meta` that this server uses.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct RequestMeta<'a> {
    #[serde(borrow, rename = "progressToken")]
    progress_token: Option<&'a RawValue>,
    #[serde(borrow, rename = "io.modelcontextprotocol/protocolVersion")]
    pub(crate) protocol_version: Option<&'a RawValue>,
    #[serde(borrow, rename = "io.modelcontextprotocol/clientInfo")]
    pub(crate) client_info: Option<&'a RawValue>,
    #[serde(borrow, rename = "io.modelcontextprotocol/clientCapabilities")]
    pub(crate) client_capabilities: Option<&'a RawValue>,
    #[serde(borrow, rename = "io.modelcontextprotocol/logLevel")]
    log_level: Option<&'a RawValue>,
}

/// A client's name and version, as it gives them.
#[derive(Debug, Default, Clone, Deserialize)]
#[serde(default)]
pub(crate) struct Implementation {
    pub(crate) name: String,
    pub(crate) version: String,
}

impl<'a> RequestParams<'a> {
    /// Parses `params`; absent ones count as empty.
    pub(crate) fn parse(raw: Option<&'a RawValue>) -> Result<Self, RpcError> {
        match raw {
            None => Ok(Self::default()),
            Some(raw) => {
                let read = serde_json::from_str::<Self>(raw.get());
                let read = read.map_err(|e| RpcError::invalid_params(format!("params: {e}")))?;
                Ok(Self {
                    whole: Some(raw),
                    ..read
                })
            }
        }
    }

    /// Returns `_meta`, which must be an object if present.
    pub(crate) fn meta(&self) -> Result<Option<RequestMeta<'a>>, RpcError> {
        match self.meta {
            Some(raw) if raw.get().starts_with('{') => serde_json::from_str(raw.get())
                .map(Some)
                .map_err(|e| RpcError::invalid_params(format!("params._meta: {e}"))),
            Some(_) => Err(RpcError::invalid_params("params._meta is not an object")),
            None => Ok(None),
        }
    }

    pub(crate) fn name(&self) -> Result<Cow<'a, str>, RpcError> {
        required(self.name, "name")
    }

    pub(crate) fn uri(&self) -> Result<Cow<'a, str>, RpcError> {
        required(self.uri, "uri")
    }

    pub(crate) fn protocol_version(&self) -> Result<Cow<'a, str>, RpcError> {
        required(self.protocol_version, "protocolVersion")
    }

    /// Returns the member of this method's `params` that a header must repeat, if any.
    pub(crate) fn named(&self, method: &str) -> Option<&'a RawValue> {
        match method {
            "tools/call" | "prompts/get" => self.name,
            "resources/read" => self.uri,
            "tasks/get" | "tasks/update" | "tasks/cancel" => self.task_id,
            _ => None,
        }
    }

    /// Returns the arguments as the received bytes; empty if there are none.
    pub(crate) fn arguments(&self) -> &'a str {
        self.arguments.map_or("", RawValue::get)
    }

    pub(crate) fn cursor(&self) -> Result<Option<Cow<'a, str>>, RpcError> {
        self.cursor
            .map(|raw| required(Some(raw), "cursor"))
            .transpose()
    }

    pub(crate) fn client_info(&self) -> Implementation {
        lenient(self.client_info)
    }

    /// Returns the capabilities of a handshake-era client, as raw JSON.
    pub(crate) fn capabilities(&self) -> Option<&'a RawValue> {
        self.capabilities
    }

    /// Returns the state that a stateless client brings back.
    pub(crate) fn request_state(&self) -> Result<Option<Cow<'a, str>>, RpcError> {
        self.request_state
            .map(|raw| required(Some(raw), "requestState"))
            .transpose()
    }

    /// Returns the client's answers, by the names of the questions.
    pub(crate) fn input_responses(&self) -> Result<HashMap<String, Box<RawValue>>, RpcError> {
        let Some(raw) = self.input_responses else {
            return Ok(HashMap::new());
        };
        serde_json::from_str(raw.get())
            .map_err(|e| RpcError::invalid_params(format!("params.inputResponses: {e}")))
    }

    /// Returns the level from which log messages are wanted.
    pub(crate) fn log_level(&self) -> Result<LogLevel, RpcError> {
        level(&required(self.level, "level")?, "level")
    }

    /// Returns the whole object as received.
    pub(crate) fn whole(&self) -> Box<RawValue> {
        self.whole.map(ToOwned::to_owned).unwrap_or_default()
    }

    /// Returns what the argument of a `completion/complete` belongs to.
    pub(crate) fn reference(&self) -> Result<Reference, RpcError> {
        #[derive(Deserialize)]
        struct CompletionRef {
            r#type: String,
            name: Option<String>,
            uri: Option<String>,
        }
        #[derive(Deserialize)]
        #[expect(dead_code, reason = "read to see that it is there")]
        struct CompletionArgument {
            name: String,
            value: String,
        }
        let member = |raw: Option<&'a RawValue>, name: &str| {
            raw.ok_or_else(|| RpcError::invalid_params(format!("params.{name} is missing")))
        };
        let wrong = |name: &str, e: serde_json::Error| {
            RpcError::invalid_params(format!("params.{name}: {e}"))
        };
        let argument = member(self.argument, "argument")?;
        serde_json::from_str::<CompletionArgument>(argument.get())
            .map_err(|e| wrong("argument", e))?;
        let reference = member(self.reference, "ref")?;
        let reference =
            serde_json::from_str::<CompletionRef>(reference.get()).map_err(|e| wrong("ref", e))?;
        match (reference.r#type.as_str(), reference.name, reference.uri) {
            ("ref/prompt", Some(name), _) => Ok(Reference::Prompt(name)),
            ("ref/resource", _, Some(uri)) => Ok(Reference::Resource(uri)),
            (kind, ..) => {
                let shown = clip(kind, 64);
                Err(RpcError::invalid_params(format!(
                    "params.ref is a {shown:?}: send ref/prompt with a name, or ref/resource with a uri"
                )))
            }
        }
    }

    pub(crate) fn task_id(&self) -> Result<Cow<'a, str>, RpcError> {
        required(self.task_id, "taskId")
    }

    pub(crate) fn request_id(&self) -> Option<&'a str> {
        self.request_id.map(RawValue::get)
    }

    /// Returns the changes that a `subscriptions/listen` asks for.
    pub(crate) fn filter(&self) -> Result<SubscriptionFilter, RpcError> {
        #[derive(Default, Deserialize)]
        #[serde(default, rename_all = "camelCase")]
        struct NotificationsParam {
            tools_list_changed: Option<bool>,
            prompts_list_changed: Option<bool>,
            resources_list_changed: Option<bool>,
            resource_subscriptions: Option<Vec<String>>,
            task_ids: Option<Vec<String>>,
        }
        let raw = self
            .notifications
            .filter(|raw| raw.get().starts_with('{'))
            .ok_or_else(|| RpcError::invalid_params("params.notifications is not an object"))?;
        let wanted = serde_json::from_str::<NotificationsParam>(raw.get())
            .map_err(|e| RpcError::invalid_params(format!("params.notifications: {e}")))?;
        let uris = wanted.resource_subscriptions.unwrap_or_default();
        let tasks = wanted.task_ids.unwrap_or_default();
        if uris.len().max(tasks.len()) > MAX_SUBSCRIPTIONS {
            return Err(RpcError::invalid_params(format!(
                "params.notifications names {} resources and {} tasks, of one over {MAX_SUBSCRIPTIONS}: open another stream for the rest",
                uris.len(),
                tasks.len()
            )));
        }
        Ok(SubscriptionFilter {
            tools: wanted.tools_list_changed == Some(true),
            prompts: wanted.prompts_list_changed == Some(true),
            resources: wanted.resources_list_changed == Some(true),
            uris,
            tasks,
        })
    }
}

impl<'a> RequestMeta<'a> {
    /// Returns the progress token as raw JSON, if it is a string or a number as the protocol requires.
    pub(crate) fn progress_token(&self) -> Option<&'a str> {
        let raw = self.progress_token?.get();
        super::RequestId::parse(raw).map(|_| raw)
    }

    /// Returns the level from which a stateless client wants log messages for its request; `None` if it wants none.
    pub(crate) fn log_level(&self) -> Result<Option<LogLevel>, RpcError> {
        const NAME: &str = "_meta.io.modelcontextprotocol/logLevel";
        let raw = self.log_level.map(|raw| required(Some(raw), NAME));
        raw.map(|word| level(&word?, NAME)).transpose()
    }

    pub(crate) fn client_info(&self) -> Implementation {
        lenient(self.client_info)
    }
}

/// Returns the text of a JSON string.
pub(crate) fn text(raw: &RawValue) -> Option<Cow<'_, str>> {
    let json = raw.get();
    let inner = json.strip_prefix('"')?.strip_suffix('"')?;
    if inner.contains('\\') {
        return serde_json::from_str::<String>(json).ok().map(Cow::Owned);
    }
    Some(Cow::Borrowed(inner))
}

fn required<'a>(raw: Option<&'a RawValue>, member: &str) -> Result<Cow<'a, str>, RpcError> {
    let raw = raw.ok_or_else(|| RpcError::invalid_params(format!("params.{member} is missing")))?;
    text(raw).ok_or_else(|| RpcError::invalid_params(format!("params.{member} is not a string")))
}

/// Parses the log level in `params.MEMBER`; the error lists the known levels.
fn level(word: &str, member: &str) -> Result<LogLevel, RpcError> {
    LogLevel::parse(word).ok_or_else(|| {
        let known = LogLevel::ALL.map(LogLevel::as_str).join(", ");
        let shown = clip(word, 64);
        RpcError::invalid_params(format!("params.{member} {shown:?} is not one of {known}"))
    })
}

/// A client's name and version are for display only, so malformed ones count as absent.
fn lenient<T: DeserializeOwned + Default>(raw: Option<&RawValue>) -> T {
    raw.and_then(|raw| serde_json::from_str(raw.get()).ok())
        .unwrap_or_default()
}
