//! Advice for tools that are off: which setting turns them on.

use std::sync::Arc;

use haft::session::UnknownToolHint;
use haft::toolset::Toolset;
use haft_chain::TOOL_CHAIN;

use crate::site::Site;
use crate::wiring::{chain, memory, selection};

/// Advises how to turn on a tool that is merely off.
#[derive(Debug)]
struct DisabledToolHint {
    all: Arc<dyn Toolset>,
    /// Whether there is an interpreter for scripts.
    python: bool,
}

impl UnknownToolHint for DisabledToolHint {
    fn advice(&self, name: &str) -> Option<String> {
        let script = self.python && name == TOOL_CHAIN;
        if self.all.snapshot().entry(name).is_none() && !script {
            let unconfigured = selection::missing_configuration(name).map(str::to_owned);
            return unconfigured.or_else(|| memory::absent(name));
        }
        Some(selection::how_to_enable(name))
    }
}

/// Returns the advice for tools that are off.
pub(crate) fn hint(at: &Site, all: Arc<dyn Toolset>) -> Arc<dyn UnknownToolHint> {
    Arc::new(DisabledToolHint {
        all,
        python: chain::has_python(&at.environment),
    })
}
