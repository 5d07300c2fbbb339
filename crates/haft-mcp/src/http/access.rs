//! `Access`: who may use the HTTP service, checked before anything else in a request.

use std::fmt;
use std::sync::Arc;

use haft::bounds::{CallerClass, ShareKey};
use haft::call::Principal;
use http::header::{AUTHORIZATION, WWW_AUTHENTICATE};
use http::{HeaderValue, Request, Response, StatusCode};

use super::{McpBody, plain};
use crate::guard::{HostGuard, HostGuardError, bearer, one};
use crate::opener::{OperatorMarker, ViewName};

/// Who may use an HTTP service.
///
/// There is no default: a service is explicitly for clients with tokens, for anyone, or behind checks that were made earlier.
#[derive(Debug, Clone)]
pub struct Access(AccessMode);

/// Returns the owner of a token.
type TokenLookup = dyn Fn(&str) -> Option<TokenOwner> + Send + Sync;

#[derive(Clone)]
enum AccessMode {
    Tokens(HostGuard, Arc<TokenLookup>),
    Anybody(HostGuard),
    CheckedBefore,
}

impl fmt::Debug for AccessMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Tokens(..) => "Tokens",
            Self::Anybody(_) => "Anybody",
            Self::CheckedBefore => "CheckedBefore",
        })
    }
}

/// A client as identified by its token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenOwner {
    /// The principal that its calls are made for; `None` leaves the choice to the opener.
    pub principal: Option<Principal>,
    /// Its view, if it does not have all tools.
    pub view: Option<ViewName>,
    /// Whether it used the operator's token: see [`OperatorMarker`].
    pub operator: bool,
}

impl From<Principal> for TokenOwner {
    fn from(principal: Principal) -> Self {
        Self {
            principal: Some(principal),
            view: None,
            operator: false,
        }
    }
}

impl TokenOwner {
    /// Returns the class whose share of the service's limits it uses.
    pub(crate) fn class(&self) -> CallerClass {
        if self.operator {
            CallerClass::Operator
        } else {
            CallerClass::Client
        }
    }

    /// Returns whose share of the service's limits it uses.
    pub(crate) fn share(&self) -> ShareKey {
        ShareKey {
            class: self.class(),
            principal: self.principal.clone(),
        }
    }
}

impl Access {
    /// Admits clients that send `Authorization: Bearer TOKEN` with a token that `caller` knows, to one of this server's names and
    /// from no page of another origin. Compare tokens with [`same_token`](crate::guard::same_token).
    pub fn bearer(
        hosts: HostGuard,
        caller: impl Fn(&str) -> Option<TokenOwner> + Send + Sync + 'static,
    ) -> Self {
        Self(AccessMode::Tokens(hosts, Arc::new(caller)))
    }

    /// Admits anyone who reaches the server by one of these names, but no page of another origin. A [`Principal`] in the
    /// request's extensions says who it is, if the host knows, and a [`ViewName`] which view it has.
    pub fn without_token(hosts: HostGuard) -> Self {
        Self(AccessMode::Anybody(hosts))
    }

    /// Admits every request: the host has already checked Host, Origin and token. A [`Principal`], a [`ViewName`] and
    /// [`OperatorMarker`] in the request's extensions say who the caller is and which view it has.
    pub fn checked_before() -> Self {
        Self(AccessMode::CheckedBefore)
    }

    /// Returns the sender of a request, if it is admitted. The service calls this itself; a host may call it for other routes.
    ///
    /// # Errors
    /// The request is not meant for this server, a page of another origin made it, or its token is unknown.
    pub fn admit<B>(&self, request: &Request<B>) -> Result<TokenOwner, AccessDenied> {
        let named = || TokenOwner {
            principal: request.extensions().get::<Principal>().cloned(),
            view: request.extensions().get::<ViewName>().cloned(),
            operator: request.extensions().get::<OperatorMarker>().is_some(),
        };
        let (uri, headers) = (request.uri(), request.headers());
        match &self.0 {
            AccessMode::Tokens(hosts, caller) => {
                hosts.check(uri, headers)?;
                let token = bearer(one(headers, &AUTHORIZATION)?);
                token
                    .and_then(|token| caller(token))
                    .ok_or(AccessDenied::NoToken)
            }
            AccessMode::Anybody(hosts) => {
                hosts.check(uri, headers)?;
                Ok(named())
            }
            AccessMode::CheckedBefore => Ok(named()),
        }
    }
}

/// Why a request is refused.
#[derive(Debug, thiserror::Error)]
pub enum AccessDenied {
    /// It is not meant for this server.
    #[error(transparent)]
    Foreign(#[from] HostGuardError),
    /// It carries no known token.
    #[error("send `Authorization: Bearer TOKEN` with a token of this server")]
    NoToken,
}

impl AccessDenied {
    pub(crate) fn respond(&self) -> Response<McpBody> {
        let message = self.to_string();
        let Self::NoToken = self else {
            return plain(StatusCode::FORBIDDEN, message);
        };
        let mut response = plain(StatusCode::UNAUTHORIZED, message);
        let headers = response.headers_mut();
        headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        response
    }
}
