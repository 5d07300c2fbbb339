//! `may_block`: whether the current thread may block.

use tokio::runtime::{Handle, RuntimeFlavor, worker_index};

/// Returns whether `block_in_place` may be used here: on a worker of a multi-threaded runtime, which moves other tasks to other
/// threads meanwhile. Within a `LocalSet` it would panic.
pub(crate) fn may_block() -> bool {
    worker_index().is_some()
        && Handle::try_current()
            .is_ok_and(|runtime| runtime.runtime_flavor() == RuntimeFlavor::MultiThread)
}
