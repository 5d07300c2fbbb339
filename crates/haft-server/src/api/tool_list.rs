//! `ToolListBytes`: the list of all tools as it is sent, written once per change of the tools.

use std::sync::Arc;

use axum::body::Bytes;
use haft::toolset::ToolsetSnapshot;
use haft_app::view::tools;
use parking_lot::Mutex;

/// The list of all tools as it is sent. Writing it takes long enough that requests for it could keep the others waiting.
#[derive(Debug, Default)]
pub(crate) struct ToolListBytes(Mutex<Option<WrittenList>>);

#[derive(Debug)]
struct WrittenList {
    of: Arc<ToolsetSnapshot>,
    bytes: Bytes,
}

impl ToolListBytes {
    /// Returns the list of these tools.
    pub(crate) fn of(&self, snapshot: &Arc<ToolsetSnapshot>) -> Bytes {
        let mut written = self.0.lock();
        if let Some(written) = &*written
            && Arc::ptr_eq(&written.of, snapshot)
        {
            return written.bytes.clone();
        }
        // A list of JSON values always serializes.
        let bytes = serde_json::to_vec(&tools::describe_all(snapshot)).unwrap_or_default();
        let bytes = Bytes::from(bytes);
        *written = Some(WrittenList {
            of: Arc::clone(snapshot),
            bytes: bytes.clone(),
        });
        bytes
    }
}
