//! Who makes a request, once the gate has let it through.

use std::net::IpAddr;

use haft::bounds::Class;

/// Who asks, once the gate let them through.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Caller {
    /// With the call token, or with none where none is asked for.
    Client,
    /// With the operator's token, or a console session.
    Operator,
}

impl Caller {
    /// Whose share of the bounds they use.
    pub(crate) fn class(self) -> Class {
        match self {
            Self::Client => Class::Client,
            Self::Operator => Class::Operator,
        }
    }
}

/// By which way the caller showed who they are: what a decision is stamped with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    /// A token, or none where none is asked for.
    Token,
    /// A console session.
    Console,
}

impl Way {
    /// The word in a decision's stamp.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Token => "api",
            Self::Console => "console",
        }
    }
}

/// Whose connection a request came by.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Peer(pub(crate) IpAddr);
