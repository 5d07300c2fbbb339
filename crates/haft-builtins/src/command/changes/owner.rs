//! `ViewOwner`: whose command works on a view.

use haft::call::{CallId, RunId};
use haft::context::CallContext;

/// The call that a view is for.
#[derive(Debug, Clone)]
pub(crate) struct ViewOwner {
    pub(super) run: RunId,
    pub(super) call: CallId,
    /// The runs that share what their commands add to caches, if its run is one of several.
    pub(super) group: Option<String>,
}

impl ViewOwner {
    /// The call of this context.
    pub(crate) fn of(context: &CallContext) -> Self {
        Self {
            run: context.run().clone(),
            call: context.call_id().clone(),
            group: context.group().map(|group| group.name().to_owned()),
        }
    }
}
