//! `Notices`: where the application reports problems besides the one that it returns.

use std::fmt;
use std::sync::Arc;

/// Receives warnings for the user: a terminal prints them, a server logs them. Clones share the receiver.
#[derive(Clone)]
pub struct Notices(Arc<dyn Fn(&str) + Send + Sync>);

impl Notices {
    /// Sends warnings to `receive`, which is called from any thread and must not block.
    pub fn new(receive: impl Fn(&str) + Send + Sync + 'static) -> Self {
        Self(Arc::new(receive))
    }

    /// Sends a warning. The text may contain output of tools or models: the receiver must make control characters visible.
    pub fn warn(&self, text: &str) {
        (self.0)(text);
    }
}

impl Default for Notices {
    /// Logs warnings (`tracing`).
    fn default() -> Self {
        Self::new(|text| tracing::warn!("{text}"))
    }
}

impl fmt::Debug for Notices {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Notices").finish_non_exhaustive()
    }
}
