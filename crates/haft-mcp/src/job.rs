//! `Job`: what a request asks for, parsed and checked before anything is done.

use std::borrow::Cow;
use std::collections::HashMap;

use haft::caller::LogLevel;
use serde_json::value::RawValue;

use crate::capabilities::{ClientCapabilities, undeclared};
use crate::era::{Era, MODERN, Revision, SUPPORTED};
use crate::filter::SubscriptionFilter;
use crate::offer::Reference;
use crate::own::is_own;
use crate::wire::RpcError;
use crate::wire::params::{Implementation, RequestMeta, RequestParams, text};
use haft::text::clip;

const VERSION_KEY: &str = "io.modelcontextprotocol/protocolVersion";
const CAPABILITIES_KEY: &str = "io.modelcontextprotocol/clientCapabilities";

#[derive(Debug)]
pub(crate) enum Job {
    /// The handshake, with the client's name and capabilities.
    Initialize(Revision, Implementation, ClientCapabilities),
    /// The stateless era's description of the server.
    Discover,
    /// Checks that the server is there.
    Ping,
    /// Sets the level from which log messages are wanted.
    SetLevel(LogLevel),
    /// Lists a page of tools, after the cursor.
    ListTools(Option<String>),
    /// Calls a tool.
    Call(CallJob),
    /// Lists a page of skills, the run's artifacts and the host's resources, after the cursor.
    ListResources(Option<String>),
    /// Lists a page of URI templates.
    ListTemplates(Option<String>),
    /// Reads a skill's file, an artifact, or a resource of the host: its URI is the name.
    ReadResource(CallJob),
    /// Subscribes to changes of a resource: its URI is the name.
    Subscribe(CallJob),
    /// Unsubscribes from changes of a resource.
    Unsubscribe(String),
    /// Lists a page of prompts, after the cursor.
    ListPrompts(Option<String>),
    /// Gets a prompt.
    GetPrompt(CallJob),
    /// Completes an argument: the reference, if it is valid, and the `params` as received.
    Complete(Result<Reference, RpcError>, Box<RawValue>),
    /// Opens a stream of changes.
    Listen(SubscriptionFilter),
    /// A request about a task.
    Task(TaskJob),
}

/// A request about a task.
#[derive(Debug)]
pub(crate) struct TaskJob {
    pub(crate) id: String,
    pub(crate) what: TaskRequest,
}

/// The action on a task.
#[derive(Debug)]
pub(crate) enum TaskRequest {
    /// Return its state.
    Get,
    /// Take the client's answers to its questions.
    Update(HashMap<String, Box<RawValue>>),
    /// Cancel it.
    Cancel,
}

/// A request that becomes a tool call: of a tool, or to get a resource or prompt. Arguments are the bytes as received.
#[derive(Debug)]
pub(crate) struct CallJob {
    /// The method that the state of the call is bound to; empty for a tool.
    pub(crate) method: &'static str,
    pub(crate) name: String,
    pub(crate) arguments: String,
    /// The progress token as raw JSON.
    pub(crate) token: Option<Box<str>>,
    /// Whether it came with the operator's token.
    pub(crate) operator: bool,
    /// What a stateless client sends with each call.
    pub(crate) alone: Option<StatelessCall>,
}

/// What a stateless call carries by itself.
#[derive(Debug, Default)]
pub(crate) struct StatelessCall {
    /// The client's capabilities.
    pub(crate) can: ClientCapabilities,
    /// The lowest level of log messages that it wants.
    pub(crate) log: Option<LogLevel>,
    /// The client's name, if it can show forms.
    pub(crate) client: String,
    /// The state it was given, unless this is the first call.
    pub(crate) state: Option<String>,
    /// The answers to the questions it was given.
    pub(crate) responses: HashMap<String, Box<RawValue>>,
}

impl StatelessCall {
    fn read(params: &RequestParams<'_>, meta: &RequestMeta<'_>) -> Result<Self, RpcError> {
        let can = ClientCapabilities::of(meta.client_capabilities, Era::Modern);
        let client = can.elicitation.form.then(|| meta.client_info().name);
        Ok(Self {
            can,
            log: meta.log_level()?,
            client: client.unwrap_or_default(),
            state: params.request_state()?.map(Cow::into_owned),
            responses: params.input_responses()?,
        })
    }
}

impl TaskJob {
    fn read(method: &str, params: &RequestParams<'_>) -> Result<Self, RpcError> {
        let what = match method {
            "tasks/update" => TaskRequest::Update(params.input_responses()?),
            "tasks/cancel" => TaskRequest::Cancel,
            _ => TaskRequest::Get,
        };
        let id = params.task_id()?.into_owned();
        Ok(Self { id, what })
    }

    fn bytes(&self) -> usize {
        let update = match &self.what {
            TaskRequest::Update(update) => update
                .iter()
                .map(|(name, raw)| name.len() + raw.get().len())
                .sum(),
            TaskRequest::Get | TaskRequest::Cancel => 0,
        };
        self.id.len() + update
    }
}

impl CallJob {
    fn read(
        method: &'static str,
        name: Cow<'_, str>,
        params: &RequestParams<'_>,
        meta: Option<&RequestMeta<'_>>,
    ) -> Self {
        Self {
            method,
            name: name.into_owned(),
            arguments: params.arguments().to_owned(),
            token: meta.and_then(RequestMeta::progress_token).map(Into::into),
            operator: false,
            alone: None,
        }
    }

    /// Returns what its state is bound to, besides its arguments.
    pub(crate) fn bound(&self) -> String {
        if self.is_tool() {
            return self.name.clone();
        }
        // Tool names contain no blanks.
        format!("{} {}", self.method, self.name)
    }

    /// Returns whether its client wants messages before it ends, or can be asked on its stream.
    fn talks(&self) -> bool {
        let alone = self.alone.as_ref();
        self.token.is_some() || alone.is_none_or(|alone| alone.log.is_some())
    }

    /// Returns whether it is a tool's call, not a resource's or a prompt's.
    pub(crate) fn is_tool(&self) -> bool {
        self.method.is_empty()
    }

    fn bytes(&self) -> usize {
        let alone = self.alone.as_ref();
        let state = alone
            .and_then(|alone| alone.state.as_ref())
            .map_or(0, String::len);
        let said = alone.map_or(0, |alone| {
            let responses = alone.responses.iter();
            responses
                .map(|(name, raw)| name.len() + raw.get().len())
                .sum()
        });
        self.name.len() + self.arguments.len() + state + said
    }
}

impl Job {
    /// Returns the call that it may become.
    pub(crate) fn call_mut(&mut self) -> Option<&mut CallJob> {
        match self {
            Self::Call(call)
            | Self::ReadResource(call)
            | Self::GetPrompt(call)
            | Self::Subscribe(call) => Some(call),
            _ => None,
        }
    }

    /// Notes whether it came with the operator's token.
    pub(crate) fn by(mut self, operator: bool) -> Self {
        if let Some(call) = self.call_mut() {
            call.operator = operator;
        }
        self
    }

    /// Returns whether it makes a tool call.
    pub(crate) fn is_call(&self) -> bool {
        match self {
            Self::Call(_) | Self::GetPrompt(_) | Self::Complete(..) | Self::Subscribe(_) => true,
            Self::ReadResource(job) => !is_own(&job.name),
            _ => false,
        }
    }

    /// Returns whether its client may have to be sent messages before the answer.
    pub(crate) fn talks(&self) -> bool {
        match self {
            Self::Call(job) | Self::GetPrompt(job) | Self::Subscribe(job) => job.talks(),
            Self::ReadResource(job) => !is_own(&job.name) && job.talks(),
            _ => false,
        }
    }

    /// Returns the number of bytes that it has copied of its message.
    pub(crate) fn bytes(&self) -> usize {
        let length = |text: &Option<String>| text.as_ref().map_or(0, String::len);
        match self {
            Self::Call(call)
            | Self::ReadResource(call)
            | Self::GetPrompt(call)
            | Self::Subscribe(call) => call.bytes(),
            Self::ListTools(cursor)
            | Self::ListResources(cursor)
            | Self::ListTemplates(cursor)
            | Self::ListPrompts(cursor) => length(cursor),
            Self::Unsubscribe(uri) => uri.len(),
            Self::Complete(_, params) => params.get().len(),
            Self::Listen(filter) => filter
                .uris
                .iter()
                .chain(&filter.tasks)
                .map(String::len)
                .sum(),
            Self::Task(task) => task.bytes(),
            Self::Initialize(..) | Self::Discover | Self::Ping | Self::SetLevel(_) => 0,
        }
    }

    /// Parses a request of the handshake era.
    pub(crate) fn legacy(method: &str, params: &RequestParams<'_>) -> Result<Self, RpcError> {
        match method {
            "initialize" => {
                let revision = Revision::negotiate(&params.protocol_version()?);
                let can = ClientCapabilities::of(params.capabilities(), Era::Legacy(revision));
                Ok(Self::Initialize(revision, params.client_info(), can))
            }
            "ping" => Ok(Self::Ping),
            "logging/setLevel" => params.log_level().map(Self::SetLevel),
            "resources/unsubscribe" => Ok(Self::Unsubscribe(params.uri()?.into_owned())),
            "resources/subscribe" => {
                let meta = params.meta()?;
                let uri = params.uri()?;
                let call = CallJob::read("resources/subscribe", uri, params, meta.as_ref());
                Ok(Self::Subscribe(call))
            }
            _ => Self::shared(method, params, params.meta()?.as_ref()),
        }
    }

    fn modern(
        method: &str,
        params: &RequestParams<'_>,
        meta: &RequestMeta<'_>,
    ) -> Result<Self, RpcError> {
        match method {
            "server/discover" => Ok(Self::Discover),
            "tasks/get" | "tasks/update" | "tasks/cancel" => {
                if !ClientCapabilities::of(meta.client_capabilities, Era::Modern).tasks {
                    return Err(undeclared());
                }
                TaskJob::read(method, params).map(Self::Task)
            }
            "subscriptions/listen" => Ok(Self::Listen(params.filter()?)),
            _ => {
                let mut job = Self::shared(method, params, Some(meta))?;
                if let Some(call) = job.call_mut() {
                    call.alone = Some(StatelessCall::read(params, meta)?);
                }
                Ok(job)
            }
        }
    }

    fn shared(
        method: &str,
        params: &RequestParams<'_>,
        meta: Option<&RequestMeta<'_>>,
    ) -> Result<Self, RpcError> {
        let cursor = || Ok(params.cursor()?.map(Into::into));
        let call = |method, name: Cow<'_, str>| CallJob::read(method, name, params, meta);
        Ok(match method {
            "tools/list" => Self::ListTools(cursor()?),
            "tools/call" => Self::Call(call("", params.name()?)),
            "resources/list" => Self::ListResources(cursor()?),
            "resources/templates/list" => Self::ListTemplates(cursor()?),
            "resources/read" => Self::ReadResource(call("resources/read", params.uri()?)),
            "prompts/list" => Self::ListPrompts(cursor()?),
            "prompts/get" => Self::GetPrompt(call("prompts/get", params.name()?)),
            "completion/complete" => Self::Complete(params.reference(), params.whole()),
            _ => {
                let shown = clip(method, 128);
                let message = format!("unknown method {shown:?}");
                return Err(RpcError::new(RpcError::METHOD_NOT_FOUND, message));
            }
        })
    }
}

/// What every stateless request carries in `_meta`.
#[derive(Debug)]
pub(crate) struct RequestEnvelope<'a> {
    /// The version as the client names it.
    pub(crate) version: Cow<'a, str>,
    pub(crate) meta: RequestMeta<'a>,
}

impl<'a> RequestEnvelope<'a> {
    /// Reads the envelope: version and capabilities are required, the client's name is optional.
    pub(crate) fn read(meta: Option<RequestMeta<'a>>) -> Result<Self, RpcError> {
        let missing = |key| RpcError::invalid_params(format!("params._meta lacks {key}"));
        let meta = meta.ok_or_else(|| missing(VERSION_KEY))?;
        let raw = meta.protocol_version.ok_or_else(|| missing(VERSION_KEY))?;
        let version = text(raw).ok_or_else(|| {
            RpcError::invalid_params(format!("params._meta.{VERSION_KEY} is not a string"))
        })?;
        let is_object = |raw: &RawValue| raw.get().starts_with('{');
        if !meta.client_capabilities.is_some_and(is_object) {
            return Err(missing(CAPABILITIES_KEY));
        }
        Ok(Self { version, meta })
    }

    /// Returns the envelope if its version is supported.
    pub(crate) fn served(self) -> Result<Self, RpcError> {
        if self.version == MODERN {
            Ok(self)
        } else {
            Err(unsupported_version(&self.version))
        }
    }

    /// Returns the requested job.
    pub(crate) fn job(&self, method: &str, params: &RequestParams<'_>) -> Result<Job, RpcError> {
        Job::modern(method, params, &self.meta)
    }
}

/// Returns the stateless era's version error, with the supported versions.
pub(crate) fn unsupported_version(requested: &str) -> RpcError {
    let shown = clip(requested, 64);
    let data = serde_json::json!({ "supported": SUPPORTED, "requested": shown });
    RpcError::new(RpcError::VERSION, "unsupported protocol version").with_data(data.to_string())
}
