//! `ApiCaller`: who made a request that passed the gate.

use std::net::IpAddr;

use haft::bounds::CallerClass;

/// Who made a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum ApiCaller {
    /// A client with the call token, or without a token under `--no-auth`.
    Client,
    /// The operator, with the operator's token or a console session.
    Operator,
}

impl ApiCaller {
    /// Returns the class whose share of the limits applies.
    pub(crate) fn class(self) -> CallerClass {
        match self {
            Self::Client => CallerClass::Client,
            Self::Operator => CallerClass::Operator,
        }
    }
}

/// How the caller authenticated, for the stamp on a decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AuthMethod {
    /// By token, or without one under `--no-auth`.
    Token,
    /// By a console session.
    Console,
}

impl AuthMethod {
    /// Returns the word for a decision's stamp.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Token => "api",
            Self::Console => "console",
        }
    }
}

/// The remote address of a request's connection.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Peer(pub(crate) IpAddr);
