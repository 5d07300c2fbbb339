//! `RequestLine`: a request of a command as rules and the user judge it. What could make a server take it for another one is refused.

use hyper::body::{Body, Incoming};
use hyper::header::HeaderName;
use hyper::http::uri::PathAndQuery;
use hyper::{Request, Uri};

use haft::policy::RequestTarget;

use crate::proxy::refusal::ConnectionRefusal;
use crate::proxy::strip_trailing_dot;
use crate::proxy::upgrade::{PassedUpgrades, UpgradeSlot};
use crate::web::target::WebUrl;

/// Headers by which some servers, or what stands before them, take another method, path or host than the request's own.
const OVERRIDES: [&str; 20] = [
    "forwarded",
    "x-envoy-original-path",
    "x-forwarded-host",
    "x-forwarded-method",
    "x-forwarded-path",
    "x-forwarded-prefix",
    "x-forwarded-uri",
    "x-host",
    "x-http-method",
    "x-http-method-override",
    "x-http-path-override",
    "x-method",
    "x-method-override",
    "x-original-host",
    "x-original-method",
    "x-original-uri",
    "x-original-url",
    "x-proxy-url",
    "x-request-method",
    "x-request-uri",
];
/// The same for names that begin like this.
const REWRITES: &str = "x-rewrite-";
/// The methods that change nothing (RFC 9110 §9.2.1).
const SAFE: [&str; 3] = ["GET", "HEAD", "OPTIONS"];

/// A request as it is judged: nothing of its headers and body.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct RequestLine {
    pub(crate) method: String,
    /// `http` or `https`.
    pub(crate) scheme: String,
    /// The path in its normal form, with the query.
    pub(crate) target: String,
    /// The size of its body, in bytes; `None` if the request does not say.
    pub(crate) body: Option<u64>,
}

/// Whether a header makes some servers take a request for another one. CGI and what follows it read `_` like `-`.
fn overrides(name: &HeaderName) -> bool {
    let name = name.as_str().replace('_', "-");
    name.starts_with(REWRITES) || OVERRIDES.contains(&&*name)
}

impl RequestLine {
    /// Parses a request that is judged because of this rule, and puts its path in the normal form: what is judged is what is sent.
    pub(super) fn of(
        request: &mut Request<Incoming>,
        target: &WebUrl,
        rule: &str,
    ) -> Result<Self, ConnectionRefusal> {
        let refuse = |why: String| ConnectionRefusal::Request {
            host: strip_trailing_dot(target.host()).to_owned(),
            why,
            rule: rule.to_owned(),
        };
        if let Some(name) = request.headers().keys().find(|name| overrides(name)) {
            return Err(refuse(format!(
                "the header {name} makes some servers take it for another request"
            )));
        }
        let upgrade = UpgradeSlot::new(PassedUpgrades::NotHttp).wanted(request);
        if let Some(protocol) = upgrade {
            let protocol = String::from_utf8_lossy(protocol.as_bytes()).into_owned();
            return Err(refuse(format!(
                "after an upgrade to {protocol} nothing more could be judged"
            )));
        }
        let written = request.uri().path_and_query();
        let written = written.map_or("", PathAndQuery::as_str);
        let read = RequestTarget::parse(written).map_err(|why| refuse(why.to_string()))?;
        // The query goes on as it is written: only rules read it in another form.
        let query = written.split_once('?').map(|(_, query)| query);
        let query = query.map_or_else(String::new, |query| format!("?{query}"));
        let sent = format!("{}{query}", read.path());
        if sent != written {
            let uri = sent.parse::<Uri>();
            *request.uri_mut() = uri.map_err(|_| refuse("its path cannot be sent".to_owned()))?;
        }
        Ok(Self {
            method: request.method().as_str().to_owned(),
            scheme: target.url().scheme().to_owned(),
            target: sent,
            body: request.body().size_hint().exact(),
        })
    }

    /// Whether one decision about it is one about each request that reads the same: it gets something and carries no content.
    pub(crate) fn is_repeatable(&self) -> bool {
        SAFE.contains(&&*self.method) && self.body == Some(0)
    }

    /// Returns the size of its body, for the user.
    pub(crate) fn body_size(&self) -> String {
        match self.body {
            Some(0) => "none".to_owned(),
            Some(1) => "1 byte".to_owned(),
            Some(size) => format!("{size} bytes"),
            None => "of unknown length".to_owned(),
        }
    }
}
