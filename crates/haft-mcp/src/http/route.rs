//! `Route`: the era of a POST, and the check of its headers against its body.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::HeaderMap;
use serde_json::value::RawValue;

use crate::era::Revision;
use crate::wire::params::{RequestParams, text};
use crate::wire::{RpcError, RpcMessage};

pub(crate) const VERSION: &str = "mcp-protocol-version";
pub(crate) const METHOD: &str = "mcp-method";
pub(crate) const NAME: &str = "mcp-name";

/// The era of a POST.
#[derive(Debug)]
pub(crate) enum Route {
    /// With a session, or about to open one.
    Legacy,
    /// Self-contained, with the version in its header.
    Modern(String),
}

/// Chooses by the version header; a version in the body must agree with it.
pub(crate) fn choose(headers: &HeaderMap, message: &RpcMessage<'_>) -> Result<Route, RpcError> {
    let version = one(headers, VERSION)?;
    match version {
        Some(version) if Revision::parse(version).is_none() => {
            Ok(Route::Modern(version.to_owned()))
        }
        _ if is_stateless(message) => Err(mismatch(match version {
            None => "the header MCP-Protocol-Version is missing",
            Some(_) => "the header MCP-Protocol-Version is not the version in params._meta",
        })),
        _ => Ok(Route::Legacy),
    }
}

/// Returns whether a request names its version in `_meta`, as in the stateless era.
fn is_stateless(message: &RpcMessage<'_>) -> bool {
    let RpcMessage::Request(request) = message else {
        return false;
    };
    let meta = |params: Option<&RawValue>| {
        let params = RequestParams::parse(params).ok()?;
        params.meta().ok()??.protocol_version.map(|_| ())
    };
    request.method != "initialize" && meta(request.params).is_some()
}

/// Checks a stateless request's headers against its body.
pub(crate) fn check(
    headers: &HeaderMap,
    version: &str,
    method: &str,
    named: Option<&RawValue>,
) -> Result<(), RpcError> {
    if one(headers, VERSION)? != Some(version) {
        return Err(mismatch(
            "the header MCP-Protocol-Version is not the version in params._meta",
        ));
    }
    if one(headers, METHOD)? != Some(method) {
        return Err(mismatch("the header Mcp-Method is not the body's method"));
    }
    let Some(named) = named.and_then(text) else {
        return Ok(());
    };
    let given = one(headers, NAME)?.and_then(decoded);
    if given.as_deref() != Some(&*named) {
        return Err(mismatch(
            "the header Mcp-Name is not what the body's params name",
        ));
    }
    Ok(())
}

/// Returns a header that may occur only once: two readers must not see different values.
pub(super) fn one<'a>(headers: &'a HeaderMap, name: &str) -> Result<Option<&'a str>, RpcError> {
    let mut values = headers.get_all(name).iter();
    let Some(value) = values.next() else {
        return Ok(None);
    };
    if values.next().is_some() {
        return Err(mismatch(format!("the header {name} appears twice")));
    }
    let text = value.to_str().ok();
    text.map(Some)
        .ok_or_else(|| mismatch(format!("the header {name} is not plain ASCII")))
}

/// Decodes a header's value: plain, or the text inside `=?base64?…?=`. A malformed one equals nothing.
pub(super) fn decoded(value: &str) -> Option<String> {
    let Some(inner) = value.strip_prefix("=?base64?") else {
        return Some(value.to_owned());
    };
    let Some(inner) = inner.strip_suffix("?=") else {
        return Some(value.to_owned());
    };
    // Only canonical base64, so that each text has one spelling.
    String::from_utf8(STANDARD.decode(inner).ok()?).ok()
}

pub(super) fn mismatch(message: impl Into<std::borrow::Cow<'static, str>>) -> RpcError {
    RpcError::new(RpcError::HEADER_MISMATCH, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_is_read_as_it_stands_or_out_of_its_base64_wrapping() {
        for (value, expect) in [
            ("read_file", Some("read_file")),
            ("=?base64?Z3LDvG4=?=", Some("grün")),
            ("=?base64??=", Some("")),
            ("=?base64?Z3LDvG4?=", None),
            ("=?base64?!!?=", None),
            ("=?base64?/w==?=", None),
            ("=?base64?Z3LDvG4=", Some("=?base64?Z3LDvG4=")),
        ] {
            assert_eq!(decoded(value).as_deref(), expect, "{value}");
        }
    }
}
