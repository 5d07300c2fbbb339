//! `Endpoint`: the address of an HTTP server, and the form of requests to it.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use haft_http::connections::Destination;
use http::header::{ACCEPT, CONTENT_TYPE, HOST};
use http::{HeaderMap, HeaderValue, Method, Request, Uri};
use http_body_util::Full;
use url::Url;

use crate::client::error::ClientError;

/// The address of a server and what goes with every request.
#[derive(Debug, Clone)]
pub struct Endpoint {
    /// Its URL: `http` or `https`, with a host.
    pub(crate) url: Url,
    pub(crate) headers: HeaderMap,
    /// Maximum length of a message from the server, in bytes.
    pub(crate) longest: usize,
}

/// Why an address is invalid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EndpointError {
    /// It is not a URL.
    #[error("it is not a URL")]
    Form,
    /// Its scheme is not supported.
    #[error("it is neither https:// nor http://")]
    Scheme,
    /// It has no host.
    #[error("it names no host")]
    Host,
    /// It contains a user name or a password.
    #[error("it holds a login; name it in `headers`")]
    Login,
}

impl Endpoint {
    /// Creates the endpoint for this URL. `headers` go with every request; `longest` is the maximum length of the server's messages.
    ///
    /// # Errors
    /// The URL cannot be the address of a server.
    pub fn new(url: &str, headers: HeaderMap, longest: usize) -> Result<Self, EndpointError> {
        let url = Url::parse(url).map_err(|error| match error {
            url::ParseError::EmptyHost => EndpointError::Host,
            _ => EndpointError::Form,
        })?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(EndpointError::Scheme);
        }
        if url.host_str().is_none_or(str::is_empty) {
            return Err(EndpointError::Host);
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(EndpointError::Login);
        }
        Ok(Self {
            url,
            headers,
            longest,
        })
    }

    /// Returns whether connections to it are encrypted.
    pub fn is_secure(&self) -> bool {
        self.url.scheme() == "https"
    }

    /// Returns the host; an IPv6 address is in brackets.
    pub fn host(&self) -> &str {
        self.url.host_str().unwrap_or_default()
    }

    /// Returns the port.
    pub fn port(&self) -> u16 {
        self.url.port_or_known_default().unwrap_or_default()
    }

    /// Returns the whole URL.
    pub fn url(&self) -> &str {
        self.url.as_str()
    }

    /// Returns where connections to it lead.
    pub(crate) fn destination(&self) -> Destination {
        Destination {
            host: self.host().to_owned(),
            port: self.port(),
            secure: self.is_secure(),
        }
    }

    /// Returns a POST request with a message.
    pub(crate) fn post(&self, message: Vec<u8>) -> Result<Request<Full<Bytes>>, ClientError> {
        let mut request = self.request(Method::POST, Bytes::from(message))?;
        let headers = request.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let both = HeaderValue::from_static("application/json, text/event-stream");
        headers.insert(ACCEPT, both);
        Ok(request)
    }

    /// Returns a GET request for an event stream.
    pub(crate) fn stream(&self) -> Result<Request<Full<Bytes>>, ClientError> {
        let mut request = self.request(Method::GET, Bytes::new())?;
        let stream = HeaderValue::from_static("text/event-stream");
        request.headers_mut().insert(ACCEPT, stream);
        Ok(request)
    }

    /// Returns a request with the headers that all of them share.
    pub(crate) fn request(
        &self,
        method: Method,
        body: Bytes,
    ) -> Result<Request<Full<Bytes>>, ClientError> {
        let malformed =
            |what: &str| ClientError::Unreachable(format!("its address has a wrong {what}"));
        let mut request = Request::new(Full::new(body));
        *request.method_mut() = method;
        let path = match self.url.query() {
            Some(query) => format!("{}?{query}", self.url.path()),
            None => self.url.path().to_owned(),
        };
        *request.uri_mut() = path.parse::<Uri>().map_err(|_| malformed("path"))?;
        let headers = request.headers_mut();
        headers.extend(self.headers.clone());
        let host = self.url.host_str().ok_or_else(|| malformed("host"))?;
        let host = match self.url.port() {
            Some(port) => format!("{host}:{port}"),
            None => host.to_owned(),
        };
        let host = HeaderValue::from_str(&host);
        headers.insert(HOST, host.map_err(|_| malformed("host"))?);
        Ok(request)
    }
}

/// Returns a header value; what a header cannot hold is encoded as `=?base64?…?=` (2026-07-28, transports).
pub(crate) fn header_value(text: &str) -> Result<HeaderValue, ClientError> {
    let plain = text.bytes().all(|b| (0x20..0x7f).contains(&b)) && text.trim() == text;
    let value = if plain && !text.starts_with("=?") {
        HeaderValue::from_str(text)
    } else {
        HeaderValue::from_str(&format!("=?base64?{}?=", STANDARD.encode(text)))
    };
    value.map_err(|_| ClientError::Unreachable("a header is too long".into()))
}

#[cfg(test)]
mod tests {
    use super::header_value;

    #[test]
    fn a_header_holds_what_it_can_and_the_rest_as_base64() {
        for (text, expect) in [
            ("us-west1", "us-west1"),
            ("us west 1", "us west 1"),
            ("", ""),
            (" padded ", "=?base64?IHBhZGRlZCA=?="),
            ("line1\r\nline2", "=?base64?bGluZTENCmxpbmUy?="),
            ("\tx", "=?base64?CXg=?="),
            ("Grüße", "=?base64?R3LDvMOfZQ==?="),
            ("=?base64?eA==?=", "=?base64?PT9iYXNlNjQ/ZUE9PT89?="),
        ] {
            assert_eq!(header_value(text).unwrap(), expect, "{text:?}");
        }
    }
}
