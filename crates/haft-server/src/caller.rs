//! `Caller`: who made a request that passed the gate.

use std::net::IpAddr;

use haft::bounds::Class;

/// Who made a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Caller {
    /// A client with the call token, or without a token under `--no-auth`.
    Client,
    /// The operator, with the operator's token or a console session.
    Operator,
}

impl Caller {
    /// Returns the class whose share of the limits applies.
    pub(crate) fn class(self) -> Class {
        match self {
            Self::Client => Class::Client,
            Self::Operator => Class::Operator,
        }
    }
}

/// How the caller authenticated, for the stamp on a decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    /// By token, or without one under `--no-auth`.
    Token,
    /// By a console session.
    Console,
}

impl Way {
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
