//! Anthropic Messages.

use crate::declared::{Declared, Fragment};
use crate::error::WireError;
use crate::limits::Limits;
use crate::names::Names;
use crate::reply::Reply;
use crate::request::Request;
use crate::stream::Delta;

/// A tool in this dialect's words; `None` for one that it has no words for.
pub(crate) fn fragment(_tool: &Declared, _names: &Names) -> Option<Fragment> {
    None
}

pub(crate) fn write(_request: &Request<'_>) -> Result<Vec<u8>, WireError> {
    Err(WireError::Cut(0))
}

pub(crate) fn read(_body: &[u8], _limits: Limits) -> Result<Reply, WireError> {
    Err(WireError::Cut(0))
}

/// A reply out of events.
#[derive(Debug)]
pub(crate) struct Stream;

impl Stream {
    pub(crate) fn new(_limits: Limits) -> Self {
        Self
    }

    pub(crate) fn push(
        &mut self,
        _piece: &[u8],
        _deltas: &mut Vec<Delta>,
    ) -> Result<(), WireError> {
        Err(WireError::Cut(0))
    }

    pub(crate) fn is_whole(&self) -> bool {
        false
    }

    pub(crate) fn finish(self) -> Result<Reply, WireError> {
        Err(WireError::Cut(0))
    }
}
