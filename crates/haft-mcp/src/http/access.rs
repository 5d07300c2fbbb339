//! `Access`: who may use the HTTP service, checked before a request is looked at any further.

use std::fmt;
use std::sync::Arc;

use haft::bounds::Class;
use haft::call::Principal;
use http::header::{AUTHORIZATION, WWW_AUTHENTICATE};
use http::{HeaderValue, Request, Response, StatusCode};

use super::{McpBody, plain};
use crate::guard::{Foreign, HostGuard, bearer, one};
use crate::opener::{ByOperator, ViewName};

/// Who may use an HTTP service.
///
/// There is no default: a service is made for clients with tokens, for anybody on purpose, or behind checks that have been
/// made before.
#[derive(Debug, Clone)]
pub struct Access(Kind);

/// Whose token this is.
type Callers = dyn Fn(&str) -> Option<Caller> + Send + Sync;

#[derive(Clone)]
enum Kind {
    Tokens(HostGuard, Arc<Callers>),
    Anybody(HostGuard),
    CheckedBefore,
}

impl fmt::Debug for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Tokens(..) => "Tokens",
            Self::Anybody(_) => "Anybody",
            Self::CheckedBefore => "CheckedBefore",
        })
    }
}

/// A client as its token shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caller {
    /// For whom its calls are made; the opener's choice where there is none.
    pub principal: Option<Principal>,
    /// The view that it has, where it has not all tools.
    pub view: Option<ViewName>,
    /// Whether it came with the operator's token: see [`ByOperator`].
    pub operator: bool,
}

impl From<Principal> for Caller {
    fn from(principal: Principal) -> Self {
        Self {
            principal: Some(principal),
            view: None,
            operator: false,
        }
    }
}

impl Caller {
    /// Whose share of the service's bounds it uses.
    pub(crate) fn class(&self) -> Class {
        if self.operator {
            Class::Operator
        } else {
            Class::Client
        }
    }
}

impl Access {
    /// For clients that send `Authorization: Bearer TOKEN` with a token that `caller` knows, to a server of these names and
    /// from no page of another origin. Compare tokens with [`same_token`](crate::guard::same_token).
    pub fn bearer(
        hosts: HostGuard,
        caller: impl Fn(&str) -> Option<Caller> + Send + Sync + 'static,
    ) -> Self {
        Self(Kind::Tokens(hosts, Arc::new(caller)))
    }

    /// For anybody who reaches the server under one of these names, and no page of another origin. A [`Principal`] among the
    /// request's extensions says who it is, where the host has found that out, a [`ViewName`] which view it has.
    pub fn without_token(hosts: HostGuard) -> Self {
        Self(Kind::Anybody(hosts))
    }

    /// For every request that comes: the host has checked Host, Origin and token before. A [`Principal`], a [`ViewName`] and
    /// [`ByOperator`] among the request's extensions say who it is, and which view it has.
    pub fn checked_before() -> Self {
        Self(Kind::CheckedBefore)
    }

    /// Returns who sends a request, if they may. The service does this by itself; a host does it for other routes of its own.
    ///
    /// # Errors
    /// The request is not meant for this server, or a page of another origin made it, or its token is none that is known.
    pub fn admit<B>(&self, request: &Request<B>) -> Result<Caller, Denied> {
        let named = || Caller {
            principal: request.extensions().get::<Principal>().cloned(),
            view: request.extensions().get::<ViewName>().cloned(),
            operator: request.extensions().get::<ByOperator>().is_some(),
        };
        let (uri, headers) = (request.uri(), request.headers());
        match &self.0 {
            Kind::Tokens(hosts, caller) => {
                hosts.check(uri, headers)?;
                let token = bearer(one(headers, &AUTHORIZATION)?);
                token.and_then(|token| caller(token)).ok_or(Denied::NoToken)
            }
            Kind::Anybody(hosts) => {
                hosts.check(uri, headers)?;
                Ok(named())
            }
            Kind::CheckedBefore => Ok(named()),
        }
    }
}

/// Why a request is not served.
#[derive(Debug, thiserror::Error)]
pub enum Denied {
    /// It is not for this server.
    #[error(transparent)]
    Foreign(#[from] Foreign),
    /// It carries no token that is known.
    #[error("send `Authorization: Bearer TOKEN` with a token of this server")]
    NoToken,
}

impl Denied {
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
