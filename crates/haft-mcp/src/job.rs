//! `Job`: what a request asks for, read and checked before anything is done.

use std::borrow::Cow;
use std::collections::HashMap;

use serde_json::value::RawValue;

use crate::elicit::Elicitation;
use crate::era::{Era, MODERN, Revision, SUPPORTED};
use crate::wire::RpcError;
use crate::wire::params::{Implementation, Meta, Params, text};
use haft::text::clip;

const VERSION: &str = "io.modelcontextprotocol/protocolVersion";
const CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";

/// What is asked.
#[derive(Debug)]
pub(crate) enum Job {
    /// The handshake, with who comes and what they can ask their person.
    Initialize(Revision, Implementation, Elicitation),
    /// The stateless era's account of the server.
    Discover,
    /// Asks whether the server is there.
    Ping,
    /// Says which log messages are wanted; there are none.
    SetLevel,
    /// A page of tools, after the cursor.
    ListTools(Option<String>),
    /// A tool call.
    Call(CallJob),
    /// A page of skills and the run's artifacts, after the cursor.
    ListResources(Option<String>),
    /// The addresses of skills' files.
    ListTemplates,
    /// A skill's file or an artifact.
    ReadResource(String),
    /// A page of prompts, after the cursor.
    ListPrompts(Option<String>),
    /// A prompt: its name and its arguments as they came.
    GetPrompt(String, String),
    /// A stream of changes; whether of the tool list.
    Listen(bool),
}

/// A tool call, its arguments as the bytes that came in.
#[derive(Debug)]
pub(crate) struct CallJob {
    pub(crate) name: String,
    pub(crate) arguments: String,
    /// The progress token as raw JSON.
    pub(crate) token: Option<Box<str>>,
    /// Whether it came with the operator's token.
    pub(crate) operator: bool,
    /// What a stateless client says with each call.
    pub(crate) alone: Option<Alone>,
}

/// What a call of the stateless era carries itself.
#[derive(Debug, Default)]
pub(crate) struct Alone {
    /// What the client can ask its person.
    pub(crate) can: Elicitation,
    /// The client's name, where it can show forms.
    pub(crate) client: String,
    /// The state it was given, if this is not the first call.
    pub(crate) state: Option<String>,
    /// What came of the questions it was given.
    pub(crate) responses: HashMap<String, Box<RawValue>>,
}

impl Alone {
    fn read(params: &Params<'_>, meta: &Meta<'_>) -> Result<Self, RpcError> {
        let can = Elicitation::of(meta.client_capabilities, Era::Modern);
        let client = can.form.then(|| meta.client_info().name);
        Ok(Self {
            can,
            client: client.unwrap_or_default(),
            state: params.request_state()?.map(Cow::into_owned),
            responses: params.input_responses()?,
        })
    }
}

impl Job {
    /// The same, with whether it came with the operator's token.
    pub(crate) fn by(mut self, operator: bool) -> Self {
        if let Self::Call(call) = &mut self {
            call.operator = operator;
        }
        self
    }

    /// Whether it makes a tool call.
    pub(crate) fn is_call(&self) -> bool {
        matches!(self, Self::Call(_) | Self::GetPrompt(..))
    }

    /// The bytes of what it has copied of its message.
    pub(crate) fn bytes(&self) -> usize {
        match self {
            Self::Call(call) => {
                let alone = call.alone.as_ref();
                let state = alone
                    .and_then(|alone| alone.state.as_ref())
                    .map_or(0, String::len);
                let said = alone.map_or(0, |alone| {
                    let responses = alone.responses.iter();
                    responses
                        .map(|(name, raw)| name.len() + raw.get().len())
                        .sum()
                });
                call.name.len() + call.arguments.len() + state + said
            }
            Self::GetPrompt(name, arguments) => name.len() + arguments.len(),
            Self::ListTools(text) | Self::ListResources(text) | Self::ListPrompts(text) => {
                text.as_ref().map_or(0, String::len)
            }
            Self::ReadResource(uri) => uri.len(),
            Self::Initialize(..)
            | Self::Discover
            | Self::Ping
            | Self::SetLevel
            | Self::ListTemplates
            | Self::Listen(_) => 0,
        }
    }

    /// Reads a request of the handshake era.
    pub(crate) fn legacy(method: &str, params: &Params<'_>) -> Result<Self, RpcError> {
        match method {
            "initialize" => {
                let revision = Revision::negotiate(&params.protocol_version()?);
                let can = Elicitation::of(params.capabilities(), Era::Legacy(revision));
                Ok(Self::Initialize(revision, params.client_info(), can))
            }
            "ping" => Ok(Self::Ping),
            "logging/setLevel" => params.log_level().map(|()| Self::SetLevel),
            _ => Self::shared(method, params, params.meta()?.as_ref()),
        }
    }

    fn modern(method: &str, params: &Params<'_>, meta: &Meta<'_>) -> Result<Self, RpcError> {
        match method {
            "server/discover" => Ok(Self::Discover),
            "subscriptions/listen" => Ok(Self::Listen(params.wants_tool_changes()?)),
            _ => {
                let mut job = Self::shared(method, params, Some(meta))?;
                if let Self::Call(call) = &mut job {
                    call.alone = Some(Alone::read(params, meta)?);
                }
                Ok(job)
            }
        }
    }

    fn shared(
        method: &str,
        params: &Params<'_>,
        meta: Option<&Meta<'_>>,
    ) -> Result<Self, RpcError> {
        let cursor = || Ok(params.cursor()?.map(Into::into));
        Ok(match method {
            "tools/list" => Self::ListTools(cursor()?),
            "tools/call" => Self::Call(CallJob {
                name: params.name()?.into_owned(),
                arguments: params.arguments().to_owned(),
                token: meta.and_then(Meta::progress_token).map(Into::into),
                operator: false,
                alone: None,
            }),
            "resources/list" => Self::ListResources(cursor()?),
            "resources/templates/list" => Self::ListTemplates,
            "resources/read" => Self::ReadResource(params.uri()?.into_owned()),
            "prompts/list" => Self::ListPrompts(cursor()?),
            "prompts/get" => {
                Self::GetPrompt(params.name()?.into_owned(), params.arguments().to_owned())
            }
            _ => {
                let shown = clip(method, 128);
                let message = format!("unknown method {shown:?}");
                return Err(RpcError::new(RpcError::METHOD_NOT_FOUND, message));
            }
        })
    }
}

/// What every request of the stateless era carries in `_meta`.
#[derive(Debug)]
pub(crate) struct Envelope<'a> {
    /// The version as the client names it.
    pub(crate) version: Cow<'a, str>,
    pub(crate) meta: Meta<'a>,
}

impl<'a> Envelope<'a> {
    /// Reads it: version and capabilities must be there, who the client is may be left out.
    pub(crate) fn read(meta: Option<Meta<'a>>) -> Result<Self, RpcError> {
        let missing = |key| RpcError::invalid_params(format!("params._meta lacks {key}"));
        let meta = meta.ok_or_else(|| missing(VERSION))?;
        let raw = meta.protocol_version.ok_or_else(|| missing(VERSION))?;
        let version = text(raw).ok_or_else(|| {
            RpcError::invalid_params(format!("params._meta.{VERSION} is not a string"))
        })?;
        let is_object = |raw: &RawValue| raw.get().starts_with('{');
        if !meta.client_capabilities.is_some_and(is_object) {
            return Err(missing(CAPABILITIES));
        }
        Ok(Self { version, meta })
    }

    /// The same, if its version is served.
    pub(crate) fn served(self) -> Result<Self, RpcError> {
        if self.version == MODERN {
            Ok(self)
        } else {
            Err(unsupported_version(&self.version))
        }
    }

    /// What the request asks for.
    pub(crate) fn job(&self, method: &str, params: &Params<'_>) -> Result<Job, RpcError> {
        Job::modern(method, params, &self.meta)
    }
}

/// The version error of the stateless era, with the versions that are served.
pub(crate) fn unsupported_version(requested: &str) -> RpcError {
    let shown = clip(requested, 64);
    let data = serde_json::json!({ "supported": SUPPORTED, "requested": shown });
    RpcError::new(RpcError::VERSION, "unsupported protocol version").with_data(data.to_string())
}
