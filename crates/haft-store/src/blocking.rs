//! Whether the thread that asks may wait.

use tokio::runtime::{Handle, RuntimeFlavor, worker_index};

/// Whether `block_in_place` may be used here: on a worker of a runtime that has other tasks go on elsewhere meanwhile. Within
/// a `LocalSet` it would panic.
pub(crate) fn may_block() -> bool {
    worker_index().is_some()
        && Handle::try_current()
            .is_ok_and(|runtime| runtime.runtime_flavor() == RuntimeFlavor::MultiThread)
}
