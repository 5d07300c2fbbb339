//! One HTTP request: its route, its authorization, and its body.

use bytes::Bytes;
use haft_wire::Dialect;
use http::header::{AUTHORIZATION, CONTENT_TYPE};
use http::{HeaderMap, Method, Uri};
use serde_json::Value;

use crate::refusal::ProviderError;

/// A request that the server received, and its result.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct RecordedExchange {
    /// The dialect, determined by the path.
    pub dialect: Dialect,
    /// The path with its query.
    pub path: String,
    /// The headers, sorted by name.
    pub headers: Vec<(String, String)>,
    /// The body, unchanged.
    pub body: Bytes,
    /// The requested model.
    pub model: String,
    /// Whether the reply is streamed.
    pub stream: bool,
    /// The turn of the scenario that it is for, from 0, even if the turn's expectations refused it; `None` for an
    /// aside, the end, or a request that was refused before.
    pub turn: Option<usize>,
    /// The status of the response.
    pub status: u16,
    /// Whether the response had a fault from the scenario.
    pub is_faulty: bool,
    /// The reason why the request was refused, if it was: by the provider's rules, or (`scenario: …`) by the scenario's expectations.
    pub problem: Option<String>,
}

impl RecordedExchange {
    /// Returns the body as JSON; null if it is not JSON.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }

    /// Returns the first value of a header, by its lowercase name.
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut headers = self.headers.iter();
        let found = headers.find(|(own, _)| own == name);
        found.map(|(_, value)| value.as_str())
    }
}

/// A request on its way to the stage.
#[derive(Debug)]
pub(crate) struct IncomingRequest {
    pub(crate) exchange: RecordedExchange,
    pub(crate) headers: HeaderMap,
    /// The body as JSON, or the reason why the request is refused before it is read.
    pub(crate) body: Result<Value, ProviderError>,
}

/// What the path and the query of a request determine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RequestRoute {
    pub(crate) dialect: Dialect,
    /// The model, if the path names it.
    pub(crate) model: String,
    /// Whether the path requests a stream.
    pub(crate) stream: bool,
}

/// Returns the route of a path.
///
/// # Errors
/// If nothing is served under it.
pub(crate) fn route(method: &Method, uri: &Uri) -> Result<RequestRoute, ProviderError> {
    let plain = |dialect| RequestRoute {
        dialect,
        model: String::new(),
        stream: false,
    };
    let path = uri.path();
    let route = match path {
        "/v1/chat/completions" => plain(Dialect::OpenAiChat),
        "/v1/responses" => plain(Dialect::OpenAiResponses),
        "/v1/messages" => plain(Dialect::Anthropic),
        _ => gemini(path, uri.query().unwrap_or_default())?,
    };
    if method == Method::POST {
        return Ok(route);
    }
    let words = format!("{method} {path}: only POST is answered here");
    Err(ProviderError::new(405, words))
}

fn gemini(path: &str, query: &str) -> Result<RequestRoute, ProviderError> {
    let unknown = || {
        let words = format!(
            "{path}: nothing is here; POST to /v1/chat/completions, /v1/responses, /v1/messages or /v1beta/models/MODEL:generateContent"
        );
        ProviderError::new(404, words)
    };
    let rest = path
        .strip_prefix("/v1beta/models/")
        .or_else(|| path.strip_prefix("/v1/models/"));
    let (model, action) = rest
        .and_then(|rest| rest.split_once(':'))
        .ok_or_else(unknown)?;
    let stream = match action {
        "generateContent" => false,
        "streamGenerateContent" if query.split('&').any(|part| part == "alt=sse") => true,
        "streamGenerateContent" => {
            let words = format!(
                "{path}: without alt=sse the stream is a JSON list, which is not offered here; add ?alt=sse"
            );
            return Err(ProviderError::invalid(words));
        }
        _ => return Err(unknown()),
    };
    Ok(RequestRoute {
        dialect: Dialect::Gemini,
        model: model.to_owned(),
        stream,
    })
}

/// Checks the headers that a provider requires.
///
/// # Errors
/// If the key is missing or wrong, a header is missing, or the body is not sent as JSON.
pub(crate) fn authorize(
    dialect: Dialect,
    headers: &HeaderMap,
    uri: &Uri,
    key: Option<&str>,
) -> Result<(), ProviderError> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let bearer = text(AUTHORIZATION.as_str()).and_then(|value| value.strip_prefix("Bearer "));
    let sent = match dialect {
        Dialect::OpenAiChat | Dialect::OpenAiResponses => bearer,
        Dialect::Anthropic => text("x-api-key").or(bearer),
        Dialect::Gemini => {
            let query = uri.query().unwrap_or_default();
            let own = query.split('&').find_map(|part| part.strip_prefix("key="));
            text("x-goog-api-key").or(own).or(bearer)
        }
    };
    let sent = sent.filter(|sent| !sent.is_empty());
    let refused = match (sent, key) {
        (None, _) => Some("no API key: any text will do"),
        (Some(sent), Some(key)) if sent != key => Some("invalid API key"),
        _ => None,
    };
    if let Some(words) = refused {
        return Err(match dialect {
            // Google's message.
            Dialect::Gemini => ProviderError::new(
                400,
                format!("API key not valid. Please pass a valid API key. ({words})"),
            ),
            Dialect::Anthropic => ProviderError::new(401, format!("invalid x-api-key ({words})")),
            _ => ProviderError::new(401, format!("Incorrect API key provided ({words})"))
                .code("invalid_api_key"),
        });
    }
    if dialect == Dialect::Anthropic && text("anthropic-version").is_none() {
        return Err(ProviderError::invalid(
            "anthropic-version: header is required",
        ));
    }
    let json = text(CONTENT_TYPE.as_str()).is_some_and(|kind| kind.starts_with("application/json"));
    if json {
        return Ok(());
    }
    let kind = text(CONTENT_TYPE.as_str()).unwrap_or("none");
    let words = format!(
        "Unsupported content type: '{kind}'. This API method only accepts 'application/json' requests, but you specified the header 'Content-Type: {kind}'. Please try again with a supported content type."
    );
    Err(ProviderError::invalid(words))
}

/// Parses a body as JSON.
///
/// # Errors
/// If it is not JSON, or not an object.
pub(crate) fn parse(dialect: Dialect, body: &[u8]) -> Result<Value, ProviderError> {
    let why = match serde_json::from_slice::<Value>(body) {
        Ok(value) if value.is_object() => return Ok(value),
        Ok(_) => "it is not an object".to_owned(),
        Err(error) => error.to_string(),
    };
    Err(ProviderError::invalid(match dialect {
        Dialect::Anthropic => format!("The request body is not valid JSON: {why}"),
        Dialect::Gemini => format!("Invalid JSON payload received. {why}"),
        _ => format!("We could not parse the JSON body of your request. ({why})"),
    }))
}
